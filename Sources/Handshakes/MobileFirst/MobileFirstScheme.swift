internal import Configuration
internal import Tokens

/// `mobilefirst`: IBM MobileFirst Foundation 8 (docs/design/wire/mobilefirst.md).
struct MobileFirstScheme: Scheme {
    static let key = KeySpec("mobilefirst", .block(block), "IBM MobileFirst 8.")

    private static let block = Block(
        name: "mobilefirst", description: "IBM MobileFirst Foundation 8.",
        keys: [
            KeySpec(
                "base", .text(.httpURL), "The runtime's API, such as https://mfp.example.com/mfp/api.", required: true),
            KeySpec(
                "az_base", .text(.httpURL),
                "Where az/v1/… is, where that is another server; without it the base itself."),
            KeySpec(
                "mode", .words(Mode.self),
                "confidential: a client of the server's console with a secret; registered: a device that registers itself and answers challenges."
            ),
            KeySpec("client_id", .text(.line), "Of a confidential client."),
            KeySpec("client_secret", .secret, "Its secret."),
            KeySpec("application", .text(.line), "The application's id on the server; for mode registered."),
            KeySpec(
                "application_version", .text(.line), "The application's version; needed unless platform is web."),
            KeySpec(
                "platform", .text(.word), "The platform that the application is registered for: web, ios, android.",
                default: "web"),
            KeySpec("device", .block(device), "What the device tells of itself."),
            KeySpec(
                "answers", .named(.line, .named(.line, .secret)),
                "Answers to challenges: security check → field → secret. Each is sent once until it changes."),
            KeySpec(
                "min_remaining_attempts", .integer(1...100),
                "A challenge that leaves fewer attempts is not answered; token.allow_last_attempt lowers it to 1.",
                default: "2", digest: .nothing),
            KeySpec(
                "cooldown", .duration(atLeast: .seconds(60)),
                "After a check has failed, try again after this time; at most 5m. Without it only after a reset or with a new secret.",
                digest: .nothing),
            KeySpec(
                "allowed_scopes", .list(.text(.scope)),
                "The only scopes that the API's 403 may add to those of the route.", digest: .nothing),
            KeySpec(
                "conflict_replay", .words(ConflictReplay.self),
                "Which requests are sent again after a 409 with MFP-Conflict: those that may be repeated, or all.",
                digest: .nothing),
            KeySpec(
                "redirect_uri", .text(.httpURL),
                "Of the authorization request; without it the one that clients of the platform use."),
            KeySpec("audience", .text(.line), "The aud claim of client assertions.", default: "az/v1/token"),
            KeySpec(
                "assertion_lifetime", .duration(atLeast: .seconds(10)),
                "From now to the exp of a client assertion; at most 1h.", default: "60s", digest: .nothing),
            KeySpec(
                "jws_encoding", .words(JWSEncoding.self),
                "Of signed data: as in RFC 7515, or with the alphabet and padding of IBM's web SDK."),
        ])

    private static let device = Block(
        name: "mobilefirst_device", description: "What the device tells of itself.",
        keys: [
            KeySpec(
                "id", .text(.line),
                "Tells this device from others; without it a random one is made and kept. Needed where two identities differ only in their secrets."
            ),
            KeySpec("platform", .text(.line), "Its operating system.", default: "linux"),
            KeySpec("hardware", .text(.line), "Its model.", default: "server"),
            KeySpec("name", .text(.line), "Shown in the server's console."),
        ])

    enum Mode: String, Sendable, CaseIterable {
        case confidential = "confidential"
        case registered = "registered"
    }

    enum ConflictReplay: String, Sendable, CaseIterable {
        case idempotent = "idempotent"
        case all = "all"
    }

    enum JWSEncoding: String, Sendable, CaseIterable {
        case base64url = "base64url"
        case base64 = "base64"
    }

    let sendsPassword: Bool
    private let settings: MobileFirstSettings

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        let mode: Mode = keys.word("mode")
        sendsPassword = keys.entry("answers")?.value.map?.isEmpty == false
        var settings = MobileFirstSettings(
            base: keys.url("base"), azBase: keys.optionalURL("az_base"),
            client: mode == .registered
                ? .registered(Self.device(keys, identity.name)) : .confidential(id: keys.line("client_id")))
        settings.allowedScopes = keys.texts("allowed_scopes") ?? []
        settings.replaysAllConflicts = keys.word("conflict_replay") == ConflictReplay.all
        self.settings = settings
        for key in ["base", "az_base"] { keys.checkURL(key, of: identity.network, allowsQuery: false) }
        switch settings.client {
        case .confidential(let id): Self.checkConfidential(id, keys)
        case .registered(let device): Self.checkRegistered(device, keys)
        }
    }

    private static func device(_ keys: BlockReader, _ identity: String) -> MobileFirstSettings.Device {
        // With the identity's name: two devices of one application must not lift each other's marks.
        let application = keys.line("application")
        var device = MobileFirstSettings.Device(application: application, account: "\(application)/\(identity)")
        let told = keys.inside("device")
        device.version = keys.text("application_version")
        device.platform = keys.text("platform") ?? "web"
        device.id = told.text("id")
        device.system = told.line("platform")
        device.hardware = told.line("hardware")
        device.name = told.text("name")
        device.answers = (keys.entry("answers")?.value.map ?? []).map { check in
            let names = (check.value.map ?? []).map(\.key)
            return .init(
                check: check.key, fields: names.map { .init(name: $0, secret: "answers.\(check.key).\($0)") })
        }
        device.leastAttempts = keys.integer("min_remaining_attempts") ?? 2
        if keys.has("cooldown") { device.cooldown = Int(keys.duration("cooldown").components.seconds) }
        device.redirectURI = keys.text("redirect_uri")
        device.audience = keys.line("audience")
        device.assertionLifetime = Int64(keys.nanoseconds("assertion_lifetime") / 1_000_000)
        device.usesStandardBase64 = keys.word("jws_encoding") == JWSEncoding.base64
        return device
    }

    // MARK: - Checks

    private static func checkConfidential(_ id: String, _ keys: BlockReader) {
        keys.need(["client_id", "client_secret"], " in 'mode: confidential'")
        keys.refuse(
            [
                "application", "application_version", "platform", "device", "answers", "min_remaining_attempts",
                "cooldown", "redirect_uri", "audience", "assertion_lifetime", "jws_encoding",
            ], "goes only with 'mode: registered'")
        keys.checkClientID()
        // Development servers ship with these clients: anybody can use them.
        if ["test", "admin", "push"].contains(id), keys.httpURL("base")?.origin.isLoopback != true {
            keys.error(
                "'client_id: \(id)' of \(keys.place) is a client that the server ships with; make one of its own in the console",
                at: "client_id")
        }
    }

    private static func checkRegistered(_ device: MobileFirstSettings.Device, _ keys: BlockReader) {
        keys.refuse(
            ["client_id", "client_secret"], "goes only with 'mode: confidential'; a registered client is given its id")
        keys.need(["application"], " in 'mode: registered'")
        if device.platform != "web" {
            keys.need(
                ["application_version"], ": an application for \(device.platform) registers with one", at: "platform")
        }
        keys.atMost("cooldown", .seconds(300), "5m")
        keys.atMost("assertion_lifetime", .seconds(3600), "1h")
        for answer in keys.entry("answers")?.value.map ?? [] {
            if answer.value.map?.isEmpty == true {
                keys.findings.error(
                    "the answer to '\(Quoted.short(answer.key))' in \(keys.place) has no field: an empty one would cost an attempt",
                    answer.mark)
            }
            if ["appAuthenticity", "directUpdate", "clockSynchronization", "wl_remoteDisableRealm"].contains(answer.key)
            {
                keys.findings.error(
                    "'\(answer.key)' in \(keys.place) is a check that no configured answer can pass", answer.mark)
            }
        }
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        guard case .registered = settings.client, !configuration.keeps(identity) else { return }
        findings.warning(
            "identity '\(identity.name)' keeps no registration without a 'store': it registers another device at each start",
            identity.mark)
    }

    /// The server tells devices apart by their registration, and that by everything but secrets: two users must not share one.
    func conflict(of identity: Identity, with other: Identity) -> String? {
        guard case .registered = settings.client else { return likeness(of: identity, to: other) }
        return
            "identity '\(identity.name)' differs from '\(other.name)' at most in its secrets, so both would be one device; give each its own 'device: {id: …}'"
    }

    // MARK: - For the gateway

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try settings.base.requireReadable("base")
        var settings = settings
        // Where a check allows one attempt, one is always the last.
        if identity.token.allowLastAttempt, case .registered(var device) = settings.client {
            device.leastAttempts = 1
            settings.client = .registered(device)
        }
        return try MobileFirstHandshake(settings, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        let issuer = Tokens.Origin(settings.base)
        var traits = SchemeTraits(.proactive, issuer: issuer)
        switch settings.client {
        case .confidential(let id):
            traits.account = Account(issuer: Tokens.Origin(settings.azBase), user: ByteString(id))
        case .registered(let device):
            traits.account = Account(issuer: issuer, user: ByteString(device.account))
            // Each check counts for itself: that one was passed says nothing of the secret of another.
            traits.attempts = device.answers.map { answer in
                SchemeTraits.Attempt(
                    key: answer.attemptKey, secrets: answer.fields.map(\.secret),
                    account: Account(issuer: issuer, user: ByteString(device.account(of: answer.check))))
            }.sorted { $0.key < $1.key }
        }
        return traits
    }
}
