internal import Glibc
internal import HTTP2
internal import Reactor
internal import TLS

/// One loop's connections to one upstream. Where the next one goes is the `AddressBook`'s word; of those that are idle there, the last one
/// used is the first one taken, so that few stay warm and the rest expire.
final class UpstreamGroup {
    let plan: UpstreamPlan
    let loop: Loop
    let buffers: LoopBuffers
    /// Connections that exist, idle ones too.
    var open = 0
    private(set) var idle: [UpstreamConnection] = []
    /// Idle as well, each for its owner alone.
    var owned = OwnedConnections()
    /// Sockets that are open or being opened, those of sessions too.
    var sockets = 0
    /// Requests for which the limit leaves no connection, in the order in which they came.
    var waiting = WaitingLine<UpstreamConnection>()
    /// Nothing of it is left.
    var isUnused: Bool { open == 0 && sessions.isEmpty }
    private(set) var book = AddressBook()
    /// As active checks last said, also of addresses that are not listed yet.
    private var unhealthy: Set<SocketAddress> = []
    private var schedule: NameSchedule
    private let resolver: Resolver
    /// Whether an address may be connected to.
    private let admits: (SocketAddress) -> Bool
    private var hasRefused = false
    let report: (UpstreamNews) -> Void
    /// Nil for issuers, whose calls the keeper counts.
    private(set) var metrics: UpstreamMetrics?
    /// What the gauges say.
    private var told = (open: 0, idle: 0, waiting: 0)

    private(set) var sessions: [UpstreamSession] = []
    /// Closed connections that were streams of a session, for the next ones, as long as there is a session. Their last user may still stand in
    /// a call of one, so it is looked at when it is taken.
    var spare: [UpstreamConnection] = []
    /// What the last connection turned out to speak; nil before there was one.
    private var speaksHTTP2: Bool?
    /// The connection that will become a session, or tell that there can be none, and those that wait for its word: a burst on a cold
    /// upstream is one connection.
    private var scout: UpstreamConnection?
    private var undecided: [UpstreamConnection] = []
    private(set) var insistsOnHTTP1 = false
    /// They want to leave HTTP, which an upstream that speaks HTTP/2 offers in its first SETTINGS or not at all.
    var offersAwaited: [UpstreamConnection] = []

    var tls: TLSClientConfiguration?
    /// Of what `tls` is made with.
    private var keyVersion: UInt64 = 0
    private var trustVersion: UInt64 = 0
    /// Rises when either changes.
    var tlsEdition: UInt64 = 0
    var upgradeTLS: TLSClientConfiguration?
    /// What the proxy gets of us with each request or tunnel; empty for none.
    private(set) var proxyLine: [UInt8] = []
    private var proxyVersion: UInt64 = 0
    /// They wait for the first address.
    private var unresolved: [UpstreamConnection] = []
    var outage = UpstreamOutage()

    init(
        plan: UpstreamPlan, loop: Loop, buffers: LoopBuffers, resolver: Resolver, metrics: UpstreamMetrics? = nil,
        admits: @escaping (SocketAddress) -> Bool = { _ in true }, report: @escaping (UpstreamNews) -> Void
    ) {
        self.plan = plan
        self.loop = loop
        self.buffers = buffers
        self.resolver = resolver
        self.admits = admits
        self.report = report
        self.metrics = metrics
        var names: [Int] = []
        for (index, endpoint) in plan.endpoints.enumerated() {
            switch endpoint {
            case .address(let address):
                if admits(address) { _ = book.list([address], endpoint: index) } else { hasRefused = true }
            case .name: names.append(index)
            }
        }
        schedule = NameSchedule(endpoints: names)
    }

    // MARK: - Taking and giving back

    /// An idle connection, or a new one that calls its user when it is ready or lost.
    /// - Parameters:
    ///   - upgrades: the request wants to leave HTTP: over HTTP/2 only by extended CONNECT (RFC 8441), otherwise over HTTP/1.1.
    ///   - avoided: where the request has just been lost.
    ///   - once: the request cannot be sent again when its connection turns out to be stale.
    ///   - owner: whose connection may be used, if there is one.
    ///   - binds: the request authenticates its connection, which is therefore to be nobody else's: over HTTP/1.1.
    func take(
        for user: any UpstreamUser, fresh: Bool, upgrades: Bool = false, avoiding avoided: UpstreamAddress? = nil,
        once: Bool = false, owner: UpstreamOwner? = nil, binds: Bool = false
    ) -> UpstreamConnection {
        // Here and not only where a connection is made: a pool that is always warm must notice that its name has moved.
        if loop.now >= schedule.nextDue { askForNames() }
        defer { recount() }
        if let keys = plan.clientKeys, keys.version != keyVersion {
            keyVersion = keys.version
            renewTLS()
        }
        if let trust = plan.trust, trust.version != trustVersion {
            trustVersion = trust.version
            renewTLS()
        }
        if let credential = plan.proxy?.credential, credential.version != proxyVersion {
            proxyVersion = credential.version
            proxyLine = credential.current.line ?? []
        }
        if !fresh, let connection = takeIdle(once: once, of: owner) {
            connection.takeUp(user)
            return connection
        }
        let connection = makeConnection(for: user)
        connection.avoided = avoided
        connection.insistsOnNew = fresh
        connection.insistsOnRecent = once
        open += 1
        connection.leavesHTTP = upgrades
        connection.insistsOnHTTP1 = binds && plan.protocols == .either
        if binds {
            connection.beginWaiting()
        } else if mayShare, upgrades, let session = lightestSession() {
            if session.session.servesExtendedConnect {
                connection.assign(session)
                return connection
            }
            connection.beginWaiting()
            if !session.session.knowsPeer {
                offersAwaited.append(connection)
                return connection
            }
            guard acceptsHTTP1(for: connection) else { return connection }
        } else if mayShare {
            if let session = usableSession(avoiding: avoided) {
                connection.assign(session)
                return connection
            }
            connection.beginWaiting()
            if scout != nil {
                undecided.append(connection)
                return connection
            }
            scout = connection
        } else {
            connection.beginWaiting()
        }
        start(connection)
        return connection
    }

    private var mayShare: Bool {
        switch plan.protocols {
        case .http1: false
        case .http2: true
        case .either: plan.usesTLS && !insistsOnHTTP1 && speaksHTTP2 != false
        }
    }

    /// The session for one more request, where the address book would have it; nil when a connection is to be made first.
    private func usableSession(avoiding avoided: UpstreamAddress? = nil) -> UpstreamSession? {
        guard book.addresses.count > 1, let best = book.choose(at: loop.now, avoiding: avoided) else {
            return lightestSession()
        }
        if let session = lightestSession(at: best) {
            book.chosen(best)
            return session
        }
        // Nothing leads there yet: one connection goes and makes a way. The others do not wait for it while there is another.
        guard scout != nil || isFull || !best.isAvailable(at: loop.now) else { return nil }
        return lightestSession()
    }

    /// The one with the fewest requests on it; of an address that is avoided only when there is none else.
    func lightestSession(at place: UpstreamAddress? = nil) -> UpstreamSession? {
        var best: Int?
        var fewest = 0
        var bestIsAvoided = false
        // They are looked at where they stand: the array holds them, and a count for each would be the search's whole cost.
        sessions.withUnsafeBufferPointer { sessions in
            for index in sessions.indices {
                Unmanaged.passUnretained(sessions[index])._withUnsafeGuaranteedRef { session in
                    guard session.isUsable, place == nil || session.place === place else { return }
                    let isAvoided = session.place?.isAvoided(at: loop.now) == true
                    let load = session.session.openStreams
                    if best != nil, bestIsAvoided == isAvoided ? fewest <= load : isAvoided { return }
                    (best, fewest, bestIsAvoided) = (index, load, isAvoided)
                }
            }
        }
        return best.map { sessions[$0] }
    }

    /// Whether a request that was lost at `place` may find another address; one that was ejected a while ago may be back.
    func hasAnother(than place: UpstreamAddress?) -> Bool {
        place != nil && book.addresses.contains { $0 !== place }
    }

    private func takeIdle(once: Bool, of owner: UpstreamOwner?) -> UpstreamConnection? {
        // However long ago it was used: on another connection the owner would have to authenticate again.
        if let owner, let connection = owned.take(owner) { return connection }
        guard let last = idle.last else { return nil }
        guard book.addresses.count > 1 else {
            return last.isFresh(forRequestOnce: once) ? idle.popLast() : nil
        }
        guard let best = book.choose(at: loop.now), let position = idle.lastIndex(where: { $0.place === best }),
            idle[position].isFresh(forRequestOnce: once)
        else { return nil }
        book.chosen(best)
        return idle.remove(at: position)
    }

    /// No configuration leads here any more: connections end with their exchanges.
    func retire() {
        isRetired = true
        closeIdle()
        for session in sessions { session.retire() }
    }
    private var isRetired = false

    func give(_ connection: UpstreamConnection) {
        guard !isRetired, isCurrent(connection) else { return connection.close() }
        if let owner = connection.owner { return keepOwned(connection, for: owner) }
        // The oldest goes: it is the one that its server is about to close.
        if idle.count >= plan.idleConnections { idle.removeFirst().close() }
        connection.becomeIdle(until: loop.now + min(plan.keepTimeout, connection.keepLimit))
        idle.append(connection)
        serveWaitingSoon()
        recount()
    }

    /// An idle connection goes on under a request that has waited for it.
    func handOver(_ free: UpstreamConnection, to waiter: UpstreamConnection) {
        idle.removeAll { $0 === free }
        waiter.goOn(with: free)
        recount()
    }

    /// What a request that waits may share, if the upstream speaks HTTP/2.
    func sharedSession(for connection: UpstreamConnection) -> UpstreamSession? {
        guard mayShare, !connection.insistsOnHTTP1, let session = lightestSession() else { return nil }
        if scout === connection { scout = nil }
        return session
    }

    /// Makes the gauges true again. Once a change, on this loop's own cells.
    func recount() {
        let unused = idle.count + owned.count
        let now = (open: sockets - unused, idle: unused, waiting: waiting.count)
        guard now != told, let metrics else { return }
        metrics.count(open: now.open - told.open, idle: now.idle - told.idle, waiting: now.waiting - told.waiting)
        told = now
    }

    /// Counts in another edition's cells from now on; those of the last one may be folded away.
    func count(in next: UpstreamMetrics?) {
        metrics?.count(open: -told.open, idle: -told.idle, waiting: -told.waiting)
        told = (0, 0, 0)
        metrics = next
        recount()
    }

    func discard(_ connection: UpstreamConnection) {
        if connection.owner != nil {
            owned.remove(connection)
        } else if let position = idle.lastIndex(where: { $0 === connection }) {
            idle.remove(at: position)
        }
        connection.close()
        recount()
    }

    /// Idle connections, owned ones too, that lead to such an address.
    private func discardIdle(at isUnfit: (UpstreamAddress) -> Bool) {
        for connection in idle + owned.all {
            if let place = connection.place, isUnfit(place) { discard(connection) }
        }
    }

    func closeIdle() {
        for connection in idle { connection.close() }
        idle.removeAll()
        for connection in owned.all { connection.close() }
        owned = OwnedConnections()
        recount()
        for session in sessions where session.session.openStreams == 0 { session.retire() }
    }

    // MARK: - HTTP/2

    /// A new connection speaks HTTP/2: from now on it belongs to all.
    func shareSocket(of connection: UpstreamConnection) {
        guard let session = UpstreamSession(group: self, place: connection.place) else {
            return connection.lose(Fault(.outOfMemory, retry: .unsent))
        }
        sessions.append(session)
        // The socket stays, under another owner.
        releaseSocket(of: connection, closed: false)
        speaksHTTP2 = true
        if scout === connection { scout = nil }
        // Made because another address was wanted and could not be had: one session an address is enough while it has room.
        for other in sessions where other !== session && other.place === session.place {
            if other.isStalled { other.doubt() } else if other.isUsable { other.retire() }
        }
        connection.share(session)
        // It carries the request that it was made for, and no other.
        if !isCurrent(connection) { session.retire() }
        decide()
    }

    /// No address took a connection that was to become a session; what is there may carry its request all the same.
    func rescue(_ connection: UpstreamConnection) -> Bool {
        guard mayShare, !connection.insistsOnHTTP1, let session = lightestSession() else { return false }
        if scout === connection { scout = nil }
        releaseSocket(of: connection, closed: true)
        take(session, for: connection)
        decide()
        recount()
        return true
    }

    /// Sessions to an address that is left alone take no more requests and end with those that they carry.
    private func retireSessions(at place: UpstreamAddress) {
        for session in sessions where session.place === place { session.retire() }
    }

    /// A new connection speaks HTTP/1.1.
    func learned(http2: Bool, from connection: UpstreamConnection) {
        speaksHTTP2 = http2
        guard scout === connection else { return }
        scout = nil
        decide()
    }

    /// Some requests are answered only over HTTP/1.1 (RFC 9113 §7).
    func insistOnHTTP1() {
        guard plan.protocols == .either, !insistsOnHTTP1 else { return }
        insistsOnHTTP1 = true
        tls = nil
        for session in sessions { session.session.goAway() }
    }

    func sessionEnded(_ session: UpstreamSession) {
        guard let position = sessions.firstIndex(where: { $0 === session }) else { return }
        sessions.remove(at: position)
        if sessions.isEmpty { spare.removeAll() }
        judgeOffers()
        socketClosed()
        recount()
    }

    func closed(_ connection: UpstreamConnection) {
        releaseSocket(of: connection, closed: true)
        stopWaiting(connection)
        if connection.leavesHTTP { offersAwaited.removeAll { $0 === connection } }
        recount()
        guard scout === connection else { return }
        scout = nil
        decide()
    }

    /// The scout's word is known, or the scout is gone: those that waited go on.
    private func decide() {
        defer { recount() }
        let waiting = undecided
        undecided.removeAll()
        for connection in waiting where connection.state == .connecting {
            if mayShare, let session = usableSession(avoiding: connection.avoided) {
                take(session, for: connection)
            } else if mayShare, scout != nil {
                undecided.append(connection)
            } else {
                if mayShare { scout = connection }
                start(connection)
            }
        }
    }

    // MARK: - Connecting

    func start(_ connection: UpstreamConnection) {
        guard admit(connection) else { return }
        guard book.addresses.isEmpty else { return begin(connection) }
        if schedule.isAsking {
            unresolved.removeAll { $0.state == .closed }
            unresolved.append(connection)
        } else {
            // The name server has just said that there is nothing; it is not asked again for every request.
            noteUnreachable(unreachable)
            loop.putOffToEndOfTurn { [unreachable] in connection.lose(unreachable) }
        }
    }

    private func begin(_ connection: UpstreamConnection) {
        // Put off: the user holds the connection before it hears of it.
        loop.putOffToEndOfTurn { [self] in
            guard connection.state == .connecting else { return }
            // What was open to callers when the name was read may be this machine's own by now.
            let places = book.order(at: loop.now, avoiding: connection.avoided).filter { admits($0.address) }
            guard !places.isEmpty else { return connection.lose(Fault(.destinationRefused, retry: .unsent)) }
            connection.dial(places)
        }
    }

    /// An attempt at this place failed, or a fresh connection there was lost before its answer.
    func failed(_ place: UpstreamAddress, _ failure: AddressBook.Failure) {
        if book.failed(place, failure, at: loop.now) {
            metrics?.ejected()
            retireSessions(at: place)
        }
        if failure == .connect { schedule.suspect(endpoint: place.endpoint, at: loop.now) }
    }

    /// What active checks found. Connections to addresses that are avoided now end with their exchanges, as long as another is left.
    func noteUnhealthy(_ found: Set<SocketAddress>) {
        unhealthy = found
        book.noteUnhealthy(found)
        guard book.addresses.contains(where: \.isHealthy) else { return }
        for place in book.addresses where !place.isHealthy { retireSessions(at: place) }
        discardIdle { !$0.isHealthy }
    }

    // MARK: - Names

    private func askForNames() {
        let group = LoopBound(self)
        let loop = self.loop
        for endpoint in schedule.due(at: loop.now) {
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
        if !addresses.isEmpty {
            let gone = book.list(addresses, endpoint: endpoint)
            book.noteUnhealthy(unhealthy)
            if !gone.isEmpty {
                discardIdle { !$0.isListed }
                for place in gone { retireSessions(at: place) }
            }
        }
        schedule.answered(
            endpoint: endpoint, found: !addresses.isEmpty, isKnown: book.addresses.contains { $0.endpoint == endpoint },
            at: loop.now)
        guard !unresolved.isEmpty, !book.addresses.isEmpty || !schedule.isAsking else { return }
        let waiting = unresolved
        unresolved.removeAll()
        if book.addresses.isEmpty { noteUnreachable(unreachable) }
        for connection in waiting where connection.state == .connecting {
            if book.addresses.isEmpty {
                connection.lose(unreachable)
            } else {
                begin(connection)
            }
        }
    }

    private var unreachable: Fault { Fault(hasRefused ? .destinationRefused : .upstreamUnresolvable, retry: .unsent) }
}

/// A value that belongs to one loop, on its way through a mailbox. Only the letter's opening touches it, and that happens on the loop.
struct LoopBound<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
