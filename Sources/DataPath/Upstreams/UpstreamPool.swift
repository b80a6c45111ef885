internal import Reactor

/// The connections of one loop to one upstream: a pure machine. Its events are its methods, which say at once what can be said at once;
/// what else is to be done it tells one action at a time (`next`). It opens and closes nothing, and time comes in as a parameter.
/// `UpstreamGroup` is its interpreter.
///
/// ```
/// outside ──▶ undecided, inLine, unresolved ──▶ admitted ──▶ dialing ──▶ carrying ◀──▶ idle, kept ──▶ ending
///                 └──▶ streaming ◀── awaitingOffer ◀────────────┘     (refused, closed: from everywhere)
/// ```
///
/// - **Choice.** Where the next connection goes is the `AddressBook`'s word; of those that are idle there the last one used is the first
///   one taken, so that few stay warm and the rest expire.
/// - **Negotiation.** On an upstream that may speak HTTP/2 one connection finds out, and the others wait for its word: a burst on a
///   cold upstream is one connection.
/// - **Bounds.** Beyond the limit of sockets an idle connection gives way, or the request waits in line, or it is refused.
struct UpstreamPool<Member: PoolMember, Shared: SharedConnection> {
    typealias Action = PoolAction<Member, Shared>

    let bounds: PoolBounds
    private(set) var book = AddressBook()
    /// When names are resolved, by whoever asks it; the answers come to `resolved`.
    var names: NameSchedule

    /// Connections that are not closed, streams of shared ones too.
    private(set) var count = 0
    /// Sockets of connections; each shared one has one more.
    private var heldSockets = 0
    private(set) var idle: [Member] = []
    private(set) var owned = OwnedConnections<Member>()
    private(set) var shared = SharedConnections<Shared>()
    /// No configuration leads here any more: connections end with their exchanges.
    private var isRetired = false

    // Requests without a connection. A connection stands in one line at most, which its seat names.
    private(set) var inLine = WaitingLine<Member>()
    private(set) var undecided = WaitingLine<Member>()
    private(set) var unresolved = WaitingLine<Member>()
    private(set) var offersAwaited = WaitingLine<Member>()

    /// Whether the last connection turned out to speak HTTP/2; nil before there was one.
    private(set) var speaksHTTP2: Bool?
    private(set) var insistsOnHTTP1 = false
    /// The connection that will be shared, or tell that none can be.
    private(set) var negotiating: Member?

    private(set) var agenda = PoolAgenda<Member, Shared>()

    /// - Parameter names: endpoints that are names.
    init(_ bounds: PoolBounds, names: [Int] = []) {
        self.bounds = bounds
        self.names = NameSchedule(endpoints: names)
    }

    /// Open or being opened.
    var sockets: Int { heldSockets + shared.count }
    /// No connection is left, shared ones included.
    var isUnused: Bool { count == 0 && shared.isEmpty }
    private var isFull: Bool { sockets >= bounds.sockets }

    // MARK: - States

    /// The one place where a connection's state changes.
    private mutating func move(_ member: Member, to seat: PoolSeat) {
        let before = member.seat
        member.seat = seat
        if before.isInFlight != seat.isInFlight { member.address?.inFlight += seat.isInFlight ? 1 : -1 }
        guard before.holdsSocket != seat.holdsSocket else { return }
        heldSockets += seat.holdsSocket ? 1 : -1
        if !seat.holdsSocket { serveLine() }
    }

    /// The one place where a connection's address changes.
    private func lead(_ member: Member, to address: UpstreamAddress?) {
        if member.seat.isInFlight {
            member.address?.inFlight -= 1
            address?.inFlight += 1
        }
        member.address = address
    }

    private mutating func end(_ member: Member) {
        move(member, to: .ending)
        agenda.end(member)
    }

    private mutating func putOff(_ member: Member, _ seat: PoolSeat) {
        move(member, to: seat)
        agenda.putOff(member)
    }

    /// A socket, a connection or room on a shared one became free.
    mutating func serveLine() {
        if !inLine.isEmpty { agenda.serveLater() }
    }

    private mutating func judgeOffers() { agenda.judgeOffers(offersAwaited.count) }

    private mutating func decide() { agenda.decide(undecided.count) }

    /// The protocol is known, or the connection that negotiates it is gone: those that waited go on.
    private mutating func dismiss(_ member: Member) {
        guard negotiating === member else { return }
        negotiating = nil
        decide()
    }

    // MARK: - A request comes

    /// A request takes an idle connection over.
    /// - Parameters:
    ///   - once: the request cannot be sent again when the connection turns out to be stale.
    ///   - owner: whose connection may be used, if there is one.
    /// - Returns: nil where none is fit.
    mutating func takeIdle(once: Bool, of owner: UpstreamOwner?, at now: UInt64) -> Member? {
        if let owner, let member = owned.take(owner) {
            let isFit = !owner.authenticatesEachRequest || member.isFresh(forRequestOnce: once)
            if isFit { move(member, to: .carrying) } else { end(member) }
            return isFit ? member : nil
        }
        guard !idle.isEmpty else { return nil }
        guard book.addresses.count > 1 else {
            guard idle[idle.count - 1].isFresh(forRequestOnce: once) else { return nil }
            let last = idle.removeLast()
            move(last, to: .carrying)
            return last
        }
        guard let best = book.choose(at: now), let position = idle.lastIndex(where: { $0.address === best }),
            idle[position].isFresh(forRequestOnce: once)
        else { return nil }
        book.chosen(best)
        let member = idle.remove(at: position)
        move(member, to: .carrying)
        return member
    }

    /// A request brings a connection that is to be made.
    /// - Returns: the shared connection that it goes out on; nil: `next` will say what becomes of it.
    mutating func enter(_ member: Member, at now: UInt64) -> Shared? {
        count += 1
        guard !member.wish.onlyHTTP1 else {
            start(member)
            return nil
        }
        if member.wish.leavesHTTP, mayShare, let connection = shared.lightest(at: now) {
            return join(connection, member) ? connection : nil
        }
        return admit(member, at: now)
    }

    private mutating func admit(_ member: Member, at now: UInt64) -> Shared? {
        if mayShare {
            if let connection = usable(avoiding: member.wish.avoided, at: now) {
                return join(connection, member) ? connection : nil
            }
            guard negotiating == nil else {
                move(member, to: .undecided)
                undecided.append(member)
                return nil
            }
            negotiating = member
        }
        start(member)
        return nil
    }

    /// The connection may be made now, or waits, or is refused.
    private mutating func start(_ member: Member) {
        // An idle connection leads elsewhere, or its use was refused: this one is wanted now. Between two messages of a handshake a
        // connection is closed only for one that cannot wait.
        if isFull {
            if idle.isEmpty { endIdlestOwned(sparing: inLine.count < bounds.waiters) } else { end(idle.removeFirst()) }
        }
        if isFull {
            endUnusedShared()
            guard inLine.count < bounds.waiters else { return putOff(member, .refused(.busy)) }
            move(member, to: .inLine)
            inLine.append(member)
        } else if !book.addresses.isEmpty {
            putOff(member, .admitted)
        } else if names.isAsking {
            move(member, to: .unresolved)
            unresolved.append(member)
        } else {
            // The name server has just said that there is nothing; it is not asked again for every request.
            putOff(member, .refused(.unresolvable))
        }
    }

    /// - Parameter sparing: not by ending a handshake between two messages.
    private mutating func endIdlestOwned(sparing: Bool) {
        guard let idlest = owned.idlest(sparing: sparing) else { return }
        owned.remove(idlest)
        end(idlest)
    }

    /// A shared connection without requests gives way to a request that it cannot carry, unless others wait for its peer's offer.
    private mutating func endUnusedShared() {
        if offersAwaited.isEmpty, let connection = shared.unused { agenda.retire(connection) }
    }

    // MARK: - A connection is made

    /// The socket of the connection is connected.
    mutating func dialled(_ member: Member, to address: UpstreamAddress) { lead(member, to: address) }

    /// The address took the connection and then did not do; others are tried.
    mutating func redials(_ member: Member) { lead(member, to: nil) }

    /// The new connection is ready, and speaks HTTP/1.1.
    mutating func ready(_ member: Member) {
        move(member, to: .carrying)
        guard !member.wish.onlyHTTP1 else { return }
        speaksHTTP2 = false
        dismiss(member)
    }

    /// The new connection speaks HTTP/2: its socket is the shared connection's from now on, and it is the first stream there.
    mutating func opened(_ connection: Shared, by member: Member) {
        // Made because another address was wanted and could not be had: one an address is enough while it has room.
        for other in shared.all where other.address === connection.address {
            let isStalled = other.isStalled
            if isStalled || other.isUsable { agenda.retire(other, isStalled: isStalled) }
        }
        shared.append(connection)
        speaksHTTP2 = true
        move(member, to: .streaming)
        if negotiating === member { negotiating = nil }
        decide()
    }

    /// The connection waits for what shared connections offer, although it may have begun one itself.
    mutating func awaitOffer(_ member: Member) {
        move(member, to: .awaitingOffer)
        offersAwaited.append(member)
        judgeOffers()
    }

    /// No address took a connection that was to be shared; what is there may carry its request all the same.
    mutating func rescue(_ member: Member, at now: UInt64) -> Bool {
        guard mayShare, !member.wish.onlyHTTP1, shared.lightest(at: now) != nil else { return false }
        dismiss(member)
        awaitOffer(member)
        return true
    }

    // MARK: - A connection is over, or a request

    /// The request is over, and the connection may carry another one.
    /// - Returns: false when it is to be closed.
    mutating func put(_ member: Member) -> Bool {
        guard !isRetired else { return false }
        if let owner = member.owner {
            if owned.count >= bounds.owned { endIdlestOwned(sparing: false) }
            if let before = owned.put(member, of: owner) { end(before) }
            move(member, to: .kept)
        } else {
            // The oldest goes: it is the one that its server is about to close.
            if idle.count >= bounds.idle { end(idle.removeFirst()) }
            idle.append(member)
            move(member, to: .idle)
        }
        serveLine()
        return true
    }

    /// The connection is closed, whatever it was.
    mutating func closed(_ member: Member) {
        switch member.seat {
        case .outside, .closed: return
        case .undecided: undecided.remove(member)
        case .inLine: inLine.remove(member)
        case .unresolved: unresolved.remove(member)
        case .awaitingOffer: offersAwaited.remove(member)
        case .idle: if let position = idle.lastIndex(where: { $0 === member }) { idle.remove(at: position) }
        case .kept: owned.remove(member)
        case .admitted, .dialing, .refused, .carrying, .streaming, .ending: break
        }
        move(member, to: .closed)
        count -= 1
        dismiss(member)
        serveLine()
    }

    /// The owner is gone.
    mutating func closeOwned(by owner: UpstreamOwner) {
        if let member = owned.take(owner) { end(member) }
    }

    /// Idle connections end, and shared ones without requests.
    mutating func closeIdle() {
        endIdle { _ in true }
        for connection in shared.all where connection.load == 0 { agenda.retire(connection) }
    }

    mutating func retire() {
        isRetired = true
        closeIdle()
        for connection in shared.all where connection.load > 0 { agenda.retire(connection) }
    }

    private mutating func endIdle(where isUnfit: (Member) -> Bool) {
        for member in idle where isUnfit(member) { end(member) }
        idle.removeAll { $0.seat == .ending }
        for member in owned.all where isUnfit(member) {
            owned.remove(member)
            end(member)
        }
    }

    // MARK: - Shared connections

    private var mayShare: Bool {
        switch bounds.protocols {
        case .http1, .other: false
        case .http2: true
        case .either: bounds.usesTLS && !insistsOnHTTP1 && speaksHTTP2 != false
        }
    }

    /// Some requests are answered only over HTTP/1.1 (RFC 9113 §7).
    /// - Returns: whether that is news.
    mutating func insistOnHTTP1() -> Bool {
        guard bounds.protocols == .either, !insistsOnHTTP1 else { return false }
        insistsOnHTTP1 = true
        return true
    }

    /// The shared connection has more room, or its peer's first SETTINGS have come.
    mutating func changed(_ connection: Shared) {
        serveLine()
        if !offersAwaited.isEmpty, connection.upgrades != .unknown { judgeOffers() }
    }

    mutating func ended(_ connection: Shared) {
        guard shared.remove(connection) else { return }
        judgeOffers()
        serveLine()
    }

    /// The request goes out on the shared connection, if it need not hear first what its peer offers.
    /// - Returns: false when it waits for that, or is refused, or gets a connection of its own.
    private mutating func join(_ connection: Shared, _ member: Member) -> Bool {
        if member.wish.leavesHTTP {
            switch connection.upgrades {
            case .unknown:
                move(member, to: .awaitingOffer)
                offersAwaited.append(member)
                return false
            case .missing:
                lead(member, to: nil)
                if bounds.protocols == .http2 {
                    putOff(member, .refused(.noUpgrade))
                } else {
                    member.wish.onlyHTTP1 = true
                    start(member)
                }
                return false
            case .served: break
            }
        }
        if member.address == nil { lead(member, to: connection.address) }
        move(member, to: .streaming)
        return true
    }

    /// The shared connection for one more request, where the address book would have it; nil when a connection is to be made first.
    private mutating func usable(avoiding avoided: UpstreamAddress?, at now: UInt64) -> Shared? {
        guard book.addresses.count > 1, let best = book.choose(at: now, avoiding: avoided) else {
            return shared.lightest(at: now)
        }
        if let connection = shared.lightest(at: now, on: best) {
            book.chosen(best)
            return connection
        }
        // Nothing leads there yet: one connection goes and makes a way. The others do not wait for it while there is another.
        guard negotiating != nil || isFull || !best.isAvailable(at: now) else { return nil }
        return shared.lightest(at: now)
    }

    // MARK: - Addresses

    /// Addresses that need no name server.
    mutating func list(_ addresses: [SocketAddress], endpoint: Int) { _ = book.list(addresses, endpoint: endpoint) }

    /// The name server's answer; empty for none.
    mutating func resolved(_ addresses: [SocketAddress], endpoint: Int, at now: UInt64) {
        if !addresses.isEmpty {
            let gone = book.list(addresses, endpoint: endpoint)
            if !gone.isEmpty { endIdle { $0.address?.isListed == false } }
            for address in gone { retireShared(at: address) }
        }
        names.answered(
            endpoint: endpoint, found: !addresses.isEmpty, isKnown: book.addresses.contains { $0.endpoint == endpoint },
            at: now)
        if !book.addresses.isEmpty || !names.isAsking { agenda.goOnResolved(unresolved.count) }
    }

    /// An attempt at this address failed, or a fresh connection there was lost before its answer.
    /// - Returns: whether the address is left alone for it.
    mutating func failed(_ address: UpstreamAddress, _ failure: AddressBook.Failure, at now: UInt64) -> Bool {
        let isEjected = book.failed(address, failure, at: now)
        if isEjected { retireShared(at: address) }
        if failure == .connect { names.suspect(endpoint: address.endpoint, at: now) }
        return isEjected
    }

    /// Active checks have found these unfit. Connections to them end with their exchanges, as long as another address is left.
    mutating func noteUnhealthy(_ found: Set<SocketAddress>) {
        book.noteUnhealthy(found)
        guard book.addresses.contains(where: \.isHealthy) else { return }
        for address in book.addresses where !address.isHealthy { retireShared(at: address) }
        endIdle { $0.address?.isHealthy == false }
    }

    private mutating func retireShared(at address: UpstreamAddress) {
        for connection in shared.all where connection.address === address { agenda.retire(connection) }
    }

    // MARK: - What is to be done

    mutating func turnEnds() { agenda.turnEnds() }

    /// The next thing to do; nil: nothing, or nothing before the end of the turn. Each is told out of the state of now, for what was
    /// done before it may have changed that.
    mutating func next(at now: UInt64) -> Action? {
        repeat {
            agenda.isDue = false
            if let action = promptAction(at: now) ?? lateAction(at: now) { return action }
            // On the way to nothing something may have come about.
        } while agenda.isDue
        return nil
    }

    private mutating func promptAction(at now: UInt64) -> Action? {
        while let member = agenda.nextEnding() {
            if member.seat == .ending { return .close(member) }
        }
        if let action = agenda.nextRetiring() { return action }
        while agenda.undecided > 0, let member = undecided.popFirst() {
            agenda.undecided -= 1
            if let connection = admit(member, at: now) { return .share(connection, member) }
        }
        agenda.undecided = 0
        while agenda.offersAwaited > 0, let member = offersAwaited.popFirst() {
            agenda.offersAwaited -= 1
            guard let connection = shared.lightest(at: now) else { return refuse(member, .sharedConnectionGone) }
            if join(connection, member) { return .share(connection, member) }
        }
        agenda.offersAwaited = 0
        while agenda.unresolved > 0, let member = unresolved.popFirst() {
            agenda.unresolved -= 1
            guard !book.addresses.isEmpty else { return refuse(member, .unresolvable) }
            putOff(member, .admitted)
        }
        return nil
    }

    private mutating func refuse(_ member: Member, _ refusal: PoolRefusal) -> Action {
        move(member, to: .refused(refusal))
        return .refuse(member, refusal)
    }

    private mutating func lateAction(at now: UInt64) -> Action? {
        while let member = agenda.nextTurning() {
            switch member.seat {
            case .admitted:
                move(member, to: .dialing)
                return .dial(member, book.order(at: now, avoiding: member.wish.avoided, wanting: member.wish.wanted))
            case .refused(let refusal): return .refuse(member, refusal)
            // Closed meanwhile.
            default: break
            }
        }
        // First come, first served.
        while agenda.serves, let first = inLine.first {
            if mayShare, !first.wish.onlyHTTP1, let connection = shared.lightest(at: now) {
                inLine.remove(first)
                dismiss(first)
                if join(connection, first) { return .share(connection, first) }
            } else if !first.wish.isNew, let free = idle.last, free.isFresh(forRequestOnce: first.wish.isOnce) {
                inLine.remove(first)
                idle.removeLast()
                lead(first, to: free.address)
                move(first, to: .carrying)
                dismiss(first)
                move(free, to: .ending)
                return .handOver(free, to: first)
            } else if !isFull || !idle.isEmpty || owned.idlest(sparing: true) != nil {
                inLine.remove(first)
                start(first)
            } else {
                endUnusedShared()
                break
            }
        }
        agenda.serves = false
        return nil
    }
}
