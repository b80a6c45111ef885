import Audit
import Configuration
import Glibc
import HTTP1
import HotCache
import ScriptedKernel
import ScriptedWorld
import Telemetry
import Testing

@testable import DataPath
@testable import Gateway
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Tokens

/// One data loop on a kernel in memory, between callers and upstreams that the test plays, with a keeper that it plays too.
final class Scene {
    let kernel = FakeKernel()
    let loop: Loop
    let data: DataLoop
    let plan: GatewayPlan
    let cache: HotCache
    let keeper = ScriptedKeeper()
    private(set) var callers: [Peer] = []
    private let board = MetricBoard()
    private let log: LogThread
    private var editions = LivingEditions()
    private var nextRoute: Int
    private var kept: [KeptRoute]
    private var slots: [AccessKey: Slot]

    /// Names of identities, by the numbers that access records have.
    var logNames: NameTable { log.identities }

    /// Connections that the gateway made, in order.
    var upstreams: [Peer] { kernel.connections }

    /// One for all scenes: literals are answered by the caller's own thread, and nothing else is asked.
    private static let resolver = Result { () throws(LoopFault) in try Resolver { _, _ in .failure(.notFound) } }
    private static let events = Result { () throws(LogFault) in try EventLog() }

    init(
        _ yaml: String, logsAccess: Bool = false, exportsSpans: Bool = false, slots count: Int = 64,
        uses: UseCounter? = nil
    ) throws {
        let loaded = Configuration.load(.text("name: gate\n" + yaml)) { _ in "secret" }
        #expect(loaded.errors.map(\.message) == [])
        let configuration = try #require(loaded.configuration)
        cache = HotCache(readers: 1, slots: count, byteLimit: 1 << 20)
        let compiler = IdentityCompiler(
            environment: { _ in "secret" }, secretFiles: configuration.secretFiles, persists: false)
        let identities = try compiler.compile(configuration.identities)
        log = LogThread(events: try Self.events.get(), format: .text)
        var gateway = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: compiler, cache: cache, loops: 1,
            routeNames: log.routes, faultNames: log.faults, identityNames: log.identities)
        plan = try gateway.compile()
        nextRoute = gateway.numbers.next
        kept = gateway.keptRoutes
        slots = gateway.fixedKeys.mapValues(\.slot)
        editions.add(plan.edition)
        loop = try Loop(name: "data", kernel: kernel)
        let spans = SpanProcessor(resource: SpanResource(name: "gate", version: ""), log: log, time: ScriptedTime()) {
            _ in true
        }
        data = DataLoop(
            index: 0, loop: loop, plan: plan, reader: cache.makeReader(0), keeper: keeper,
            metrics: plan.edition.count(plan.metrics, on: board, loops: 1)[0],
            access: logsAccess ? log.makeRing(capacity: 1 << 14) : nil,
            traces: exportsSpans ? spans.rings(1)[0] : nil, events: try Self.events.get(),
            resolver: try Self.resolver.get(), random: SeededRandom(), local: LocalAddresses([]), census: nil,
            uses: uses)
    }

    // Connections hold their loop as long as they are open.
    deinit { data.closeEverything() }

    // MARK: - Reload

    /// Another configuration, taken up as a running gateway does.
    func reload(_ yaml: String) throws {
        let loaded = Configuration.load(.text("name: gate\n" + yaml)) { _ in "secret" }
        #expect(loaded.errors.map(\.message) == [])
        let configuration = try #require(loaded.configuration)
        let compiler = IdentityCompiler(
            environment: { _ in "secret" }, secretFiles: configuration.secretFiles, persists: false)
        let identities = try compiler.compile(configuration.identities)
        let running = data.plan
        let (slots, cache) = (self.slots, self.cache)
        var gateway = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: compiler, cache: cache, loops: 1,
            routeNames: log.routes, faultNames: log.faults, identityNames: log.identities,
            predecessor: Predecessor(
                edition: running.edition.number, limits: running.limits, listeners: running.listeners,
                upstreams: running.upstreams,
                upstreamNumbers: editions.upstreamNumbers, nextRoute: nextRoute, routes: kept,
                slot: { slots[$0] ?? cache.allocateSlot() }))
        let next = try gateway.compile()
        nextRoute = gateway.numbers.next
        kept = gateway.keptRoutes
        self.slots.merge(gateway.fixedKeys.mapValues(\.slot)) { old, _ in old }
        editions.add(next.edition)
        data.take(
            NextPlan(
                plan: next, metrics: next.edition.count(next.metrics, on: board, loops: 1), census: nil),
            sockets: [:])
        settle()
    }

    /// Requests of a route answered with 200, over all editions.
    func answered(route name: String) -> UInt64 {
        guard let route = data.plan.routes.first(where: { $0.name == name }) else { return 0 }
        return board.snapshot().value(data.plan.metrics.requests[route.index][StatusColumns.column(of: 200)])
    }

    // MARK: - Callers

    /// A caller's connection, from a loopback address where no other is said.
    func call(from address: String? = nil) -> Peer {
        let (descriptor, peer) = kernel.pair()
        data.admit(
            descriptor, from: SocketAddress(host: address ?? "127.0.0.1", port: 40_000), listener: plan.listeners[0])
        callers.append(peer)
        return peer
    }

    func call(_ request: String) -> Peer {
        let caller = call()
        caller.send(request)
        settle()
        return caller
    }

    // MARK: - Turning

    /// Turns the loop until nothing happens any more.
    func settle(_ sourceLocation: SourceLocation = #_sourceLocation) {
        var quiet = 0
        for _ in 0..<200_000 {
            loop.turnOnce()
            quiet = kernel.isQuiet ? quiet + 1 : 0
            // What was put off to the end of a turn may need one more, and its letters another.
            if quiet == 3 { return }
        }
        Issue.record("the loop does not come to rest", sourceLocation: sourceLocation)
    }

    /// Lets time pass in steps that a timer can fire in.
    func pass(seconds: Double) {
        kernel.advance(seconds: seconds)
        settle()
    }

    // MARK: - Tokens

    /// Publishes a ready line in the slot of a route.
    @discardableResult
    func publish(_ token: String, generation: UInt64, route: Int = 0, seconds: Double = 3600) throws -> Slot {
        let slot = try #require(plan.routes[route].slot)
        publish(token, generation: generation, in: slot, seconds: seconds)
        return slot
    }

    func publish(_ token: String, generation: UInt64, in slot: Slot, seconds: Double = 3600) {
        let end = kernel.clock + UInt64(seconds * 1e9)
        cache.publish(
            slot: slot,
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: generation),
            bytes: Array("Authorization: \(token)\r\n".utf8))
    }

    /// Publishes a ready line for one end user of a route.
    func publish(_ token: String, generation: UInt64, for user: [UInt8], route: Int = 0) throws {
        let space = try #require(plan.routes[route].slot)
        let slot = try #require(cache.allocateSlot())
        #expect(cache.addKey(user, in: space, slot: slot))
        publish(token, generation: generation, in: slot)
    }

    /// The keeper's word on a request.
    func answer(_ ticket: Ticket, _ answer: TokenAnswer) {
        data.desk.open(.request(ticket, answer))
        settle()
    }

    // MARK: - Ending

    /// Hangs up everywhere and looks for what stayed behind.
    func end(_ sourceLocation: SourceLocation = #_sourceLocation) {
        for caller in callers where !caller.isClosed { caller.reset() }
        settle()
        expectNothingLeft(sourceLocation)
    }

    func expectNothingLeft(_ sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(data.callers.isEmpty && data.arrivals.isEmpty, "callers", sourceLocation: sourceLocation)
        #expect(data.desk.waiters == 0 && data.desk.parked.isEmpty, "waiters", sourceLocation: sourceLocation)
        #expect(data.buffers.pool.taken == 0, "blocks", sourceLocation: sourceLocation)
        #expect(data.exchanges.lent == 0, "exchanges", sourceLocation: sourceLocation)
        let pipes = data.buffers.pipes
        #expect(pipes?.taken == 0, "pipes", sourceLocation: sourceLocation)
        #expect(kernel.openPipeEnds == 2 * (pipes?.waitingCount ?? 0), "pipes", sourceLocation: sourceLocation)
        #expect(
            data.buffers.inputBytes == 0 && data.buffers.outputBytes == 0, "large blocks",
            sourceLocation: sourceLocation)
        var idle = 0
        for group in data.groups {
            guard let group else { continue }
            #expect(group.pool.count == group.pool.idle.count, "upstream connections", sourceLocation: sourceLocation)
            idle += group.pool.idle.count
        }
        #expect(data.owners.isEmpty, "owners", sourceLocation: sourceLocation)
        #expect(kernel.openDescriptors == idle, "descriptors", sourceLocation: sourceLocation)
        #expect(kernel.misuse == [], sourceLocation: sourceLocation)
    }

    /// Requests that found no route or none was looked for, by the metrics.
    func requests(_ status: Int) -> UInt64 {
        guard let row = plan.metrics.requests.last else { return 0 }
        return board.snapshot().value(row[StatusColumns.column(of: status)])
    }

    /// Odd events of a kind, by the metrics.
    func glitches(_ glitch: Glitch) -> UInt64 {
        guard let index = Glitch.allCases.firstIndex(of: glitch) else { return 0 }
        return board.snapshot().value(plan.metrics.glitches[index])
    }

    func count(_ cell: MetricCell) -> UInt64 { board.snapshot().value(cell) }

    var idleUpstreams: Int { data.groups.reduce(0) { $0 + ($1?.pool.idle.count ?? 0) } }
}

/// Writes down what the loop reports; its orders are the test's.
final class ScriptedKeeper: KeeperInbox, @unchecked Sendable {
    /// Touched on the loop's thread only, which is the test's.
    private(set) var reports: [LoopReport] = []
    /// A full mailbox takes nothing.
    var isFull = false

    func send(_ report: LoopReport, from loop: Int) -> Bool {
        if isFull { return false }
        reports.append(report)
        return true
    }

    var challenges: [ChallengeOfRequest] {
        reports.compactMap { if case .challenged(let challenge) = $0 { challenge } else { nil } }
    }
    var negotiations: [NegotiationOfRequest] {
        reports.compactMap { if case .negotiated(let report) = $0 { report } else { nil } }
    }
    var cold: [ParkedRequest] {
        reports.compactMap { if case .cold(let request) = $0 { request } else { nil } }
    }
    var traced: [TracedWait] {
        reports.compactMap { if case .traced(let wait) = $0 { wait } else { nil } }
    }
    var needed: Int { reports.count { if case .needed = $0 { true } else { false } } }
    var left: [Ticket] { reports.compactMap { if case .left(let ticket) = $0 { ticket } else { nil } } }
    var scoutsFailed: [Ticket] {
        reports.compactMap { if case .scoutFailed(let ticket) = $0 { ticket } else { nil } }
    }
    var foundOpen: [Ticket] {
        reports.compactMap { if case .foundOpen(let ticket) = $0 { ticket } else { nil } }
    }
}

/// Configurations of one route.
enum Plans {
    /// No identity: bytes in, bytes out.
    static func open(_ route: String = "") -> String {
        "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none\(comma(route))}\n"
    }

    // Answers come back byte for byte; what is added to them by default has tests of its own.
    private static let bare = "cache_control: pass"

    /// A fixed credential, whose slot the test fills.
    static func fixed(_ route: String = "") -> String {
        "identities: {a: {static: {value: env:V}}}\n"
            + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: a, \(bare)\(comma(route))}\n"
    }

    /// A token for each end user.
    static func users(_ settings: String, _ subject: String) -> String {
        let oauth = "token_url: \"https://i.example.com/t\", client_id: c, client_secret: env:V, \(settings)"
        return "identities: {o: {oauth2: {\(oauth)}}}\n"
            + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: o, callers: local, "
            + "subject: \(subject), \(bare)}\n"
    }

    /// A token that can be granted anew.
    static func oauth(_ route: String = "") -> String {
        "identities: {o: {oauth2: {token_url: \"https://i.example.com/t\", client_id: c, client_secret: env:V}}}\n"
            + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: o, \(bare)\(comma(route))}\n"
    }

    /// Driven by challenges: nothing is known until the scout is back.
    static func webgate(_ route: String = "") -> String {
        """
        identities:
          w:
            oam_webgate:
              {service: "https://i.example.com/s", user_agent_prefix: P, client_id: c, username: u, password: env:V}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: w, \(bare)\(comma(route))}

        """
    }

    private static func comma(_ route: String) -> String { route.isEmpty ? "" : ", " + route }
}

/// Messages as they go in and as they must come out.
enum Wire {
    static func get(_ path: String = "/", _ fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
    }

    static func post(_ body: String, path: String = "/", _ fields: String = "") -> String {
        "POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
    }

    static func chunkedPost(_ chunks: [String], method: String = "POST") -> String {
        "\(method) / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunks.map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" }.joined() + "0\r\n\r\n"
    }

    /// A request as the upstream must see it.
    static func forwarded(
        _ method: String = "GET", _ path: String = "/", _ fields: String = "", framing: String = "", body: String = ""
    ) -> String {
        "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\(fields)Via: 1.1 gate\r\n\(framing)\r\n\(body)"
    }

    static func ok(_ body: String = "", _ fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    static let challenge =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 4\r\n\r\nno!\n"
    static let oamChallenge =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: OAM-Auth realm=\"WG:2 /\", request-ctx=\"c\"\r\n"
        + "Content-Length: 0\r\n\r\n"

    /// Reads a chunked message: the head, the data, the trailer lines. Nil when it is not complete or not sound.
    static func unchunked(_ text: String) -> (head: String, body: String, trailers: String)? {
        var rest = Array(text.utf8)[...]
        guard let headEnd = rest.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: rest[..<headEnd.upperBound], as: UTF8.self)
        rest = rest[headEnd.upperBound...]
        var body: [UInt8] = []
        while true {
            guard let lineEnd = rest.firstRange(of: [13, 10]),
                let size = Int(String(decoding: rest[..<lineEnd.lowerBound], as: UTF8.self), radix: 16)
            else { return nil }
            rest = rest[lineEnd.upperBound...]
            if size == 0 { break }
            guard rest.count >= size + 2, rest.dropFirst(size).prefix(2).elementsEqual([13, 10]) else { return nil }
            body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        guard rest.suffix(2).elementsEqual([13, 10]) else { return nil }
        return (
            head, String(decoding: body, as: UTF8.self), String(decoding: rest.dropLast(2), as: UTF8.self)
        )
    }
}

extension Peer {
    /// The status of the first answer received.
    var status: Int? {
        let line = received.prefix { $0 != 13 }.split(separator: 32)
        return line.count > 1 ? Int(String(decoding: line[1], as: UTF8.self)) : nil
    }
}
