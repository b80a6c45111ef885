/// An OAuth 2.0 authorization server: token endpoint, revocation, metadata.
struct OAuthServer: SimulatedSystem {
    static let scopes: Set<String> = ["read", "write", "invoices.read", "invoices.write", "admin"]

    let ledger: Ledger

    func operation(_ path: String) -> String? { path == "/token" ? "token" : nil }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let form = try request.form()
        try authenticate(request, form)
        return try grant(form).with("Cache-Control", "no-store").with("Pragma", "no-cache")
    }

    func answer(to refusal: Refusal, _ operation: String) -> Response {
        ledger.count("token_refused")
        let response = Response.json(
            ["error": "\(refusal.code)", "error_description": "\(refusal.why)"], refusal.status)
        return refusal.status == 401 ? response.with("WWW-Authenticate", "Basic realm=\"token\"") : response
    }

    /// Metadata and revocation, to which no fault applies.
    func answerAside(_ request: Request) -> Response? {
        let issuer = "http://" + request.host
        switch request.path {
        case "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server":
            return .json([
                "issuer": "\(issuer)", "token_endpoint": "\(issuer)/token", "revocation_endpoint": "\(issuer)/revoke",
                "authorization_endpoint": "\(issuer)/authorize", "jwks_uri": "\(issuer)/jwks",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials", "password", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "scopes_supported": .array(OAuthServer.scopes.sorted().map { "\($0)" }),
            ])
        case "/revoke":
            ledger.count("revoke")
            if let token = try? request.form()["token"] { ledger.forget(token) }
            return Response(200)
        default: return nil
        }
    }

    /// The scopes that a text names; an unknown one refuses it.
    static func scopes(_ text: String?) throws(Refusal) -> Set<String> {
        let scopes = Set((text ?? "").split(separator: " ").map(String.init))
        guard scopes.isSubset(of: Self.scopes) else { throw Refusal(400, "invalid_scope", "unknown scope") }
        return scopes
    }
}

// MARK: - Clients and grants

extension OAuthServer {
    /// Exactly one method per request; Basic carries both halves form-encoded (RFC 6749 §2.3.1).
    private func authenticate(_ request: Request, _ form: [String: String]) throws(Refusal) {
        var client = (id: form["client_id"], secret: form["client_secret"])
        let fields = request.values("Authorization")
        if !fields.isEmpty {
            guard fields.count == 1, client.secret == nil else {
                throw Refusal(400, "invalid_request", "more than one client authentication")
            }
            guard let (id, secret) = request.basic else { throw Refusal(401, "invalid_client", "not Basic") }
            client = (Form.decode(id), Form.decode(secret))
        }
        guard client.id == ledger.settings.oauthClientID, client.secret == ledger.settings.clientSecret,
            faults.take("invalid_client") == nil
        else { throw Refusal(401, "invalid_client", "client id or secret is wrong") }
    }

    private func grant(_ form: [String: String]) throws(Refusal) -> Response {
        let wanted = try Self.scopes(form["scope"])
        switch form["grant_type"] {
        case "client_credentials": return issue(wanted.isEmpty ? ["read"] : wanted, refreshable: false)
        case "password":
            guard ledger.login(form["username"], form["password"], at: "token") == .accepted else {
                throw Refusal(400, "invalid_grant", "password is wrong")
            }
            return issue(wanted.isEmpty ? ["read"] : wanted, refreshable: true)
        case "refresh_token":
            // A rotated refresh token is dead at once.
            guard let old = form["refresh_token"], let granted = ledger.withState({ $0.refreshTokens.remove(old) })
            else { throw Refusal(400, "invalid_grant", "refresh token is unknown") }
            guard wanted.isSubset(of: granted) else { throw Refusal(400, "invalid_scope", "wider than granted") }
            return issue(wanted.isEmpty ? granted : wanted, refreshable: true)
        case nil: throw Refusal(400, "invalid_request", "grant_type is missing")
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func issue(_ scopes: Set<String>, refreshable: Bool) -> Response {
        let (token, seconds) = ledger.bearerToken(bytes: 32, for: scopes)
        var members: [String: JSON] = [
            "access_token": "\(token)", "token_type": "Bearer", "scope": "\(scopes.sorted().joined(separator: " "))",
        ]
        if faults.take("no_expires_in") == nil {
            members["expires_in"] = JSON(faults.take("expires_in")?.number ?? seconds)
        }
        if refreshable { members["refresh_token"] = "\(ledger.refreshToken(for: scopes))" }
        return .json(.object(members))
    }
}
