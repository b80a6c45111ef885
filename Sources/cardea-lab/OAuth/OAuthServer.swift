/// An OAuth 2.0 authorization server: token endpoint, revocation, metadata.
struct OAuthServer: Sendable {
    static let scopes: Set<String> = ["read", "write", "invoices.read", "invoices.write", "admin"]

    let ledger: Ledger
    let faults: Faults

    private struct Refusal: Error {
        let status: Int
        let code: String
        let why: String
        init(_ status: Int, _ code: String, _ why: String) {
            self.status = status
            self.code = code
            self.why = why
        }
    }

    func token(_ request: Request, _ body: [UInt8]) -> Response {
        ledger.count("token")
        do {
            let form = try checked(request, body)
            try authenticate(request, form)
            let response = try grant(form)
            ledger.count("token_ok")
            return response
        } catch {
            ledger.refuse("token: \(error.status) \(error.code): \(error.why)")
            ledger.count("token_refused")
            let response = Response.json(
                error.status, error.status == 401 ? "Unauthorized" : "Bad Request",
                ["error": .string(error.code), "error_description": .string(error.why)], OAuthServer.noStore)
            return error.status == 401 ? response.with("WWW-Authenticate", "Basic realm=\"token\"") : response
        }
    }

    func metadata(issuer: String) -> Response {
        .json(
            200,
            [
                "issuer": .string(issuer), "token_endpoint": .string(issuer + "/token"),
                "revocation_endpoint": .string(issuer + "/revoke"), "response_types_supported": ["code"],
                "authorization_endpoint": .string(issuer + "/authorize"), "jwks_uri": .string(issuer + "/jwks"),
                "grant_types_supported": ["client_credentials", "password", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "scopes_supported": .array(OAuthServer.scopes.sorted().map { .string($0) }),
            ])
    }

    private static let noStore = [("Cache-Control", "no-store"), ("Pragma", "no-cache")]
}

// MARK: - Checks

extension OAuthServer {
    private func checked(_ request: Request, _ body: [UInt8]) throws(Refusal) -> [String: String] {
        do { return try Form.posted(request, body) } catch { throw Refusal(400, "invalid_request", error.why) }
    }

    /// Exactly one method per request; Basic carries both halves form-encoded (RFC 6749 §2.3.1).
    private func authenticate(_ request: Request, _ form: [String: String]) throws(Refusal) {
        let fields = request.values("Authorization")
        let client: (id: String?, secret: String?)
        if let value = fields.first {
            guard fields.count == 1, form["client_secret"] == nil else {
                throw Refusal(400, "invalid_request", "more than one client authentication")
            }
            guard value.lowercased().hasPrefix("basic "), let text = Base64.decodeText(String(value.dropFirst(6))),
                let colon = text.firstIndex(of: ":")
            else { throw Refusal(401, "invalid_client", "not Basic") }
            client = (Form.decode(text[..<colon]), Form.decode(text[text.index(after: colon)...]))
        } else {
            client = (form["client_id"], form["client_secret"])
        }
        guard client.id == ledger.settings.oauthClientID, client.secret == ledger.settings.clientSecret,
            faults.take("invalid_client") == nil
        else { throw Refusal(401, "invalid_client", "client id or secret is wrong") }
    }
}

// MARK: - Grants

extension OAuthServer {
    private func grant(_ form: [String: String]) throws(Refusal) -> Response {
        let wanted = Set((form["scope"] ?? "").split(separator: " ").map(String.init))
        guard wanted.isSubset(of: OAuthServer.scopes) else { throw Refusal(400, "invalid_scope", "unknown scope") }
        switch form["grant_type"] {
        case "client_credentials": return issue(wanted.isEmpty ? ["read"] : wanted, refreshable: false)
        case "password":
            let verdict = ledger.login(
                user: form["username"] ?? "", password: form["password"] ?? "",
                refused: faults.take("wrong_password", on: "token") != nil)
            guard verdict == .accepted else { throw Refusal(400, "invalid_grant", "password is wrong") }
            return issue(wanted.isEmpty ? ["read"] : wanted, refreshable: true)
        case "refresh_token":
            // A rotated refresh token is dead at once.
            guard let old = form["refresh_token"], let granted = ledger.withState({ $0.refreshTokens.remove(old) })
            else {
                throw Refusal(400, "invalid_grant", "refresh token is unknown")
            }
            guard wanted.isSubset(of: granted) else { throw Refusal(400, "invalid_scope", "wider than granted") }
            return issue(wanted.isEmpty ? granted : wanted, refreshable: true)
        case nil: throw Refusal(400, "invalid_request", "grant_type is missing")
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func issue(_ scopes: Set<String>, refreshable: Bool) -> Response {
        let token = ledger.mint(32)
        let life = UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? 3_600_000))
        let record = Ledger.BearerToken(scopes: scopes, expires: Moment.now() + life)
        ledger.withState { $0.bearerTokens.insert(token, record) }
        var members: [(key: String, value: JSON)] = [
            ("access_token", .string(token)), ("token_type", "Bearer"),
            ("scope", .string(scopes.sorted().joined(separator: " "))),
        ]
        if faults.take("no_expires_in") == nil {
            members.append(("expires_in", JSON(faults.take("expires_in")?.number ?? Int(life / 1000))))
        }
        if refreshable {
            let refresh = ledger.mint(32)
            ledger.withState { $0.refreshTokens.insert(refresh, scopes) }
            members.append(("refresh_token", .string(refresh)))
        }
        return .json(200, .object(members), OAuthServer.noStore)
    }

    func revoke(_ request: Request, _ body: [UInt8]) -> Response {
        ledger.count("revoke")
        if let text = String(validating: body, as: UTF8.self),
            let token = Form.parse(text)?.first(where: { $0.name == "token" })?.value
        {
            ledger.withState {
                $0.bearerTokens.remove(token)
                $0.refreshTokens.remove(token)
            }
        }
        return Response(200, "OK")
    }
}
