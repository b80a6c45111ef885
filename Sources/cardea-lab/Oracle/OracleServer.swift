import FoundationEssentials
import Synchronization

/// Oracle's dialects of OAuth 2.0, each with its own endpoints and manners. Every request is checked member by member: one that is
/// missing, unknown or there twice refuses it.
final class OracleServer: Sendable {
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

    struct Refusal: Error {
        let status: Int
        let code: String
        let why: String
        init(_ status: Int, _ code: String, _ why: String) {
            self.status = status
            self.code = code
            self.why = why
        }
    }

    let ledger: Ledger
    let faults: Faults
    let state = Mutex(State())

    init(ledger: Ledger, faults: Faults) {
        self.ledger = ledger
        self.faults = faults
    }

    static func operation(_ path: String) -> String? {
        switch path {
        case "/oauth2/rest/token": "oam12c_token"
        case "/oauth2/rest/token/revoke": "oam12c_revoke"
        case "/oauth/tokens": "sim_token"
        case "/oauth2/v1/token": "idcs_token"
        case "/oauth2/v1/revoke": "idcs_revoke"
        case "/oauth2/v1/introspect": "idcs_introspect"
        case "/oauth2/v1/authorize": "idcs_authorize"
        case "/oauth2/rest/authz": "oam12c_authorize"
        case "/oauth2/rest/token/info": "oam12c_info"
        case mobileRoot + "authorize": "oam11g_authorize"
        case loginPath: "oam_login"
        case mobileRoot + "tokens", mobileRoot + "tokens-of-profile": "oam11g_token"
        case let path where path.hasPrefix(mobileRoot + "appprofiles/"): "oam11g_profile"
        default: nil
        }
    }
}

// MARK: - Answers

extension OracleServer {
    func answer(_ operation: String, _ request: Request, _ body: [UInt8]) -> Response {
        ledger.count(operation)
        let dialect = Dialect(rawValue: String(operation.prefix { $0 != "_" })) ?? .oam12c
        do {
            let response: Response
            switch operation {
            case "oam11g_profile": response = try profile(request)
            case "oam12c_revoke", "idcs_revoke": response = try revoke(dialect, request, body)
            case "idcs_introspect": response = try introspect(request, body)
            case "oam12c_info": response = try info(request)
            case "oam12c_authorize", "idcs_authorize", "oam11g_authorize": response = try authorize(dialect, request)
            case "oam_login": response = try logIn(request, body)
            default: response = try token(dialect, request, body)
            }
            ledger.count("\(operation)_ok")
            return response
        } catch {
            ledger.refuse("\(operation): \(error.status) \(error.code): \(error.why)")
            return refusal(error, dialect)
        }
    }

    /// 12c was seen with two shapes of error; 11g says 401 where others say 400, and encodes its description.
    private func refusal(_ error: Refusal, _ dialect: Dialect) -> Response {
        var status = error.status
        var members: JSON = ["error": .string(error.code), "error_description": .string(error.why)]
        if dialect == .oam12c, faults.take("oam12c_error_code") != nil {
            status = 400
            members = [
                "errorCode": .string(error.code), "errorDesc": .string(error.why),
                "secErrorDesc": "see the server's log",
            ]
        }
        if dialect == .oam11g {
            status = 401
            members = [
                "error": .string(error.code),
                "error_description": .string(error.why.split(separator: " ").joined(separator: "+")),
            ]
        }
        return .json(status, status == 401 ? "Unauthorized" : "Bad Request", members, [("Cache-Control", "no-store")])
    }

    func reset(all: Bool) {
        guard all else { return }
        state.withLock { $0 = State() }
    }

    /// - Returns: nil when the key was understood.
    func learn(key: JSON?) -> String? {
        guard let modulus = key?["n"]?.text.flatMap({ Self.decoded($0) }), let key = RSAPublicKey(modulus: modulus)
        else { return "n is no base64url of a modulus of 2048 to 4096 bits" }
        state.withLock { $0.key = key }
        return nil
    }

    func learn(thumbprint: String?) { state.withLock { $0.thumbprint = thumbprint } }

    func forgetSession() {
        state.withLock {
            $0.hasSession = false
            $0.users.removeAll()
        }
    }

    func forgetClients(renewals: Bool) {
        state.withLock {
            $0.issued.removeAll()
            if renewals { $0.renewals.removeAll() }
        }
    }

    static func decoded(_ part: some StringProtocol) -> [UInt8]? {
        guard part.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "=") })
        else { return nil }
        var text = String(part.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
        while text.utf8.count % 4 != 0 { text += "=" }
        return Data(base64Encoded: text).map { Array($0) }
    }
}

// MARK: - Requests

extension OracleServer {
    func form(_ request: Request, _ body: [UInt8]) throws(Refusal) -> [String: String] {
        do { return try Form.posted(request, body) } catch { throw Refusal(400, "invalid_request", error.why) }
    }

    /// Takes members out until none is left; a remaining one is unknown.
    func finish(_ form: [String: String]) throws(Refusal) {
        if let name = form.keys.sorted().first {
            throw Refusal(400, "invalid_request", "parameter \(name) is not known")
        }
    }

    func need(_ name: String, _ form: inout [String: String]) throws(Refusal) -> String {
        guard let value = form.removeValue(forKey: name), !value.isEmpty else {
            throw Refusal(400, "invalid_request", "parameter \(name) is missing")
        }
        return value
    }

    private func revoke(_ dialect: Dialect, _ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        var form = try form(request, body)
        try checkDomain(dialect, request)
        _ = try client(dialect, request, &form)
        let token = try need("token", &form)
        form["token_type_hint"] = nil
        try finish(form)
        let isKnown = ledger.withState { $0.bearerTokens[token] != nil || $0.refreshTokens[token] != nil }
        ledger.count("\(dialect.rawValue)_revoke_\(isKnown ? "known" : "unknown")")
        ledger.withState {
            $0.bearerTokens.remove(token)
            $0.refreshTokens.remove(token)
        }
        return Response(200, "OK")
    }
}
