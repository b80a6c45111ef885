/// Adobe Pass Authentication with a pay-TV provider behind it: client registration, REST API V2 and V1, and the throttle in front. Each call
/// is checked header by header; what Adobe would not document is refused.
struct AdobePassServer: SimulatedSystem {
    static let serviceProvider = "NORTH1"
    static let mvpd = "CableCo"
    static let domain = "north.example"
    static let api = "/api/v2/\(serviceProvider)/"

    let ledger: Ledger
    let state = Shared(State())

    struct State: Sendable {
        var clients: [String: String] = [:]
        var tokens: [String: AccessToken] = [:]
        var sessions: [String: LoginSession] = [:]
        var profiles: [Device: Profile] = [:]
        var mediaTokens: [String: MediaToken] = [:]
        /// For V1: resources that a device has asked for and may have.
        var permits: [Device: Set<String>] = [:]
        /// When the throttle's bucket is full again, in ms.
        var fullAt: UInt64 = 0
    }

    struct AccessToken: Sendable {
        let client: String
        /// ms of the monotonic clock.
        let expires: UInt64
    }

    /// Another client or another device id is another device, without a login.
    struct Device: Hashable, Sendable {
        let client, id: String
    }

    struct LoginSession: Sendable {
        let device: Device
        let redirect: String
        /// ms since 1970.
        let expires: Int64
        var isDone = false
    }

    struct Profile: Sendable {
        let begins, ends: Int64
    }

    struct MediaToken: Sendable {
        let resource: String
        let expires: Int64
        var isUsed = false
    }

    func reset(tokens: Bool) {
        if tokens { state.withLock { $0 = State() } }
    }

    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON? {
        switch path {
        case "/adobe/expire_access_tokens": state.withLock { $0.tokens.removeAll() }
        case "/adobe/end_logins": state.withLock { $0.profiles.removeAll() }
        default: return nil
        }
        return ["ok": true]
    }

    func operation(_ path: String) -> String? {
        switch path {
        case "/o/client/register": return "adobe_register"
        case "/o/client/token": return "adobe_token"
        default: break
        }
        if path.hasPrefix("/api/v2/authenticate/") { return "adobe_browser" }
        if let name = Self.operationsOfV1[path] { return name }
        guard path.hasPrefix(Self.api) else { return nil }
        let parts = path.dropFirst(Self.api.count).split(separator: "/", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("sessions", 1), ("sessions", 2): return "adobe_sessions"
        case ("profiles", 3) where parts[1] == "code": return "adobe_poll"
        case ("profiles", 2): return "adobe_profile"
        case ("decisions", 3) where parts[1] == "authorize": return "adobe_authorize"
        case ("decisions", 3) where parts[1] == "preauthorize": return "adobe_preauthorize"
        case ("logout", 2): return "adobe_logout"
        default: return nil
        }
    }

    var areas: [Area] { ["/media/", "/mrss/"].map { Area(prefix: $0, hasName: true, judge: admit) } }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        if operation == "adobe_browser" { return try browse(request) }
        if operation == "adobe_v1_browser" { return try browseV1(request) }
        try throttle()
        return switch operation {
        case "adobe_register": try register(request)
        case "adobe_token": try token(request)
        case _ where operation.hasPrefix("adobe_v1_"): try serveV1(operation, request)
        default: try serveV2(operation, request)
        }
    }

    func answer(to refusal: Refusal, _ operation: String) -> Response {
        let said = enhanced(refusal.status, refusal.why, refusal.code)
        return .json(faults.isSet("adobe_wrapped_error") ? ["error": said] : said, refusal.status)
    }

    /// An enhanced error, with a canary in what it says: a client that repeats the words is found out.
    func enhanced(_ status: Int, _ action: String, _ code: String) -> JSON {
        [
            "action": "\(action)", "status": JSON(status), "code": "\(code)",
            "message": "said by Adobe \(ledger.mint(9))", "helpUrl": "https://example.test/help",
            "trace": "\(Random.text(bytes: 12))",
        ]
    }

    private func throttle() throws(Refusal) {
        guard faults.isSet("adobe_throttle") else { return }
        let now = Moment.now()
        let admitted = state.withLock { state in
            let full = max(state.fullAt, now)
            guard full - now <= 9_000 else { return false }
            state.fullAt = full + 1_000
            return true
        }
        guard !admitted else { return }
        ledger.count("adobe_throttled")
        throw Refusal(.html("<html><body>slow down</body></html>", 429), "throttled")
    }
}

// MARK: - Registration and access token

extension AdobePassServer {
    private func refused(_ code: String) -> Refusal { Refusal(.json(["error": "\(code)"], 400), code) }

    private func register(_ request: Request) throws(Refusal) -> Response {
        try checkDeviceInfo(request)
        guard let members = request.members(["software_statement", "redirect_uri"]) else {
            throw refused("invalid_request")
        }
        guard members["software_statement"]?.text == ledger.settings.apiKey else {
            throw refused("invalid_software_statement")
        }
        let id = "c-" + Random.text(bytes: 9)
        let secret = ledger.mint(24)
        state.withLock { $0.clients[id] = secret }
        return .json([
            "client_id": "\(id)", "client_secret": "\(secret)",
            "client_id_issued_at": JSON(Moment.wall() / 1000), "redirect_uris": [],
            "grant_types": ["client_credentials"], "scopes": ["api:client:v2"],
        ]).with(status: 201)
    }

    private func token(_ request: Request) throws(Refusal) -> Response {
        try checkDeviceInfo(request)
        guard !request.target.contains("?") else { throw refused("invalid_request") }
        let form = try form(request, ["grant_type", "client_id", "client_secret"])
        guard form["grant_type"] == "client_credentials" else { throw refused("unsupported_grant_type") }
        let id = form["client_id"] ?? ""
        if faults.take("adobe_invalid_client") != nil { _ = state.withLock { $0.clients.removeValue(forKey: id) } }
        guard let secret = state.withLock({ $0.clients[id] }), secret == form["client_secret"] else {
            throw refused("invalid_client")
        }
        let token = ledger.mint(40)
        state.withLock { $0.tokens[token] = AccessToken(client: id, expires: Moment.now() + 21_600_000) }
        return .json([
            "id": "\(Random.text(bytes: 9))", "access_token": "\(token)", "token_type": "bearer",
            "created_at": JSON(Moment.wall()), "expires_in": 21_600,
        ]).with(status: 201)
    }

    func form(_ request: Request, _ names: Set<String>) throws(Refusal) -> [String: String] {
        do { return try request.form(names) } catch { throw refused("invalid_request") }
    }
}

// MARK: - Who calls

extension AdobePassServer {
    private static let known: Set<String> = [
        "host", "accept", "content-type", "content-length", "authorization", "ap-device-identifier", "x-device-info",
        "user-agent", "connection",
    ]

    func checkDeviceInfo(_ request: Request) throws(Refusal) {
        if let extra = request.fields.first(where: { !Self.known.contains($0.name.lowercased()) }) {
            throw Refusal(.json(["error": "invalid_request"], 400), "a field \(extra.name)")
        }
        let info = request.single("X-Device-Info").flatMap(Base64.decodeText).flatMap { JSON.parse(Array($0.utf8)) }
        let wanted = ["model", "version", "osName", "osVersion", "connectionType"]
        guard wanted.allSatisfy({ info?[$0]?.text?.isEmpty == false }) else {
            throw Refusal(400, "invalid_header_device_info", "none")
        }
    }

    private func device(_ request: Request) throws(Refusal) -> Device {
        let token = try accessToken(request)
        guard let id = request.single("AP-Device-Identifier"), id.hasPrefix("fingerprint "),
            let text = Base64.decodeText(id.dropFirst("fingerprint ".count)), !text.isEmpty
        else { throw Refusal(400, "invalid_header_device_identifier", "none") }
        return Device(client: token.client, id: text)
    }

    func accessToken(_ request: Request) throws(Refusal) -> AccessToken {
        guard let value = request.credential("Bearer"), let token = state.withLock({ $0.tokens[value] }),
            token.expires > Moment.now()
        else { throw Refusal(Response(401), "no access token that is good") }
        if faults.take("adobe_other_provider_token") != nil {
            throw Refusal(401, "invalid_access_token_service_provider", "application-registration")
        }
        try checkDeviceInfo(request)
        return token
    }

    private func serveV2(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let device = try device(request)
        if faults.take("adobe_retry", on: operation) != nil {
            throw Refusal(403, "network_connection_timeout", "retry")
        }
        let last = request.path.split(separator: "/").last.map(String.init) ?? ""
        if ["adobe_profile", "adobe_authorize", "adobe_preauthorize", "adobe_logout"].contains(operation),
            last != Self.mvpd
        {
            throw Refusal(400, "invalid_parameter_mvpd", "none")
        }
        switch operation {
        case "adobe_sessions": return try session(device, last, request)
        case "adobe_poll": return try poll(device, last)
        case "adobe_profile": return profiles(of: device)
        case "adobe_logout": return logOut(device, request)
        default: return try decide(operation, device, request)
        }
    }
}
