internal import Configuration
internal import Numbers
internal import TLS

// The client that this gateway is to Adobe: its device, its registration, its access token. The first two are kept for ever: another one
// would end every login (docs/design/wire/adobe-pass.md#headers).
extension AdobePassRun {
    func deviceID() async throws(GrantFailure) -> String {
        if let id = settings.device.id { return id }
        return try await environment.deviceID(world.random)
    }

    // MARK: - Access token (docs/design/wire/adobe-pass.md#access-token)

    /// - Parameter refused: one that the server does not take any more.
    func accessToken(unless refused: LayerMaterial?) async throws(GrantFailure) -> LayerMaterial {
        try await environment.durable(.accessToken, unless: refused) { () throws(GrantFailure) in
            try await self.fetchAccessToken()
        }
    }

    private func fetchAccessToken() async throws(GrantFailure) -> LayerMaterial {
        let client = try await registration(unless: nil)
        let reply = try await send(
            "token", "POST", settings.token,
            .form([("grant_type", "client_credentials"), ("client_id", client.id), ("client_secret", client.secret)]),
            [])
        if reply.status == 400, reply.text("error") == "invalid_client" {
            throw .credentialRejected(
                reason:
                    "token: invalid_client: the registration is gone, and its logins with it; a login registers anew")
        }
        guard (200...201).contains(reply.status), let token = reply.text("access_token") else {
            throw dcrFailure("token", reply)
        }
        guard token.isHeaderSafe else { throw .issuerAnswerInvalid(reason: "token: access_token cannot be sent") }
        // Adobe's page says 24 h and its example 6 h: the answer counts.
        guard let life = reply.tree?.number(["expires_in"]).map({ TimeSpan($0, .seconds) }), life > .zero else {
            throw .issuerAnswerInvalid(reason: "token: no expires_in")
        }
        // Renewed when nine tenths of it have passed.
        let used = min(life.nanoseconds, AccessGrant.longestLifetime) / 10 * 9
        return LayerMaterial(bytes: Secret(token), obtainedAt: reply.sentAt, lifetime: used)
    }

    // MARK: - Registration (docs/design/wire/adobe-pass.md#registration)

    struct Client {
        let id, secret: String
        let material: LayerMaterial

        init?(_ material: LayerMaterial) {
            guard let values = RecipeMaterial.decode(material.bytes)?["client"], let id = values["id"],
                let secret = values["secret"]
            else { return nil }
            self.id = id.text
            self.secret = secret.text
            self.material = material
        }
    }

    func registration(unless refused: LayerMaterial?) async throws(GrantFailure) -> Client {
        let material = try await environment.durable(.registration, unless: refused) { () throws(GrantFailure) in
            try await self.register()
        }
        guard let client = Client(material) else { throw .internal(reason: "a registration that is none") }
        return client
    }

    private func register() async throws(GrantFailure) -> LayerMaterial {
        let statement = try await environment.secret("software_statement")
        guard !statement.isEmpty, statement.withBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
            throw .secretUnusable(name: "software_statement", reason: "it is no JWT")
        }
        var body = JSONBody(capacity: statement.count + 512)
        body.member("software_statement", statement)
        if let redirect = settings.redirectURL { body.member("redirect_uri", redirect) }
        let reply = try await send("register", "POST", settings.register, .json(body.finish()), [], isOnce: true)
        guard (200...201).contains(reply.status), let id = reply.text("client_id"),
            let secret = reply.text("client_secret"), !id.isEmpty, !secret.isEmpty, id.utf8.count <= 1024,
            secret.utf8.count <= 4096
        else { throw dcrFailure("register", reply) }
        return LayerMaterial(
            bytes: RecipeMaterial.encode(["client": ["id": Secret(id), "secret": Secret(secret)]]),
            obtainedAt: reply.sentAt, lifetime: nil)
    }

    /// Errors of the two DCR calls are OAuth's.
    private func dcrFailure(_ step: String, _ reply: AdobePassReply) -> GrantFailure {
        let code = reply.text("error")?.asErrorCode
        switch code {
        case "invalid_software_statement", "unapproved_software_statement":
            return .credentialRejected(reason: "\(step): \(code ?? "")")
        case let code? where reply.status >= 400: return .configuration(reason: "\(step): \(code)")
        default: return failure(step, reply)
        }
    }
}

extension DurablePart {
    /// The access token of the client itself, which is none of a user's.
    static let accessToken: DurablePart = "access_token"
}

extension String {
    /// Visible ASCII of at most 8 KiB.
    var isHeaderSafe: Bool { (1...8192).contains(utf8.count) && utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
