// Pages where a person logs in, codes for those who did, and what the servers say of a token.

/// The wish of an authorization request.
struct LoginRequest: Sendable {
    let dialect: OracleServer.Dialect
    let redirectURI: String
    let state: String
    let scopes: Set<String>
    let challenge: String?
}

extension OracleServer {
    static let loginPath = "/oam/server/auth_cred_submit"

    /// Every parameter is looked at: one that is missing, unknown or malformed shows no page.
    func authorize(_ dialect: Dialect, _ request: Request) throws(Refusal) -> Response {
        guard request.method == "GET" else { throw Refusal(400, "invalid_request", "GET is wanted") }
        var form = Parameters(request.query)
        guard try form.need("response_type") == "code" else { throw Refusal(400, "invalid_request", "response_type") }
        guard try form.need("client_id") == ledger.settings.oauthClientID else {
            throw Refusal(400, "invalid_request", "client_id is unknown")
        }
        let redirectURI = try form.need("redirect_uri")
        guard redirectURI.hasPrefix("http://127.0.0.1:") || redirectURI.hasPrefix("http://127.0.0.1/") else {
            throw Refusal(400, "invalid_request", "redirect_uri is not registered")
        }
        let state = try form.need("state")
        let scopes = try OAuthServer.scopes(form.take("scope"))
        if dialect == .oam12c, try form.need("domain") != Self.domain {
            throw Refusal(400, "invalid_request", "domain is unknown")
        }
        let challenge = form.take("code_challenge")
        let method = form.take("code_challenge_method")
        guard (challenge == nil) == (method == nil), challenge.map({ $0.utf8.count == 43 }) ?? true,
            method ?? "S256" == "S256"
        else { throw Refusal(400, "invalid_request", "code_challenge") }
        _ = form.take("prompt")
        try form.finish()
        let page = ledger.mint(18)
        let asked = LoginRequest(
            dialect: dialect, redirectURI: redirectURI, state: state, scopes: scopes, challenge: challenge)
        self.state.withLock { $0.pages.insert(page, asked) }
        return .html(
            """
            <html><form method="POST" action="\(Self.loginPath)"><input type="hidden" name="request_id" value="\(page)">
            <input name="username"><input type="password" name="password"></form></html>

            """)
    }

    /// The page's form: back to the client with a code.
    func logIn(_ request: Request) throws(Refusal) -> Response {
        var form = Parameters(try request.form())
        let page = try form.need("request_id")
        guard let asked = state.withLock({ $0.pages[page] }) else { throw Refusal(400, "invalid_request", "no page") }
        let joint = asked.redirectURI.contains("?") ? "&" : "?"
        let back = "\(asked.redirectURI)\(joint)state=\(asked.state)"
        if faults.take("oam_login_denied") != nil {
            return .redirect(to: "\(back)&error=access_denied")
        }
        let user = try form.need("username")
        try logIn(user, try form.need("password"), "oam_login")
        try form.finish()
        let code = ledger.mint(24)
        state.withLock {
            $0.pages.remove(page)
            $0.granted.insert(code, asked)
        }
        return .redirect(to: "\(back)&code=\(code)")
    }

    /// A code is good once, for the server and the redirect address that it was given for, with the verifier of its challenge.
    func redeemed(_ dialect: Dialect, _ form: inout Parameters) throws(Refusal) -> LoginRequest {
        let code = try form.need("code")
        let redirectURI = try form.need("redirect_uri")
        let verifier = form.take("code_verifier")
        guard let asked = state.withLock({ $0.granted.remove(code) }), asked.dialect == dialect else {
            throw Refusal(400, "invalid_grant", "code is unknown or used")
        }
        guard redirectURI == asked.redirectURI else { throw Refusal(400, "invalid_grant", "redirect_uri is another") }
        guard verifier.map({ Base64.encodeURL(SHA256.digest($0)) }) == asked.challenge else {
            throw Refusal(400, "invalid_grant", "code_verifier does not match")
        }
        ledger.count("\(dialect.rawValue)_code")
        return asked
    }
}

// MARK: - What is known of a token

extension OracleServer {
    func isGood(_ token: String) -> Bool {
        guard faults.take("oam_token_dead") == nil else { return false }
        let now = Moment.now()
        return ledger.withState { $0.bearerTokens[token].map { $0.expires > now } ?? false }
    }

    /// 12c: the token says what it is, and nobody else has to (docs/design/wire/oam-oauth.md#token-info).
    func info(_ request: Request) throws(Refusal) -> Response {
        guard request.method == "GET" else { throw Refusal(400, "invalid_request", "GET is wanted") }
        try checkDomain(.oam12c, request)
        guard let token = request.credential("Bearer"), request.query["access_token"] == nil else {
            throw Refusal(400, "invalid_request", "a token is wanted, once and in the header")
        }
        guard isGood(token) else { throw Refusal(400, "invalid_token", "token is unknown") }
        return .json([
            "aud": [], "client": "\(ledger.settings.oauthClientID)", "domain": "\(Self.domain)",
            "exp": 4_000_000_000, "iss": "http://lab/oauth2", "jti": "1", "sub": "\(ledger.settings.user)",
        ])
    }

    /// IDCS: RFC 7662.
    func introspect(_ request: Request) throws(Refusal) -> Response {
        var form = Parameters(try request.form())
        guard try client(.idcs, request, &form) != .none else { throw Refusal(401, "invalid_client", "who asks?") }
        let token = try form.need("token")
        _ = form.take("token_type_hint")
        try form.finish()
        return .json(["active": .bool(isGood(token))])
    }
}
