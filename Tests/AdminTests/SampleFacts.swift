import Configuration
import FoundationEssentials
import Synchronization

@testable import Admin
@testable import DataPath
@testable import Gateway
@testable import Keeping
@testable import Telemetry

let second: UInt64 = 1_000_000_000
let minute: UInt64 = 60 * second

/// Facts of a gateway on an ordinary day, with one of every trouble.
func sampleFacts() throws -> SiteFacts {
    let plan = try MetricPlan(routes: ["hr", "billing", "open"])
    let board = MetricBoard()
    let block = board.adopt(plan.schema, writers: 1)[0]
    for (route, counts) in [[200: 48_213, 304: 902, 404: 37, 503: 2], [200: 9121, 201: 44, 502: 118], [:]].enumerated()
    {
        for (status, count) in counts.sorted(by: { $0.key < $1.key }) {
            block.add(plan.requests[route][StatusColumns.column(of: status)], UInt64(count))
            for number in 0..<UInt64(min(count, 200)) {
                block.observe(plan.durations[route], nanoseconds: (number + 1) * UInt64(route + 1) * 300_000)
            }
        }
    }
    block.add(plan.requests[3][StatusColumns.column(of: 404)], 12)
    block.add(plan.lookups[1], 58_000)
    block.add(plan.lookups[2], 37)
    block.add(plan.callers, 64)
    block.add(plan.replays[0].accepted, 41)
    block.add(plan.replays[0].refused, 2)
    let snapshot = board.snapshot()
    let age = 3 * 86_400 * second + 4 * 3600 * second
    let traffic = sampleTraffic(plan, snapshot)
    return SiteFacts(
        version: "1.0.0", configurationPath: "/etc/cardea/cardea.yaml",
        listening: ["127.0.0.1:8080", "unix:/run/cardea/callers.sock"], age: age, wallTime: 1_800_000_000,
        isReady: true, reasons: [],
        status: GatewayStatus(
            identities: [
                identity("hr", "oam_webgate", grants: 4),
                identity(
                    "billing", "oauth2", grants: 31, failures: 3,
                    "issuer unavailable: token: status 503 (retry after 2 s)"),
                identity("reports", "oauth2", grants: 1),
                identity("tv", "oauth2", "interaction required: refresh token expired"),
                identity(
                    "payroll", "basic", failures: 1, isQuarantined: true,
                    "the upstream refused the user name or password"),
                identity("archive", "static", grants: 1), identity("search", "oauth2"),
            ],
            tokens: [
                token(
                    "hr", "https://hr.example.com:443", "HR_WG", state: .fresh, level: 2, age: 604, refresh: 110,
                    expires: 296),
                token(
                    "hr", "https://hr.example.com:443", "HR_ADMIN", state: .refreshDue, level: 3, age: 760,
                    refresh: 0, expires: 140),
                token(
                    "billing", "https://api.example.com:443", "", scopes: "invoices.read invoices.write",
                    state: .renewalFailing, age: 3480,
                    refresh: 0, expires: 120, failure: "issuer unavailable: token: status 503 (retry after 2 s)"),
                token("reports", "https://reports.example.com:8443", "", state: .acquiring, waiting: 17),
                token("tv", "https://sp.example:443", "", state: .loginNeeded),
                token("payroll", "http://payroll.internal:80", "", state: .quarantined),
                token("archive", "https://archive.example.com:443", "", state: .fresh, age: 273_000),
            ],
            store: "serving", restoredTokens: 5,
            routes: [
                RouteStatus(name: "hr", identity: "hr", upstream: "https://hr.example.com:443"),
                RouteStatus(name: "billing", identity: "billing", upstream: "https://api.example.com:443"),
                RouteStatus(name: "open", identity: nil, upstream: "http://127.0.0.1:9000"),
            ]),
        snapshot: snapshot, traffic: traffic,
        trends: [
            RouteTrend(readings: course(age, base: 90, p99: 4_000_000)),
            RouteTrend(readings: course(age, base: 6, p99: 180_000_000)),
            RouteTrend(),
        ], logDropped: 0, spans: [.exported: 5, .failed: 1])
}

func identity(
    _ name: String, _ scheme: String = "oauth2", grants: UInt64 = 0, failures: UInt64 = 0, isQuarantined: Bool = false,
    _ failure: String? = nil
) -> IdentityStatus {
    IdentityStatus(
        name: name, scheme: scheme, grants: grants, failures: failures, isQuarantined: isQuarantined,
        lastFailure: failure)
}

/// Times in seconds.
func token(
    _ identity: String, _ upstream: String = "https://api.example.com:443", _ realm: String = "", scopes: String = "",
    state: IdentityState = .fresh, level: Int? = nil, age: UInt64? = nil, refresh: UInt64? = nil,
    expires: UInt64? = nil,
    failure: String? = nil,
    waiting: Int = 0
) -> TokenStatus {
    TokenStatus(
        identity: identity, upstream: upstream, realm: realm, scopes: scopes, state: state, level: level,
        age: age.map { $0 * second }, refreshIn: refresh.map { $0 * second }, expiresIn: expires.map { $0 * second },
        grants: 1,
        lastFailure: failure, waiting: waiting)
}

func sampleTraffic(_ plan: MetricPlan, _ snapshot: MetricSnapshot) -> GatewayTraffic {
    GatewayTraffic(plan, names: ["hr", "billing", "open"], snapshot)
}

private func course(_ age: UInt64, base: UInt64, p99: UInt64) -> [RouteTrend.Reading] {
    (0..<60).map { (step: UInt64) -> RouteTrend.Reading in
        let burst: UInt64 = (31..<40).contains(step) ? 20 : 0
        let wave: UInt64 = step * 37 % 23 + burst
        let slowness: UInt64 = step * 53 % 17
        return RouteTrend.Reading(
            at: age - (60 - step) * 10 * second, span: 10 * second, requests: base * 10 + base * wave / 3,
            p99: p99 + p99 * slowness / 12)
    }
}

/// Every text that comes from outside, as bad as it can be.
let hostileTexts = [
    "\"><script>alert(1)</script>", "' onload='x", "line\nbreak\r\n\ttab\u{0}\u{7}\u{1B}[31m", "</style></title><h1>",
    "&amp;&#60;",
    "\u{202E}desrever\u{2066}", "a\\b\"c\\", "ünïcödé 🔑 \u{FFFE}", String(repeating: "<\"'&\n", count: 13_108), "",
]

/// `sampleFacts` with one text in every place.
func facts(saying text: String) throws -> SiteFacts {
    var facts = try sampleFacts()
    facts.version = text
    facts.configurationPath = text
    facts.listening = [text]
    facts.reasons = [text]
    facts.isReady = false
    facts.status.store = "degraded: \(text)"
    facts.logDropped = 3
    for index in facts.status.identities.indices {
        facts.status.identities[index].lastFailure = text
        facts.status.identities[index].scheme = text
    }
    facts.status.identities[4].name = text
    for index in facts.status.tokens.indices {
        facts.status.tokens[index].realm = text
        facts.status.tokens[index].scopes = text
        facts.status.tokens[index].upstream = text
        facts.status.tokens[index].lastFailure = text
    }
    facts.status.routes[0] = RouteStatus(name: text, identity: text, upstream: text)
    facts.traffic.routes[0].name = text
    let plan = try MetricPlan(routes: [text, "b", "c"])
    let board = MetricBoard()
    let block = board.adopt(plan.schema, writers: 1)[0]
    block.add(plan.requests[0][StatusColumns.column(of: 200)])
    facts.snapshot = board.snapshot()
    return facts
}

/// A site over sample facts, and what was asked of it.
final class SampleSite: Sendable {
    private let resets = Mutex<[String]>([])
    private let purges = Mutex<[PurgeScope]>([])
    private let reloads = Mutex(0)
    private let tasks = Mutex<[StoreWork]>([])
    let facts: SiteFacts
    let token: [UInt8]?

    init(_ facts: SiteFacts, token: [UInt8]? = nil) {
        self.facts = facts
        self.token = token
    }

    var wasReset: [String] { resets.withLock { $0 } }
    var wasPurged: [PurgeScope] { purges.withLock { $0 } }
    var wasReloaded: Int { reloads.withLock { $0 } }

    func site(withToken: Bool = true, isOpenToRead: Bool = true) -> AdminSite {
        AdminSite(
            source: FactSource(
                readiness: { Gateway.Readiness(isReady: self.facts.isReady, reasons: self.facts.reasons) },
                status: { self.facts.status }, facts: { self.facts }, process: { ProcessFacts() },
                reset: { name in
                    guard self.facts.status.identities.contains(where: { $0.name == name }) else { return false }
                    self.resets.withLock { $0.append(name) }
                    return true
                },
                purge: { scope in
                    self.purges.withLock { $0.append(scope) }
                    return scope == .identity("nobody") ? nil : PurgeReport(identities: ["hr"], tokens: 2)
                },
                reload: { self.reloads.withLock { $0 += 1 } },
                place: {
                    PlaceDocument(source: .file("/nowhere/c.yaml"), socket: "/nowhere/s", stores: ["/nowhere/t.db"])
                },
                startTask: { task in
                    self.tasks.withLock { tasks in
                        guard tasks.isEmpty else { return .busy }
                        let work = StoreWork(number: 1, task: task)
                        tasks.append(work)
                        return .started(work)
                    }
                },
                storeWork: { self.tasks.withLock { $0.last } },
                run: { name in
                    guard name == "hr" else { return nil }
                    return RunReport(
                        startedAt: 1_763_712_000, challenge: [.init(name: "gate", bytes: 5)],
                        steps: [
                            .init(
                                name: "login", layer: "session", request: "POST https://sso.example.com/login",
                                status: 200, milliseconds: 12.345, taken: [.init(name: "user", bytes: 33)],
                                outcome: "good")
                        ], outcome: "token of 60 bytes")
                },
                failures: {
                    FailureReport(
                        since: 1_700_000_000 * second, now: 1_700_000_060 * second,
                        routes: [
                            RouteFailures(
                                route: "hr",
                                kinds: [
                                    FailureKind(
                                        problem: "credential-quarantined", status: 503, incomplete: .none, count: 7,
                                        firstAt: 1_700_000_001 * second, lastAt: 1_700_000_055 * second,
                                        requests: [RequestFacts(AccessRecord())]),
                                    FailureKind(
                                        problem: nil, status: 404, incomplete: .none, count: 1,
                                        firstAt: 1_700_000_002 * second, lastAt: 1_700_000_002 * second, requests: []),
                                ]),
                            RouteFailures(
                                route: "gone",
                                kinds: [
                                    FailureKind(
                                        problem: nil, status: 0, incomplete: .none, count: 1,
                                        firstAt: 1_700_000_002 * second, lastAt: 1_700_000_002 * second, requests: [])
                                ]),
                        ], identities: ["hr": "hr"], names: ["hr", "plain"])
                },
                logins: LoginSource(
                    login: { name, port in
                        guard name == "tv" else { return .refused("identity \(name) needs no person") }
                        return .started(LoginReport(progress: port.map { "at port \($0)" }))
                    },
                    logout: { name in name == "tv" ? .started(LoginReport(progress: "forgetting")) : .unknown },
                    report: { $0 == "f1" ? LoginReport(progress: "waiting") : nil },
                    redirected: { flow, query in
                        flow == "f1" ? RedirectReply(isAnswer: query.contains("code="), text: query) : nil
                    },
                    cancel: { $0 == "f1" ? LoginReport(progress: "cancelled") : nil })),
            token: withToken ? AdminToken { self.token } : nil, isOpenToRead: isOpenToRead)
    }
}

func request(
    _ method: String = "GET", _ target: String, _ entrance: AdminRequest.Entrance = .listen,
    authorization: String? = nil, isOwnPage: Bool = false
) -> AdminRequest {
    let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
    return AdminRequest(
        method: method, path: parts[0], query: parts.count > 1 ? parts[1] : "", entrance: entrance,
        authorization: authorization, isOwnPage: isOwnPage)
}

/// Reads what the site writes.
func snakeCase() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
}

extension LoginReport {
    /// One under way, told apart by its progress.
    init(progress: String?) {
        self.init(
            flow: "f1", identity: "tv", state: .running,
            prompt: .init(
                url: "https://idp.example.com/device", completeURL: "https://idp.example.com/device?c=ABCD",
                code: "ABCD",
                awaitsRedirect: false, secondsLeft: 600), progress: progress)
    }
}
