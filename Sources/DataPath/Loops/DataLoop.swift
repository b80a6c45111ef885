package import Audit
internal import Glibc
internal import HTTP1
internal import HTTP2
internal import Handshakes
package import HotCache
package import Reactor
internal import TLS
package import Telemetry
package import World

/// The state that one data loop owns: its callers, its upstream connections, its buffers, its counters and its scratch space. No other
/// thread touches any of it.
package final class DataLoop {
    let index: Int
    package let loop: Loop
    let buffers: LoopBuffers
    let exchanges = ExchangePool()
    private(set) var plan: GatewayPlan
    private(set) var limits: DataLimits
    let reader: Reader
    package private(set) var desk: TokenDesk!
    /// The desk wants to know where tokens are taken. The answer of every hit asks, so it stands here, where no reference is counted for it.
    var watchesPaths = false
    private var memoryTrim: MemoryTrim!
    private(set) var metrics: LoopMetrics
    let access: AccessRing?
    /// The plan's, asked for each exchange: here no reference is counted for it.
    private var accessPolicy: AccessPolicy
    /// Nil where spans are not exported.
    private(set) var traces: TraceRing?
    /// Nil without `audit`.
    let uses: UseWatch?
    let events: EventLog

    /// Scratch heads: valid from a parse to the next one on this loop.
    var requestHead: RequestHead
    var responseHead: ResponseHead
    private var headOwner: ObjectIdentifier?
    private var answerOwner: ObjectIdentifier?

    /// For proofs of possession.
    var nonces = UpstreamNonces()
    let proofKeys = ProofKeys()

    private(set) var groups: [UpstreamGroup?]
    private let resolver: any NameResolver
    let random: any RandomSource
    /// For identifiers of requests.
    var numbers: NumberStock
    private(set) var acceptors: [Acceptor] = []
    private(set) var callers = Roster<CallerConnection>()
    /// Connections that no protocol serves yet, and those of them whose handshake waits for its turn.
    var arrivals = Roster<Arrival>()
    var handshakes: [Arrival] = []
    var logRates = LogRates()
    private(set) var http2Callers = Roster<CallerHTTP2Connection>()
    /// Upstreams of callers' choice, with their connections.
    var openDestinations: [Destination: OpenDestination] = [:]
    /// Callers that own connections to upstreams, few of all: their numbers stand here and not in each idle caller.
    var owners: [ObjectIdentifier: UpstreamOwner] = [:]
    var subjects = SubjectNumbers()
    var lastOwner: UInt64 = 0
    private(set) var isDraining = false
    /// Whatever still runs is cut short.
    private(set) var isEnding = false
    private(set) var farewell = DataLoop.farewell
    /// Replaced when an address comes or goes.
    package var local: LocalAddresses
    private(set) var census: AddressCensus?

    private(set) var pseudonym: String
    /// Our mark in a `Via` field.
    private(set) var viaMark: [UInt8]

    static let idleCallerTimeout: UInt64 = 75_000_000_000
    /// The time that a caller waits beyond the keeper's own deadline, so that the keeper's answer, which says more, comes first.
    static let tokenGrace: UInt64 = 1_000_000_000
    /// The time that an idle caller of a gateway that drains has left to send its last request.
    package static let farewell: UInt64 = 1_000_000_000
    static let lingerTimeout: UInt64 = 1_000_000_000
    /// How long a closing connection may take none of what waits for it.
    static let flushTimeout: UInt64 = 60_000_000_000
    static let lingerBytes = 1 << 20

    package init(
        index: Int, loop: Loop, plan: GatewayPlan, reader: consuming Reader, keeper: any KeeperInbox,
        metrics: LoopMetrics,
        access: AccessRing?, traces: TraceRing? = nil, events: EventLog, resolver: any NameResolver,
        random: any RandomSource, local: LocalAddresses, census: AddressCensus?, uses: UseCounter? = nil
    ) {
        self.index = index
        self.loop = loop
        self.plan = plan
        self.reader = reader
        self.metrics = metrics
        self.access = access
        accessPolicy = plan.accessPolicy
        self.traces = traces
        self.uses = uses.map { UseWatch($0, loop: loop) }
        self.events = events
        self.resolver = resolver
        self.random = random
        numbers = NumberStock(random)
        self.local = local
        self.census = census
        limits = plan.limits
        pseudonym = plan.pseudonym
        viaMark = Array(plan.pseudonym.utf8)
        buffers = LoopBuffers(
            blocks: plan.limits.connections * 2 + 64, largeLimit: plan.limits.largeBytes,
            scratchSize: plan.limits.headerSize * 2 + 16 * 1024, pipes: PipePool(kernel: loop.kernel))
        requestHead = RequestHead(maxFields: plan.limits.heads.fields)
        responseHead = ResponseHead(maxFields: plan.limits.heads.fields)
        groups = Array(repeating: nil, count: plan.upstreamRoom)
        desk = TokenDesk(data: self, keeper: keeper, loopIndex: index)
        memoryTrim = MemoryTrim(of: self)
        loop.turnBegan = { [unowned self] in self.reader.enterTick() }
        loop.willBlock = { [unowned self] in self.reader.goOffline() }
    }

    deinit {
        memoryTrim.end()
        buffers.frames.forgetStreams()
    }

    // MARK: - Callers

    package func listen(_ plan: ListenerPlan, descriptors: [Int32], isShared: Bool) -> Bool {
        for descriptor in descriptors {
            let acceptor = Acceptor(plan: plan, data: self, isShared: isShared)
            guard acceptor.start(descriptor) else { return false }
            acceptors.append(acceptor)
        }
        return true
    }

    func addCaller(_ caller: CallerConnection) {
        callers.add(caller)
        if isDraining { caller.retire() }
    }

    func removeCaller(_ caller: CallerConnection) { _ = callers.remove(caller) }

    func addHTTP2Caller(_ connection: CallerHTTP2Connection) { http2Callers.add(connection) }

    func http2CallerClosed(_ connection: CallerHTTP2Connection) {
        if http2Callers.remove(connection) {
            metrics.callerClosed()
            uncount(connection.peer)
        }
        memoryTrim.look()
        finishDrain()
    }

    func callerClosed(_ caller: CallerConnection) {
        if callers.remove(caller) {
            metrics.callerClosed()
            uncount(caller.peer)
        }
        memoryTrim.look()
        finishDrain()
    }

    var canTrim: Bool { buffers.canTrim(for: callers.count) }

    func trim() { buffers.trim(for: callers.count) }

    // MARK: - Upstreams

    func group(_ plan: UpstreamPlan) -> UpstreamGroup {
        // Compared: the number may have been another upstream's before a reload.
        if let group = groups[plan.index], group.plan === plan { return group }
        let group = makeGroup(plan)
        groups[plan.index] = group
        return group
    }

    /// Takes over the result of an upstream's active checks. A result for an upstream of a plan that no longer runs is of no use.
    package func noteUnhealthy(_ unhealthy: Set<SocketAddress>, of upstream: UpstreamPlan) {
        guard plan.position(of: upstream) != nil else { return }
        group(upstream).noteUnhealthy(unhealthy)
    }

    /// By position in the plan of now: numbers of upstreams outlive a plan, positions of its cells do not.
    private func metrics(of upstream: UpstreamPlan) -> UpstreamMetrics? {
        plan.position(of: upstream).flatMap { metrics.upstream($0) }
    }

    func makeGroup(_ plan: UpstreamPlan) -> UpstreamGroup {
        UpstreamGroup(
            plan: plan, loop: loop, buffers: buffers, resolver: resolver,
            metrics: metrics(of: plan),
            // Asked for each address anew: this machine gets and loses addresses while the group lives.
            admits: { [unowned self] address in
                !plan.isOpenOnly || address.isOpenDestination(local, translators: self.plan.translators)
            },
            report: { [events] news in
                // Where a caller chooses to go is its own matter, and would fill the log.
                if !plan.isOpenOnly { events.note(news, of: plan.origin) }
            })
    }

    // MARK: - Heads

    func parseRequest(_ bytes: UnsafeRawBufferPointer, for caller: CallerConnection) throws(HeadFault) -> Int? {
        headOwner = ObjectIdentifier(caller)
        requestHead.reset()
        // A parser ends no channel.
        if let stream = caller.uncountedStream {
            return try stream._withUnsafeGuaranteedRef { stream in
                Result { () throws(HeadFault) in
                    try requestHead.parse(bytes.octets, index: stream.headIndex, limits: limits.heads)
                }
            }.get()
        }
        return try requestHead.parse(bytes.octets, limits: limits.heads)
    }

    /// Makes `requestHead` the caller's again, if another request used the scratch since.
    func restoreHead(of caller: CallerConnection) {
        guard headOwner != ObjectIdentifier(caller) else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: caller.input[..<caller.exchange.request.headLength])
        do throws(HeadFault) { _ = try parseRequest(bytes, for: caller) } catch {
            // The same bytes have been parsed before.
            preconditionFailure("a head that parsed once no longer does")
        }
    }

    func parseAnswer(of upstream: UpstreamConnection) throws(HeadFault) -> Int? {
        answerOwner = nil
        responseHead.reset()
        let length: Int?
        if let stream = upstream.uncountedStream {
            length = try stream._withUnsafeGuaranteedRef { stream in
                Result { () throws(HeadFault) in
                    try responseHead.parse(upstream.input.octets, index: stream.headIndex, limits: limits.heads)
                }
            }.get()
        } else {
            length = try responseHead.parse(upstream.input.octets, limits: limits.heads)
        }
        guard let length else { return nil }
        answerOwner = ObjectIdentifier(upstream)
        return length
    }

    /// Makes `responseHead` again the answer's that `upstream` holds at the front of its input, if another was read since.
    ///
    /// The identifier cannot be another connection's: `upstream` has lived since it was noted or since a later one was, as it read the
    /// answer that it holds.
    func restoreAnswer(of upstream: UpstreamConnection) {
        guard answerOwner != ObjectIdentifier(upstream) else { return }
        do throws(HeadFault) { _ = try parseAnswer(of: upstream) } catch {
            // The same bytes have been parsed before.
            preconditionFailure("an answer's head that parsed once no longer does")
        }
    }

    // MARK: - Accounting

    /// An identifier that tells nothing and links nothing. The top bit is set, so that all have the same length.
    func nextIdentifier() -> UInt64 { numbers.next() | 1 << 63 }

    /// Counts in the cells of the edition that the route belongs to: positions mean nothing in another one.
    @inline(__always)
    func count(for route: RoutePlan?, _ body: (borrowing LoopMetrics) -> Void) {
        guard let route, route.edition !== plan.edition else { return body(metrics) }
        if let earlier = route.edition.metrics(ofLoop: index) { body(earlier) }
    }

    /// An exchange is over.
    func account(_ caller: CallerConnection) {
        // Read in place: a copy of the record would count its references for every request.
        guard caller.exchange.record.startedAt != 0 else { return }
        let now = loop.kernel.now()
        let total = now - min(now, caller.exchange.record.startedAt)
        if caller.exchange.route?.edition === plan.edition {
            // Held by this object, and replaced by a reload alone.
            let metrics = Unmanaged.passUnretained(self.metrics)
            metrics._withUnsafeGuaranteedRef { count(caller, total, in: $0) }
        } else {
            // None, or one of an earlier edition.
            count(for: caller.exchange.route) { count(caller, total, in: $0) }
        }
        if traces != nil { noteTrace(of: caller, endedAt: now) }
        guard
            accessPolicy.takes(
                status: caller.exchange.answer.status,
                faulted: caller.exchange.record.fault != nil || caller.exchange.record.incomplete != .none),
            let access
        else {
            return
        }
        _ = access.append(isLine: accessPolicy.writes) { line in
            line.time = UInt64(max(0, loop.kernel.wallMilliseconds())) * 1_000_000
            line.route = caller.exchange.route?.logName ?? 0
            line.status = UInt16(clamping: caller.exchange.answer.status)
            line.bytesIn = caller.bytesIn - caller.exchange.record.bytesInBefore
            line.bytesOut = caller.answerBytes
            line.incomplete = caller.exchange.record.incomplete
            line.caller = caller.peer.address?.logAddress ?? LogAddress()
            line.upstream = caller.exchange.record.upstreamAddress ?? LogAddress()
            line.callerProtocol =
                caller.stream != nil ? .http2 : caller.exchange.request.minorVersion == 0 ? .http10 : .http11
            line.upstreamProtocol =
                caller.exchange.record.sentAt == 0 ? .none : caller.exchange.record.usedHTTP2 ? .http2 : .http11
            if caller.exchange.record.tokenAt > caller.exchange.record.startedAt {
                line.tokenWait = caller.exchange.record.tokenAt - caller.exchange.record.startedAt
            }
            if caller.exchange.record.sentAt > caller.exchange.record.tokenAt, caller.exchange.record.tokenAt != 0 {
                line.connect = caller.exchange.record.sentAt - caller.exchange.record.tokenAt
            }
            if caller.exchange.record.firstByteAt > caller.exchange.record.sentAt, caller.exchange.record.sentAt != 0 {
                line.firstByte = caller.exchange.record.firstByteAt - caller.exchange.record.sentAt
            }
            line.total = total
            line.cache = caller.exchange.record.cache
            line.replayed = caller.exchange.record.replayed
            if let fault = caller.exchange.record.fault { line.fault = plan.faultNames[fault] ?? 0 }
            line.identity = caller.exchange.route?.identityLogName ?? 0
            caller.withRequestID { line.setRequestID($0) }
            caller.settleTrace()
            line.setTrace(
                high: caller.exchange.correlation.trace.high, low: caller.exchange.correlation.trace.low)
            if let tunnel = caller.exchange.tunnel {
                line.upstreamProtocol = .tunnel
                tunnel.method.withUnsafeBytes { line.setMethod($0) }
                tunnel.target.withUnsafeBytes { line.setPath($0) }
            } else {
                line.setMethod(caller.heldMethod)
                line.setPath(caller.heldPath)
            }
        }
    }

    private func count(_ caller: CallerConnection, _ total: UInt64, in metrics: borrowing LoopMetrics) {
        let row = caller.exchange.route.flatMap { $0.isConfigured ? $0.index : nil }
        metrics.finished(
            route: row, status: caller.exchange.answer.status, nanoseconds: total, cache: caller.exchange.record.cache)
        let (sent, answered) = (caller.exchange.record.sentAt, caller.exchange.record.firstByteAt)
        // Else it was not sent, or not answered after it was sent again.
        if let row, sent != 0, answered >= sent {
            metrics.upstreamAnswered(route: row, nanoseconds: answered - sent)
        }
        let isWhole = caller.exchange.record.incomplete == .none
        if caller.exchange.record.replayed {
            metrics.replayed(route: row, refused: isWhole && caller.exchange.record.fault != nil)
        }
        if !isWhole {
            metrics.cut(route: row, by: caller.exchange.record.incomplete)
        } else if let fault = caller.exchange.record.fault {
            metrics.answered(route: row, fault)
        }
    }

    // MARK: - Reload

    /// Takes up the next plan. Exchanges that have begun keep theirs, by their route; connections of callers go on and find the new routes
    /// with their next request.
    /// - Parameter sockets: one for each listener that is new, by address.
    package func take(_ next: NextPlan, sockets: [SocketAddress: (descriptors: [Int32], isShared: Bool)]) {
        let listenersBefore = plan.listeners
        plan = next.plan
        accessPolicy = next.plan.accessPolicy
        limits = next.plan.limits
        metrics = next.metrics[index]
        pseudonym = next.plan.pseudonym
        viaMark = Array(next.plan.pseudonym.utf8)
        traces = next.traces.isEmpty ? nil : next.traces[index]
        // Destinations of callers' choice belong to the plan of before; exchanges on their way there hold what they need. Retired first:
        // idle connections point at their group without holding it.
        for (_, open) in openDestinations.sorted(by: { $0.key < $1.key }) { open.group.retire() }
        openDestinations.removeAll()
        takeUpstreams()
        takeListeners(sockets)
        if listenersBefore.contains(where: { listener(succeeding: $0) == nil }) {
            for caller in callers.members where listener(succeeding: caller.listener) == nil { caller.retire() }
            for connection in http2Callers.members where listener(succeeding: connection.listener) == nil {
                connection.drain()
            }
        }
        // Callers that are there already came when nobody counted.
        if census == nil { census = next.census }
    }

    /// Connections to upstreams that go on stay; those of the others end when their exchange does.
    private func takeUpstreams() {
        let staying = plan.edition.upstreamNumbers
        for (number, group) in groups.enumerated() where group != nil && !staying.contains(number) { group?.retire() }
        for group in groups {
            guard let group, staying.contains(group.plan.index) else { continue }
            group.count(in: metrics(of: group.plan))
        }
        while groups.count < plan.upstreamRoom { groups.append(nil) }
    }

    private func takeListeners(_ sockets: [SocketAddress: (descriptors: [Int32], isShared: Bool)]) {
        let staying = Dictionary(grouping: acceptors) { $0.plan.address }
        for listener in plan.listeners {
            for acceptor in staying[listener.address] ?? [] { acceptor.plan = listener }
            if let (descriptors, isShared) = sockets[listener.address],
                !listen(listener, descriptors: descriptors, isShared: isShared)
            {
                events.error("cannot watch a new listener", [LogField("address", .name(listener.text))])
            }
        }
        for acceptor in acceptors where acceptor.plan.edition !== plan.edition { acceptor.close() }
        acceptors.removeAll { $0.plan.edition !== plan.edition }
    }

    /// The listener at the same address in the current plan; nil where connections may not go on there.
    func listener(succeeding listener: ListenerPlan) -> ListenerPlan? { plan.listener(succeeding: listener) }

    // MARK: - Ending

    private var drained: (() -> Void)?

    package var listeningSockets: [(address: SocketAddress, descriptor: Int32, isShared: Bool)] {
        acceptors.map { ($0.plan.address, $0.descriptor, $0.isShared) }
    }

    /// Another process has these sockets and takes their callers from now on.
    package func leave(_ addresses: Set<SocketAddress>) {
        for acceptor in acceptors where addresses.contains(acceptor.plan.address) { acceptor.close(leavesQueue: true) }
        acceptors.removeAll { addresses.contains($0.plan.address) }
    }

    /// Takes no new callers, tells those that it has to leave, and calls `completion` when the last one has.
    /// - Parameter farewell: nanoseconds that an idle caller has left to send its last request.
    package func drain(farewell: UInt64 = DataLoop.farewell, completion: @escaping () -> Void) {
        for acceptor in acceptors { acceptor.close() }
        acceptors.removeAll()
        isDraining = true
        self.farewell = farewell
        for caller in callers.members { caller.retire() }
        for arrival in arrivals.members { arrival.retire() }
        for connection in http2Callers.members { connection.drain() }
        // Only now: callers that close at once must not end the drain before the others are looked at.
        drained = completion
        finishDrain()
    }

    func finishDrain() {
        guard callers.isEmpty, arrivals.isEmpty, http2Callers.isEmpty, let drained else { return }
        self.drained = nil
        drained()
    }

    package func closeEverything() {
        isEnding = true
        for arrival in arrivals.members { arrival.close() }
        for caller in callers.members { caller.close() }
        for connection in http2Callers.members { connection.end(.none) }
        for group in groups { group?.closeIdle() }
        uses?.finish()
    }
}
