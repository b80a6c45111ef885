import Testing

@testable import Gateway

/// Every short sequence of events that can happen to a pool. Whatever their order, no connection is lost, none is used twice, and every
/// bound is kept.
@Suite struct PoolWalkTests {
    struct House: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bounds: PoolBounds
        var addresses: [UInt8] = [1]
        /// Events that may happen at any time, beside those of the connections that there are.
        var events: [PoolScene.Event]
        /// Connections and sessions at a time.
        var most = 3
        var depth: Int
    }

    static let houses = [
        House(
            testDescription: "sockets of their own", bounds: .http1(2, waiters: 1, idle: 1),
            events: [.want, .wantNew, .closeIdle], depth: 9),
        House(
            testDescription: "owners", bounds: .http1(2, waiters: 1, idle: 1),
            events: [.want, .bind(1), .wantOf(1), .bind(2)], depth: 8),
        House(
            testDescription: "sessions", bounds: .either(2, waiters: 1), events: [.want, .wantUpgrade, .retire],
            depth: 8),
        House(
            testDescription: "HTTP/2 alone", bounds: .http2(1, waiters: 1),
            events: [.want, .wantUpgrade], depth: 9),
        House(
            testDescription: "a name", bounds: .either(2, waiters: 1), addresses: [],
            events: [.want, .wantUpgrade, .found([]), .found([1]), .found([2])], depth: 9),
        House(
            testDescription: "two addresses", bounds: .either(2, waiters: 1), addresses: [1, 2],
            events: [.want, .wantNew, .unhealthy([1]), .unhealthy([])], depth: 8),
    ]

    @Test(arguments: houses) func nothingIsLostWhateverTheOrder(_ house: House) {
        var seen: Set<[Int]> = []
        var front: [[PoolScene.Event]] = [[]]
        for depth in 1...house.depth {
            var next: [[PoolScene.Event]] = []
            for story in front {
                for event in scene(of: story, in: house).possible(house.events, most: house.most) {
                    let scene = scene(of: story + [event], in: house)
                    guard scene.faults.isEmpty else {
                        Issue.record("\(scene.faults) after \(story + [event]): \(scene.log)")
                        return
                    }
                    if seen.insert(scene.fingerprint).inserted { next.append(story + [event]) }
                }
            }
            front = next
            if depth == house.depth {
                for story in front.prefix(500) {
                    let scene = scene(of: story, in: house)
                    scene.endAll()
                    guard scene.faults.isEmpty, scene.pool.isUnused, scene.pool.sockets == 0 else {
                        Issue.record("something is left after \(story): \(scene.faults) \(scene.log)")
                        return
                    }
                }
            }
        }
        #expect(seen.count > 500, "the walk has seen too little to say anything: \(seen.count)")
    }

    private func scene(of story: [PoolScene.Event], in house: House) -> PoolScene {
        let scene = PoolScene(house.bounds, addresses: house.addresses)
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
            case .retire where isRetired: break
            case .found, .unhealthy, .retire, .closeIdle: events.append(event)
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
            case .carrying where peer.ownerToBe != nil: events += [.done(number), .asked(number), .lost(number)]
            case .carrying, .streaming: events += [.done(number), .lost(number)]
            case .kept where peer.isInHandshake: events += [.rests(number), .lost(number)]
            default: events.append(.lost(number))
            }
        }
        for session in liveTrunks {
            events.append(.ends(session.number))
            events.append(session.hasRoom ? .full(session.number) : .room(session.number))
            if session.upgrades == .unknown { events += [.offers(session.number), .offersNot(session.number)] }
            if !session.isStalled { events.append(.stalls(session.number)) }
        }
        return events
    }

    /// Everything ends, one after the other.
    func endAll() {
        for peer in peers where peer.seat != .closed { take(.lost(peer.number)) }
        for session in trunks where !session.isOver { take(.ends(session.number)) }
        take(.turn)
    }

    /// Numbers that tell two states apart, and do not depend on how many connections came before.
    var fingerprint: [Int] {
        func place(_ address: UpstreamAddress?) -> Int {
            pool.book.addresses.firstIndex { $0 === address } ?? (address == nil ? -1 : -2)
        }
        func number(_ session: Trunk?) -> Int { liveTrunks.firstIndex { $0 === session } ?? -1 }
        func number(_ peer: Peer?) -> Int { live.firstIndex { $0 === peer } ?? -1 }
        var print = [
            pool.speaksHTTP2.map { $0 ? 1 : 0 } ?? -1, pool.insistsOnHTTP1 ? 1 : 0, number(pool.scout),
            isRetired ? 1 : 0,
            pool.agenda.waitsForEndOfTurn ? 1 : 0, pool.names.isAsking ? 1 : 0, pool.sockets,
        ]
        for peer in live {
            print += [
                Self.number(peer.seat), place(peer.address), place(peer.attempt), number(peer.session),
                peer.waitingPlace ?? -1, peer.owner.map { $0 == .caller(1) ? 1 : 2 } ?? 0, peer.isInHandshake ? 1 : 0,
                peer.wish.isNew ? 1 : 0, peer.wish.leavesHTTP ? 1 : 0, peer.wish.onlyHTTP1 ? 1 : 0,
                peer.ownerToBe == nil ? 0 : 1,
            ]
        }
        print += pool.idle.map { number($0) }
        for session in liveTrunks {
            print += [
                -3, place(session.address), session.hasRoom ? 1 : 0, session.isGoing ? 1 : 0, session.isStalled ? 1 : 0,
                session.upgrades == .unknown ? 0 : session.upgrades == .served ? 1 : 2,
            ]
        }
        for address in pool.book.addresses { print += [address.strikes, address.ejections, address.isHealthy ? 1 : 0] }
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
        case .refused: 7
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
        check(pool.sessions.count == liveTrunks.count, "sessions")
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
        // None is used twice.
        let sockets = live.compactMap(\.socket) + liveTrunks.map(\.socket)
        check(Set(sockets).count == sockets.count, "a socket has two owners")
        for peer in live {
            let carries = peer.seat == .carrying || peer.seat == .streaming
            check(peer.isBusy == carries, "\(peer) is \(peer.seat)")
            check((peer.session != nil) == (peer.seat == .streaming), "\(peer) and its session")
            check(peer.seat != .idle || peer.owner == nil, "an owned connection is anybody's")
        }
        check(pool.owned.all.allSatisfy { $0.owner != nil }, "an owner's connection has none")
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
            let scout = pool.scout?.seat
            if scout.map({ asks.contains($0) || $0 == .refused(.busy) || $0 == .refused(.unresolvable) }) != true {
                faults.append("nobody asks what the upstream speaks")
            }
        }
        if seated(.inLine) > 0, !pool.agenda.waitsForEndOfTurn {
            if pool.sockets < pool.bounds.sockets { faults.append("one waits although there is room") }
            if !pool.idle.isEmpty { faults.append("one waits beside an idle connection") }
        }
        if seated(.unresolved) > 0, !pool.names.isAsking { faults.append("one waits for a name that is not asked for") }
        if seated(.awaitingOffer) > 0, !liveTrunks.contains(where: { $0.upgrades == .unknown }) {
            faults.append("one waits for a word that has come")
        }
        return faults
    }
}
