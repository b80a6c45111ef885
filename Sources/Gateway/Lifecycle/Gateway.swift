public import Audit
public import Configuration
public import DataPath
internal import Fleet
internal import Glibc
internal import Handshakes
internal import HotCache
internal import Keeping
internal import Reactor
internal import Synchronization
public import Telemetry
internal import TokenStore
internal import Tokens
internal import World

/// The composition of a serving gateway: loops, keeper, store and listeners of one configuration.
///
/// `init` compiles and binds, so that every mistake is known before a thread runs; `start` lets them run.
public final class Gateway: Sendable {
    let running: Mutex<Running>
    /// The configuration that the process began with, not the one of the running edition.
    let startedWith: Configuration
    let environment: @Sendable (String) -> String?
    let platform: Platform
    let log: LogThread
    let inherited: InheritedSockets
    let placeholders: [String: String]
    let cache: HotCache
    let keeper: Keeper
    let keeperLoop: Loop
    let loops: [LoopBound<DataLoop>]
    private let resolver: any NameResolver
    /// Where an operator's tasks on the store are done; nil without a store.
    let workshop: StoreWorkshop?
    /// Nil without `audit`.
    let audit: AuditTrail?
    let blocking: any BlockingWork
    let store: TokenStore?
    /// Nil without `store.shared`.
    let fleet: RedisTier?
    /// Counters of this process, over all editions.
    public let metrics: MetricBoard
    /// Where everything but the access log goes.
    public let events: EventLog
    private let phase = Atomic<UInt8>(0)
    private let seeds: Mutex<KeeperSeeds>
    private let firstDestination: SpanDestination?
    let startedAt: UInt64
    let waitUntil: UInt64
    /// All four are touched on the keeper's loop, once it runs.
    private let secretWatch = Mutex<LoopBound<FolderWatch>?>(nil)
    let keyWatch: Mutex<ClientKeyWatch>
    let healthWatch: LoopBound<HealthWatch>
    private let certificateWatch = Mutex<LoopBound<CertificateWatch>?>(nil)
    let readied = Atomic<Bool>(false)
    /// The faults of secrets that were logged, so that each is logged once.
    let exposuresTold = Mutex<Set<String>>([])
    let heartbeat = Heartbeat()
    let spans: SpanProcessor
    /// Touched on the keeper's loop.
    let spanExporter: SpanExporter
    let adminServers = Mutex<[AdminServer]>([])

    private enum Phase {
        static let starting: UInt8 = 0, serving: UInt8 = 1, lingering: UInt8 = 2, draining: UInt8 = 3
    }

    /// - Parameters:
    ///   - configuration: checked.
    ///   - environment: for `env:` secrets.
    ///   - log: gets access records; its threads are started by the caller.
    ///   - inherited: sockets that were opened for us; where one is bound to an address of ours, it is used.
    ///   - audit: gets the acts; nil without `audit`.
    ///   - version: of the program, as spans tell it.
    ///   - placeholders: texts that a confined program has in place of secrets, by variable of its environment: they are refused wherever
    ///     no credential replaces them.
    ///   - beforeStore: called when everything stands but what needs the store: another process may have it until this returns.
    public init(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, log: LogThread,
        inherited: InheritedSockets, platform: Platform = .machine, audit: AuditTrail? = nil,
        version: String = "", placeholders: [String: String] = [:], beforeStore: () -> Void = {}
    ) throws(GatewayFault) {
        self.inherited = inherited
        self.placeholders = placeholders
        events = log.events
        self.log = log
        self.environment = environment
        self.platform = platform
        self.audit = audit
        startedWith = configuration
        let loopCount = configuration.threads ?? CPULimit.loops()
        // Untouched slots cost no memory, so there are more than a fleet of users needs.
        // A cache that cannot hold one token of the largest size would serve none.
        let cache = HotCache(
            readers: loopCount, slots: max(1 << 18, min(1 << 24, configuration.limits.subjects + (1 << 16))),
            byteLimit: max(configuration.limits.hotCache, 1 << 20),
            keys: configuration.limits.subjects)
        self.cache = cache
        let compiled = try CompiledConfiguration(
            configuration, environment: environment, persists: configuration.store.path != nil, cache: cache,
            loops: loopCount, routeNames: log.routes, faultNames: log.faults, identityNames: log.identities,
            usePlaces: audit?.places,
            platform: platform, placeholders: placeholders)
        let plan = compiled.plan

        let sockets = try Self.openSockets(of: plan, loops: loopCount, inherited: inherited)
        beforeStore()
        let opened = Self.openStore(
            configuration, environment: environment, events: log.events, platform: platform)
        store = opened.store
        workshop = opened.workshop
        let programs: any BlockingWork
        do {
            resolver = try platform.names()
            blocking = try platform.blocking()
            programs = try platform.programs()
            keeperLoop = try Loop(name: "keeper", kernel: platform.kernel(), mailCapacity: 65_536)
        } catch { throw GatewayFault("\(error)") }
        let counts = SpanCounts()
        let exporter = SpanExporter(
            loop: keeperLoop, blocking: blocking, resolver: resolver, events: log.events, counts: counts,
            seed: platform.random.number())
        spanExporter = exporter
        let spans = SpanProcessor(
            resource: SpanResource(
                name: configuration.tracing?.service ?? "cardea", version: version, instance: plan.pseudonym),
            log: log, time: platform.time, counts: counts
        ) { [keeperLoop] export in keeperLoop.post { exporter.take(export) } }
        self.spans = spans
        keeper = Keeper(
            KeeperParts(
                executor: LoopExecutor(loop: keeperLoop), cache: cache, events: log.events, resolver: resolver,
                blocking: blocking,
                identities: compiled.identities, routes: compiled.compiler.keptRoutes, store: opened.store,
                storeState: opened.state,
                markKey: try MarkKey(in: opened.rows, random: platform.random), random: platform.random,
                subjects: SubjectBook.Limits(configuration), audit: audit, spans: spans, programs: programs))
        let keeper = self.keeper
        let opening = try Self.openFleet(
            configuration, environment: environment, keeper: keeper, platform: platform)
        fleet = opening?.tier
        keyWatch = Mutex(
            ClientKeyWatch(compiled.identityCompiler, keeper: keeper, events: log.events))
        metrics = MetricBoard()
        let counters = plan.edition.count(plan.metrics, on: metrics, loops: loopCount)
        let usePolicy = UsePolicy(
            recordsEach: configuration.audit?.uses == .each, blocks: configuration.audit?.onTrouble == .block)
        // Without an access log, too: failed requests are remembered.
        let rings = counters.map { _ in log.makeRing() }
        let traces = compiled.spans == nil ? [] : spans.rings(loopCount)
        let local = LocalAddresses.snapshot()
        let census = plan.limits.perAddress.map { AddressCensus(limit: $0) }
        var loops: [LoopBound<DataLoop>] = []
        for index in 0..<loopCount {
            do {
                let loop = try Loop(name: "loop-\(index)", kernel: platform.kernel())
                loops.append(
                    LoopBound(
                        DataLoop(
                            index: index, loop: loop, plan: plan, reader: cache.makeReader(index), keeper: keeper,
                            metrics: counters[index], access: rings[index],
                            traces: traces.isEmpty ? nil : traces[index], events: log.events, resolver: resolver,
                            random: platform.random, local: local, census: census,
                            uses: audit.map { UseCounter($0, usePolicy) })))
            } catch { throw GatewayFault("\(error)") }
        }
        self.loops = loops
        healthWatch = LoopBound(
            HealthWatch(
                loop: keeperLoop, resolver: resolver, random: platform.random, events: log.events
            ) { upstream, unhealthy in
                loops.reduce(true) { all, loop in
                    loop.value.loop.post { loop.value.noteUnhealthy(unhealthy, of: upstream) } && all
                }
            })
        for socket in sockets {
            for (index, loop) in loops.enumerated() {
                guard
                    loop.value.listen(
                        socket.plan, descriptors: socket.descriptors[index], isShared: socket.isShared)
                else {
                    throw GatewayFault("cannot watch \(socket.plan.text)")
                }
            }
            log.events.info("listening", [LogField("address", .name(socket.plan.text))])
        }
        var editions = LivingEditions()
        editions.add(plan.edition)
        running = Mutex(
            Running(
                plan: plan, identityCompiler: compiled.identityCompiler, editions: editions,
                nextRoute: compiled.compiler.numbers.next, census: census))
        startedAt = keeperLoop.kernel.now()
        let patience =
            compiled.identities.filter { $0.policy.startup == .wait }.map { $0.policy.access.acquireTimeout }.max() ?? 0
        waitUntil = startedAt + patience
        firstDestination = compiled.spans
        seeds = Mutex(
            KeeperSeeds(
                rows: opened.rows, keys: compiled.fixedKeys,
                marksUnreadable: opened.marksUnreadable, reopen: opened.heir(platform.time), fleet: opening?.fleet))
    }

    // MARK: - Running

    /// Lets the keeper run: tokens are restored and, where the configuration says so, fetched. Nobody is served yet.
    public func prepare() throws(GatewayFault) {
        let keeper = self.keeper
        let seeds = self.seeds.withLock { seeds in
            defer { seeds = KeeperSeeds() }
            return seeds
        }
        let loops = self.loops
        if let firstDestination { exportSpans(to: firstDestination) }
        _ = keeperLoop.post { [self] in
            // Keys were read before their folders were watched.
            let keys = keyWatch.withLock { $0 }
            keys.begin()
            keys.look()
            keeper.assumeIsolated { $0.takeUp(seeds, for: loops) }
            fleet?.start()
        }
        watchSecrets(startedWith.secretFolders(environment: environment))
        tellOfSecrets(of: startedWith)
        watchAddresses()
        watchCertificates(of: plan.listeners)
        watchHealth(of: plan)
        do {
            let keeperLoop = self.keeperLoop
            try platform.start("keeper") { keeperLoop.run() }
        } catch { throw GatewayFault("\(error)") }
    }

    /// After `prepare`: callers and operators are served from now on.
    public func serve() throws(GatewayFault) {
        do {
            for loop in loops {
                let running = loop.value.loop
                try platform.start(running.name) { running.run() }
            }
        } catch { throw GatewayFault("\(error)") }
        phase.store(Phase.serving, ordering: .releasing)
        let servers = adminServers.withLock { $0 }
        guard servers.isEmpty || keeperLoop.ask({ servers.reduce(true) { $1.open() && $0 } }) == true else {
            throw GatewayFault("admin: cannot watch its sockets")
        }
    }

    /// A changed secret takes effect at once, without a request that meets the old one. Best effort: without inotify the next request that
    /// needs the secret finds the change.
    func watchSecrets(_ folders: [String]) {
        let keeper = self.keeper
        // Secrets are read when they are needed, so that none was read before the first watch.
        let next = FolderWatch(loop: keeperLoop, folders: folders, haveBeenRead: false)
        next?.changed = { [self] in
            keeper.assumeIsolated { $0.secretsMayHaveChanged() }
            keyWatch.withLock { $0 }.look()
        }
        let bound = next.map { LoopBound($0) }
        let last = secretWatch.withLock { watch in
            defer { watch = bound }
            return watch
        }
        guard let last else { return }
        if let next { next.replace(last.value) } else { keeperLoop.close(last.value) }
    }

    private func watchAddresses() {
        let loops = self.loops
        let watch = AddressWatch(loop: keeperLoop)
        watch.changed = { local in
            // A full mailbox loses the news; the next change brings them again.
            for loop in loops { _ = loop.value.loop.post { loop.value.local = local } }
        }
        if !watch.begin() { events.warn("addresses that are added later do not count as local") }
    }

    func watchCertificates(of listeners: [ListenerPlan]) {
        let next = CertificateWatch(listeners, loop: keeperLoop, blocking: keeper.blocking, events: events)
        let bound = LoopBound(next)
        let last = certificateWatch.withLock { watch in
            defer { watch = bound }
            return watch
        }
        last?.value.end()
        next.start()
    }

    /// The loops have the plan: news of it finds them prepared.
    func watchHealth(of plan: GatewayPlan) {
        let watch = healthWatch
        _ = keeperLoop.post { watch.value.take(plan.upstreams) }
    }

    /// On the keeper's loop: the certificates of another configuration, of which some may have changed while it was read.
    func watchKeys(of compiler: IdentityCompiler) {
        let next = ClientKeyWatch(compiler, keeper: keeper, events: events)
        next.forgetRefusals()
        keyWatch.withLock { watch in
            watch.end()
            watch = next
        }
        next.begin()
        next.look()
    }

    var plan: GatewayPlan { running.withLock { $0.plan } }

    /// Addresses that are listened on, as configured.
    public var addresses: [String] { plan.listeners.map(\.text) }

    // MARK: - Ending

    /// Not ready any more, and still accepting: load balancers learn of it first.
    public func linger() {
        phase.store(Phase.lingering, ordering: .releasing)
        // First of all: whoever stops us may not wait for the end.
        let keeper = self.keeper
        _ = keeperLoop.post { keeper.assumeIsolated { $0.putAgain() } }
        events.info("draining")
    }

    /// Takes no new callers and ends when the last exchange has.
    /// - Parameters:
    ///   - farewell: nanoseconds that idle callers have left to send a last request; nil: a moment.
    ///   - completion: called once, on some loop's thread.
    public func drain(farewell: UInt64? = nil, completion: @escaping @Sendable () -> Void) {
        let farewell = farewell ?? DataLoop.farewell
        phase.store(Phase.draining, ordering: .releasing)
        let left = DrainCount(loops.count, completion)
        for loop in loops {
            if !loop.value.loop.post({ loop.value.drain(farewell: farewell) { left.oneLess() } }) { left.oneLess() }
        }
    }

    /// Cuts short what still runs, so that records, metrics and log say it.
    /// - Parameter completion: called once, on some loop's thread.
    public func cut(completion: @escaping @Sendable () -> Void) {
        let left = DrainCount(loops.count, completion)
        for loop in loops {
            let isPosted = loop.value.loop.post {
                loop.value.closeEverything()
                left.oneLess()
            }
            if !isPosted { left.oneLess() }
        }
    }

    /// Commits what is queued and closes the store.
    public func close() {
        if let fleet { _ = keeperLoop.post { fleet.stop() } }
        keeper.putLast()
        _ = store?.close()
    }

    /// The gateway accepts nothing more and serves only what connections have begun.
    public var isLingering: Bool { phase.load(ordering: .acquiring) >= Phase.lingering }
    var isServing: Bool { phase.load(ordering: .acquiring) == Phase.serving }
}

/// Calls `completion` when every loop has reported.
private final class DrainCount: Sendable {
    private let left: Atomic<Int>
    private let completion: @Sendable () -> Void

    init(_ count: Int, _ completion: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.completion = completion
    }

    func oneLess() {
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { completion() }
    }
}
