import Glibc
import Synchronization

/// Adobe Pass Authentication with a pay-TV provider behind it: client registration, REST API V2 and V1, and the throttle in front. Each call
/// is checked header by header; what Adobe would not document is refused.
final class AdobePassServer: Sendable {
    static let serviceProvider = "NORTH1"
    static let mvpd = "CableCo"
    static let domain = "north.example"
    static let api = "/api/v2/\(serviceProvider)/"

    let ledger: Ledger
    let faults: Faults
    let state = Mutex(State())

    struct State: Sendable {
        var clients: [String: String] = [:]
        var tokens: [String: AccessToken] = [:]
        var sessions: [String: LoginSession] = [:]
        var profiles: [Device: Profile] = [:]
        var mediaTokens: [String: MediaToken] = [:]
        /// Of V1: resources that a device has asked for and may have.
        var permits: [Device: Set<String>] = [:]
        /// Of the throttle: when the bucket is full again, in ms.
        var fullAt: UInt64 = 0
        var resumed = false
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
        var type = "regular"
    }

    struct MediaToken: Sendable {
        let resource: String
        let expires: Int64
        var isUsed = false
    }

    enum Refusal: Error {
        /// An enhanced error: status, action, code.
        case enhanced(Int, String, String)
        case answer(Response, String)
    }

    init(ledger: Ledger, faults: Faults) {
        self.ledger = ledger
        self.faults = faults
    }

    static func wall() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    func reset() { state.withLock { $0 = State() } }
    func expireAccessTokens() { state.withLock { $0.tokens.removeAll() } }
    func endLogins() { state.withLock { $0.profiles.removeAll() } }

    static func operation(_ path: String) -> String? {
        switch path {
        case "/o/client/register": return "adobe_register"
        case "/o/client/token": return "adobe_token"
        default: break
        }
        if path.hasPrefix("/api/v2/authenticate/") { return "adobe_browser" }
        if let name = operationV1(path) { return name }
        guard path.hasPrefix(api) else { return nil }
        let parts = path.dropFirst(api.count).split(separator: "/", omittingEmptySubsequences: false).map(String.init)
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

    func answer(_ operation: String, _ request: Request, _ body: [UInt8]) -> Response {
        ledger.count(operation)
        do throws(Refusal) {
            if operation == "adobe_browser" { return try browse(request) }
            if operation == "adobe_v1_browser" { return try browseV1(request) }
            try throttle()
            let response =
                switch operation {
                case "adobe_register": try register(request, body)
                case "adobe_token": try token(request, body)
                case _ where operation.hasPrefix("adobe_v1_"): try serveV1(operation, request, body)
                default: try serve(operation, request, body)
                }
            ledger.count("\(operation)_ok")
            return response
        } catch {
            switch error {
            case .enhanced(let status, let action, let code):
                ledger.refuse("\(operation): \(status) \(code)")
                let said = enhanced(status, action, code)
                return .json(status, "Refused", faults.isSet("adobe_wrapped_error") ? ["error": said] : said)
            case .answer(let response, let why):
                ledger.refuse("\(operation): \(response.status) \(why)")
                return response
            }
        }
    }

    /// With a canary in what it says: a client that repeats the words is found out.
    func enhanced(_ status: Int, _ action: String, _ code: String) -> JSON {
        [
            "action": .string(action), "status": JSON(status), "code": .string(code),
            "message": .string("said by Adobe \(ledger.mint(9))"), "helpUrl": "https://example.test/help",
            "trace": .string(Random.text(bytes: 12)),
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
        throw .answer(.text(429, "Too Many", "<html><body>slow down</body></html>", type: "text/html"), "throttled")
    }
}

// MARK: - Registration and access token

extension AdobePassServer {
    private func refused(_ status: Int, _ code: String) -> Refusal {
        .answer(.json(status, "Bad Request", ["error": .string(code)]), code)
    }

    private func register(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        try checkDeviceInfo(request)
        guard request.method == "POST", request.single("Content-Type") == "application/json",
            let object = JSON.parse(body), case .object(let members) = object,
            members.allSatisfy({ ["software_statement", "redirect_uri"].contains($0.key) })
        else { throw refused(400, "invalid_request") }
        guard object["software_statement"]?.text == ledger.settings.apiKey, !faults.isSet("adobe_bad_statement") else {
            throw refused(400, "invalid_software_statement")
        }
        let id = "c-" + Random.text(bytes: 9)
        let secret = ledger.mint(24)
        state.withLock { $0.clients[id] = secret }
        return .json(
            201, "Created",
            [
                "client_id": .string(id), "client_secret": .string(secret),
                "client_id_issued_at": JSON(Int(Self.wall() / 1000)), "redirect_uris": [],
                "grant_types": ["client_credentials"], "scopes": ["api:client:v2"],
            ])
    }

    private func token(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        try checkDeviceInfo(request)
        guard request.method == "POST", !request.target.contains("?") else { throw refused(405, "invalid_request") }
        let form = try form(request, body, ["grant_type", "client_id", "client_secret"])
        guard form["grant_type"] == "client_credentials" else { throw refused(400, "unsupported_grant_type") }
        let id = form["client_id"] ?? ""
        if faults.take("adobe_invalid_client") != nil { _ = state.withLock { $0.clients.removeValue(forKey: id) } }
        guard let secret = state.withLock({ $0.clients[id] }), secret == form["client_secret"] else {
            throw refused(400, "invalid_client")
        }
        let token = ledger.mint(40)
        let life = faults.take("adobe_token_life_s")?.number ?? 21_600
        state.withLock {
            $0.tokens[token] = AccessToken(client: id, expires: Moment.now() + UInt64(life) * 1000)
        }
        return .json(
            201, "Created",
            [
                "id": .string(Random.text(bytes: 9)), "access_token": .string(token), "token_type": "bearer",
                "created_at": JSON(Int(Self.wall())), "expires_in": JSON(life),
            ])
    }

    func form(_ request: Request, _ body: [UInt8], _ names: Set<String>) throws(Refusal) -> [String: String] {
        guard request.single("Content-Type") == "application/x-www-form-urlencoded",
            let text = String(validating: body, as: UTF8.self), let pairs = Form.parse(text)
        else { throw refused(400, "invalid_request") }
        var form: [String: String] = [:]
        for pair in pairs {
            guard names.contains(pair.name), form.updateValue(pair.value, forKey: pair.name) == nil else {
                throw refused(400, "invalid_request")
            }
        }
        return form
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
            throw .answer(.json(400, "Bad Request", ["error": "invalid_request"]), "a field \(extra.name)")
        }
        guard
            let info = request.single("X-Device-Info").flatMap(Base64.decodeText).flatMap({ JSON.parse(Array($0.utf8)) }
            ),
            ["model", "version", "osName", "osVersion", "connectionType"].allSatisfy({
                info[$0]?.text?.isEmpty == false
            })
        else { throw .enhanced(400, "none", "invalid_header_device_info") }
    }

    private func device(_ request: Request) throws(Refusal) -> Device {
        let token = try accessToken(request)
        guard let id = request.single("AP-Device-Identifier"), id.hasPrefix("fingerprint "),
            let text = Base64.decodeText(String(id.dropFirst("fingerprint ".count))), !text.isEmpty
        else { throw .enhanced(400, "none", "invalid_header_device_identifier") }
        return Device(client: token.client, id: text)
    }

    func accessToken(_ request: Request) throws(Refusal) -> AccessToken {
        guard let value = request.single("Authorization"), value.hasPrefix("Bearer "),
            let token = state.withLock({ $0.tokens[String(value.dropFirst(7))] }), token.expires > Moment.now()
        else { throw .answer(Response(401, "Unauthorized"), "no access token that is good") }
        if faults.take("adobe_other_provider_token") != nil {
            throw .enhanced(401, "application-registration", "invalid_access_token_service_provider")
        }
        try checkDeviceInfo(request)
        return token
    }

    private func serve(_ operation: String, _ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        let device = try device(request)
        if faults.take("adobe_retry", on: operation) != nil {
            throw .enhanced(403, "retry", "network_connection_timeout")
        }
        let last = request.path.split(separator: "/").last.map(String.init) ?? ""
        if ["adobe_profile", "adobe_authorize", "adobe_preauthorize", "adobe_logout"].contains(operation),
            last != Self.mvpd
        {
            throw .enhanced(400, "none", "invalid_parameter_mvpd")
        }
        switch operation {
        case "adobe_sessions": return try session(device, last, request, body)
        case "adobe_poll": return try poll(device, last)
        case "adobe_profile": return profiles(of: device)
        case "adobe_logout": return logOut(device, request)
        default: return try decide(operation, device, request, body)
        }
    }
}
