internal import Configuration

/// Checks of the keys of `oam_oauth` against one another.
struct OAMOAuthChecks {
    let keys: BlockReader
    let reader: OAMOAuthReader
    let network: Network

    private var dialect: OAMOAuthScheme.Dialect { reader.dialect }
    private var grant: OAMOAuthScheme.Grant { reader.grant }
    private var auth: OAMOAuthScheme.ClientAuth { reader.clientAuth }
    private var isMobile: Bool { reader.isMobile }
    private var word: String { "'grant: \(grant.rawValue)'" }

    /// Servers where a person can log in: SIM has no page for that.
    private static let dialectsWithLogin: [OAMOAuthScheme.Dialect] = [.oam11g, .oam12c, .idcs]

    func run() {
        checkURLs()
        checkOwners()
        checkDomain()
        if isMobile { checkMobile() } else { checkClient() }
        checkGrant()
        checkLogin()
        keys.refuseNames(in: "extra", "is set by its own key") {
            OAuth2Handshake.ownMembers.contains($0) || $0.hasPrefix("oracle_")
        }
        keys.checkHeaders("headers")
    }

    private func checkURLs() {
        keys.need([reader.urlKey], " for 'dialect: \(dialect.rawValue)'")
        let urls = [
            "service_endpoint", "base_url", "token_url", "revocation_url", "authorization_url", "introspection_url",
        ]
        for key in urls { keys.checkURL(key, of: network, allowsQuery: false) }
    }

    /// Keys that another dialect or kind of client has.
    private func checkOwners() {
        let owners: [(keys: [String], dialects: [OAMOAuthScheme.Dialect])] = [
            (["service_endpoint", "token_path", "client_type", "delete_tokens", "experimental"], [.oam11g]),
            (["base_url", "domain_in", "grant_case"], [.oam12c]), (["token_url"], [.sim, .idcs]),
            (["domain_mode"], [.sim]), (["identity_domain", "domain_header"], [.oam12c, .sim]),
            (["revocation_url"], [.oam12c, .sim, .idcs]), (["introspection"], [.oam11g, .oam12c, .idcs]),
            (["introspection_url"], [.idcs]),
            (["authorization_url", "redirect_uri", "login_parameters"], Self.dialectsWithLogin),
        ]
        for (names, dialects) in owners where !dialects.contains(dialect) {
            let words = dialects.map(\.rawValue).joined(separator: " or ")
            keys.refuse(names, "goes only with 'dialect: \(words)'")
        }
        guard !isMobile else { return }
        let mobile = [
            "fetch_app_profile", "device_profile", "requested_assertions", "server_device_store",
            "server_device_store_param",
        ]
        keys.refuse(mobile, "goes only with 'dialect: 11g' and 'client_type: mobile'")
    }

    private func checkDomain() {
        switch dialect {
        case .oam12c: keys.need(["identity_domain"])
        case .sim where keys.word("domain_mode") != OAMOAuthScheme.DomainMode.none:
            keys.need(["identity_domain"], ", or 'domain_mode: none'")
        case .sim, .oam11g, .idcs: break
        }
        keys.checkFieldNames(["domain_header"])
    }

    private func checkMobile() {
        keys.refuse(
            ["client_secret", "client_auth", "key", "key_password", "assertion"],
            "does not go with 'client_type: mobile': its registration proves it")
        keys.need(["username", "password"], " to register a mobile client")
    }

    private func checkClient() {
        let word = "'client_auth: \(auth.rawValue)'"
        switch auth {
        case .basic, .post, .issuedJWT: keys.need(["client_secret"], " for \(word)")
        case .privateKeyJWT: keys.need(["key"], " for \(word)")
        case .none: break
        }
        if auth == .issuedJWT, dialect != .sim, dialect != .idcs {
            keys.error("\(word) of \(keys.place) goes only with 'dialect: sim or idcs'", at: "client_auth")
        }
        if auth == .privateKeyJWT || auth == .none { keys.refuse(["client_secret"], "is not sent with \(word)") }
        let makesUser = grant == .jwtBearer && keys.lacks("user_assertion")
        if auth != .privateKeyJWT, !makesUser {
            keys.refuse(
                ["key", "assertion"],
                "is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'user_assertion'"
            )
        }
        keys.checkSigningKeys()
        let inside = keys.inside("assertion")
        inside.atMost("lifetime", .seconds(3600), "1h")
        if !inside.boolean("x5t") { inside.refuse(["certificate"], "needs 'x5t: true'") }
        if auth != .privateKeyJWT {
            inside.refuse(
                ["extra_claims"], "are used only with 'client_auth: private_key_jwt'; see 'user_claims'")
        }
        for pair in inside.pairs("extra_claims") + keys.pairs("user_claims")
        where ["iss", "sub", "aud", "jti", "iat", "exp", "nbf"].contains(pair.name) {
            keys.error("'\(pair.name)' among the claims of \(keys.place) is set by the gateway")
        }
    }

    private func checkGrant() {
        if grant != .oamCredentials {
            keys.refuse(["experimental"], "goes only with 'grant: oam_credentials'")
        } else {
            if !isMobile { keys.error("\(word) of \(keys.place) needs 'client_type: mobile'", at: "grant") }
            if !keys.boolean("experimental") {
                keys.error(
                    "\(word) of \(keys.place) needs 'experimental: true': its wire form is not documented", at: "grant")
            }
        }
        var needs: [String] = []
        var takes = isMobile ? ["username", "password"] : []
        switch grant {
        case .clientCredentials, .oamCredentials, .authorizationCode: break
        case .password: needs = ["username", "password"]
        case .refreshToken: needs = ["refresh_token"]
        case .jwtBearer where isMobile: takes.append("user_assertion")
        case .jwtBearer where keys.has("user_assertion"): needs = ["user_assertion"]
        case .jwtBearer:
            needs = ["key", "username"]
            takes.append("user_claims")
        }
        keys.need(needs, " for \(word)")
        let all = ["username", "password", "refresh_token", "user_assertion", "user_claims"]
        keys.refuse(all.filter { !needs.contains($0) && !takes.contains($0) }, "is not used by \(word)")
        if isMobile, grant == .refreshToken || grant == .authorizationCode {
            keys.error("\(word) of \(keys.place) does not go with 'client_type: mobile'", at: "grant")
        }
    }

    /// A person's login, and what is asked about a token.
    private func checkLogin() {
        if grant != .authorizationCode {
            keys.refuse(
                ["authorization_url", "redirect_uri", "login_parameters"],
                "is used only with 'grant: authorization_code'")
        } else {
            if !Self.dialectsWithLogin.contains(dialect) {
                keys.error(
                    "\(word) of \(keys.place) does not go with 'dialect: \(dialect.rawValue)'", at: "grant")
            }
            if auth == .issuedJWT {
                keys.error("'client_auth: issued_jwt' of \(keys.place) does not go with \(word)", at: "client_auth")
            }
        }
        keys.refuseNames(in: "login_parameters", "is set by the login itself") {
            OAuth2Handshake.ownParameters.contains($0)
        }
        if !keys.boolean("introspection") {
            keys.refuse(["introspection_url"], "is used only with 'introspection: true'")
        }
    }
}
