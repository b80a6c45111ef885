internal import Configuration
internal import Octets

/// The keys of an `oam_oauth` block in the words of `oauth2`.
struct OAMOAuthReader {
    let keys: BlockReader
    let dialect: OAMOAuthScheme.Dialect
    let grant: OAMOAuthScheme.Grant
    let clientAuth: OAMOAuthScheme.ClientAuth
    let isMobile: Bool

    init(_ keys: BlockReader) {
        self.keys = keys
        dialect = keys.word("dialect")
        grant = keys.word("grant")
        clientAuth = keys.word("client_auth")
        isMobile = dialect == .oam11g && keys.word("client_type") == OAMOAuthScheme.ClientType.mobile
    }

    /// The key that names the server.
    var urlKey: String {
        switch dialect {
        case .oam11g: "service_endpoint"
        case .oam12c: "base_url"
        case .sim, .idcs: "token_url"
        }
    }

    var settings: OAuth2Settings {
        var settings = OAuth2Settings(.tokenURL(asked(tokenURL)), clientID: keys.line("client_id"))
        settings.readCommon(keys)
        settings.clientAuth =
            switch clientAuth {
            case _ where isMobile: .none
            case .basic, .issuedJWT: .basic
            case .post: .post
            case .privateKeyJWT: .privateKeyJWT
            case .none: .none
            }
        // Oracle's guides and SDKs build Basic credentials of id and secret as they are.
        settings.basicEncoding = .raw
        settings.grant = settingsGrant
        settings.signing = signing
        settings.authorizationURL = authorizationURL
        settings.revocationURL = keys.optionalURL("revocation_url").map(asked)
        settings.introspectionURL = introspectionURL
        settings.loginParameters = loginParameters
        settings.identityDomain = headerDomain
        settings.identityDomainHeader =
            keys.text("domain_header")
            ?? (dialect == .oam12c ? "X-OAUTH-IDENTITY-DOMAIN-NAME" : "X-USER-IDENTITY-DOMAIN-NAME")
        settings.oracle = oracle
        return settings
    }

    private var settingsGrant: OAuth2Settings.Grant {
        switch grant {
        case .oamCredentials: isMobile ? .oamCredentials : .clientCredentials
        case .clientCredentials: .clientCredentials
        case .password: .password(username: username ?? "")
        case .refreshToken: .refreshToken
        case .authorizationCode: .authorizationCode
        // An assertion that somebody else has signed is sent as it is.
        case .jwtBearer where keys.has("user_assertion"): .jwtBearer
        case .jwtBearer: isMobile ? .oamUser : .mintedJWT(claims: userClaims)
        }
    }

    private var oracle: OAMOAuthDialect {
        var oracle = OAMOAuthDialect()
        oracle.hasUpperCaseGrants = dialect == .oam12c && keys.word("grant_case") == OAMOAuthScheme.GrantCase.upper
        oracle.clientClaims = clientClaims
        oracle.listsAudience = dialect == .sim
        oracle.tokenPrefix = keys.line("resource_token_prefix")
        oracle.deletesByAction = dialect == .oam11g && keys.boolean("delete_tokens")
        oracle.inquiry =
            switch dialect {
            case .oam11g: .tokenAction
            case .oam12c: .tokenInfo
            case .sim, .idcs: .standard
            }
        oracle.issued = isMobile ? .mobile(mobile) : clientAuth == .issuedJWT ? .forSecret : nil
        return oracle
    }

    private var mobile: OAMMobileClient {
        var client = OAMMobileClient(service: base, username: username ?? "")
        let requested = keys.inside("requested_assertions")
        client.fetchesProfile = keys.boolean("fetch_app_profile")
        for claim in keys.pairs("device_profile") { client.deviceClaims[claim.name] = claim.value }
        client.usesDeviceStore =
            switch keys.word("server_device_store") as OAMOAuthScheme.DeviceStore {
            case .auto: nil
            case .on: true
            case .off: false
            }
        client.deviceStoreParam = keys.line("server_device_store_param")
        client.preAssertion = requested.line("pre")
        client.clientAssertion = requested.line("client")
        client.userAssertion = requested.line("user")
        return client
    }

    // MARK: - URLs

    private var base: IssuerURL { keys.url(urlKey) }

    private var tokenURL: IssuerURL {
        switch dialect {
        case .oam11g: base.below(keys.line("token_path"))
        case .oam12c: base.below("oauth2/rest/token")
        case .sim, .idcs: base
        }
    }

    private var authorizationURL: IssuerURL? {
        if let url = keys.optionalURL("authorization_url") { return url }
        return switch dialect {
        case .oam11g: base.below("authorize")
        case .oam12c: base.below("oauth2/rest/authz")
        case .idcs: base.beside("authorize")
        case .sim: nil
        }
    }

    private var introspectionURL: IssuerURL? {
        switch dialect {
        case .oam12c: asked(base.below("oauth2/rest/token/info"))
        case .idcs: keys.optionalURL("introspection_url") ?? base.beside("introspect")
        case .oam11g, .sim: nil
        }
    }

    /// With the identity domain in its query, where the server takes it there.
    private func asked(_ url: IssuerURL) -> IssuerURL {
        guard dialect == .oam12c, keys.word("domain_in") != OAMOAuthScheme.DomainIn.header, let domain else {
            return url
        }
        return url.below("").adding(query: "identityDomain=\(PercentEncoding.encode(domain))")
    }

    /// The page takes the identity domain as a parameter, whatever the other endpoints take (docs/design/wire/oam-oauth.md#domain).
    private var loginParameters: [(name: String, value: String)] {
        let own = keys.list("login_parameters")
        guard dialect == .oam12c, let domain, !own.contains(where: { $0.name == "domain" }) else { return own }
        return [("domain", domain)] + own
    }

    // MARK: - Names

    private var domain: String? { keys.text("identity_domain") }
    private var domainMode: OAMOAuthScheme.DomainMode { keys.word("domain_mode") }

    /// The user's name in the form in which it is sent.
    var username: String? {
        guard let name = keys.text("username") else { return nil }
        guard dialect == .sim, domainMode == .userPrefix, let domain else { return name }
        return "\(domain).\(name)"
    }

    private var headerDomain: String? {
        switch dialect {
        case .oam12c: keys.word("domain_in") == OAMOAuthScheme.DomainIn.query ? nil : domain
        case .sim: domainMode == .header ? domain : nil
        case .oam11g, .idcs: nil
        }
    }

    // MARK: - Assertions

    private var signing: JWTSigning {
        let inside = keys.inside("assertion")
        var signing = JWTSigning()
        let token = tokenURL
        let audience =
            switch dialect {
            case .sim: "oauth.idm.oracle.com"
            case .idcs: "https://identity.oraclecloud.com/"
            case .oam11g, .oam12c: token.description
            }
        signing.algorithm = "RS256"
        signing.keyID = inside.text("kid")
        signing.thumbprint = inside.boolean("x5t") ? .sha1 : .none
        signing.hasCertificate = inside.has("certificate")
        signing.audience = .init(inside.text("aud") ?? audience)
        signing.lifetime = Int(inside.duration("lifetime").components.seconds)
        return signing
    }

    /// The claims by which SIM knows the client (docs/design/wire/oam-oauth.md#sim).
    private var clientClaims: [NamedValue] {
        var claims: [NamedValue] = []
        if dialect == .sim {
            claims = [
                NamedValue(name: "prn", value: keys.line("client_id")),
                NamedValue(name: "oracle.oauth.sub.id_type", value: "ClientID"),
                NamedValue(name: "oracle.oauth.prn.id_type", value: "ClientID"),
            ]
            if let domain { claims.append(NamedValue(name: "user.tenant.name", value: domain)) }
        }
        return Self.replaced(claims, by: keys.inside("assertion").pairs("extra_claims"))
    }

    private var userClaims: [NamedValue] {
        var claims = [NamedValue(name: "sub", value: username ?? "")]
        if dialect == .sim {
            claims.append(NamedValue(name: "prn", value: username ?? ""))
            if let domain { claims.append(NamedValue(name: "user.tenant.name", value: domain)) }
        }
        return Self.replaced(claims, by: keys.pairs("user_claims"))
    }

    private static func replaced(_ claims: [NamedValue], by own: [NamedValue]) -> [NamedValue] {
        claims.filter { claim in !own.contains { $0.name == claim.name } } + own
    }
}

extension IssuerURL {
    /// With further segments behind its path, and no slash at its end.
    fileprivate func below(_ more: String) -> IssuerURL {
        guard !host.isEmpty else { return self }
        var path = path.prefix { $0 != "?" }
        while path.last == "/" { path.removeLast() }
        let rest = more.drop { $0 == "/" }
        if !rest.isEmpty || path.isEmpty { path += "/" + rest }
        return IssuerURL(origin + path + self.path.drop { $0 != "?" }) ?? .unreadable
    }

    /// With its last segment replaced.
    fileprivate func beside(_ name: String) -> IssuerURL {
        guard !host.isEmpty, let slash = path.lastIndex(of: "/") else { return self }
        return IssuerURL(origin + path[...slash] + name) ?? .unreadable
    }
}
