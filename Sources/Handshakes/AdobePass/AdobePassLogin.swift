internal import Configuration
internal import Numbers
internal import Octets

// The person's login at the provider, once for the life of a profile (docs/design/wire/adobe-pass.md#sessions). We never see the
// provider's pages.
extension AdobePassRun {
    func login(_ dialogue: any LoginDialogue) async throws(GrantFailure) -> LoginGrant {
        await dialogue.progress("asking Adobe for a code")
        try await becomeClient()
        var session = try await open("sessions", settings.sessions)
        if session.action == "resume", let code = session.code {
            session = try await open("sessions", settings.session(code))
        }
        switch session.action {
        case "authorize":
            await dialogue.progress("somebody has logged in already")
            return try await currentLogin()
        case "authenticate":
            guard let code = session.code, let url = session.url else {
                throw .issuerAnswerInvalid(reason: "sessions: no code, or no address that can be shown")
            }
            return try await wait(for: code, at: url, life: session.life, dialogue) { () throws(GrantFailure) in
                try await self.look(for: code)
            }
        case "resume", "retry":
            throw .configuration(
                reason: "sessions: Adobe misses \(session.missing); see mvpd, domain_name and redirect_url")
        default: throw .issuerAnswerInvalid(reason: "sessions: an action that is not known")
        }
    }

    func becomeClient() async throws(GrantFailure) {
        do throws(GrantFailure) { _ = try await accessToken(unless: nil) } catch {
            // A registration that is gone has taken its logins with it: this login is the moment to register anew.
            guard case .credentialRejected = error, let gone = await environment.durable(.registration) else {
                throw error
            }
            _ = try await registration(unless: gone)
        }
    }

    func currentLogin() async throws(GrantFailure) -> LoginGrant {
        let reply = try await call("profiles", "GET", settings.profile)
        guard reply.status == 200 else { throw failure("profiles", reply) }
        guard let grant = try grant(in: reply) else { throw Self.nobodyLoggedIn }
        return grant
    }

    /// The call itself deletes the profile; the provider's own page is a browser's affair, and no browser of ours was there
    /// (docs/design/wire/adobe-pass.md#logout).
    func endLogin() async -> Bool {
        let reply = try? await call("logout", "GET", settings.logout)
        return reply?.status == 200 || reply?.status == 302
    }

    // MARK: - Session

    private struct LoginSession {
        var action: String
        var code: String?
        var url: String?
        var missing: String
        /// Nanoseconds that the code is good for.
        var life: UInt64
    }

    private func open(_ step: String, _ path: String) async throws(GrantFailure) -> LoginSession {
        var form = [("mvpd", settings.mvpd)]
        if let domain = settings.domainName {
            form.append(("domainName", domain))
            form.append(("redirectUrl", settings.redirectURL ?? "https://\(domain)/"))
        } else if let redirect = settings.redirectURL {
            form.append(("redirectUrl", redirect))
        }
        let reply = try await call(step, "POST", path, .form(form))
        guard (200...201).contains(reply.status), let tree = reply.tree, let action = tree.text(["actionName"]) else {
            throw failure(step, reply)
        }
        let code = tree.text(["code"])
        if let code, code.asErrorCode == nil, !code.isCode {
            throw .issuerAnswerInvalid(reason: "\(step): a code that cannot be shown")
        }
        let missing = tree.items(["missingParameters"])?.prefix(8).compactMap { $0.text([])?.asErrorCode } ?? []
        let life = tree.moment(["notAfter"])?.left(at: wall) ?? .zero
        return LoginSession(
            action: action, code: code, url: tree.text(["url"]).flatMap(address),
            missing: missing.isEmpty ? "a parameter" : missing.joined(separator: ", "),
            life: (life > .zero ? life : TimeSpan(1800, .seconds)).nanoseconds)
    }

    /// The address that may be shown to a person: a path of the server that was asked, or an address over TLS.
    private func address(_ text: String) -> String? {
        if text.hasPrefix("/"), !text.hasPrefix("//") { return IssuerURL(settings.base.origin + text)?.description }
        guard let url = IssuerURL(text), url.isTLS || url.origin == settings.base.origin else { return nil }
        return url.description
    }

    // MARK: - Waiting (docs/design/wire/adobe-pass.md#wait)

    /// - Parameters:
    ///   - life: nanoseconds that the code is good for.
    ///   - look: asks whether the person is through.
    func wait(
        for code: String, at url: String, life: UInt64, _ dialogue: any LoginDialogue,
        _ look: () async throws(GrantFailure) -> LoginGrant?
    ) async throws(GrantFailure) -> LoginGrant {
        let deadline = await environment.now() + min(life, AdobePassSettings.longestLogin)
        await dialogue.show(LoginPrompt(url: url, completeURL: url, code: code, deadline: deadline))
        while true {
            let now = await environment.now()
            guard now + AdobePassSettings.pollInterval < deadline else {
                if now < deadline { try await dialogue.pause(deadline - now) }
                throw .loginExpired
            }
            try await dialogue.pause(AdobePassSettings.pollInterval)
            do throws(GrantFailure) {
                if let grant = try await look() { return grant }
                await dialogue.progress("waiting for the login at the provider")
            } catch {
                switch error {
                case .issuerUnavailable, .timedOut:
                    await dialogue.progress("Adobe does not answer; asking again")
                default: throw error
                }
            }
        }
    }

    private func look(for code: String) async throws(GrantFailure) -> LoginGrant? {
        let reply = try await call("profiles", "GET", settings.profile(code: code))
        if reply.status == 200 { return try grant(in: reply) }
        if let error = reply.error, reply.status == 400 {
            throw .policyDenied(reason: "login: the code is not good any more (\(error.code))")
        }
        throw failure("profiles", reply)
    }

    // MARK: - Profile (docs/design/wire/adobe-pass.md#profiles)

    /// A profile that never ends is asked for again in ten years.
    private static let longestProfile = TimeSpan(10 * 365 * 86_400, .seconds)
    /// The wall clock.
    var wall: WallTime { WallTime(milliseconds: world.wallMilliseconds()) }

    /// Nil while the map is empty. Of several the configured provider's counts, else the one that lasts.
    private func grant(in reply: AdobePassReply) throws(GrantFailure) -> LoginGrant? {
        guard let profiles = reply.tree?.members(["profiles"]) else {
            throw .issuerAnswerInvalid(reason: "profiles: no map of profiles")
        }
        let found = profiles.first { $0.name == settings.mvpd }
        guard let found else {
            guard profiles.isEmpty else {
                throw .policyDenied(reason: "login: somebody logged in at another provider than mvpd says")
            }
            return nil
        }
        guard let end = found.value.moment(["notAfter"]) else {
            throw .issuerAnswerInvalid(reason: "profiles: no notAfter")
        }
        // No longer than from its beginning to its end, whatever the clocks say.
        let whole = found.value.moment(["notBefore"]).map { end.left(at: $0) }
        let left = min(end.left(at: wall), whole ?? .longest)
        guard left > .zero else { return nil }
        let type = found.value.text(["type"])?.asErrorCode ?? "regular"
        let metadata = (found.value.members(["attributes"]) ?? []).prefix(64).compactMap { attribute in
            attribute.name.asErrorCode.map { ($0, attribute.value.text(["state"]) == "enc") }
        }
        return grant(type: type, left: left, metadata: metadata, at: reply.sentAt)
    }

    /// - Parameter metadata: names, and whether their values are encrypted. The values tell who somebody is and are not kept.
    func grant(
        type: String, left: TimeSpan, metadata: [(name: String, isEncrypted: Bool)], at moment: UInt64
    ) -> LoginGrant {
        let words = metadata.map { ($0.name, Secret($0.isEncrypted ? "encrypted" : "plain")) }
        let values = [
            "profile": ["mvpd": Secret(settings.mvpd), "type": Secret(type)],
            "metadata": Dictionary(words, uniquingKeysWith: { first, _ in first }),
        ]
        return LoginGrant(
            material: LayerMaterial(
                bytes: RecipeMaterial.encode(values), obtainedAt: moment,
                lifetime: min(left, Self.longestProfile).nanoseconds, isHuman: true),
            remark: type == "regular" ? nil : "this is no regular login but one of type \(type)")
    }
}

extension String {
    /// Letters and digits, at most 64: what may stand in a path as it is.
    var isCode: Bool { (1...64).contains(utf8.count) && utf8.allSatisfy { $0.isLetterOrDigit } }
}
