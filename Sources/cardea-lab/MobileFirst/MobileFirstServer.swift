import Synchronization

/// A MobileFirst 8 server: authorization server, registration and preauthorization of devices, each request checked member by
/// member. What it says of failed checks holds the PIN's own hint and canaries: a client that repeats it is found out.
final class MobileFirstServer: Sendable {
    static let root = "/mfp/api/"
    static let adapters = "/mfp/api/adapters/"
    static let application = "com.acme.teller"
    static let confidentialClient = "payroll-gateway"

    /// The checks behind each scope. Those after the first are silent until it has passed, but for `DeviceCheck`.
    static let checks: [String: [String]] = [
        "accountsRead": ["PinCodeAttempts"],
        "accountsWrite": ["PinCodeAttempts", "UserLogin"],
        "devices": ["PinCodeAttempts", "DeviceCheck"],
        "audit": ["SurpriseCheck"],
        "half": ["PinCodeAttempts", "DeviceCheck", "SurpriseCheck"],
        "notices": ["wl_remoteDisableRealm"],
        "RegisteredClient": [],
        "statements": [],
    ]

    let ledger: Ledger
    let faults: Faults
    let state: Mutex<State>

    struct State: Sendable {
        var pin: String
        var clients: [String: Device] = [:]
        var codes: [String: Code] = [:]
        var registered = 0
    }

    /// A registered client with the state of its checks.
    struct Device: Sendable {
        let key: RSAPublicKey
        /// The JWK as it was sent, for comparison.
        let modulus: String
        let issuer: String
        var attemptsLeft = 3
        var hasFailed = false
        /// Milliseconds until which each check counts as passed.
        var passed: [String: UInt64] = [:]
    }

    struct Code: Sendable {
        let client: String
        let scope: Set<String>
        let redirect: String
    }

    /// A refusal with a code; or an answer of its own shape.
    enum Refusal: Error {
        case code(Int, String, String)
        case answer(Response, String)
    }

    init(ledger: Ledger, faults: Faults) {
        self.ledger = ledger
        self.faults = faults
        state = Mutex(State(pin: ledger.settings.pin))
    }

    static func operation(_ path: String) -> String? {
        guard path.hasPrefix(root) else { return nil }
        return switch String(path.dropFirst(root.count)) {
        case "az/v1/token": "mfp_token"
        case "az/v1/authorization": "mfp_authorization"
        case "registration/v1/self": "mfp_register"
        case "preauth/v1/preauthorize": "mfp_preauthorize"
        case "preauth/v1/logout": "mfp_logout"
        default: nil
        }
    }

    /// What faults call it: a preauthorization with answers is `mfp_answer`.
    static func step(_ operation: String, _ body: [UInt8]) -> String {
        guard operation == "mfp_preauthorize", JSON.parse(body)?["challengeResponse"] != nil else { return operation }
        return "mfp_answer"
    }

    func reset(clients: Bool) {
        state.withLock {
            $0.pin = ledger.settings.pin
            guard clients else { return }
            $0.clients.removeAll()
            $0.codes.removeAll()
        }
    }

    func change(pin: String) {
        state.withLock { $0.pin = pin }
        ledger.withState { $0.secrets.insert(pin, true) }
    }

    /// As if the checks' success had run out.
    func forgetPassedChecks() {
        state.withLock { state in
            for id in state.clients.keys { state.clients[id]?.passed.removeAll() }
        }
    }

    func answer(_ operation: String, _ request: Request, _ body: [UInt8]) -> Response {
        ledger.count(operation)
        let judgesFirst = faults.isSet("mfp_conflict") && operation == "mfp_preauthorize"
        if !judgesFirst, faults.take("mfp_conflict", on: operation) != nil { return conflict }
        do throws(Refusal) {
            let response =
                switch operation {
                case "mfp_register": try register(request, body)
                case "mfp_preauthorize": try preauthorize(request, body)
                case "mfp_authorization": try authorize(request)
                case "mfp_logout": try logout(request, body)
                default: try token(request, body)
                }
            ledger.count("\(operation)_ok")
            return response
        } catch {
            switch error {
            case .code(let status, let code, let why):
                ledger.refuse("\(operation): \(status) \(code): \(why)")
                return .json(
                    status, "Refused", ["errorCode": .string(code), "errorMsg": .string("\(why) \(ledger.mint(12))")])
            case .answer(let response, let why):
                ledger.refuse("\(operation): \(response.status): \(why)")
                return response
            }
        }
    }

    var conflict: Response {
        ledger.count("mfp_conflicts")
        return .json(409, "Conflict", [:], [("MFP-Conflict", "true")])
    }
}

// MARK: - Token

extension MobileFirstServer {
    func form(_ request: Request, _ body: [UInt8], _ names: Set<String>) throws(Refusal) -> [String: String] {
        let form: [String: String]
        do { form = try Form.posted(request, body) } catch { throw .code(400, "INVALID_REQUEST", error.why) }
        if let name = form.keys.first(where: { !names.contains($0) }) {
            throw .code(400, "INVALID_REQUEST", "member \(name) is unknown")
        }
        return form
    }

    private func token(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        let form = try form(
            request, body,
            ["grant_type", "scope", "code", "redirect_uri", "client_assertion_type", "client_assertion"])
        switch form["grant_type"] {
        case "client_credentials": return try confidential(request, form)
        case "authorization_code": return try registered(form)
        default: throw .code(400, "UNSUPPORTED_GRANT_TYPE", "unknown grant")
        }
    }

    private func confidential(_ request: Request, _ form: [String: String]) throws(Refusal) -> Response {
        guard let value = request.single("Authorization"), value.hasPrefix("Basic "),
            Base64.decodeText(String(value.dropFirst(6)))
                == "\(MobileFirstServer.confidentialClient):\(ledger.settings.apiKey)",
            faults.take("invalid_client") == nil
        else { throw .code(401, "INVALID_CLIENT", "client id or secret is wrong") }
        let asked = Set((form["scope"] ?? "RegisteredClient").split(separator: " ").map(String.init))
        guard asked.isSubset(of: MobileFirstServer.checks.keys) else { throw .code(400, "INVALID_SCOPE", "unknown") }
        return issue(asked)
    }

    private func registered(_ form: [String: String]) throws(Refusal) -> Response {
        guard form["client_assertion_type"] == MobileFirstServer.assertionType, form["scope"] == nil else {
            throw .code(400, "INVALID_REQUEST", "client_assertion_type is wrong, or a scope is given")
        }
        guard let text = form["code"], let code = state.withLock({ $0.codes.removeValue(forKey: text) }) else {
            throw .code(400, "INVALID_GRANT", "code is unknown or used")
        }
        try forget(code.client, on: "token")
        try verify(form["client_assertion"] ?? "", of: code.client, code: text)
        guard form["redirect_uri"] == code.redirect else { throw .code(400, "INVALID_GRANT", "other redirect_uri") }
        return issue(code.scope)
    }

    private func issue(_ scopes: Set<String>) -> Response {
        let token = ledger.mint(48)
        let life = UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? 3_600_000))
        let record = Ledger.BearerToken(
            scopes: scopes.union(["RegisteredClient"]), expires: Moment.now() + life)
        ledger.withState { $0.bearerTokens.insert(token, record) }
        return .json(
            200,
            [
                "access_token": .string(token), "token_type": "Bearer", "expires_in": JSON(Int(life / 1000)),
                "scope": .string(scopes.sorted().joined(separator: " ")),
            ], [("Cache-Control", "no-store")])
    }
}
