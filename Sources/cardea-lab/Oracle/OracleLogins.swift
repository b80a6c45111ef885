import FoundationEssentials
import Synchronization

// Pages where a person logs in, codes for those who did, and what the servers say of a token.

/// What an authorization request asked for.
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
        var form = request.query
        guard try need("response_type", &form) == "code" else { throw Refusal(400, "invalid_request", "response_type") }
        guard try need("client_id", &form) == ledger.settings.oauthClientID else {
            throw Refusal(400, "invalid_request", "client_id is unknown")
        }
        let place = try need("redirect_uri", &form)
        guard place.hasPrefix("http://127.0.0.1:") || place.hasPrefix("http://127.0.0.1/") else {
            throw Refusal(400, "invalid_request", "redirect_uri is not registered")
        }
        let state = try need("state", &form)
        let scopes = Set((form.removeValue(forKey: "scope") ?? "").split(separator: " ").map(String.init))
        guard scopes.isSubset(of: OAuthServer.scopes) else { throw Refusal(400, "invalid_scope", "unknown scope") }
        if dialect == .oam12c, try need("domain", &form) != Self.domain {
            throw Refusal(400, "invalid_request", "domain is unknown")
        }
        let challenge = form.removeValue(forKey: "code_challenge")
        let method = form.removeValue(forKey: "code_challenge_method")
        guard (challenge == nil) == (method == nil), challenge.map({ $0.utf8.count == 43 }) ?? true,
            method ?? "S256" == "S256"
        else { throw Refusal(400, "invalid_request", "code_challenge") }
        form["prompt"] = nil
        try finish(form)
        let page = ledger.mint(18)
        let asked = LoginRequest(
            dialect: dialect, redirectURI: place, state: state, scopes: scopes, challenge: challenge)
        self.state.withLock { $0.pages.insert(page, asked) }
        return .text(
            200, "OK",
            """
            <html><form method="POST" action="\(Self.loginPath)"><input type="hidden" name="request_id" value="\(page)">
            <input name="username"><input type="password" name="password"></form></html>

            """, type: "text/html")
    }

    /// The page's form: back to the client with a code.
    func logIn(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        var form = try form(request, body)
        let page = try need("request_id", &form)
        guard let asked = state.withLock({ $0.pages[page] }) else { throw Refusal(400, "invalid_request", "no page") }
        let joint = asked.redirectURI.contains("?") ? "&" : "?"
        let back = "\(asked.redirectURI)\(joint)state=\(asked.state)"
        if faults.take("oam_login_denied") != nil {
            return Response(302, "Found", [("Location", "\(back)&error=access_denied")])
        }
        let user = try need("username", &form)
        try logIn(user, try need("password", &form), "oam_login")
        try finish(form)
        let code = ledger.mint(24)
        state.withLock {
            $0.pages.remove(page)
            $0.granted.insert(code, asked)
        }
        return Response(302, "Found", [("Location", "\(back)&code=\(code)")])
    }

    /// A code is good once, for the server and the redirect address that it was given for, with the verifier of its challenge.
    func redeemed(_ dialect: Dialect, _ form: inout [String: String]) throws(Refusal) -> LoginRequest {
        let code = try need("code", &form)
        let place = try need("redirect_uri", &form)
        let verifier = form.removeValue(forKey: "code_verifier")
        guard let asked = state.withLock({ $0.granted.remove(code) }), asked.dialect == dialect else {
            throw Refusal(400, "invalid_grant", "code is unknown or used")
        }
        guard place == asked.redirectURI else { throw Refusal(400, "invalid_grant", "redirect_uri is another") }
        guard verifier.map(Self.challenge) == asked.challenge else {
            throw Refusal(400, "invalid_grant", "code_verifier does not match")
        }
        ledger.count("\(dialect.rawValue)_code")
        return asked
    }

    /// RFC 7636 §4.2.
    private static func challenge(of verifier: String) -> String {
        var digest = SHA256()
        Array(verifier.utf8).withUnsafeBytes { digest.update($0) }
        let hex = Array(digest.finish().utf8)
        let bytes = stride(from: 0, to: hex.count, by: 2).compactMap {
            UInt8(String(decoding: hex[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
        return String(Base64.encode(bytes).compactMap { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "=" ? nil : $0 })
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
        guard let field = request.single("Authorization"), field.hasPrefix("Bearer "),
            request.query["access_token"] == nil
        else { throw Refusal(400, "invalid_request", "a token is wanted, once and in the header") }
        guard isGood(String(field.dropFirst(7))) else { throw Refusal(400, "invalid_token", "token is unknown") }
        return .json(
            200,
            [
                "aud": .array([]), "client": .string(ledger.settings.oauthClientID), "domain": .string(Self.domain),
                "exp": 4_000_000_000, "iss": "http://lab/oauth2", "jti": "1", "sub": .string(ledger.settings.user),
            ])
    }

    /// IDCS: RFC 7662.
    func introspect(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        var form = try form(request, body)
        guard try client(.idcs, request, &form) != .none else { throw Refusal(401, "invalid_client", "who asks?") }
        let token = try need("token", &form)
        form["token_type_hint"] = nil
        try finish(form)
        return .json(200, ["active": .bool(isGood(token))])
    }
}
