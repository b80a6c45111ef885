import Audit
import Configuration
import HTTP1
import HotCache
import ScriptedKernel
import ScriptedWorld
import Synchronization
import TLS
import Telemetry
import Testing

@testable import DataPath
@testable import Gateway
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A whole gateway in memory: data loops and the real keeper on kernels that the test scripts, issuers and upstreams that the test
/// plays, a store whose disk it holds, and time that stands until the test moves it. One thread.
final class KeeperScene {
    let keeper: Keeper
    let keeperLoop: Loop
    let keeperKernel = FakeKernel()
    let loops: [(kernel: FakeKernel, data: DataLoop)]
    let plan: GatewayPlan
    let cache: HotCache
    let store: MemoryStore?
    let secrets: Secrets
    private var talks: [ObjectIdentifier: Talk] = [:]
    private(set) var callers: [Peer] = []

    /// What the issuer says to a request; nil: nothing, ever.
    var issuer: (Request) -> String? = { _ in "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n" }
    var upstream: (Request) -> String? = { _ in Wire.ok("in") }
    /// What each was sent, in order.
    private(set) var issuerCalls: [Request] = []
    private(set) var upstreamCalls: [Request] = []

    private static let resolver = Result { () throws(LoopFault) in try Resolver { _, _ in .failure(.notFound) } }
    /// Each keeper has numbers of its own, as each gateway has.
    private static let seeds = Atomic<UInt64>(0)
    private static let events = Result { () throws(LogFault) in try EventLog() }

    /// - Parameters:
    ///   - store: nil: memory only.
    ///   - begun: where the clock stands, seconds.
    ///   - server: of the fleet that it is one of.
    ///   - slots: of the hot cache.
    ///   - spans: where the spans of sampled requests and of their grants go.
    ///   - events: what operators are told; nil: nobody reads it.
    init(
        _ yaml: String, loops count: Int = 1, store: MemoryStore? = nil, state: StoreHealth.State? = nil,
        secrets: Secrets = Secrets(), clock: UInt64 = 1_000_000_000_000, marksUnreadable: Bool = false,
        fleet server: MemoryServer? = nil, blocking: any BlockingWork = ImmediateWork(), slots: Int = 256,
        audit: AuditTrail? = nil, spans: SpanProcessor? = nil, events: EventLog? = nil
    ) throws {
        let loaded = Configuration.load(.text("name: gate\n" + yaml)) { secrets[$0] }
        #expect(loaded.errors.map(\.message) == [])
        let configuration = try #require(loaded.configuration)
        self.store = store
        self.secrets = secrets
        cache = HotCache(readers: count, slots: slots, byteLimit: 1 << 20)
        let compiler = IdentityCompiler(
            environment: { secrets[$0] }, secretFiles: configuration.secretFiles, persists: store != nil)
        let identities = try compiler.compile(configuration.identities)
        let events = try events ?? Self.events.get()
        let log = LogThread(events: events, format: .text)
        var gateway = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: compiler, cache: cache,
            loops: count, routeNames: log.routes, faultNames: log.faults)
        plan = try gateway.compile()
        keeperKernel.clock = clock
        keeperLoop = try Loop(name: "keeper", kernel: keeperKernel, mailCapacity: 65_536)
        keeper = Keeper(
            KeeperParts(
                executor: LoopExecutor(loop: keeperLoop), cache: cache, events: events,
                resolver: try Self.resolver.get(), blocking: blocking, identities: identities,
                routes: gateway.keptRoutes, store: store, storeState: state ?? (store == nil ? .none : .serving),
                markKey: try MarkKey(random: SeededRandom()),
                random: SeededRandom(seed: Self.seeds.add(1, ordering: .relaxed).newValue),
                subjects: SubjectBook.Limits(configuration), audit: audit, spans: spans))
        let board = MetricBoard()
        let blocks = board.adopt(plan.metrics.schema, writers: count)
        var loops: [(kernel: FakeKernel, data: DataLoop)] = []
        for index in 0..<count {
            let kernel = FakeKernel()
            kernel.clock = clock
            let loop = try Loop(name: "data-\(index)", kernel: kernel)
            loops.append(
                (
                    kernel,
                    DataLoop(
                        index: index, loop: loop, plan: plan, reader: cache.makeReader(index), keeper: keeper,
                        metrics: LoopMetrics(plan: plan.metrics, block: blocks[index]), access: nil,
                        traces: spans?.rings(count)[index],
                        events: events, resolver: try Self.resolver.get(), random: SeededRandom(),
                        local: LocalAddresses([]),
                        census: nil)
                ))
        }
        self.loops = loops
        var reopen: (@Sendable () -> StoreOpening)?
        if let store { reopen = { store.opening } }
        let seeds = KeeperSeeds(
            // Of one that was not read there are none yet.
            rows: state == nil || state == .serving ? store?.restore() ?? [] : [],
            keys: gateway.fixedKeys.map { ($0.key, $0.value.slot, $0.value.identity, $0.value.wanted) },
            marksUnreadable: marksUnreadable,
            reopen: reopen, fleet: try server.map { try MemoryTier($0).kept })
        let keeper = self.keeper
        let bound = loops.map { LoopBound($0.data) }
        _ = keeperLoop.post { keeper.assumeIsolated { $0.takeUp(seeds, for: bound) } }
        server.map { join($0) }
    }

    // MARK: - Turning

    /// Turns everything until nothing happens any more.
    func settle(_ sourceLocation: SourceLocation = #_sourceLocation) {
        var quiet = 0
        for _ in 0..<20_000 {
            var isQuiet = true
            keeperLoop.turnOnce()
            for loop in loops { loop.data.loop.turnOnce() }
            for peer in keeperKernel.connections where serve(peer, issuer, &issuerCalls) { isQuiet = false }
            for loop in loops {
                for peer in loop.kernel.connections where serve(peer, upstream, &upstreamCalls) { isQuiet = false }
                if !loop.kernel.isQuiet { isQuiet = false }
            }
            if !keeperKernel.isQuiet || keeperLoop.jobs.hasLocal { isQuiet = false }
            quiet = isQuiet ? quiet + 1 : 0
            if quiet == 4 { return }
        }
        Issue.record("the gateway does not come to rest", sourceLocation: sourceLocation)
    }

    /// Lets time pass in steps of at most `step` seconds, in each of which a timer can set another.
    func pass(seconds: Double, step: Double = 0.5) {
        var left = seconds
        while left > 0 {
            let next = min(left, step)
            left -= next
            keeperKernel.advance(seconds: next)
            for loop in loops { loop.kernel.advance(seconds: next) }
            settle()
        }
    }

    /// Somebody sets the wall clock.
    func jump(seconds: Double) {
        keeperKernel.wallOffset += Int64(seconds * 1000)
        for loop in loops { loop.kernel.wallOffset += Int64(seconds * 1000) }
    }

    var clock: UInt64 { keeperKernel.clock }

    // MARK: - Callers

    /// Sends a request over a connection of its own.
    @discardableResult
    func call(_ request: String = Wire.get("/"), loop: Int = 0, settles: Bool = true) -> Peer {
        let (descriptor, peer) = loops[loop].kernel.pair()
        loops[loop].data.admit(
            descriptor, from: SocketAddress(host: "127.0.0.1", port: 40_000), listener: plan.listeners[0])
        callers.append(peer)
        peer.send(request)
        if settles { settle() }
        return peer
    }

    /// The status that one plain request gets; 0 while it has none.
    func status(_ path: String = "/", loop: Int = 0) -> Int { call(Wire.get(path), loop: loop).status ?? 0 }

    // MARK: - Peers

    /// One connection to an issuer or upstream, as far as its requests have been read.
    private final class Talk { var unread: [UInt8] = [] }

    private func serve(_ peer: Peer, _ answer: (Request) -> String?, _ calls: inout [Request]) -> Bool {
        guard peer.receivedCount > 0 else { return false }
        let talk = talks[ObjectIdentifier(peer)] ?? Talk()
        talks[ObjectIdentifier(peer)] = talk
        talk.unread += peer.take()
        while let request = Request(&talk.unread) {
            calls.append(request)
            if let text = answer(request) { peer.send(text) }
        }
        return true
    }

    /// Connections to issuers.
    var issuers: [Peer] { keeperKernel.connections }

    func inKeeper<Result: Sendable>(_ body: (isolated Keeper) -> Result) -> Result {
        // The test's thread is the loop's: it has turned it.
        keeperLoop.turnOnce()
        defer { settle() }
        return keeper.assumeIsolated(body)
    }

    /// The change that a reload to this scene's configuration would bring.
    var change: KeeperChange {
        inKeeper { keeper in
            KeeperChange(
                identities: keeper.identities, routes: keeper.routes,
                keys: keeper.tokens.all.map { ($0.key, $0.slot, $0.identity, $0.wanted) },
                subjects: keeper.users.limits)
        }
    }

    /// What operators see of the first token.
    var state: IdentityState? { inKeeper { $0.status().tokens.first?.state } }
}

/// A request as an issuer or upstream reads it.
struct Request {
    let method: String
    let path: String
    let fields: [(name: String, value: String)]
    let body: String

    /// Takes one whole request off the front.
    init?(_ bytes: inout [UInt8]) {
        guard let end = bytes.firstRange(of: [13, 10, 13, 10]) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separator: "\r\n")
        let start = lines[0].split(separator: " ")
        guard start.count == 3 else { return nil }
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (
                line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " })
            )
        }
        let length = fields.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        guard bytes.count >= end.upperBound + length else { return nil }
        method = String(start[0])
        path = String(start[1])
        body = String(decoding: bytes[end.upperBound..<end.upperBound + length], as: UTF8.self)
        bytes.removeFirst(end.upperBound + length)
    }

    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    var authorization: String? { field("authorization") }
}

extension String {
    fileprivate func components(separator: String) -> [String] {
        var parts: [String] = []
        var rest = Substring(self)
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}

/// Does at once, on the caller's thread, what would block.
struct ImmediateWork: BlockingWork {
    func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        job()
        return true
    }
}

/// Does at once what it has room for, or keeps it until it is told to go on.
final class ScriptedWork: BlockingWork {
    enum Thread { case free, full, stuck }
    private let state = Mutex<(thread: Thread, waiting: [@Sendable () -> Void])>((.free, []))

    var thread: Thread {
        get { state.withLock { $0.thread } }
        set { state.withLock { $0.thread = newValue } }
    }

    func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        switch thread {
        case .free: job()
        case .full: return false
        case .stuck: state.withLock { $0.waiting.append(job) }
        }
        return true
    }

    /// Does what was kept.
    func goOn() {
        thread = .free
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in waiting { job() }
    }
}

/// The environment that secrets are read from.
final class Secrets: Sendable {
    private let values: Mutex<(values: [String: String], readings: Int)>
    private let away = Mutex<Set<String>>([])
    private let restless: String?

    /// - Parameter restless: the one that is another value at each reading, as of a program that makes one-time passwords.
    init(_ values: [String: String] = [:], restless: String? = nil) {
        self.values = Mutex((values, 0))
        self.restless = restless
    }

    /// The ones that cannot be read.
    var missing: Set<String> {
        get { away.withLock { $0 } }
        set { away.withLock { $0 = newValue } }
    }

    subscript(name: String) -> String? {
        get {
            if missing.contains(name) { return nil }
            return values.withLock { state in
                guard name == restless else { return state.values[name] ?? "secret" }
                state.readings += 1
                return "value-\(state.readings)"
            }
        }
        set { values.withLock { $0.values[name] = newValue } }
    }

    /// Readings of the restless secret.
    var readings: Int { values.withLock { $0.readings } }
}

/// A store in memory, which outlives its gateways. Its disk fails or hangs as told.
final class MemoryStore: RowStore {
    enum Disk {
        case good, failing, hung
        /// Has room for what comes in small pieces.
        case tight
        /// The disk answers, and another process has the store.
        case taken
        /// More waits for the disk than may be looked up.
        case crowded
    }

    private struct State {
        var rows: [RowName: StoredRow] = [:]
        var order: [RowName] = []
        var disk = Disk.good
        var waiting: [@Sendable () -> Void] = []
        var commits = 0
        var hasJob = false
        var opensAs: StoreOpening?
    }
    struct RowName: Hashable {
        let kind: UInt8
        let key: [UInt8]
    }
    private let state = Mutex(State())

    var disk: Disk {
        get { state.withLock { $0.disk } }
        set { state.withLock { $0.disk = newValue } }
    }
    var commits: Int { state.withLock { $0.commits } }

    func rows(_ kind: UInt8) -> [StoredRow] {
        state.withLock { state in
            state.order.compactMap { $0.kind == kind ? state.rows[$0] : nil }
        }
    }

    /// Set: the outcome of every opening.
    var opensAs: StoreOpening? {
        get { state.withLock { $0.opensAs } }
        set { state.withLock { $0.opensAs = newValue } }
    }

    /// The outcome of an opening that is made now.
    var opening: StoreOpening {
        if let opensAs { return opensAs }
        return switch disk {
        case .good, .tight, .crowded: .owner(StoreCensus())
        case .failing, .hung: .degraded("no disk")
        case .taken: .lockedByAnother
        }
    }

    /// A hung disk goes on with what waits.
    func thaw() {
        let waiting = state.withLock { state in
            state.disk = .good
            defer { state.waiting = [] }
            return state.waiting
        }
        for step in waiting { step() }
    }

    func turn() {}

    func commit(_ changes: [StoreChange], completion: @escaping Completion) {
        switch disk {
        case .taken: completion(.failure(StoreFault(.notOwner, "the store is locked by another process")))
        // What writes nothing needs no space.
        case .failing where !changes.isEmpty, .tight where changes.count > 4:
            completion(.failure(StoreFault(.full, "no space")))
        case .hung:
            state.withLock { state in
                state.waiting.append { [self] in
                    make(changes)
                    completion(.success(()))
                }
            }
        case .good, .failing, .tight, .crowded:
            make(changes)
            completion(.success(()))
        }
    }

    func fetch(
        kind: UInt8, key: [UInt8], completion: @escaping @Sendable (Result<StoredRow?, StoreFault>) -> Void
    ) {
        let find: @Sendable () -> Void = { [self] in
            completion(.success(state.withLock { $0.rows[RowName(kind: kind, key: key)] }))
        }
        switch disk {
        case .failing: completion(.failure(StoreFault(.io, "no disk")))
        case .taken: completion(.failure(StoreFault(.notOwner, "the store is locked by another process")))
        case .hung: state.withLock { $0.waiting.append(find) }
        case .crowded: completion(.failure(StoreFault(.queueFull, "too much waits")))
        case .good, .tight: find()
        }
    }

    func measure(completion: @escaping @Sendable (Result<StoreSize, StoreFault>) -> Void) {
        guard disk == .good else { return completion(.failure(StoreFault(.io, "no disk"))) }
        var size = StoreSize()
        size.rows = state.withLock { $0.rows.keys.reduce(into: [:]) { $0[$1.kind, default: 0] += 1 } }
        completion(.success(size))
    }

    func start(_ job: StoreJob, completion: @escaping @Sendable (Result<StoreReport, StoreFault>) -> Void) {
        guard case .retain(let kind, let isWanted) = job else {
            return completion(.failure(StoreFault(.busy, "not in memory")))
        }
        let isFirst = state.withLock { state in
            defer { state.hasJob = true }
            return !state.hasJob
        }
        guard isFirst else { return completion(.failure(StoreFault(.busy, "another job is under way"))) }
        if disk == .failing {
            state.withLock { $0.hasJob = false }
            return completion(.failure(StoreFault(.full, "no space")))
        }
        let work: @Sendable () -> Void = { [self] in
            for row in rows(kind) where !isWanted(row) { make([.delete(kind: row.kind, key: row.key)]) }
            state.withLock { $0.hasJob = false }
            completion(.success(StoreReport(job)))
        }
        if disk == .hung { state.withLock { $0.waiting.append(work) } } else { work() }
    }

    private func make(_ changes: [StoreChange]) {
        state.withLock { state in
            state.commits += 1
            for change in changes {
                switch change {
                case .put(let row):
                    let name = RowName(kind: row.kind, key: row.key)
                    state.rows[name] = row
                    state.order.removeAll { $0 == name }
                    state.order.append(name)
                case .delete(let kind, let key):
                    state.rows[RowName(kind: kind, key: key)] = nil
                    state.order.removeAll { $0 == RowName(kind: kind, key: key) }
                case .deleteAll(let kind):
                    state.rows = state.rows.filter { $0.key.kind != kind }
                    state.order.removeAll { $0.kind == kind }
                case .deleteExpired(let time):
                    state.rows = state.rows.filter { ($0.value.expiresWall ?? .max) >= time }
                    state.order.removeAll { state.rows[$0] == nil }
                }
            }
        }
    }

    /// As at an opening, in ascending kind.
    func restore() -> [StoredRow] {
        state.withLock { state in
            state.order.compactMap { state.rows[$0] }.sorted { $0.kind < $1.kind }
        }
    }
}
