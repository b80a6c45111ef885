internal import Configuration
internal import Tokens

/// `mobile_hub`: Oracle Mobile Hub, formerly Mobile Cloud Service (docs/design/wire/oracle-mobile-hub.md).
struct MobileHubScheme: Scheme {
    static let key = KeySpec("mobile_hub", .block(block), "Oracle Mobile Hub or MCS.")

    private static let block = Block(
        name: "mobile_hub", description: "Oracle Mobile Hub or Mobile Cloud Service.",
        keys: [
            KeySpec(
                "base_url", .text(.httpURL),
                "The backend's base URL, exactly as its settings page shows it: the scope begins with it, port and all.",
                required: true),
            KeySpec("backend_id", .text(.headerValue), "The backend's id on its settings page.", required: true),
            KeySpec(
                "backend_version", .text(.line),
                "The backend's version. Tokens are bound to base URL, backend and version: when one of them changes, what is kept is deleted at once."
            ),
            KeySpec(
                "method", .words(Method.self),
                "basic_anonymous: the anonymous key; basic_user: a user of the service; oauth_client, oauth_password: a token for the consumer or for a user; token_exchange: a token for another issuer's.",
                required: true),
            KeySpec(
                "generation", .words(Generation.self),
                "Who gives OAuth tokens: Identity Cloud Service, which wants a scope; or a classic identity domain, which wants its name."
            ),
            KeySpec(
                "anonymous_key", .secret, "The anonymous key as the settings page shows it; for method basic_anonymous."
            ),
            KeySpec("username", .text(.line), "The user of basic_user or oauth_password."),
            KeySpec(
                "password", .secret, "The user's password: after one refusal it is not sent again until it changes."),
            KeySpec("token_url", .text(.httpURL), "The OAuth token endpoint, complete."),
            KeySpec("client_id", .text(.line), "The OAuth consumer of the backend."),
            KeySpec("client_secret", .secret, "Its secret."),
            KeySpec(
                "scope", .text(.scope),
                "Of the token request; without it base_url with urn:opc:resource:consumer::all behind it, or none for generation classic."
            ),
            KeySpec(
                "identity_domain", .text(.headerValue),
                "The identity domain, sent with token requests; generation classic needs it."),
            KeySpec(
                "identity_domain_header", .text(.headerName), "The header that carries it.",
                default: "X-User-Identity-Domain-Name"),
            KeySpec(
                "exchange_endpoint", .words(ExchangeEndpoint.self),
                "sso_exchange: GET /mobile/platform/sso/exchange-token; auth_token: POST /mobile/platform/auth/token, which wants the consumer too."
            ),
            KeySpec(
                "third_party_token", .either([.secret, .block(Keys.subjectToken)]),
                "The token to exchange: a secret, or that of another identity; left out: the caller's own, on routes with subject: from_caller_token."
            ),
            KeySpec(
                "token_format", .words(MobileHubSettings.Exchange.Format.self),
                "What it is: sent as it stands, or an XML document that is compressed and encoded first."),
            KeySpec(
                "client_auth", .words(ClientAuth.self),
                "How the consumer proves itself at auth_token: header, form, or a token of its own."),
            KeySpec(
                "grant_type", .text(.line), "The form's grant_type at auth_token; none leaves it out.",
                default: "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            KeySpec("extra_headers", .named(.headerName, .text(.headerValue)), "Further headers of an exchange."),
            KeySpec(
                "send_backend_id_with_bearer", .boolean,
                "Whether requests name the backend also beside a token; beside Basic they always do.", default: "false",
                digest: .nothing),
            KeySpec(
                "persist_tokens", .boolean, "Whether tokens go to the store, and outlive a restart.", default: "false"),
        ])

    enum Generation: String, Sendable, CaseIterable {
        case idcs = "idcs"
        case classic = "classic"
    }

    enum Method: String, Sendable, CaseIterable {
        case basicAnonymous = "basic_anonymous"
        case basicUser = "basic_user"
        case oauthClient = "oauth_client"
        case oauthPassword = "oauth_password"
        case tokenExchange = "token_exchange"

        /// Every request is a login.
        var isBasic: Bool { self == .basicAnonymous || self == .basicUser }
    }

    enum ExchangeEndpoint: String, Sendable, CaseIterable {
        case ssoExchange = "sso_exchange"
        case authToken = "auth_token"
    }

    enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case form = "form"
        case assertion = "assertion"
    }

    private let identity: String
    private let method: Method
    private let settings: MobileHubSettings
    /// The account whose refused credential is not sent again.
    private let account: Account
    let subjectToken: SubjectToken?
    private let namesBackend: Bool
    private let persistsTokens: Bool

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        self.identity = identity.name
        method = keys.word("method")
        subjectToken = keys.subjectToken("third_party_token")
        namesBackend = method.isBasic || keys.boolean("send_backend_id_with_bearer")
        persistsTokens = keys.boolean("persist_tokens")
        let base = keys.url("base_url")
        let backend = keys.line("backend_id")
        var settings = MobileHubSettings(
            base: base, backendID: backend, method: Self.method(method, subjectToken, keys))
        settings.extraHeaders = keys.list("extra_headers")
        self.settings = settings
        let user =
            switch method {
            case .basicAnonymous: "anonymous \(backend)"
            case .basicUser, .oauthPassword: keys.line("username")
            case .oauthClient: keys.line("client_id")
            case .tokenExchange: "exchange \(backend)"
            }
        let issuer = method == .oauthClient || method == .oauthPassword ? keys.url("token_url") : base
        account = Account(issuer: Tokens.Origin(issuer), user: ByteString(user))
        keys.checkURL("base_url", of: identity.network, allowsQuery: false)
        keys.checkURL("token_url", of: identity.network)
        // Without it every other key would be judged by a method that nobody chose.
        guard keys.has("method") else { return }
        Self.checkKeys(keys)
        if method == .basicUser, keys.line("username").contains(":") {
            keys.refuse("username", "must not have a colon (RFC 7617)")
        }
        keys.checkClientID()
        keys.checkHeaders(
            "extra_headers", own: ["authorization", "content-type", MobileHubSettings.backendHeader.lowercased()])
    }

    // MARK: - Settings

    private static func method(
        _ method: Method, _ subject: SubjectToken?, _ keys: BlockReader
    ) -> MobileHubSettings.Method {
        let scope =
            keys.text("scope")
            ?? (keys.word("generation") == Generation.idcs
                ? MobileHubSettings.scope(ofBase: keys.line("base_url")) : nil)
        func consumer(_ grant: OAuth2Settings.Grant) -> OAuth2Settings {
            var settings = OAuth2Settings(.tokenURL(keys.url("token_url")), clientID: keys.line("client_id"))
            settings.grant = grant
            settings.basicEncoding = .raw
            settings.identityDomain = keys.text("identity_domain")
            settings.identityDomainHeader = keys.line("identity_domain_header")
            // The service is not known to take one back.
            settings.ignoresRefreshTokens = true
            return settings
        }
        switch method {
        case .basicAnonymous: return .anonymousKey
        case .basicUser: return .user(keys.line("username"))
        case .oauthClient: return .consumer(consumer(.clientCredentials), scope: scope)
        case .oauthPassword: return .consumer(consumer(.password(username: keys.line("username"))), scope: scope)
        case .tokenExchange: break
        }
        let id = keys.line("client_id")
        let endpoint: MobileHubSettings.Exchange.Endpoint =
            switch (keys.word("exchange_endpoint") as ExchangeEndpoint, keys.word("client_auth") as ClientAuth) {
            case (.ssoExchange, _): .sso
            case (.authToken, .basic): .token(.basic(id: id))
            case (.authToken, .form): .token(.form(id: id, hasSecret: keys.has("client_secret")))
            case (.authToken, .assertion): .token(.assertion(consumer(.clientCredentials), scope: scope))
            }
        var exchange = MobileHubSettings.Exchange(endpoint: endpoint, subject: .init(subject))
        exchange.format = keys.word("token_format")
        exchange.grantType = keys.text("grant_type") == "none" ? nil : keys.text("grant_type")
        return .exchange(exchange)
    }

    /// Each method has keys that it needs and keys that it may have; any other would be without effect.
    private static func checkKeys(_ keys: BlockReader) {
        let method: Method = keys.word("method")
        let endpoint: ExchangeEndpoint = keys.word("exchange_endpoint")
        let auth: ClientAuth = keys.word("client_auth")
        var setting = "'method: \(method.rawValue)'"
        let consumer = ["token_url", "client_id", "client_secret"]
        let grant = ["generation", "scope", "identity_domain", "identity_domain_header"]
        var needs: [String]
        var takes = ["base_url", "backend_id", "backend_version", "method"]
        var isConsumer = false
        switch method {
        case .basicAnonymous: needs = ["anonymous_key"]
        case .basicUser: needs = ["username", "password"]
        case .oauthClient, .oauthPassword:
            needs = consumer + (method == .oauthPassword ? ["username", "password"] : [])
            isConsumer = true
        case .tokenExchange:
            needs = []
            takes += ["third_party_token", "exchange_endpoint", "token_format", "extra_headers"]
            setting = "'exchange_endpoint: \(endpoint.rawValue)'"
            guard endpoint == .authToken else { break }
            setting += " with 'client_auth: \(auth.rawValue)'"
            takes += ["client_auth", "grant_type"]
            switch auth {
            case .basic: needs = ["client_id", "client_secret"]
            case .form:
                needs = ["client_id"]
                takes.append("client_secret")
            case .assertion:
                needs = consumer
                isConsumer = true
            }
        }
        if isConsumer { takes += grant }
        if !method.isBasic { takes += ["send_backend_id_with_bearer", "persist_tokens"] }
        let others = block.keys.map(\.name).filter { !needs.contains($0) && !takes.contains($0) }
        keys.refuse(others, "is not used by \(setting)")
        keys.need(needs, " for \(setting)")
        if isConsumer, keys.word("generation") == Generation.classic {
            keys.need(["identity_domain"], " for 'generation: classic'", at: "generation")
        }
    }

    // MARK: - For the rest of the file

    var sendsPassword: Bool { method == .basicUser || method == .oauthPassword }
    var writtenFields: [String] { [MobileHubSettings.backendHeader.lowercased()] }
    var reasonAgainstScopes: String? { "the scope of identity '\(identity)' is that of its backend" }
    var subjectKey: String? { method == .tokenExchange ? "third_party_token" : nil }

    func reasonAgainst(_ subject: Route.Subject) -> String? {
        guard exchangesCallersToken else { return oneForEverybody }
        return subject == .callerToken ? nil : "it exchanges the caller's own token; say subject: from_caller_token"
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        guard configuration.store.path == nil, persistsTokens else { return }
        findings.warning(
            "'persist_tokens' of identity '\(identity.name)' has no effect without a 'store'", identity.mark)
    }

    // MARK: - For the gateway

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try settings.base.requireReadable("base_url")
        switch settings.method {
        case .consumer(let own, _): try own.requireReadableURL()
        case .exchange(let exchange):
            if case .token(.assertion(let own, _)) = exchange.endpoint { try own.requireReadableURL() }
        case .anonymousKey, .user: break
        }
        return try MobileHubHandshake(settings, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        var traits = SchemeTraits(
            method.isBasic ? .basic : .proactive, account: account, issuer: method.isBasic ? nil : account.issuer)
        traits.keepsTokens = persistsTokens
        traits.forgetsWhenReplaced = true
        // A user's password may lock an account; an anonymous key cannot, and one API may be closed to it.
        if method == .basicUser { traits.refusalsUntilClosed = 1 }
        return traits
    }

    /// A caller must not choose the backend that our credential is used at.
    var edits: SchemeEdits {
        var edits = SchemeEdits()
        edits.ownedFields = [MobileHubSettings.backendHeader]
        if namesBackend {
            edits.fields = [NamedValue(name: MobileHubSettings.backendHeader, value: settings.backendID)]
        }
        return edits
    }
}

extension OAuth2Settings {
    fileprivate func requireReadableURL() throws(GrantFailure) {
        if case .tokenURL(let url) = location { try url.requireReadable("token_url") }
    }
}
