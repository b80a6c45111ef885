/// `aws_sigv4`, as the keeper sees it: the access key is the token, and no issuer is asked.
struct AWSSigV4Handshake: Handshake {
    let settings: AWSSigV4Settings

    var scheme: String { "aws_sigv4" }
    var statusRule: StatusRule { .refusals() }
    var signer: (any RequestSigner)? { AWSSigV4Signer(settings: settings) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let id = try await environment.secret(AWSSigV4AccessKey.idName)
        let secret = try await environment.secret(AWSSigV4AccessKey.secretName)
        let token =
            settings.hasSessionToken ? try await environment.secret(AWSSigV4AccessKey.tokenName) : nil
        let key = try AWSSigV4AccessKey(id: id, secret: secret, sessionToken: token)
        return AccessGrant(
            token: key.encoded, tokenType: "", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }

    /// The key behind a name: it is not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "Authorization", value: token) }

    var explanation: [String] {
        let service = settings.service ?? "the service that the upstream's host names"
        let region = settings.region ?? "the region that the upstream's host names"
        let body = settings.payload == .signed ? "the body" : "not the body"
        return [
            "signs for \(service) in \(region) (AWS Signature Version 4): method, path, query, Host, Content-Type, Content-MD5, X-Amz-* and \(body)",
            "a presigned URL and a body in aws-chunked are refused with 400",
        ]
    }
}
