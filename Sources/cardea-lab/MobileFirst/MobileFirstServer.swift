/// A MobileFirst 8 server: authorization server, registration and preauthorization of devices, each request checked member by
/// member. What it says of failed checks holds the PIN's own hint and canaries: a client that repeats it is found out.
struct MobileFirstServer: SimulatedSystem {
    static let root = "/mfp/api/"
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
    let state: Shared<State>

    struct State: Sendable {
        var pin: String
        var clients: [String: Device] = [:]
        var codes: [String: Code] = [:]
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

    init(ledger: Ledger) {
        self.ledger = ledger
        state = Shared(State(pin: ledger.settings.pin))
    }

    private static let operations = [
        "az/v1/token": "mfp_token", "az/v1/authorization": "mfp_authorization",
        "registration/v1/self": "mfp_register", "preauth/v1/preauthorize": "mfp_preauthorize",
        "preauth/v1/logout": "mfp_logout",
    ]

    func operation(_ path: String) -> String? {
        path.hasPrefix(Self.root) ? Self.operations[String(path.dropFirst(Self.root.count))] : nil
    }

    /// A preauthorization with answers is `mfp_answer`.
    func step(_ operation: String, _ request: Request) -> String {
        guard operation == "mfp_preauthorize", JSON.parse(request.body)?["challengeResponse"] != nil else {
            return operation
        }
        return "mfp_answer"
    }

    var areas: [Area] { [Area(prefix: Self.root + "adapters/", hasName: true, judge: adapter)] }

    func reset(tokens: Bool) {
        state.withLock {
            $0.pin = ledger.settings.pin
            guard tokens else { return }
            $0.clients.removeAll()
            $0.codes.removeAll()
        }
    }

    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON? {
        switch path {
        case "/pin":
            let pin = try body.need("pin")
            state.withLock { $0.pin = pin }
            ledger.keepSecret(pin)
        // The checks are in the state that they have when their success has run out.
        case "/mfp/forget":
            state.withLock { state in
                for id in state.clients.keys { state.clients[id]?.passed.removeAll() }
            }
        default: return nil
        }
        return ["ok": true]
    }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let judgesFirst = faults.isSet("mfp_conflict") && operation == "mfp_preauthorize"
        if !judgesFirst, faults.take("mfp_conflict", on: operation) != nil { throw Refusal(conflict, "conflict") }
        return switch operation {
        case "mfp_register": try register(request)
        case "mfp_preauthorize": try preauthorize(request)
        case "mfp_authorization": try authorize(request)
        case "mfp_logout": try logout(request)
        default: try token(request)
        }
    }

    func answer(to refusal: Refusal, _ operation: String) -> Response {
        .json(["errorCode": "\(refusal.code)", "errorMsg": "\(refusal.why) \(ledger.mint(12))"], refusal.status)
    }

    var conflict: Response {
        ledger.count("mfp_conflicts")
        return .json([:], 409).with("MFP-Conflict", "true")
    }
}

// MARK: - Token

extension MobileFirstServer {
    private func token(_ request: Request) throws(Refusal) -> Response {
        let form = try request.form(
            ["grant_type", "scope", "code", "redirect_uri", "client_assertion_type", "client_assertion"],
            else: "INVALID_REQUEST")
        switch form["grant_type"] {
        case "client_credentials": return try confidential(request, form)
        case "authorization_code": return try registered(form)
        default: throw Refusal(400, "UNSUPPORTED_GRANT_TYPE", "unknown grant")
        }
    }

    private func confidential(_ request: Request, _ form: [String: String]) throws(Refusal) -> Response {
        guard let (id, secret) = request.basic, id == Self.confidentialClient, secret == ledger.settings.apiKey,
            faults.take("invalid_client") == nil
        else { throw Refusal(401, "INVALID_CLIENT", "client id or secret is wrong") }
        let asked = Set((form["scope"] ?? "RegisteredClient").split(separator: " ").map(String.init))
        guard asked.isSubset(of: MobileFirstServer.checks.keys) else { throw Refusal(400, "INVALID_SCOPE", "unknown") }
        return issue(asked)
    }

    private func registered(_ form: [String: String]) throws(Refusal) -> Response {
        guard form["client_assertion_type"] == MobileFirstServer.assertionType, form["scope"] == nil else {
            throw Refusal(400, "INVALID_REQUEST", "client_assertion_type is wrong, or a scope is given")
        }
        guard let text = form["code"], let code = state.withLock({ $0.codes.removeValue(forKey: text) }) else {
            throw Refusal(400, "INVALID_GRANT", "code is unknown or used")
        }
        try forget(code.client, on: "token")
        try verify(form["client_assertion"] ?? "", of: code.client, code: text)
        guard form["redirect_uri"] == code.redirect else { throw Refusal(400, "INVALID_GRANT", "other redirect_uri") }
        return issue(code.scope)
    }

    private func issue(_ scopes: Set<String>) -> Response {
        let (token, seconds) = ledger.bearerToken(bytes: 48, for: scopes.union(["RegisteredClient"]))
        let response = Response.json([
            "access_token": "\(token)", "token_type": "Bearer", "expires_in": JSON(seconds),
            "scope": "\(scopes.sorted().joined(separator: " "))",
        ])
        return response.with("Cache-Control", "no-store")
    }
}
