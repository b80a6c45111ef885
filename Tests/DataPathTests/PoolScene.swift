import Reactor

@testable import DataPath

/// A pool and an interpreter that opens nothing: connections, shared ones too, have numbers, everything that is done to them is written
/// down, and so is every action that could not be done to them (`broken`).
final class PoolScene {
    final class Peer: PoolMember, CustomStringConvertible {
        let number: Int
        var seat = PoolSeat.outside
        var address: UpstreamAddress?
        var wish = UpstreamWish()
        var waitingIndex: Int?
        var owner: UpstreamOwner?
        var isInHandshake = false
        var idleSince: UInt64 = 0
        var isStale = false

        // The interpreter's view of the connection.
        /// The caller whose request the connection carries or waits for, and whether that request authenticates the connection.
        var requester: UpstreamOwner?
        var binds = false
        /// How often the request was wanted again after a loss.
        var repetition = 0
        var socket: Int?
        var attempt: UpstreamAddress?
        var shared: Trunk?
        var isBusy = false

        init(_ number: Int) { self.number = number }
        /// Each idle connection is too old for a request that cannot be sent again.
        func isFresh(forRequestOnce: Bool) -> Bool { !isStale && !forRequestOnce }
        var description: String { "\(number)" }
    }

    final class Trunk: SharedConnection, CustomStringConvertible {
        let number: Int
        let address: UpstreamAddress?
        let socket: Int
        var isLeaving = false
        var hasRoom = true
        /// A GOAWAY was sent or has come.
        var isGoing = false
        var isOver = false
        var isStalled = false
        var load = 0
        var upgrades = UpgradeOffer.unknown

        init(_ number: Int, at address: UpstreamAddress?, socket: Int) {
            (self.number, self.address, self.socket) = (number, address, socket)
        }
        var isUsable: Bool { !isOver && !isGoing && hasRoom && !isStalled && address?.isListed != false }
        var description: String { "s\(number)" }
    }

    /// Things that may happen; numbers are those of connections, shared or not.
    enum Event: Hashable {
        case want
        case wantNew
        case wantOnce
        /// A request that wants to leave HTTP.
        case wantUpgrade
        /// A caller's request that authenticates its connection, and one that need not.
        case bind(UInt64)
        case wantOf(UInt64)
        case turn
        case connects(Int)
        case fails(Int)
        case redials(Int)
        case http1(Int)
        case http2(Int)
        case done(Int)
        /// The same, and its owner's authentication goes on with the next request.
        case asked(Int)
        case rests(Int)
        /// The caller is gone, with every request of it.
        case gone(UInt64)
        case lost(Int)
        case offers(Int)
        case offersNot(Int)
        case full(Int)
        case room(Int)
        case stalls(Int)
        /// The peer of a shared connection sends GOAWAY.
        case leaves(Int)
        case ends(Int)
        /// A request was answered with HTTP_1_1_REQUIRED.
        case insists
        /// The name server's answer.
        case found([UInt8])
        /// Enough time for an answer of the name server to be out of date, and for an ejection to end.
        case ages
        case unhealthy([UInt8])
        case retire
        case closeIdle
    }

    private(set) var pool: UpstreamPool<Peer, Trunk>
    private(set) var peers: [Peer] = []
    private(set) var trunks: [Trunk] = []
    /// Everything that was done, in order.
    private(set) var log: [String] = []
    /// Actions that no interpreter could do.
    private(set) var broken: [String] = []
    private(set) var isRetired = false
    private var sockets = 0
    private(set) var now: UInt64 = 1_000_000_000_000
    private let isNamed: Bool
    private let repetitions: Int

    /// - Parameters:
    ///   - addresses: last octets; empty: the upstream has a name, which nobody has resolved yet.
    ///   - repetitions: how often a request that is lost or refused is wanted again, which happens in the middle of the pool's actions.
    init(_ bounds: PoolBounds, addresses: [UInt8] = [1], repetitions: Int = 0) {
        self.repetitions = repetitions
        isNamed = addresses.isEmpty
        pool = UpstreamPool(bounds, names: isNamed ? [0] : [])
        if !isNamed { pool.list(addresses.map(Self.address), endpoint: 0) }
    }

    static func address(_ last: UInt8) -> SocketAddress {
        guard let address = SocketAddress(host: "192.0.2.\(last)", port: 9001) else { preconditionFailure("\(last)") }
        return address
    }

    var live: [Peer] { peers.filter { $0.seat != .closed } }
    var liveTrunks: [Trunk] { trunks.filter { !$0.isOver } }

    func take(_ event: Event) {
        switch event {
        case .want: want(UpstreamWish())
        case .wantNew: want(UpstreamWish(isNew: true))
        case .wantOnce: want(UpstreamWish(isOnce: true))
        case .wantUpgrade: want(UpstreamWish(leavesHTTP: true))
        case .bind(let owner): want(UpstreamWish(), of: .caller(owner), binds: true)
        case .wantOf(let owner): want(UpstreamWish(), of: .caller(owner))
        case .gone(let owner):
            for peer in live where peer.requester == .caller(owner) && peer.seat != .kept { close(peer) }
            pool.closeOwned(by: .caller(owner))
        case .turn: pool.turnEnds()
        case .connects(let number): connect(peers[number])
        case .fails(let number): fail(peers[number])
        case .redials(let number):
            peers[number].socket = nil
            if let address = peers[number].address { _ = pool.failed(address, .connect, at: now) }
            pool.redials(peers[number])
            attempt(peers[number], pool.book.addresses.last)
        case .http1(let number):
            pool.ready(peers[number])
            serve(peers[number])
        case .http2(let number): share(peers[number])
        case .done(let number): finish(peers[number], isInHandshake: false)
        case .asked(let number): finish(peers[number], isInHandshake: true)
        case .rests(let number):
            peers[number].isInHandshake = false
            pool.serveLine()
        case .lost(let number): lose(peers[number])
        case .offers(let number): change(trunks[number]) { $0.upgrades = .served }
        case .offersNot(let number): change(trunks[number]) { $0.upgrades = .missing }
        case .full(let number): change(trunks[number]) { $0.hasRoom = false }
        case .room(let number): change(trunks[number]) { $0.hasRoom = true }
        case .stalls(let number): trunks[number].isStalled = true
        case .leaves(let number):
            trunks[number].isGoing = true
            endIfUnused(trunks[number])
        case .ends(let number): end(trunks[number])
        case .insists:
            if pool.insistOnHTTP1() { for shared in liveTrunks { shared.isGoing = true } }
        case .ages: now += 31_000_000_000
        case .found(let last):
            now += 1_000_000_000
            pool.resolved(last.map(Self.address), endpoint: 0, at: now)
        case .unhealthy(let last): pool.noteUnhealthy(Set(last.map(Self.address)))
        case .retire:
            isRetired = true
            pool.retire()
        case .closeIdle: pool.closeIdle()
        }
        drain()
    }

    private func drain() {
        while let action = pool.next(at: now) { perform(action) }
    }

    /// Writes down that these requests are not served.
    func reproach(_ peers: [Peer], _ what: String) { broken.append("\(peers.map { "\($0) (\($0.seat))" }) \(what)") }

    private func check(_ holds: Bool, _ what: @autoclosure () -> String) { if !holds { broken.append(what()) } }

    // MARK: - A request

    private func want(_ wish: UpstreamWish, of owner: UpstreamOwner? = nil, binds: Bool = false, repetition: Int = 0) {
        if isNamed { _ = pool.names.due(at: now) }
        if !wish.isNew, let idle = pool.takeIdle(once: wish.isOnce, of: owner, at: now) {
            check(
                idle.seat == .carrying && idle.isFresh(forRequestOnce: wish.isOnce) || idle.owner != nil,
                "\(idle) is stale")
            (idle.requester, idle.binds, idle.repetition) = (owner, binds, repetition)
            log.append("use \(idle)")
            return serve(idle)
        }
        let peer = Peer(peers.count)
        peers.append(peer)
        (peer.requester, peer.binds, peer.repetition) = (owner, binds, repetition)
        peer.wish = wish
        peer.wish.onlyHTTP1 = binds && pool.bounds.protocols == .either
        if let shared = pool.enter(peer, at: now) { stream(peer, on: shared) }
    }

    private func serve(_ peer: Peer) {
        check(peer.owner == nil || peer.owner == peer.requester, "\(peer) belongs to another caller")
        check(!peer.isBusy && (peer.socket == nil) != (peer.shared == nil), "\(peer) is used twice, or leads nowhere")
        check(
            !peer.binds || peer.shared == nil || pool.bounds.protocols == .http2,
            "\(peer) is authenticated on a shared connection")
        peer.isBusy = true
        if peer.owner == nil, peer.binds { peer.owner = peer.requester }
    }

    private func stream(_ peer: Peer, on shared: Trunk) {
        log.append("\(peer) on \(shared)")
        check(!shared.isOver && peer.shared == nil, "\(shared) is over, or \(peer) has another one")
        check(!shared.isGoing && !shared.isLeaving, "\(shared) has been left")
        check(!peer.wish.leavesHTTP || shared.upgrades == .served, "\(shared) does not serve the upgrade")
        shared.load += 1
        peer.shared = shared
        serve(peer)
    }

    private func finish(_ peer: Peer, isInHandshake: Bool) {
        peer.isBusy = false
        // `mayBeReused` says the same.
        guard peer.shared == nil, peer.address?.isListed == true else { return close(peer) }
        peer.isInHandshake = isInHandshake && peer.owner != nil
        peer.idleSince = UInt64(log.count)
        if !pool.put(peer) { close(peer) }
    }

    /// The user of the connection hears of its loss, and may want another one at once.
    private func lose(_ peer: Peer) {
        let isWanted = peer.isBusy || !peer.seat.isUnused
        close(peer)
        guard isWanted, peer.repetition < repetitions else { return }
        want(
            UpstreamWish(isNew: true, leavesHTTP: peer.wish.leavesHTTP, avoided: peer.address), of: peer.requester,
            binds: peer.binds, repetition: peer.repetition + 1)
    }

    private func close(_ peer: Peer) {
        guard peer.seat != .closed else { return }
        attempt(peer, nil)
        peer.socket = nil
        peer.isBusy = false
        let shared = peer.shared.take()
        pool.closed(peer)
        log.append("\(peer) closed")
        guard let shared else { return }
        shared.load -= 1
        pool.changed(shared)
        endIfUnused(shared)
    }

    // MARK: - Connecting

    private func attempt(_ peer: Peer, _ address: UpstreamAddress?) {
        peer.attempt?.inFlight -= 1
        peer.attempt = address
        address?.inFlight += 1
    }

    private func connect(_ peer: Peer) {
        guard let address = peer.attempt else { return }
        attempt(peer, nil)
        peer.socket = sockets
        sockets += 1
        pool.dialled(peer, to: address)
    }

    private func fail(_ peer: Peer) {
        guard let address = peer.attempt else { return }
        _ = pool.failed(address, .connect, at: now)
        attempt(peer, nil)
        if !pool.rescue(peer, at: now) { lose(peer) }
    }

    private func share(_ peer: Peer) {
        guard let socket = peer.socket.take() else { return }
        let shared = Trunk(trunks.count, at: peer.address, socket: socket)
        trunks.append(shared)
        pool.opened(shared, by: peer)
        if peer.wish.leavesHTTP { pool.awaitOffer(peer) } else { stream(peer, on: shared) }
    }

    // MARK: - Shared connections

    private func change(_ shared: Trunk, _ body: (Trunk) -> Void) {
        body(shared)
        pool.changed(shared)
    }

    private func end(_ shared: Trunk) {
        guard !shared.isOver else { return }
        shared.isOver = true
        log.append("\(shared) ends")
        for peer in live where peer.shared === shared { lose(peer) }
        pool.ended(shared)
    }

    private func endIfUnused(_ shared: Trunk) {
        if shared.load == 0, shared.isGoing || shared.address?.isListed == false { end(shared) }
    }

    // MARK: - Actions

    private func perform(_ action: PoolAction<Peer, Trunk>) {
        switch action {
        case .dial(let peer, let addresses):
            log.append("dial \(peer) \(addresses.map { "\($0.address.host.suffix(1))" }.joined())")
            check(
                peer.seat == .dialing && peer.socket == nil && peer.attempt == nil && peer.shared == nil
                    && !peer.isBusy,
                "\(peer) is dialled as \(peer.seat)")
            if addresses.isEmpty { lose(peer) } else { attempt(peer, addresses[0]) }
        case .share(let shared, let peer): stream(peer, on: shared)
        case .handOver(let free, let peer):
            log.append("\(peer) with \(free)")
            check(free.owner == nil && !free.isBusy && free.socket != nil && peer.socket == nil, "\(free) is not free")
            check(!peer.wish.isNew && free.isFresh(forRequestOnce: peer.wish.isOnce), "\(free) is not fit for \(peer)")
            peer.socket = free.socket.take()
            close(free)
            serve(peer)
        case .refuse(let peer, let refusal):
            log.append("refuse \(peer) \(refusal)")
            lose(peer)
        case .close(let peer):
            check(!peer.isBusy, "\(peer) is closed under a request")
            close(peer)
        case .retire(let shared), .doubt(let shared):
            check(shared.isLeaving, "\(shared) may still be offered")
            shared.isGoing = true
            endIfUnused(shared)
        }
    }
}

extension PoolSeat {
    /// No request has the connection.
    var isUnused: Bool {
        switch self {
        case .idle, .kept, .ending, .closed: true
        default: false
        }
    }
}
