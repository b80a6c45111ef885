// The token endpoints of OAM 12c, SIM v3.1 and IDCS, and what OAM 11g has in common with them.
extension OracleServer {
    func token(_ dialect: Dialect, _ request: Request) throws(Refusal) -> Response {
        var form = Parameters(try request.form())
        try checkDomain(dialect, request)
        if dialect == .oam11g, form["client_id"] == Self.mobileClient { return try mobile(request, &form) }
        let how = try client(dialect, request, &form)
        let grant = try grantType(dialect, &form)
        if grant == Self.tokenAction { return try act(&form) }
        let text = form.take("scope")
        let scopes = try OAuthServer.scopes(text)
        switch grant {
        case "client_credentials":
            try form.finish()
            if dialect == .sim, text == nil { return clientAssertion() }
            return issue(scopes, refreshable: false)
        case "password":
            let user = try form.need("username")
            try logIn(named(user, dialect, request), try form.need("password"), "\(dialect.rawValue)_token")
            try form.finish()
            return issue(scopes, refreshable: true)
        case "refresh_token":
            let old = try form.need("refresh_token")
            try form.finish()
            guard let granted = ledger.withState({ $0.refreshTokens.remove(old) }) else {
                throw Refusal(400, "invalid_grant", "refresh token is unknown")
            }
            return issue(scopes.isEmpty ? granted : scopes, refreshable: true)
        case "authorization_code" where dialect != .sim:
            let asked = try redeemed(dialect, &form)
            guard text == nil else { throw Refusal(400, "invalid_request", "scope beside a code") }
            try form.finish()
            return issue(asked.scopes, refreshable: true)
        case Self.jwtBearer:
            try userAssertion(dialect, try form.need("assertion"), request, client: how)
            try form.finish()
            return issue(scopes, refreshable: false)
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    static let tokenAction = "oracle-idm:/oauth/grant-type/resource-access-token/jwt"

    /// 12c takes both spellings, or with a fault only its own.
    private func grantType(_ dialect: Dialect, _ form: inout Parameters) throws(Refusal) -> String {
        let word = try form.need("grant_type")
        guard dialect == .oam12c else { return word }
        let upper = [
            "CLIENT_CREDENTIALS": "client_credentials", "PASSWORD": "password", "REFRESH_TOKEN": "refresh_token",
            "JWT_BEARER": Self.jwtBearer, "AUTHORIZATION_CODE": "authorization_code",
        ]
        if upper[word] != nil { ledger.count("oam12c_upper_case") }
        guard faults.take("oam12c_upper_only") == nil || upper[word] != nil else {
            throw Refusal(400, "unsupported_grant_type", "only capitals here")
        }
        return upper[word] ?? word
    }

    func issue(_ scopes: Set<String>, refreshable: Bool, _ others: [String: JSON] = [:]) -> Response {
        let granted = scopes.isEmpty ? ["read"] : scopes
        let (token, seconds) = ledger.bearerToken("eyJ", bytes: 40, for: granted)
        var members: [String: JSON] = [
            "expires_in": JSON(seconds), "token_type": "Bearer", "access_token": "\(token)",
        ]
        if refreshable { members["refresh_token"] = "\(ledger.refreshToken(for: granted))" }
        return .json(.object(members.merging(others) { $1 })).with("Cache-Control", "no-store")
    }

    /// The assertion that a client without a scope gets (SIM's flow f).
    private func clientAssertion() -> Response {
        let value = "eyJ" + ledger.mint(40)
        state.withLock { $0.issued.insert(value, ledger.settings.oauthClientID) }
        ledger.count("sim_client_assertion")
        return .json([
            "oracle_client_assertion_type": "\(Self.clientJWT)", "expires_in": 604_800, "token_type": "Bearer",
            "oracle_tk_context": "client_assertion", "access_token": "\(value)",
        ])
    }

    func logIn(_ user: String, _ password: String, _ operation: String) throws(Refusal) {
        guard ledger.login(user, password, at: operation) == .accepted else {
            throw Refusal(400, "invalid_grant", "Invalid Grant: user password is wrong")
        }
    }

    /// SIM without its header takes the tenant before the name.
    private func named(_ user: String, _ dialect: Dialect, _ request: Request) -> String {
        let prefix = Self.tenant + "."
        guard dialect == .sim, request.values("X-USER-IDENTITY-DOMAIN-NAME").isEmpty else { return user }
        return user.hasPrefix(prefix) ? String(user.dropFirst(prefix.count)) : "without-tenant"
    }

    /// 11g: validates or deletes a token (docs/design/wire/oam-oauth.md#token-action).
    func act(_ form: inout Parameters) throws(Refusal) -> Response {
        let action = try form.need("oracle_token_action")
        let token = try form.need("assertion")
        if action == "validate" {
            _ = form.take("scope")
            _ = form.take("oracle_token_attrs_retrieval")
        }
        try form.finish()
        ledger.count("oam11g_\(action)")
        let isKnown = isGood(token) || ledger.withState { $0.refreshTokens[token] != nil }
        switch action {
        case "validate": break
        case "delete": ledger.forget(token)
        default: throw Refusal(400, "invalid_request", "unknown action")
        }
        return .json(isKnown ? ["successful": true] : [:])
    }
}

// MARK: - Domain and client

extension OracleServer {
    func checkDomain(_ dialect: Dialect, _ request: Request) throws(Refusal) {
        switch dialect {
        case .oam12c:
            let header = request.values("X-OAUTH-IDENTITY-DOMAIN-NAME")
            let query = request.query["identityDomain"]
            guard header.count <= 1, let domain = header.first ?? query, domain == Self.domain else {
                throw Refusal(400, "invalid_request", "the identity domain is missing or unknown")
            }
            ledger.count(header.isEmpty ? "oam12c_domain_in_query" : "oam12c_domain_in_header")
        case .sim:
            let header = request.values("X-USER-IDENTITY-DOMAIN-NAME")
            guard header.isEmpty || header == [Self.tenant] else {
                throw Refusal(400, "invalid_request", "unknown tenant")
            }
        case .oam11g, .idcs: break
        }
        guard dialect == .oam12c || !request.target.contains("?") else {
            throw Refusal(400, "invalid_request", "no query is wanted")
        }
    }

    enum Proof: Sendable { case secret, signed, issued, none }

    /// Exactly one proof; a signed one is used up by its arrival.
    func client(_ dialect: Dialect, _ request: Request, _ form: inout Parameters) throws(Refusal) -> Proof {
        let fields = request.values("Authorization")
        let id = form.take("client_id")
        let secret = form.take("client_secret")
        let assertion = form.take("client_assertion")
        let type = form.take("client_assertion_type")
        func refused(_ why: String) -> Refusal { Refusal(401, "invalid_client", why) }
        if faults.take("invalid_client") != nil { throw refused("so it was ordered") }
        guard [!fields.isEmpty, secret != nil, assertion != nil].filter({ $0 }).count <= 1, fields.count <= 1 else {
            throw Refusal(400, "invalid_request", "more than one client authentication")
        }
        if let field = fields.first {
            guard id == nil else { throw Refusal(400, "invalid_request", "client_id beside Basic") }
            guard field.lowercased().hasPrefix("basic "),
                Base64.decodeText(field.dropFirst(6)) == ledger.settings.client
            else { throw refused("client id or secret is wrong") }
            return .secret
        }
        guard id == ledger.settings.oauthClientID else { throw refused("client_id is missing or unknown") }
        if let secret {
            guard secret == ledger.settings.clientSecret else { throw refused("secret is wrong") }
            return .secret
        }
        guard let assertion else { return .none }
        guard type == Self.clientJWT || (dialect == .oam12c && type == "JWT_BEARER") else {
            throw refused("client_assertion_type is missing or unknown")
        }
        if let owner = state.withLock({ $0.issued[assertion] }) {
            guard owner == id else { throw refused("not yours") }
            return .issued
        }
        do throws(Refusal) {
            let claims = try verified(assertion, dialect, request)
            guard claims["iss"]?.text == id, claims["sub"]?.text == id else { throw refused("iss or sub is another") }
            if dialect == .sim {
                guard claims["prn"]?.text == id, claims["user.tenant.name"]?.text == Self.tenant,
                    claims["oracle.oauth.sub.id_type"]?.text == "ClientID",
                    claims["oracle.oauth.prn.id_type"]?.text == "ClientID"
                else { throw refused("a claim of SIM is missing") }
            }
        } catch {
            throw refused(error.why)
        }
        return .signed
    }

    private func userAssertion(
        _ dialect: Dialect, _ assertion: String, _ request: Request, client: Proof
    ) throws(Refusal) {
        let claims = try verified(assertion, dialect, request)
        guard claims["iss"]?.text == ledger.settings.oauthClientID else { throw Refusal(400, "invalid_grant", "iss") }
        guard let subject = claims["sub"]?.text, named(subject, dialect, request) == ledger.settings.user else {
            throw Refusal(400, "invalid_grant", "sub is no user")
        }
        if dialect == .sim, claims["user.tenant.name"]?.text != Self.tenant {
            throw Refusal(400, "invalid_grant", "user.tenant.name")
        }
        ledger.count("\(dialect.rawValue)_user_assertion")
        if client == .issued { ledger.count("sim_by_issued_client") }
    }

    /// The claims of a JWT that the client's key has signed, for this server, not seen before.
    private func verified(_ jwt: String, _ dialect: Dialect, _ request: Request) throws(Refusal) -> JSON {
        func fail(_ why: String) -> Refusal { Refusal(400, "invalid_grant", why) }
        let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64.decodeURL(parts[0]).flatMap(JSON.parse),
            let claims = Base64.decodeURL(parts[1]).flatMap(JSON.parse), let seal = Base64.decodeURL(parts[2])
        else { throw fail("no JWT") }
        let known = state.withLock { ($0.key, $0.thumbprint) }
        guard head["alg"]?.text == "RS256", head["typ"]?.text == "JWT", let key = known.0,
            key.verifies(seal, of: "\(parts[0]).\(parts[1])")
        else { throw fail("signature is wrong") }
        if let thumbprint = known.1, head["x5t"]?.text != thumbprint { throw fail("x5t is missing or another") }
        let wanted =
            switch dialect {
            case .sim: "oauth.idm.oracle.com"
            case .idcs: "https://identity.oraclecloud.com/"
            // Also where tokens are revoked: RFC 7523 §3 names the token endpoint.
            case .oam12c: "http://\(request.host)/oauth2/rest/token"
            case .oam11g: "http://\(request.host)\(request.path)"
            }
        // SIM's guide shows a list.
        var audience = claims["aud"]?.text
        if dialect == .sim {
            audience = nil
            if case .array(let items)? = claims["aud"], items.count == 1 { audience = items[0].text }
        }
        guard audience == wanted else { throw fail("aud is another") }
        let now = Int(Moment.wall() / 1000)
        guard let issued = claims["iat"]?.integer, let ends = claims["exp"]?.integer, issued <= now + 60, ends > now,
            ends - issued <= 3600
        else { throw fail("iat or exp") }
        guard let id = claims["jti"]?.text else { throw fail("no jti") }
        let isNew = state.withLock { state in
            guard state.seen[id] == nil else { return false }
            state.seen.insert(id, true)
            return true
        }
        guard isNew else { throw fail("jti was seen before") }
        return claims
    }
}
