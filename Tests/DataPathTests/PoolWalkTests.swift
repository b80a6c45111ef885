import Reactor
import Testing

@testable import DataPath

/// Every short sequence of events that can happen to a pool. Whatever their order, no connection is lost, none is used twice, every bound is
/// kept, and no request waits without an end: where everything goes on as it should from any state, each gets its connection.
@Suite struct PoolWalkTests {
    struct House: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bounds: PoolBounds
        var addresses: [UInt8] = [1]
        /// Events that may happen at any time, beside those of the connections that there are.
        var events: [PoolScene.Event]
        /// How often a request that is lost or refused is wanted again, in the middle of the pool's actions.
        var repetitions = 0
        /// Connections at a time, shared ones included.
        var most = 3
        var depth: Int
    }

    static let houses = [
        House(
            testDescription: "sockets of their own", bounds: .http1(2, waiters: 1, idle: 1),
            events: [.want, .wantNew, .wantOnce, .closeIdle, .retire], depth: 8),
        House(
            testDescription: "requests that are wanted again", bounds: .http1(1, waiters: 1, idle: 1),
            events: [.want, .retire], repetitions: 1, depth: 9),
        House(
            testDescription: "owners", bounds: .http1(2, waiters: 1, idle: 1, owned: 1),
            events: [.want, .bind(1), .wantOf(1), .bind(2), .gone(1), .retire], depth: 8),
        House(
            testDescription: "owners beside shared connections", bounds: .either(2, waiters: 1),
            events: [.want, .bind(1), .wantOf(1), .gone(1)], depth: 8),
        House(
            testDescription: "shared connections", bounds: .either(2, waiters: 1),
            events: [.want, .wantUpgrade, .insists, .retire], depth: 8),
        House(
            testDescription: "shared connections of requests that are wanted again", bounds: .either(2, waiters: 1),
            events: [.want, .closeIdle], repetitions: 1, depth: 8),
        House(
            testDescription: "HTTP/2 alone", bounds: .http2(1, waiters: 1),
            events: [.want, .wantUpgrade], repetitions: 1, depth: 8),
        House(
            testDescription: "a name", bounds: .either(2, waiters: 1), addresses: [],
            events: [.want, .wantUpgrade, .found([]), .found([1]), .found([2]), .ages], depth: 9),
        House(
            testDescription: "a name that moves", bounds: .http1(2, waiters: 1, idle: 1), addresses: [],
            events: [.want, .bind(1), .found([1]), .found([2]), .found([1, 2]), .ages, .retire], depth: 8),
        House(
            testDescription: "two addresses", bounds: .either(2, waiters: 1), addresses: [1, 2],
            events: [.want, .wantNew, .unhealthy([1]), .unhealthy([]), .ages], depth: 8),
        House(
            testDescription: "two addresses for requests that are wanted again", bounds: .either(2, waiters: 1),
            addresses: [1, 2], events: [.want], repetitions: 1, depth: 8),
    ]

    @Test(arguments: houses) func nothingIsLostWhateverTheOrder(_ house: House) {
        var seen: Set<[Int]> = []
        var front: [[PoolScene.Event]] = [[]]
        for _ in 1...house.depth {
            var next: [[PoolScene.Event]] = []
            for story in front {
                for event in scene(of: story, in: house).possible(house.events, most: house.most) {
                    let story = story + [event]
                    let scene = scene(of: story, in: house)
                    guard isSound(scene, after: story) else { return }
                    guard seen.insert(scene.fingerprint).inserted else { continue }
                    next.append(story)
                    // From each state everything goes on, with a server that speaks HTTP/2 and with one that does not, and then ends.
                    scene.settle(speaksHTTP2: true)
                    guard isSound(scene, after: story + [.turn]) else { return }
                    let other = self.scene(of: story, in: house)
                    other.settle(speaksHTTP2: house.bounds.protocols == .http2)
                    other.endAll()
                    guard isSound(other, after: story + [.turn, .closeIdle]) else { return }
                    guard other.pool.isUnused, other.pool.sockets == 0 else {
                        Issue.record("something is left after \(story): \(other.log)")
                        return
                    }
                }
            }
            front = next
        }
        #expect(seen.count > 500, "the walk has seen too little to say anything: \(seen.count)")
    }

    private func isSound(_ scene: PoolScene, after story: [PoolScene.Event]) -> Bool {
        let faults = scene.broken + scene.faults
        if !faults.isEmpty { Issue.record("\(faults) after \(story): \(scene.log)") }
        return faults.isEmpty
    }

    private func scene(of story: [PoolScene.Event], in house: House) -> PoolScene {
        let scene = PoolScene(house.bounds, addresses: house.addresses, repetitions: house.repetitions)
        for event in story { scene.take(event) }
        return scene
    }
}

extension PoolScene {
    /// All events that can happen now.
    func possible(_ always: [Event], most: Int) -> [Event] {
        var events: [Event] = pool.agenda.waitsForEndOfTurn ? [.turn] : []
        for event in always {
            switch event {
            case .found where !pool.names.isAsking: break
            case .retire where isRetired, .insists where pool.insistsOnHTTP1: break
            case .gone(let owner) where !live.contains { $0.requester == .caller(owner) }: break
            case .found, .unhealthy, .ages, .retire, .closeIdle, .gone, .insists: events.append(event)
            default: if live.count < most { events.append(event) }
            }
        }
        for peer in live {
            let number = peer.number
            switch peer.seat {
            case .dialing where peer.attempt != nil: events += [.connects(number), .fails(number), .lost(number)]
            case .dialing:
                events += [.http1(number), .lost(number)]
                let speaksHTTP2 = pool.bounds.protocols != .http1 && !peer.wish.onlyHTTP1
                if speaksHTTP2, liveTrunks.count < 2 { events.append(.http2(number)) }
                if pool.book.addresses.count > 1 { events.append(.redials(number)) }
            case .carrying where peer.owner != nil: events += [.done(number), .asked(number), .lost(number)]
            case .carrying, .streaming: events += [.done(number), .lost(number)]
            case .kept where peer.isInHandshake: events += [.rests(number), .lost(number)]
            default: events.append(.lost(number))
            }
        }
        for shared in liveTrunks {
            events.append(.ends(shared.number))
            events.append(shared.hasRoom ? .full(shared.number) : .room(shared.number))
            if shared.upgrades == .unknown { events += [.offers(shared.number), .offersNot(shared.number)] }
            if !shared.isStalled { events.append(.stalls(shared.number)) }
            if !shared.isGoing { events.append(.leaves(shared.number)) }
        }
        return events
    }

    /// Everything goes on as it should until no request waits. A deadline ends no wait here: what depends on one is a fault.
    func settle(speaksHTTP2: Bool) {
        for _ in 0..<80 {
            guard let event = helpfulEvent(speaksHTTP2: speaksHTTP2) else { return }
            take(event)
        }
        reproach(live.filter { $0.isBusy || !$0.seat.isUnused }, "wait without an end")
    }

    private func helpfulEvent(speaksHTTP2: Bool) -> Event? {
        if pool.agenda.waitsForEndOfTurn { return .turn }
        if pool.names.isAsking { return .found([1]) }
        for peer in live {
            switch peer.seat {
            case .dialing where peer.attempt != nil: return .connects(peer.number)
            case .dialing:
                let isHTTP1 = pool.bounds.protocols == .http1 || !speaksHTTP2 || peer.wish.onlyHTTP1
                return isHTTP1 ? .http1(peer.number) : .http2(peer.number)
            case .carrying, .streaming: return .done(peer.number)
            case .kept where peer.isInHandshake: return .rests(peer.number)
            default: break
            }
        }
        for shared in liveTrunks {
            if shared.upgrades == .unknown {
                return speaksHTTP2 ? .offers(shared.number) : .offersNot(shared.number)
            }
            if !shared.hasRoom { return .room(shared.number) }
        }
        let waiting = live.filter { !$0.seat.isUnused }
        if !waiting.isEmpty { reproach(waiting, "wait for nothing") }
        return nil
    }

    /// Everything ends, one after the other.
    func endAll() {
        for peer in peers where peer.seat != .closed { take(.lost(peer.number)) }
        for shared in trunks where !shared.isOver { take(.ends(shared.number)) }
        while pool.agenda.waitsForEndOfTurn { take(.turn) }
        for peer in peers where peer.seat != .closed { take(.lost(peer.number)) }
        take(.turn)
    }

    /// Numbers that tell two states apart, and do not depend on how many connections came before.
    var fingerprint: [Int] {
        func place(_ address: UpstreamAddress?) -> Int {
            pool.book.addresses.firstIndex { $0 === address } ?? (address == nil ? -1 : -2)
        }
        func number(_ shared: Trunk?) -> Int { liveTrunks.firstIndex { $0 === shared } ?? -1 }
        func number(_ peer: Peer?) -> Int { live.firstIndex { $0 === peer } ?? -1 }
        let kept = pool.owned.all.sorted { $0.idleSince < $1.idleSince }
        var print = [
            pool.speaksHTTP2.map { $0 ? 1 : 0 } ?? -1, pool.insistsOnHTTP1 ? 1 : 0, number(pool.negotiating),
            isRetired ? 1 : 0, pool.agenda.waitsForEndOfTurn ? 1 : 0, pool.agenda.servesLater ? 1 : 0,
            pool.names.isAsking ? 1 : 0, pool.names.nextDue <= now ? 1 : 0, pool.sockets,
            place(pool.book.choose(at: now)),
        ]
        for peer in live {
            print += [
                Self.number(peer.seat), place(peer.address), place(peer.attempt), number(peer.shared),
                peer.waitingIndex ?? -1, peer.isInHandshake ? 1 : 0, peer.repetition,
                peer.wish.isNew ? 1 : 0, peer.wish.isOnce ? 1 : 0, peer.wish.leavesHTTP ? 1 : 0,
                peer.wish.onlyHTTP1 ? 1 : 0, place(peer.wish.avoided), peer.binds ? 1 : 0,
            ]
            print += [peer.owner, peer.requester].map { $0.map { $0 == .caller(1) ? 1 : 2 } ?? 0 }
        }
        print += pool.idle.map { number($0) } + [-4] + kept.map { number($0) }
        for shared in liveTrunks {
            print += [
                -3, place(shared.address), shared.hasRoom ? 1 : 0, shared.isGoing ? 1 : 0, shared.isStalled ? 1 : 0,
                shared.isLeaving ? 1 : 0,
                shared.upgrades == .unknown ? 0 : shared.upgrades == .served ? 1 : 2,
            ]
        }
        for address in pool.book.addresses {
            print += [
                address.strikes, address.ejections, address.isHealthy ? 1 : 0,
                now < address.ejectedUntil ? 1 : 0, Int(address.address.host.suffix(1)) ?? 0,
            ]
        }
        return print
    }

    private static func number(_ seat: PoolSeat) -> Int {
        switch seat {
        case .outside: 0
        case .undecided: 1
        case .inLine: 2
        case .unresolved: 3
        case .admitted: 4
        case .dialing: 5
        case .awaitingOffer: 6
        case .refused(let refusal):
            20 + ([.busy, .unresolvable, .noUpgrade, .sharedConnectionGone].firstIndex(of: refusal) ?? -1)
        case .carrying: 8
        case .streaming: 9
        case .idle: 10
        case .kept: 11
        case .ending: 12
        case .closed: 13
        }
    }

    // MARK: - What must always hold

    var faults: [String] {
        var faults: [String] = []
        func check(_ holds: Bool, _ what: String) { if !holds { faults.append(what) } }
        func seated(_ seat: PoolSeat) -> Int { live.count { $0.seat == seat } }
        // Everybody stands where its seat says, and nowhere else.
        check(Set(pool.idle.map(\.number)) == Set(live.filter { $0.seat == .idle }.map(\.number)), "idle")
        check(pool.idle.count == seated(.idle), "idle twice")
        check(pool.owned.count == seated(.kept), "kept")
        check(pool.inLine.count == seated(.inLine), "in line")
        check(pool.undecided.count == seated(.undecided), "undecided")
        check(pool.unresolved.count == seated(.unresolved), "unresolved")
        check(pool.offersAwaited.count == seated(.awaitingOffer), "awaiting an offer")
        check(pool.count == live.count && seated(.outside) == 0, "\(pool.count) of \(live.count) connections")
        check(pool.shared.count == liveTrunks.count, "shared connections")
        check(seated(.ending) == 0, "one that ends is left open")
        // The numbers follow.
        check(pool.sockets == live.count { $0.seat.holdsSocket } + liveTrunks.count, "sockets")
        for address in pool.book.addresses {
            let here = live.count { $0.address === address && $0.seat.isInFlight }
            check(address.inFlight == here + live.count { $0.attempt === address }, "in flight")
        }
        // Bounds.
        let open = live.count { $0.socket != nil || $0.attempt != nil } + liveTrunks.count
        check(open <= pool.sockets && pool.sockets <= pool.bounds.sockets, "too many sockets")
        check(pool.inLine.count <= pool.bounds.waiters && pool.idle.count <= pool.bounds.idle, "too many")
        check(pool.owned.count <= pool.bounds.owned, "too many owned connections")
        // Nothing that is left is used again.
        check(!isRetired || pool.idle.isEmpty && pool.owned.count == 0, "a retired upstream keeps a connection")
        for peer in live where peer.seat == .idle || peer.seat == .kept {
            check(peer.address?.isListed == true, "\(peer) leads where the name does not")
        }
        for shared in liveTrunks where shared.isLeaving { check(shared.isGoing, "\(shared) was not told to end") }
        // None is used twice.
        let sockets = live.compactMap(\.socket) + liveTrunks.map(\.socket)
        check(Set(sockets).count == sockets.count, "a socket has two owners")
        for peer in live {
            let carries = peer.seat == .carrying || peer.seat == .streaming
            check(peer.isBusy == carries, "\(peer) is \(peer.seat)")
            check((peer.shared != nil) == (peer.seat == .streaming), "\(peer) and its shared connection")
            check(peer.seat != .idle || peer.owner == nil, "an owned connection is anybody's")
        }
        for peer in live where peer.seat == .kept {
            check(
                peer.owner != nil && live.count { $0.seat == .kept && $0.owner == peer.owner } == 1,
                "\(peer) and its owner")
        }
        for peer in live where peer.isBusy {
            check(peer.owner == nil || peer.owner == peer.requester, "\(peer) serves another caller than its owner")
        }
        return faults + lost(seated)
    }

    /// Whoever waits waits for something that comes.
    private func lost(_ seated: (PoolSeat) -> Int) -> [String] {
        var faults: [String] = []
        let late = live.contains {
            if case .refused = $0.seat { true } else { $0.seat == .admitted }
        }
        if late, !pool.agenda.waitsForEndOfTurn { faults.append("nobody ends the turn for one") }
        if seated(.undecided) > 0 {
            let asks: [PoolSeat] = [.inLine, .unresolved, .admitted, .dialing]
            let negotiating = pool.negotiating?.seat
            if negotiating.map({ asks.contains($0) || $0 == .refused(.busy) || $0 == .refused(.unresolvable) }) != true
            {
                faults.append("nobody asks what the upstream speaks")
            }
        }
        if seated(.inLine) > 0, !pool.agenda.waitsForEndOfTurn {
            if pool.sockets < pool.bounds.sockets { faults.append("one waits although there is room") }
            if !pool.idle.isEmpty { faults.append("one waits beside an idle connection") }
            if pool.owned.idlest(sparing: true) != nil { faults.append("one waits beside an owned connection at rest") }
            if pool.inLine.first?.wish.onlyHTTP1 == false, mayShare, pool.shared.lightest(at: now) != nil {
                faults.append("one waits beside a shared connection that has room")
            }
        }
        if seated(.unresolved) > 0, !pool.names.isAsking { faults.append("one waits for a name that is not asked for") }
        if seated(.awaitingOffer) > 0, !liveTrunks.contains(where: { $0.upgrades == .unknown }) {
            faults.append("one waits for a word that has come")
        }
        return faults
    }

    private var mayShare: Bool {
        switch pool.bounds.protocols {
        case .http1, .other: false
        case .http2: true
        case .either: !pool.insistsOnHTTP1 && pool.speaksHTTP2 != false
        }
    }
}
