internal import HTTP2
package import Reactor

/// The interpreter of one loop's pool of connections to one upstream: makes and closes what `UpstreamPool` says, and tells it what came of it.
package final class UpstreamGroup {
    let plan: UpstreamPlan
    let loop: Loop
    let buffers: LoopBuffers
    private(set) var pool: UpstreamPool<UpstreamConnection, UpstreamHTTP2Connection>
    var tls = UpstreamTLS()
    package var outage = UpstreamOutage()
    var gauges: UpstreamGauges
    let report: (UpstreamNews) -> Void
    /// Closed connections that were streams of a shared one, for the next streams, as long as there is a shared connection. Their last
    /// user may still stand in a call of one, so it is looked at when it is taken.
    var spare: [UpstreamConnection] = []
    private let resolver: any NameResolver
    /// Whether an address may be connected to.
    private let admits: (SocketAddress) -> Bool
    private var hasRefused = false
    /// The pool's actions are being done: whoever adds to them meanwhile leaves them to that.
    private var isActing = false
    private var awaitsEndOfTurn = false

    /// - Parameter metrics: nil for issuers, whose calls the keeper counts.
    package init(
        plan: UpstreamPlan, loop: Loop, buffers: LoopBuffers, resolver: any NameResolver,
        metrics: UpstreamMetrics? = nil,
        admits: @escaping (SocketAddress) -> Bool = { _ in true }, report: @escaping (UpstreamNews) -> Void
    ) {
        self.plan = plan
        self.loop = loop
        self.buffers = buffers
        self.resolver = resolver
        self.admits = admits
        self.report = report
        gauges = UpstreamGauges(metrics)
        pool = UpstreamPool(PoolBounds(plan), names: plan.names)
        for (index, endpoint) in plan.endpoints.enumerated() {
            guard case .address(let address) = endpoint else { continue }
            if admits(address) { pool.list([address], endpoint: index) } else { hasRefused = true }
        }
    }

    /// No connection is left, shared ones included.
    package var isUnused: Bool { pool.isUnused }

    // MARK: - Taking and giving back

    /// An idle connection, or a new one that calls its user when it is ready or lost.
    /// - Parameters:
    ///   - upgrades: the request wants to leave HTTP: over HTTP/2 only by extended CONNECT (RFC 8441), otherwise over HTTP/1.1.
    ///   - avoided: where the request has just been lost.
    ///   - wanted: which address a new connection is made to, if it takes one.
    ///   - once: the request cannot be sent again when its connection turns out to be stale.
    ///   - owner: whose connection may be used, if there is one.
    ///   - binds: the request authenticates its connection, which is therefore to be nobody else's: over HTTP/1.1.
    package func take(
        for user: any UpstreamUser, fresh: Bool, upgrades: Bool = false, avoiding avoided: UpstreamAddress? = nil,
        wanting wanted: UpstreamAddress? = nil, once: Bool = false, owner: UpstreamOwner? = nil, binds: Bool = false
    ) -> UpstreamConnection {
        // Here and not only where a connection is made: a pool that is always warm must notice that its name has moved.
        if loop.now >= pool.names.nextDue { askForNames() }
        if tls.hasChanged(plan) { renewTLS() }
        // The keeper's order to close those that are nobody's any more may be on its way.
        if plan.boundTo != nil, pool.idle.contains(where: { !$0.isOfItsIdentity }) { closeIdle() }
        if !fresh, let connection = pool.takeIdle(once: once, of: owner, at: loop.now) {
            connection.takeUp(user)
            recount()
            return connection
        }
        let connection = makeConnection(for: user)
        connection.wish = UpstreamWish(
            isNew: fresh, isOnce: once, leavesHTTP: upgrades, onlyHTTP1: binds && plan.protocols == .either,
            avoided: avoided, wanted: wanted)
        if let shared = pool.enter(connection, at: loop.now) {
            connection.assign(shared)
        } else {
            connection.beginWaiting()
        }
        act()
        recount()
        return connection
    }

    func give(_ connection: UpstreamConnection) {
        guard isCurrent(connection), pool.put(connection) else { return connection.close() }
        connection.becomeIdle()
        act()
        recount()
    }

    /// Whether a request that was lost at `address` may find another one; one that was ejected a while ago may be back.
    func hasAnother(than address: UpstreamAddress?) -> Bool {
        address != nil && pool.book.addresses.contains { $0 !== address }
    }

    /// No configuration leads here any more: connections end with their exchanges.
    package func retire() { tell { $0.retire() } }

    package func closeIdle() { tell { $0.closeIdle() } }

    /// The owner is gone.
    func closeOwned(by owner: UpstreamOwner) { tell { $0.closeOwned(by: owner) } }

    /// Makes the gauges true again. Once a change, on this loop's own cells.
    private func recount() {
        let unused = pool.idle.count + pool.owned.count
        gauges.tell(open: pool.sockets - unused, idle: unused, waiting: pool.inLine.count)
    }

    /// Counts in another edition's cells from now on; those of the last one may be folded away.
    func count(in next: UpstreamMetrics?) {
        gauges.move(to: next)
        recount()
    }

    // MARK: - What the pool wants done

    /// Tells the pool what has happened, and does what it wants done for it.
    func tell(_ event: (inout UpstreamPool<UpstreamConnection, UpstreamHTTP2Connection>) -> Void) {
        event(&pool)
        act()
    }

    /// Does what is to be done now, and at the end of the turn what is left for then.
    private func act() {
        guard pool.agenda.isDue, !isActing else { return }
        isActing = true
        while let action = pool.next(at: loop.now) { perform(action) }
        isActing = false
        recount()
        guard pool.agenda.waitsForEndOfTurn, !awaitsEndOfTurn else { return }
        awaitsEndOfTurn = true
        loop.putOffToEndOfTurn { [self] in
            awaitsEndOfTurn = false
            pool.turnEnds()
            act()
        }
    }

    private func perform(_ action: PoolAction<UpstreamConnection, UpstreamHTTP2Connection>) {
        switch action {
        case .dial(let connection, let addresses):
            // An address that was open to callers when the name was resolved may be this machine's own by now.
            let admitted = addresses.filter { admits($0.address) }
            guard !admitted.isEmpty else { return connection.lose(Fault(.destinationRefused, retry: .unsent)) }
            connection.dial(admitted)
        case .share(let shared, let connection): connection.use(shared)
        case .handOver(let free, let connection): connection.goOn(with: free)
        case .refuse(let connection, let refusal): refuse(connection, refusal)
        case .close(let connection): connection.close()
        case .retire(let shared): shared.retire()
        case .doubt(let shared): shared.doubt()
        }
    }

    private func refuse(_ connection: UpstreamConnection, _ refusal: PoolRefusal) {
        switch refusal {
        case .busy: connection.lose(Self.busy)
        case .unresolvable:
            let fault = Fault(hasRefused ? .destinationRefused : .upstreamUnresolvable, retry: .unsent)
            noteUnreachable(fault)
            connection.lose(fault)
        case .noUpgrade:
            connection.lose(
                Fault(
                    .upstreamOffersNoUpgrade, retry: .never,
                    detail: "the upstream's HTTP/2 does not offer extended CONNECT (RFC 8441); `http: auto` or `1.1` "
                        + "would take HTTP/1.1"))
        case .sharedConnectionGone: connection.lose(Fault(.upstreamClosed, retry: .unsent))
        }
    }

    static var busy: Fault { Fault(.upstreamBusy, retry: .unsent, retryAfter: 1) }

    // MARK: - What becomes of connections

    /// A new connection speaks HTTP/2: from now on it belongs to all.
    func shareSocket(of connection: UpstreamConnection) {
        guard let shared = UpstreamHTTP2Connection(group: self, address: connection.address) else {
            return connection.lose(Fault(.outOfMemory, retry: .unsent))
        }
        // The request that it was made for goes out first: the others may find no room.
        let wasActing = isActing
        isActing = true
        pool.opened(shared, by: connection)
        connection.share(shared)
        // A shared connection that was made with another certificate carries that request and no other.
        if !isCurrent(connection) { shared.retire() }
        isActing = wasActing
        act()
    }

    /// No address took a connection that was to be shared; what is there may carry its request all the same.
    func rescue(_ connection: UpstreamConnection) -> Bool {
        guard pool.rescue(connection, at: loop.now) else { return false }
        act()
        return true
    }

    func closed(_ connection: UpstreamConnection) {
        tell { $0.closed(connection) }
        recount()
    }

    func sharedEnded(_ shared: UpstreamHTTP2Connection) {
        tell { $0.ended(shared) }
        if pool.shared.isEmpty { spare.removeAll() }
        recount()
    }

    /// Some requests are answered only over HTTP/1.1 (RFC 9113 §7).
    func insistOnHTTP1() {
        guard pool.insistOnHTTP1() else { return }
        tls.offersHTTP1()
        for shared in pool.shared.all { shared.http2.goAway() }
    }

    // MARK: - Addresses

    /// An attempt at this address failed, or a fresh connection there was lost before its answer.
    func failed(_ address: UpstreamAddress, _ failure: AddressBook.Failure) {
        if pool.failed(address, failure, at: loop.now) { gauges.metrics?.ejected() }
        act()
    }

    /// Takes over the result of active checks. Connections to addresses that are avoided now end with their exchanges, as long as another
    /// address is left.
    func noteUnhealthy(_ found: Set<SocketAddress>) { tell { $0.noteUnhealthy(found) } }

    private func askForNames() {
        let group = LoopBound(self)
        let loop = self.loop
        for endpoint in pool.names.due(at: loop.now) {
            guard case .name(let host, let port) = plan.endpoints[endpoint] else { continue }
            resolver.resolve(host: host, port: port) { outcome in
                let addresses = (try? outcome.get()) ?? []
                // A full mailbox loses this answer; the schedule asks again, and waiters meet their connect deadline.
                _ = loop.post { group.value.answered(endpoint, addresses) }
            }
        }
    }

    private func answered(_ endpoint: Int, _ found: [SocketAddress]) {
        let addresses = found.filter(admits)
        if addresses.count < found.count { hasRefused = true }
        tell { $0.resolved(addresses, endpoint: endpoint, at: loop.now) }
    }
}

/// A value that belongs to one loop, on its way through a mailbox. Only the letter's opening touches it, and that happens on the loop.
package struct LoopBound<Value>: @unchecked Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}
