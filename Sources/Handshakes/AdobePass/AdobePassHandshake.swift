internal import Configuration

/// `adobe_pass`: Adobe Pass Authentication, REST API V2 or V1. A person logs in at a pay-TV provider once; from then on each request gets a media
/// token of its own.
///
/// Adobe's messages in words (`message`, `details`) are the business of the operator at Adobe alone: only codes are repeated.
struct AdobePassHandshake: OneTimeHandshake {
    let settings: AdobePassSettings
    let world: GrantWorld

    init(_ settings: AdobePassSettings, _ world: GrantWorld = GrantWorld()) {
        self.settings = settings
        self.world = world
    }

    private func run(_ environment: any GrantEnvironment) -> AdobePassRun {
        AdobePassRun(settings: settings, world: world, environment: environment)
    }

    private func api(_ environment: any GrantEnvironment) -> any AdobePassAPI {
        let run = run(environment)
        return settings.generation == .v1 ? AdobePassV1(run: run) : run
    }

    var scheme: String { "adobe_pass" }
    var endsSessions: Bool { true }
    var keepsRegistration: Bool { true }
    var inspectedStatuses: [Int] { settings.refusals }

    /// Routes say where the token goes; this stands where one could not.
    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: "X-Adobe-Authorization", value: token)
    }

    /// Media services have no common grammar: a refusal is what the route says is one.
    // MARK: - One request

    func resource(of target: [UInt8], on wanted: Wanted) -> String? {
        // Read when the configuration was checked.
        let own = wanted.resource.first.flatMap { try? ResourceTemplate($0) }
        return (own ?? settings.resource)?.text(for: target)
    }

    func credential(
        for need: OneTimeNeed, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> OneTimeCredential {
        OneTimeCredential(try await api(environment).mediaToken(for: need.resource))
    }

    // MARK: - For operators

    /// Names of the metadata and no values, which tell who somebody is (docs/design/wire/adobe-pass.md#profiles).
    func facts(of session: LayerMaterial) -> [IdentityFact] {
        guard let values = RecipeMaterial.decode(session.bytes) else { return [] }
        var facts = ["mvpd", "type"].compactMap { name in
            values["profile"]?[name].map { IdentityFact(name: name, value: $0.text) }
        }
        let metadata = (values["metadata"] ?? [:]).sorted { $0.key < $1.key }.map {
            $0.value.text == "encrypted" ? "\($0.key) (encrypted)" : $0.key
        }
        if !metadata.isEmpty { facts.append(IdentityFact(name: "metadata", value: metadata.joined(separator: ", "))) }
        return facts
    }

    var hasPreview: Bool { !settings.preauthorized.isEmpty }

    func preview(environment: any GrantEnvironment) async throws(GrantFailure) -> [IdentityFact] {
        guard hasPreview, await environment.session() != nil else { return [] }
        return try await api(environment).preauthorize()
    }

    // MARK: - Ahead of requests

    /// Makes sure that media tokens can be had, and for how long. The grant's token is a word that opens nothing.
    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        guard let session = await environment.session() else { throw AdobePassRun.nobodyLoggedIn }
        do throws(GrantFailure) {
            let profile = try await api(environment).currentLogin().material
            // A login may last longer than a grant is believed to.
            let lifetime = profile.lifetime.map { min($0, AccessGrant.longestLifetime) }
            return AccessGrant(
                token: Secret("ready"), tokenType: "", lifetime: lifetime, sentAt: profile.obtainedAt)
        } catch {
            if case .interactionRequired = error { await run(environment).forget(session) }
            throw error
        }
    }
}

extension AdobePassHandshake: InteractiveHandshake {
    var needsPerson: Bool { true }
    var redirect: LoginRedirect? { nil }

    /// Whatever the token endpoint says to this, it is there.
    func reach(environment: any GrantEnvironment) async throws(GrantFailure) {
        _ = try await run(environment).send("reach", "GET", settings.token, .none, [])
    }

    func login(
        _ wanted: Wanted, dialogue: any LoginDialogue, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LoginGrant {
        try await api(environment).login(dialogue)
    }

    /// The call itself deletes the profile; the provider's own page is a browser's affair, and no browser of ours was there
    /// (docs/design/wire/adobe-pass.md#logout).
    func revoke(_ session: LayerMaterial, environment: any GrantEnvironment) async -> Revocation {
        await api(environment).endLogin() ? .revoked : .unconfirmed
    }
}
