internal import Configuration

/// `oauth2`: any OAuth 2.0 server.
struct OAuth2Scheme: Scheme {
    static let key = KeySpec(OAuth2Keys.block)

    enum Grant: String, Sendable, CaseIterable {
        case clientCredentials = "client_credentials"
        case password = "password"
        case refreshToken = "refresh_token"
        case authorizationCode = "authorization_code"
        case deviceCode = "device_code"
        case jwtBearer = "jwt_bearer"
        case saml2Bearer = "saml2_bearer"
        case tokenExchange = "token_exchange"
    }

    static var isExchangeable: Bool { true }
    let settings: OAuth2Settings
    private let grant: Grant
    let subjectToken: SubjectToken?
    let namesSubject: Bool

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        let grant: Grant = keys.word("grant")
        self.grant = grant
        subjectToken = keys.subjectToken("subject_token")
        let location: OAuth2Settings.Location =
            keys.optionalURL("token_url").map { .tokenURL($0) } ?? .issuer(keys.line("issuer"), keys.url("issuer"))
        var settings = OAuth2Settings(location, clientID: keys.line("client_id"))
        settings.readCommon(keys)
        settings.clientAuth = keys.word("client_auth")
        settings.basicEncoding = keys.word("basic_encoding")
        settings.authorizationURL = keys.optionalURL("authorization_url")
        settings.deviceAuthorizationURL = keys.optionalURL("device_authorization_url")
        settings.revocationURL = keys.optionalURL("revocation_url")
        settings.introspectionURL = keys.optionalURL("introspection_url")
        settings.loginParameters = keys.list("login_parameters")
        settings.stepUp = keys.has("step_up") ? OAuth2StepUp(keys.inside("step_up")) : nil
        settings.signing = Self.signing(keys.inside("signing"))
        settings.grant = Self.grant(grant, subjectToken, keys)
        settings.allowedIssuers = (keys.texts("allowed_issuers") ?? []).compactMap { text in
            IssuerURL(text).map { (text, $0) }
        }
        settings.dpop = keys.boolean("dpop")
        settings.registration = keys.has("registration") ? ClientRegistration(keys.inside("registration")) : nil
        settings.identityDomain = keys.text("identity_domain")
        settings.identityDomainHeader = keys.line("identity_domain_header")
        self.settings = settings
        namesSubject = (settings.extra.map(\.value) + settings.grant.mintedClaims.map(\.value))
            .contains { $0.contains("{subject}") }
        OAuth2Checks(keys: keys, settings: settings, grant: grant, network: identity.network).run()
    }

    private static func signing(_ keys: BlockReader) -> JWTSigning {
        var signing = JWTSigning()
        signing.algorithm = keys.text("algorithm") == "auto" ? nil : keys.text("algorithm")
        signing.keyID = keys.text("key_id")
        signing.thumbprint = keys.word("thumbprint")
        signing.hasCertificate = keys.has("certificate")
        signing.audience = .init(keys.line("audience"))
        signing.lifetime = Int(keys.duration("lifetime").components.seconds)
        return signing
    }

    private static func grant(_ grant: Grant, _ subject: SubjectToken?, _ keys: BlockReader) -> OAuth2Settings.Grant {
        switch grant {
        case .clientCredentials: return .clientCredentials
        case .authorizationCode: return .authorizationCode
        case .deviceCode: return .deviceCode
        case .password: return .password(username: keys.line("username"))
        case .refreshToken: return .refreshToken
        case .jwtBearer where !keys.has("assertion"):
            return .mintedJWT(claims: keys.pairs("claims"))
        case .jwtBearer: return .jwtBearer
        case .saml2Bearer: return .saml2Bearer
        case .tokenExchange:
            var exchange = OAuth2Settings.TokenExchange()
            exchange.subject = .init(subject)
            if let type = tokenType("subject_token_type", keys) { exchange.subjectType = type }
            exchange.actorType = tokenType("actor_token_type", keys)
            exchange.requestedType = tokenType("requested_token_type", keys)
            return .tokenExchange(exchange)
        }
    }

    static let tokenTypes = ["access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt"]

    /// A word of RFC 8693 section 3 stands for its URI; anything else is one.
    private static func tokenType(_ key: String, _ keys: BlockReader) -> String? {
        keys.text(key).map { tokenTypes.contains($0) ? "urn:ietf:params:oauth:token-type:\($0)" : $0 }
    }

    static func secrets(_ keys: BlockReader) -> [NamedSecretReference] {
        keys.writtenSecrets + keys.inside("signing").certificate
    }

    // MARK: - For the rest of the file

    var sendsPassword: Bool { grant == .password }
    var needsPerson: Bool { settings.grant.needsPerson }
    var challengeSchemes: [String] { settings.dpop ? ["DPoP", "Bearer"] : ["Bearer"] }
    var allowedScopes: [String]? { settings.allowedScopes }
    var subjectKey: String? { grant == .tokenExchange ? "subject_token" : nil }

    func reasonAgainst(_ subject: Route.Subject) -> String? {
        let word = "'grant: \(grant.rawValue)'"
        switch settings.grant {
        case .tokenExchange where subjectToken == nil:
            return subject == .callerToken
                ? nil
                : "it exchanges the caller's own token; say subject: from_caller_token, or give it a 'subject_token'"
        case .mintedJWT(let claims) where !claims.contains { $0.name == "sub" }: break
        case .mintedJWT, .jwtBearer:
            guard namesSubject else {
                return
                    "its assertion names somebody already; write {subject} into a claim, or leave out 'sub' and 'assertion'"
            }
        case .clientCredentials, .tokenExchange:
            guard namesSubject else {
                return "\(word) asks in nobody's name; write {subject} into a value of 'extra'"
            }
        default: return "\(word) is one account's"
        }
        return subject == .callerToken
            ? "a token is no name; from_caller_token goes with 'grant: token_exchange' without 'subject_token'" : nil
    }

    /// Two fields of fixed names carry a bound token.
    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        guard settings.dpop else { return }
        if route.inject != .header(name: nil, value: nil, callerValue: .drop) {
            keys.error(
                "\(keys.place) has 'inject', and identity '\(identity.name)' with 'dpop' writes Authorization and DPoP",
                at: "inject")
        }
        let names = route.headers.set.map(\.name) + route.headers.remove
        if names.contains(where: { $0.lowercased() == "dpop" }) {
            keys.error(
                "'headers' of \(keys.place) edits 'DPoP', which identity '\(identity.name)' writes", at: "headers")
        }
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        settings.grant.checkStore(configuration, of: identity, findings)
        // The gateways of a fleet share no token that is bound to a key of one of them.
        guard settings.dpop, configuration.store.shared != nil else { return }
        if grant == .refreshToken {
            findings.error(
                "'grant: refresh_token' of identity '\(identity.name)' with 'dpop' does not go with 'store.shared': what is bound to a gateway's key is not shared, and every gateway would spend the one refresh token",
                identity.mark)
        } else if needsPerson {
            findings.warning(
                "a login of identity '\(identity.name)' with 'dpop' is bound to one gateway's key and not shared: each gateway of the fleet needs its own 'cardea login'",
                identity.mark)
        }
    }

    // MARK: - For the gateway

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        switch settings.location {
        case .tokenURL(let url): try url.requireReadable("token_url")
        case .issuer(_, let url): try url.requireReadable("issuer")
        }
        return try settings.handshake(of: identity, statuses: statuses, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        settings.traits(user: settings.grant.username ?? settings.clientID)
    }

    var edits: SchemeEdits {
        var edits = SchemeEdits()
        // The nonce is for the gateway, and of no use to a caller.
        if settings.dpop { edits.dropsFields = ["DPoP-Nonce"] }
        return edits
    }
}

// MARK: - What oauth2 and its dialects have in common

extension OAuth2Settings {
    mutating func readCommon(_ keys: BlockReader) {
        self.keys = (keys.items("key") ?? []).indices.map { $0 == 0 ? "key" : "key \($0 + 1)" }
        hasKeyPassword = keys.has("key_password")
        extra = keys.list("extra")
        headers = keys.list("headers")
        allowedScopes = keys.texts("allowed_scopes")
        redirectURI = keys.optionalURL("redirect_uri")
        redirectText = keys.text("redirect_uri")
        redirectHasPort = redirectText.map(Self.namesPort) ?? false
        introspects = keys.boolean("introspection")
    }

    /// Whether a URL says its port.
    private static func namesPort(_ url: String) -> Bool {
        guard let start = url.utf8.firstIndex(of: UInt8(ascii: "/")) else { return false }
        let authority = url[start...].drop { $0 == "/" }.prefix { $0 != "/" && $0 != "?" }
        return authority.drop { $0 != "]" }.contains(":") || !authority.contains("]") && authority.contains(":")
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> OAuth2Handshake
    {
        var settings = self
        if let statuses { settings.rejectedStatuses = statuses }
        settings.allowsCleartext = identity.network.allowCleartext
        settings.usesMutualTLS = oracle == nil && identity.network.tls.identity != nil
        return try OAuth2Handshake(settings, world)
    }

    /// - Parameter user: under whom the marks of spent passwords and the sessions stand.
    func traits(user: String) -> SchemeTraits {
        let url =
            switch location {
            case .tokenURL(let url), .issuer(_, let url): url
            }
        var traits = SchemeTraits(.proactive, user: user, at: url)
        traits.isBoundHere = dpop
        traits.isIrreplaceable = grant == .refreshToken || grant.needsPerson
        return traits
    }
}

extension OAuth2Settings.Grant {
    var username: String? { if case .password(let username) = self { username } else { nil } }
    var mintedClaims: [NamedValue] { if case .mintedJWT(let claims) = self { claims } else { [] } }

    func checkStore(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        guard self == .refreshToken, !configuration.keeps(identity) else { return }
        findings.warning(
            "identity '\(identity.name)' lives on a refresh token that is not stored: if the issuer replaces it, it is lost at the next restart",
            identity.mark)
    }
}

extension JWTSigning.Audience {
    /// - Parameter text: the value as it is written.
    init(_ text: String) {
        switch text {
        case "token_url": self = .endpoint
        case "issuer": self = .issuer
        default: self = .text(text)
        }
    }
}

extension OAuth2StepUp {
    fileprivate init(_ keys: BlockReader) {
        acrValues = keys.texts("acr_values") ?? []
        let age = keys.duration("max_age").components.seconds
        leastAge = keys.has("max_age") ? UInt32(clamping: age) : nil
    }
}

extension ClientRegistration {
    fileprivate init(_ keys: BlockReader) {
        url = keys.optionalURL("url")
        hasInitialToken = keys.has("initial_access_token")
        hasStatement = keys.has("software_statement")
        metadata = (keys.entry("metadata")?.value.map ?? []).map { entry in
            let values = (entry.value.list ?? [entry.value]).compactMap(\.scalar?.text)
            // The standard knows these members as lists alone (RFC 7591 section 2).
            let isList = entry.value.list != nil || ["redirect_uris", "contacts"].contains(entry.key)
            return Member(name: entry.key, values: values, isList: isList)
        }
    }
}

extension BlockReader {
    /// The certificate of a block that says how assertions are signed: read like a secret, and none.
    var certificate: [NamedSecretReference] {
        path("certificate").map { [NamedSecretReference("certificate", .file(path: $0))] } ?? []
    }
}
