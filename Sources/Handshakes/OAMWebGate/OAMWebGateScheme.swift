internal import Configuration

/// `oam_webgate`: an OAM WebGate with Mobile & Social (docs/design/wire/oam-webgate.md).
struct OAMWebGateScheme: Scheme {
    static let key = KeySpec(block)

    private static let block = Block(
        name: "oam_webgate", description: "An OAM WebGate with Mobile & Social.",
        keys: [
            KeySpec(
                "user_agent_prefix", .text(.userAgent), "The OAMAuthUserAgentPrefix of the WebGate, byte for byte.",
                required: true),
            KeySpec(
                "user_agent_mode", .words(OAMWebGateSettings.UserAgentMode.self),
                "Whether the prefix stands before the caller's User-Agent or instead of it."),
            KeySpec(
                "context_source", .words(OAMWebGateSettings.ContextSource.self),
                "Where the request context comes from."),
            KeySpec("challenge_scheme", .text(.method), "The scheme of the challenge.", default: "OAM-Auth"),
            KeySpec(
                "context_param", .text(.method), "The challenge's parameter with the request context.",
                default: "request-ctx"),
            KeySpec(
                "replay_header", .text(.headerName), "The header that carries the token.", default: "Authorization"),
            KeySpec("replay_prefix", .text(.headerValue), "Put before the token as it stands.", default: "OAM-Auth "),
            KeySpec(
                "token_scope", .words(OAMWebGateSettings.TokenScope.self),
                "Whether a token is good for the WebGate or for one URL."),
            KeySpec(
                "resource_url", .words(OAMWebGateSettings.ResourceURL.self),
                "Whose view of the URL names the resource."),
            KeySpec("resource_suffix", .text(.headerValue), "Appended to the resource URL as it stands.", default: ""),
            KeySpec(
                "strip_cookies", .boolean, "Whether OAM's own cookies are taken out of answers.", default: "true",
                digest: .nothing),
            KeySpec(
                "handle_unknown", .list(.text(.line)),
                "Codes, or parts of messages, by which the server says that it has forgotten the registration handle, beside those that "
                    + "are known: a new one is made.", digest: .nothing),
            KeySpec("service", .text(.httpURL), "The full URL of the Mobile & Social service.", required: true),
            KeySpec("paths", .block(paths), "Operations below the service."),
            KeySpec("service_domain", .text(.headerValue), "The service domain.", default: "MobileServiceDomain"),
            KeySpec(
                "service_domain_header", .text(.headerName), "The header that carries it.",
                default: "X-IDAAS-SERVICEDOMAIN"),
            KeySpec("client_auth", .words(OAMWebGateSettings.ClientAuth.self), "How the client proves itself."),
            KeySpec(
                "client_auth_header", .text(.headerName), "The header that carries the proof.",
                default: "X-Idaas-Rest-Authorization"),
            KeySpec("client_id", .text(.line), "The client; needed unless client_auth is none."),
            KeySpec("device_claims", .named(.line, .text(.anyLine)), "Claims of the device profile."),
            KeySpec("user_token_type", .text(.line), "The type of user token to create.", default: "USERTOKEN"),
            KeySpec(
                "user_token_ttl", .duration(atLeast: .seconds(1)), "How long a user token is used.", default: "30m"),
            KeySpec("rest_version", .text(.headerValue), "X-IDAAS-REST-VERSION; not sent where it is not given."),
            KeySpec("username", .text(.line), "The user.", required: true),
            KeySpec("password", .secret, "The user's password.", required: true),
            KeySpec(
                "probe", .text(.absolutePath),
                "A path on the upstream that answers with a challenge and changes nothing.", digest: .nothing),
        ])

    private static let paths = Block(
        name: "paths", description: "Operations below the service.",
        keys: [
            KeySpec("register", .text(.servicePath), "Registers the client.", default: "register"),
            KeySpec("authenticate", .text(.servicePath), "Gives a user token.", default: "authenticate"),
            KeySpec("access", .text(.servicePath), "Gives an access token.", default: "access"),
            // No witness of the last two calls is known, so nothing makes them; configurations that name them stay valid.
            KeySpec("info", .text(.servicePath), "Tells about a token.", default: "tokens/info"),
            KeySpec("terminate", .text(.servicePathOrOff), "Ends a token.", default: "off"),
        ])

    static var defaultLifetime: Duration? { .seconds(900) }
    let settings: OAMWebGateSettings
    let probe: String?

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        let paths = keys.inside("paths")
        var settings = OAMWebGateSettings(
            service: keys.url("service"), username: keys.line("username"), clientID: keys.text("client_id"),
            userAgentPrefix: keys.line("user_agent_prefix"))
        settings.paths.register = paths.servicePath("register")
        settings.paths.authenticate = paths.servicePath("authenticate")
        settings.paths.access = paths.servicePath("access")
        settings.serviceDomain = keys.line("service_domain")
        settings.serviceDomainHeader = keys.line("service_domain_header")
        settings.clientAuth = keys.word("client_auth")
        settings.clientAuthHeader = keys.line("client_auth_header")
        for claim in keys.pairs("device_claims") { settings.deviceClaims[claim.name] = claim.value }
        settings.userTokenType = keys.line("user_token_type")
        settings.userTokenTTL = keys.nanoseconds("user_token_ttl")
        settings.restVersion = keys.text("rest_version")
        settings.userAgentMode = keys.word("user_agent_mode")
        settings.contextSource = keys.word("context_source")
        settings.challengeScheme = keys.line("challenge_scheme")
        settings.contextParam = keys.line("context_param")
        settings.replayHeader = keys.line("replay_header")
        settings.replayPrefix = keys.line("replay_prefix")
        settings.tokenScope = keys.word("token_scope")
        settings.resourceURL = keys.word("resource_url")
        settings.resourceSuffix = keys.line("resource_suffix")
        settings.stripCookies = keys.boolean("strip_cookies")
        let unknown = keys.texts("handle_unknown") ?? []
        settings.handleRejectedCodes = Set(unknown)
        settings.handleRejectedPhrases = unknown.map { $0.lowercased() }
        self.settings = settings
        probe = keys.text("probe")
        if settings.clientAuth != .none { keys.need(["client_id"], ", or 'client_auth: none'") }
        keys.checkURL("service", of: identity.network, allowsQuery: false)
        keys.checkFieldNames(["replay_header", "service_domain_header", "client_auth_header"])
    }

    var isChallengeDriven: Bool { true }
    var sendsPassword: Bool { true }
    var challengeSchemes: [String] { [settings.challengeScheme] }
    var carrier: String { settings.replayHeader }
    // The WebGate answers with a challenge only to the User-Agent that starts with its prefix.
    var writtenFields: [String] { ["user-agent"] }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        guard route.answers == .conceal, !settings.stripCookies else { return }
        keys.refuse(
            "answers",
            "is conceal, and 'strip_cookies: false' of identity '\(identity.name)' passes cookies of its session")
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try settings.service.requireReadable("service")
        return try OAMWebGateHandshake(settings)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        SchemeTraits(.challengeDriven, user: settings.username, at: settings.service)
    }

    var edits: SchemeEdits {
        var edits = SchemeEdits()
        edits.userAgent = String(decoding: settings.userAgent(caller: nil), as: UTF8.self)
        edits.keepsUserAgent = settings.userAgentMode == .prepend
        if settings.stripCookies { edits.dropsCookies = OAMWebGateSettings.ownCookies }
        edits.bindsToURL = settings.tokenScope == .url
        edits.resourceFromCaller = settings.resourceURL == .caller
        return edits
    }
}
