internal import Configuration

/// `aws_sigv4`, as the keeper sees it: the access key is the token, and no issuer is asked, unless a program brings keys.
struct AWSSigV4Handshake: Handshake {
    let settings: AWSSigV4Settings
    let world: GrantWorld

    init(settings: AWSSigV4Settings, world: GrantWorld = GrantWorld()) {
        self.settings = settings
        self.world = world
    }

    var scheme: String { "aws_sigv4" }
    var statusRule: StatusRule { .refusals() }
    var signer: (any RequestSigner)? { AWSSigV4Signer(settings: settings) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        if settings.program != nil { return try await grantOfProgram(environment) }
        let id = try await environment.secret(AWSSigV4AccessKey.idName)
        let secret = try await environment.secret(AWSSigV4AccessKey.secretName)
        let token =
            settings.hasSessionToken ? try await environment.secret(AWSSigV4AccessKey.tokenName) : nil
        let key = try AWSSigV4AccessKey(id: id, secret: secret, sessionToken: token)
        return AccessGrant(
            token: key.encoded, tokenType: "", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }

    private func grantOfProgram(_ environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let run = try await ProgramRun(environment, world)
        let (key, lifetime) = try AWSSigV4AccessKey.brought(by: run.answer)
        return AccessGrant(token: key.encoded, tokenType: "", lifetime: lifetime, sentAt: run.startedAt)
    }

    /// The key behind a name: it is not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "Authorization", value: token) }

    var explanation: [String] {
        func part(_ written: String?, _ list: [String], _ name: String) -> String {
            guard list.isEmpty else {
                return "the \(name) that the caller signs for, of \(list.joined(separator: ", "))"
            }
            return written ?? "the \(name) that the upstream's host names"
        }
        let service = part(settings.service, settings.services, "service")
        let region = part(settings.region, settings.regions, "region")
        let body = settings.payload == .signed ? "the body" : "not the body"
        let keys = settings.program.map { ["runs \($0.path) for its keys"] } ?? []
        return keys + [
            "signs for \(service) in \(region) (AWS Signature Version 4): method, path, query, Host, Content-Type, Content-MD5, X-Amz-* and \(body)",
            "chunks of a body in aws-chunked are signed anew while it passes; a presigned URL is refused with 400",
        ]
    }
}
