/// `oam_oauth`: what its keys mean together, and what they come to in the words of `oauth2`.
extension TreeDecoder {
    mutating func oamOAuth(_ reader: BlockReader, network: Network, place: String) -> OAMOAuthHandshake {
        let dialect: OAMOAuthHandshake.Dialect = reader.word("dialect")
        let isMobile = dialect == .oam11g && (reader.word("client_type") as OAMOAuthHandshake.ClientType) == .mobile
        let block = OAMOAuthReader(reader, dialect: dialect)
        var handshake = OAMOAuthHandshake(
            dialect: dialect, general: block.general(isMobile: isMobile), grant: reader.word("grant"),
            clientAuth: reader.word("client_auth"), grantCase: reader.word("grant_case"),
            clientClaims: block.clientClaims, resourceTokenPrefix: reader.text("resource_token_prefix") ?? "",
            deletesTokens: dialect == .oam11g && reader.boolean("delete_tokens"), mobile: nil)
        if isMobile { handshake.mobile = block.mobile }
        guard reader.node != nil else { return handshake }
        checkURLs(dialect, reader, network, place)
        checkKeys(of: dialect, isMobile: isMobile, reader, place)
        checkDomain(handshake, reader, place)
        checkClient(handshake, reader, place)
        checkGrant(handshake, reader, place)
        checkLogin(handshake, reader, place)
        for pair in handshake.general.extra
        where OAuth2Handshake.ownMembers.contains(pair.name) || pair.name.hasPrefix("oracle_") {
            error("'\(pair.name)' in 'extra' of \(place) is set by its own key", reader.mark("extra"))
        }
        for pair in handshake.general.headers {
            if ReservedHeader.contains(pair.name) || ["authorization", "content-type"].contains(pair.name.lowercased())
            {
                error("'\(pair.name)' in 'headers' of \(place) is set by the gateway itself", reader.mark("headers"))
            }
        }
        return handshake
    }

    // MARK: - Checks

    private mutating func checkURLs(
        _ dialect: OAMOAuthHandshake.Dialect, _ reader: BlockReader, _ network: Network, _ place: String
    ) {
        let own = OAMOAuthReader.urlKey(of: dialect)
        if reader.lacks(own) { error("\(place) needs '\(own)' for 'dialect: \(dialect.rawValue)'", reader.mark) }
        let urls = [
            "service_endpoint", "base_url", "token_url", "revocation_url", "authorization_url", "introspection_url",
        ]
        for key in urls {
            guard let url = reader.httpURL(key) else { continue }
            requireSafe(url, network, reader.mark(key), "'\(key)' of \(place)")
            if url.query != nil { error("'\(key)' of \(place) must not have a query", reader.mark(key)) }
        }
    }

    /// Keys that another dialect or kind of client has.
    private mutating func checkKeys(
        of dialect: OAMOAuthHandshake.Dialect, isMobile: Bool, _ reader: BlockReader, _ place: String
    ) {
        let owners: [(keys: [String], dialects: [OAMOAuthHandshake.Dialect])] = [
            (["service_endpoint", "token_path", "client_type", "delete_tokens", "experimental"], [.oam11g]),
            (["base_url", "domain_in", "grant_case"], [.oam12c]), (["token_url"], [.sim, .idcs]),
            (["domain_mode"], [.sim]), (["identity_domain", "domain_header"], [.oam12c, .sim]),
            (["revocation_url"], [.oam12c, .sim, .idcs]), (["introspection"], [.oam11g, .oam12c, .idcs]),
            (["introspection_url"], [.idcs]),
            (["authorization_url", "redirect_uri", "login_parameters"], OAMOAuthHandshake.dialectsWithLogin),
        ]
        for (keys, dialects) in owners where !dialects.contains(dialect) {
            for key in reader.written(keys) {
                let words = dialects.map(\.rawValue).joined(separator: " or ")
                error("'\(key)' of \(place) goes only with 'dialect: \(words)'", reader.mark(key))
            }
        }
        guard !isMobile else { return }
        let mobile = [
            "fetch_app_profile", "device_profile", "requested_assertions", "server_device_store",
            "server_device_store_param",
        ]
        for key in reader.written(mobile) {
            error(
                "'\(key)' of \(place) goes only with 'dialect: 11g' and 'client_type: mobile'", reader.mark(key))
        }
    }

    private mutating func checkDomain(_ handshake: OAMOAuthHandshake, _ reader: BlockReader, _ place: String) {
        let isWanted: Bool
        switch handshake.dialect {
        case .oam12c: isWanted = true
        case .sim: isWanted = (reader.word("domain_mode") as OAMOAuthHandshake.DomainMode) != .none
        case .oam11g, .idcs: isWanted = false
        }
        if isWanted, reader.lacks("identity_domain") {
            let way = handshake.dialect == .sim ? ", or 'domain_mode: none'" : ""
            error("\(place) needs 'identity_domain'\(way)", reader.mark)
        }
        if let name = reader.text("domain_header"), ReservedHeader.contains(name) {
            error(
                "'domain_header' of \(place) must not be '\(name)', which the connection itself uses",
                reader.mark("domain_header"))
        }
    }

    private mutating func checkClient(_ handshake: OAMOAuthHandshake, _ reader: BlockReader, _ place: String) {
        if handshake.mobile != nil {
            for key in reader.written(["client_secret", "client_auth", "key", "key_password", "assertion"]) {
                error(
                    "'\(key)' of \(place) does not go with 'client_type: mobile': its registration proves it",
                    reader.mark(key))
            }
            for key in ["username", "password"] where reader.lacks(key) {
                error("\(place) needs '\(key)' to register a mobile client", reader.mark)
            }
            return
        }
        let auth = handshake.clientAuth
        switch auth {
        case .basic, .post, .issuedJWT:
            if reader.lacks("client_secret") {
                error("\(place) needs 'client_secret' for 'client_auth: \(auth.rawValue)'", reader.mark)
            }
        case .privateKeyJWT:
            if reader.lacks("key") { error("\(place) needs 'key' for 'client_auth: private_key_jwt'", reader.mark) }
        case .none: break
        }
        if auth == .issuedJWT, ![.sim, .idcs].contains(handshake.dialect) {
            error(
                "'client_auth: issued_jwt' of \(place) goes only with 'dialect: sim or idcs'",
                reader.mark("client_auth"))
        }
        if reader.has("client_secret"), auth == .privateKeyJWT || auth == .none {
            error(
                "'client_secret' of \(place) is not sent with 'client_auth: \(auth.rawValue)'",
                reader.mark("client_secret"))
        }
        let makesUser = handshake.grant == .jwtBearer && reader.lacks("user_assertion")
        let usesKey = auth == .privateKeyJWT || makesUser
        for key in reader.written(["key", "assertion"]) where !usesKey {
            error(
                "'\(key)' of \(place) is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'user_assertion'",
                reader.mark(key))
        }
        if reader.items("key")?.isEmpty == true {
            error("'key' of \(place) is an empty list; the first key signs", reader.mark("key"))
        }
        if reader.has("key_password"), reader.lacks("key") {
            error("'key_password' of \(place) opens no 'key'", reader.mark("key_password"))
        }
        let inside = reader.inside("assertion", Keys.oamAssertion)
        if inside.duration("lifetime") > .seconds(3600), inside.isReadable("lifetime") {
            error("'lifetime' of 'assertion' of \(place) must be at most 1h", inside.mark("lifetime"))
        }
        if inside.has("certificate"), !inside.boolean("x5t") {
            error("'certificate' of 'assertion' of \(place) needs 'x5t: true'", inside.mark("certificate"))
        }
        if inside.has("extra_claims"), auth != .privateKeyJWT {
            error(
                "'extra_claims' of 'assertion' of \(place) are used only with 'client_auth: private_key_jwt'; see 'user_claims'",
                inside.mark("extra_claims"))
        }
        for pair in inside.pairs("extra_claims") + reader.pairs("user_claims")
        where ["iss", "sub", "aud", "jti", "iat", "exp", "nbf"].contains(pair.name) {
            error("'\(pair.name)' among the claims of \(place) is set by the gateway", reader.mark)
        }
    }

    private mutating func checkGrant(_ handshake: OAMOAuthHandshake, _ reader: BlockReader, _ place: String) {
        let grant = handshake.grant
        if grant == .oamCredentials {
            if handshake.mobile == nil {
                error("'grant: oam_credentials' of \(place) needs 'client_type: mobile'", reader.mark("grant"))
            }
            if !reader.boolean("experimental") {
                error(
                    "'grant: oam_credentials' of \(place) needs 'experimental: true': its wire form is not documented",
                    reader.mark("grant"))
            }
        } else if reader.has("experimental") {
            error("'experimental' of \(place) goes only with 'grant: oam_credentials'", reader.mark("experimental"))
        }
        var needs: [String] = []
        var takes: [String] = []
        switch grant {
        case .clientCredentials, .oamCredentials, .authorizationCode: break
        case .password: needs = ["username", "password"]
        case .refreshToken: needs = ["refresh_token"]
        case .jwtBearer:
            if handshake.mobile == nil {
                needs = reader.has("user_assertion") ? ["user_assertion"] : ["key", "username"]
                takes = reader.has("user_assertion") ? [] : ["user_claims"]
            } else {
                takes = ["user_assertion"]
            }
        }
        if handshake.mobile != nil { takes += ["username", "password"] }
        for key in needs where reader.lacks(key) {
            error("\(place) needs '\(key)' for 'grant: \(grant.rawValue)'", reader.mark)
        }
        let all = ["username", "password", "refresh_token", "user_assertion", "user_claims"]
        for key in reader.written(all) where !needs.contains(key) && !takes.contains(key) {
            error("'\(key)' of \(place) is not used by 'grant: \(grant.rawValue)'", reader.mark(key))
        }
        if handshake.mobile != nil, grant == .refreshToken || grant == .authorizationCode {
            error(
                "'grant: \(grant.rawValue)' of \(place) does not go with 'client_type: mobile'", reader.mark("grant"))
        }
    }
}

extension TreeDecoder {
    /// A person's login, and what is asked about a token.
    private mutating func checkLogin(_ handshake: OAMOAuthHandshake, _ reader: BlockReader, _ place: String) {
        if handshake.grant == .authorizationCode {
            if !OAMOAuthHandshake.dialectsWithLogin.contains(handshake.dialect) {
                error(
                    "'grant: authorization_code' of \(place) does not go with 'dialect: \(handshake.dialect.rawValue)'",
                    reader.mark("grant"))
            }
            if handshake.clientAuth == .issuedJWT {
                error(
                    "'client_auth: issued_jwt' of \(place) does not go with 'grant: authorization_code'",
                    reader.mark("client_auth"))
            }
        } else {
            for key in reader.written(["authorization_url", "redirect_uri", "login_parameters"]) {
                error("'\(key)' of \(place) is used only with 'grant: authorization_code'", reader.mark(key))
            }
        }
        for pair in reader.pairs("login_parameters") where OAuth2Handshake.ownParameters.contains(pair.name) {
            error(
                "'\(pair.name)' in 'login_parameters' of \(place) is set by the login itself",
                reader.mark("login_parameters"))
        }
        if reader.has("introspection_url"), !reader.boolean("introspection") {
            error(
                "'introspection_url' of \(place) is used only with 'introspection: true'",
                reader.mark("introspection_url"))
        }
    }
}

/// What the keys of an `oam_oauth` block come to.
private struct OAMOAuthReader {
    let reader: BlockReader
    let dialect: OAMOAuthHandshake.Dialect

    init(_ reader: BlockReader, dialect: OAMOAuthHandshake.Dialect) {
        self.reader = reader
        self.dialect = dialect
    }

    static func urlKey(of dialect: OAMOAuthHandshake.Dialect) -> String {
        switch dialect {
        case .oam11g: "service_endpoint"
        case .oam12c: "base_url"
        case .sim, .idcs: "token_url"
        }
    }

    private static let missing = ServiceURL(origin: Origin(scheme: .https, host: "", port: 443), path: "/", query: nil)

    private var base: ServiceURL { reader.httpURL(Self.urlKey(of: dialect)) ?? Self.missing }
    private var domain: String? { reader.text("identity_domain") }

    private var tokenURL: ServiceURL {
        switch dialect {
        case .oam11g: base.appending(reader.text("token_path") ?? "")
        case .oam12c: base.appending("oauth2/rest/token")
        case .sim, .idcs: base
        }
    }

    /// The last segment of the token endpoint replaced.
    private func beside(_ name: String) -> ServiceURL {
        var url = base
        while let last = url.path.popLast(), last != "/" {}
        return url.appending(name)
    }

    private var authorizationURL: ServiceURL? {
        if let url = reader.httpURL("authorization_url") { return url }
        return switch dialect {
        case .oam11g: base.appending("authorize")
        case .oam12c: base.appending("oauth2/rest/authz")
        case .idcs: beside("authorize")
        case .sim: nil
        }
    }

    /// The page takes the identity domain as a parameter, whatever the other endpoints take (docs/design/wire/oam-oauth.md#domain).
    private var loginParameters: [NamedValue] {
        let own = reader.pairs("login_parameters")
        guard dialect == .oam12c, let domain else { return own }
        return Self.replaced([NamedValue(name: "domain", value: domain)], by: own)
    }

    private var introspectionURL: ServiceURL? {
        switch dialect {
        case .oam12c: asked(base.appending("oauth2/rest/token/info"))
        case .idcs: reader.httpURL("introspection_url") ?? beside("introspect")
        case .oam11g, .sim: nil
        }
    }

    private func asked(_ url: ServiceURL) -> ServiceURL {
        guard dialect == .oam12c, (reader.word("domain_in") as OAMOAuthHandshake.DomainIn) != .header, let domain else {
            return url
        }
        return url.appending("", parameter: ("identityDomain", domain))
    }

    private var isPrefixed: Bool {
        dialect == .sim && (reader.word("domain_mode") as OAMOAuthHandshake.DomainMode) == .userPrefix
    }

    /// As it is sent.
    private var username: String? {
        guard let name = reader.text("username") else { return nil }
        guard isPrefixed, let domain else { return name }
        return "\(domain).\(name)"
    }

    private var headerDomain: String? {
        switch dialect {
        case .oam12c: (reader.word("domain_in") as OAMOAuthHandshake.DomainIn) == .query ? nil : domain
        case .sim: (reader.word("domain_mode") as OAMOAuthHandshake.DomainMode) == .header ? domain : nil
        case .oam11g, .idcs: nil
        }
    }

    private var domainHeader: String {
        reader.text("domain_header")
            ?? (dialect == .oam12c ? "X-OAUTH-IDENTITY-DOMAIN-NAME" : "X-USER-IDENTITY-DOMAIN-NAME")
    }

    private var signing: OAuth2Handshake.Signing {
        let inside = reader.inside("assertion", Keys.oamAssertion)
        let token = tokenURL
        let audience =
            switch dialect {
            case .sim: "oauth.idm.oracle.com"
            case .idcs: "https://identity.oraclecloud.com/"
            case .oam11g, .oam12c: "\(token.origin)\(token.path)"
            }
        return .init(
            algorithm: .rs256, keyID: inside.text("kid"), thumbprint: inside.boolean("x5t") ? .sha1 : .none,
            certificate: inside.path("certificate"), audience: inside.text("aud") ?? audience,
            lifetime: inside.duration("lifetime"))
    }

    /// The claims by which SIM knows the client (docs/design/wire/oam-oauth.md#sim).
    var clientClaims: [NamedValue] {
        var claims: [NamedValue] = []
        if dialect == .sim {
            claims.append(NamedValue(name: "prn", value: reader.text("client_id") ?? ""))
            claims.append(NamedValue(name: "oracle.oauth.sub.id_type", value: "ClientID"))
            claims.append(NamedValue(name: "oracle.oauth.prn.id_type", value: "ClientID"))
            if let domain { claims.append(NamedValue(name: "user.tenant.name", value: domain)) }
        }
        return Self.replaced(claims, by: reader.inside("assertion", Keys.oamAssertion).pairs("extra_claims"))
    }

    private var userClaims: [NamedValue] {
        var claims = [NamedValue(name: "sub", value: username ?? "")]
        if dialect == .sim {
            claims.append(NamedValue(name: "prn", value: username ?? ""))
            if let domain { claims.append(NamedValue(name: "user.tenant.name", value: domain)) }
        }
        return Self.replaced(claims, by: reader.pairs("user_claims"))
    }

    private static func replaced(_ claims: [NamedValue], by own: [NamedValue]) -> [NamedValue] {
        claims.filter { claim in !own.contains { $0.name == claim.name } } + own
    }

    func general(isMobile: Bool) -> OAuth2Handshake {
        let grant: OAuth2Handshake.Grant =
            switch reader.word("grant") as OAMOAuthHandshake.Grant {
            case .clientCredentials, .oamCredentials: .clientCredentials
            case .password: .password
            case .refreshToken: .refreshToken
            case .authorizationCode: .authorizationCode
            case .jwtBearer: .jwtBearer
            }
        let auth: OAuth2Handshake.ClientAuth =
            switch reader.word("client_auth") as OAMOAuthHandshake.ClientAuth {
            case _ where isMobile: .none
            case .basic, .issuedJWT: .basic
            case .post: .post
            case .privateKeyJWT: .privateKeyJWT
            case .none: .none
            }
        return OAuth2Handshake(
            issuer: nil, issuerText: nil, tokenURL: asked(tokenURL), grant: grant,
            clientID: reader.text("client_id") ?? "", clientSecret: reader.secret("client_secret"), clientAuth: auth,
            // As Oracle's guides and SDKs build it: id and secret as they are.
            basicEncoding: .raw,
            keys: reader.list("key") { text throws(TextFault) in try SecretReference(text: text) } ?? [],
            keyPassword: reader.secret("key_password"), signing: signing, claims: userClaims,
            assertion: reader.secret("user_assertion"), username: username, password: reader.secret("password"),
            refreshToken: reader.secret("refresh_token"), subjectToken: nil, subjectTokenType: nil, actorToken: nil,
            actorTokenType: nil, requestedTokenType: nil, extra: reader.pairs("extra"),
            headers: reader.pairs("headers"), allowedScopes: reader.texts("allowed_scopes"), allowedIssuers: [],
            authorizationURL: authorizationURL, deviceAuthorizationURL: nil,
            revocationURL: reader.httpURL("revocation_url").map(asked), redirectURI: reader.httpURL("redirect_uri"),
            redirectText: reader.text("redirect_uri"), loginParameters: loginParameters, identityDomain: headerDomain,
            identityDomainHeader: domainHeader, dpop: false, introspects: reader.boolean("introspection"),
            introspectionURL: introspectionURL)
    }

    var mobile: OAMOAuthHandshake.Mobile {
        let requested = reader.inside("requested_assertions", Keys.oamRequested)
        return .init(
            service: base, fetchesProfile: reader.boolean("fetch_app_profile"), username: username ?? "",
            deviceProfile: reader.pairs("device_profile"), deviceStore: reader.word("server_device_store"),
            deviceStoreParam: reader.text("server_device_store_param") ?? "",
            preAssertion: requested.text("pre") ?? "", clientAssertion: requested.text("client") ?? "",
            userAssertion: requested.text("user") ?? "")
    }
}
