internal import Configuration
internal import Numbers
internal import Octets

/// REST API V1 (docs/design/wire/adobe-pass.md#v1), for service providers that Adobe has not moved on: the same client and the same person,
/// other words on the wire. Who asks and for what stands among a URL's parameters, a login is told by statuses, and a media token takes two
/// calls.
struct AdobePassV1: AdobePassAPI {
    let run: AdobePassRun
    private var settings: AdobePassSettings { run.settings }

    /// Seconds that a code is good for, as it is asked for; Adobe's own default.
    private static let codeLife = "1800"

    // MARK: - Login

    func login(_ dialogue: any LoginDialogue) async throws(GrantFailure) -> LoginGrant {
        await dialogue.progress("asking Adobe for a code")
        try await run.becomeClient()
        if let grant = try await lookUp(withMetadata: true) {
            await dialogue.progress("somebody has logged in already")
            return grant
        }
        let device = try await run.deviceID()
        let form = [("deviceId", device), ("mvpd", settings.mvpd), ("ttl", Self.codeLife)]
        let reply = try await run.call("regcode", "POST", "/reggie/v1/\(settings.serviceProvider)/regcode", .form(form))
        guard (200...201).contains(reply.status), let code = reply.text("code") else {
            throw run.failure("regcode", reply)
        }
        guard code.isCode else { throw .issuerAnswerInvalid(reason: "regcode: a code that cannot be shown") }
        let left = reply.tree?.moment(["expires"])?.left(at: run.wall) ?? .zero
        let life = left > .zero ? left : TimeSpan(1800, .seconds)
        return try await run.wait(
            for: code, at: try page(for: code), life: life.nanoseconds, dialogue
        ) { () throws(GrantFailure) in try await self.lookUp(withMetadata: true) }
    }

    /// The provider's page, by way of Adobe. The code comes first, since some readers take `&reg` for a character, and the address of the
    /// end comes last.
    private func page(for code: String) throws(GrantFailure) -> String {
        let domain = settings.domainName ?? ""
        let path = Self.target(
            "/api/v1/authenticate",
            [
                ("reg_code", code), ("requestor_id", settings.serviceProvider), ("mso_id", settings.mvpd),
                ("domain_name", domain), ("noflash", "true"), ("no_iframe", "true"),
                ("redirect_url", settings.redirectURL ?? "https://\(domain)/"),
            ])
        return try settings.url(path).description
    }

    func currentLogin() async throws(GrantFailure) -> LoginGrant {
        guard let grant = try await lookUp(withMetadata: false) else { throw AdobePassRun.nobodyLoggedIn }
        return grant
    }

    /// - Returns: nil where nobody has logged in, or no longer is.
    private func lookUp(withMetadata: Bool) async throws(GrantFailure) -> LoginGrant? {
        let reply = try await ask("authn", "/api/v1/tokens/authn")
        if [404, 410, 412].contains(reply.status) { return nil }
        guard reply.status == 200 else { throw failure("authn", reply) }
        guard let end = reply.tree?.moment(["expires"]) else {
            throw .issuerAnswerInvalid(reason: "authn: no expires")
        }
        guard reply.text("mvpd") == settings.mvpd else {
            throw .policyDenied(reason: "login: somebody logged in at another provider than mvpd says")
        }
        let left = end.left(at: run.wall)
        guard left > .zero else { return nil }
        let metadata = withMetadata ? await metadata() : []
        return run.grant(type: "regular", left: left, metadata: metadata, at: reply.sentAt)
    }

    /// For operators; a login is one without it.
    private func metadata() async -> [(name: String, isEncrypted: Bool)] {
        guard let reply = try? await ask("usermetadata", "/api/v1/tokens/usermetadata"), reply.status == 200 else {
            return []
        }
        let encrypted = Set((reply.tree?.items(["encrypted"]) ?? []).compactMap { $0.text([]) })
        return (reply.tree?.members(["data"]) ?? []).prefix(64).compactMap { member in
            member.name.asErrorCode.map { ($0, encrypted.contains($0)) }
        }
    }

    /// The login ends at Adobe; the provider hears nothing of it.
    func endLogin() async -> Bool {
        let reply = try? await ask("logout", "/api/v1/logout", method: "DELETE")
        return reply?.status == 204 || reply?.status == 200
    }

    // MARK: - Decisions

    func mediaToken(for resource: String) async throws(GrantFailure) -> Secret {
        guard let profile = await run.environment.session() else { throw AdobePassRun.nobodyLoggedIn }
        do throws(GrantFailure) {
            // Both turns at once: many requests that make the first call each would leave none of them the time for the second.
            let isPaired = settings.quota.burst > 1
            let decision = try await ask("authorize", "/api/v1/authorize", resource, turns: isPaired ? 2 : 1)
            guard decision.status == 200 else { throw try await refusal("authorize", decision) }
            guard decision.text("resource") == resource else {
                throw .issuerAnswerInvalid(reason: "authorize: no decision on the resource")
            }
            let reply = try await ask("media", "/api/v1/tokens/media", resource, turns: isPaired ? 0 : 1)
            guard reply.status == 200 else { throw try await refusal("media", reply) }
            guard reply.text("resource") == resource else {
                throw .issuerAnswerInvalid(reason: "media: a token for another resource")
            }
            return try run.mediaToken("media", reply.text("serializedToken"))
        } catch {
            if case .interactionRequired = error { await run.forget(profile) }
            throw error
        }
    }

    /// A 403 alone may mean that the resource is denied, or that nobody is logged in: who is says which.
    private func refusal(_ step: String, _ reply: AdobePassReply) async throws(GrantFailure) -> GrantFailure {
        guard reply.status == 403 || reply.status == 404, reply.error == nil else { return failure(step, reply) }
        _ = try await currentLogin()
        return .policyDenied(reason: "authorization_denied")
    }

    func preauthorize() async throws(GrantFailure) -> [IdentityFact] {
        let reply = try await ask(
            "preauthorize", "/api/v1/preauthorize", settings.preauthorized.joined(separator: ","))
        guard reply.status == 200, let decisions = reply.tree?.items(["resources"]) else {
            throw failure("preauthorize", reply)
        }
        return run.advice(decisions, named: "id")
    }

    // MARK: - Calls

    private func failure(_ step: String, _ reply: AdobePassReply) -> GrantFailure {
        if reply.error == nil, reply.status == 410 || reply.status == 412 {
            return .interactionRequired(reason: "\(step): the login is over")
        }
        return run.failure(step, reply)
    }

    private func ask(
        _ step: String, _ path: String, _ resource: String? = nil, method: String = "GET", turns: Int = 1
    ) async throws(GrantFailure) -> AdobePassReply {
        var parameters = [("requestor", settings.serviceProvider), ("deviceId", try await run.deviceID())]
        if let resource { parameters.append(("resource", resource)) }
        return try await run.call(step, method, Self.target(path, parameters), turns: turns)
    }

    private static func target(_ path: String, _ parameters: [(String, String)]) -> String {
        "\(path)?" + parameters.map { "\($0)=\(PercentEncoding.encode($1))" }.joined(separator: "&")
    }
}
