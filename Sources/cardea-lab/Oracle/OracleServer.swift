/// Oracle's dialects of OAuth 2.0, each with its own endpoints and manners. Every request is checked member by member: one that is
/// missing, unknown or there twice refuses it.
struct OracleServer: SimulatedSystem {
    static let mobileRoot = "/ms_oauth/oauth2/endpoints/oauthservice/"
    static let domain = "PayrollDomain"
    static let tenant = "tenant1"
    static let mobileClient = "a1b2c3 mobile"
    static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    static let clientJWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    enum Dialect: String, Sendable { case oam11g, oam12c, sim, idcs }

    struct State: Sendable {
        /// The key that the client's assertions are signed with, and how its certificate is named.
        var key: RSAPublicKey?
        var thumbprint: String?
        /// `jti` of assertions that were seen: a second arrival is a replay.
        var seen = BoundedTable<Bool>(capacity: 10_000)
        /// Client assertions that were issued, by their value: for which client.
        var issued = BoundedTable<String>(capacity: 1_000)
        var codes = BoundedTable<Bool>(capacity: 1_000)
        /// Authorization requests whose page waits for a user, and the codes that were given for them.
        var pages = BoundedTable<LoginRequest>(capacity: 1_000)
        var granted = BoundedTable<LoginRequest>(capacity: 1_000)
        var users = BoundedTable<Bool>(capacity: 1_000)
        /// Refresh tokens of client assertions.
        var renewals = BoundedTable<Bool>(capacity: 1_000)
        /// A session of the user is kept here.
        var hasSession = false
    }

    let ledger: Ledger
    let state = Shared(State())

    private static let operations = [
        "/oauth2/rest/token": "oam12c_token", "/oauth2/rest/token/revoke": "oam12c_revoke",
        "/oauth2/rest/authz": "oam12c_authorize", "/oauth2/rest/token/info": "oam12c_info",
        "/oauth/tokens": "sim_token", "/oauth2/v1/token": "idcs_token", "/oauth2/v1/revoke": "idcs_revoke",
        "/oauth2/v1/introspect": "idcs_introspect", "/oauth2/v1/authorize": "idcs_authorize",
        mobileRoot + "authorize": "oam11g_authorize", mobileRoot + "tokens": "oam11g_token",
        mobileRoot + "tokens-of-profile": "oam11g_token", loginPath: "oam_login",
    ]

    func operation(_ path: String) -> String? {
        Self.operations[path] ?? (path.hasPrefix(Self.mobileRoot + "appprofiles/") ? "oam11g_profile" : nil)
    }

    func reset(tokens: Bool) {
        if tokens { state.withLock { $0 = State() } }
    }

    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON? {
        switch path {
        case "/oracle/key":
            guard let key = Base64.decodeURL(try body.need("n")).flatMap(RSAPublicKey.init) else {
                throw Refusal(400, "", "n is no base64url of a modulus of 2048 to 4096 bits")
            }
            state.withLock { $0.key = key }
        case "/oracle/thumbprint": state.withLock { $0.thumbprint = body["x5t"]?.text }
        case "/oracle/forget_users":
            state.withLock {
                $0.hasSession = false
                $0.users.removeAll()
            }
        case "/oracle/forget_clients":
            state.withLock {
                $0.issued.removeAll()
                if body["renewals"]?.isSet == true { $0.renewals.removeAll() }
            }
        default: return nil
        }
        return ["ok": true]
    }
}

// MARK: - Answers

extension OracleServer {
    func dialect(_ operation: String) -> Dialect {
        Dialect(rawValue: String(operation.prefix { $0 != "_" })) ?? .oam12c
    }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let dialect = dialect(operation)
        return switch operation {
        case "oam11g_profile": try profile(request)
        case "oam12c_revoke", "idcs_revoke": try revoke(dialect, request)
        case "idcs_introspect": try introspect(request)
        case "oam12c_info": try info(request)
        case "oam12c_authorize", "idcs_authorize", "oam11g_authorize": try authorize(dialect, request)
        case "oam_login": try logIn(request)
        default: try token(dialect, request)
        }
    }

    /// 12c was seen with two shapes of error; 11g says 401 where others say 400, and encodes its description.
    func answer(to refusal: Refusal, _ operation: String) -> Response {
        let dialect = dialect(operation)
        let why = dialect == .oam11g ? refusal.why.replacing(" ", with: "+") : refusal.why
        var response = Response.json(
            ["error": "\(refusal.code)", "error_description": "\(why)"], dialect == .oam11g ? 401 : refusal.status)
        if dialect == .oam12c, faults.take("oam12c_error_code") != nil {
            response = .json(
                ["errorCode": "\(refusal.code)", "errorDesc": "\(why)", "secErrorDesc": "see the server's log"], 400)
        }
        return response.with("Cache-Control", "no-store")
    }
}

// MARK: - Requests

/// Parameters that are taken out until none is left: a remaining one is unknown.
struct Parameters {
    private var rest: [String: String]

    init(_ all: [String: String]) { rest = all }

    subscript(_ name: String) -> String? { rest[name] }

    mutating func take(_ name: String) -> String? { rest.removeValue(forKey: name) }

    mutating func need(_ name: String) throws(Refusal) -> String {
        guard let value = take(name), !value.isEmpty else {
            throw Refusal(400, "invalid_request", "parameter \(name) is missing")
        }
        return value
    }

    func finish() throws(Refusal) {
        if let name = rest.keys.min() { throw Refusal(400, "invalid_request", "parameter \(name) is not known") }
    }
}

extension OracleServer {
    private func revoke(_ dialect: Dialect, _ request: Request) throws(Refusal) -> Response {
        var form = Parameters(try request.form())
        try checkDomain(dialect, request)
        _ = try client(dialect, request, &form)
        let token = try form.need("token")
        _ = form.take("token_type_hint")
        try form.finish()
        ledger.count("\(dialect.rawValue)_revoke_\(ledger.forget(token) ? "known" : "unknown")")
        return Response(200)
    }
}
