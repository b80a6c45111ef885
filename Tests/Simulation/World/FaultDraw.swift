/// What the faults of a rough seed have to do with each other. Faults that never meet find little: a password that is refused shows something
/// only where the gateway starts anew, a full disk only where something is to be deleted. So most seeds draw from few kinds, and half of
/// those let one gateway have all of them.
enum FaultTheme: CaseIterable {
    case everything, credentials, disk, fleet, forgeries, network, processes, handOvers, purges, marks, logins

    /// Places in `Fault.Kind.rough`'s table; nil: all of them.
    fileprivate var places: [Int]? {
        switch self {
        case .everything: nil
        case .credentials: [38, 0, 1, 1, 3, 13, 14, 15, 17, 20, 21, 27, 27, 27, 33, 33]
        case .disk: [13, 15, 17, 17, 18, 18, 19, 19, 19, 20, 22, 22, 27, 31, 31]
        case .fleet: [9, 10, 13, 13, 15, 23, 26, 27, 28, 28, 29, 30, 32, 32, 40]
        case .network: [5, 6, 7, 7, 8, 8, 9, 10, 11, 12, 16, 23]
        // Somebody puts old values back on a Redis that has lost nothing.
        case .forgeries: [13, 15, 20, 22, 23, 32, 32, 32, 34]
        // Flights that end while a process takes over, or does not.
        case .handOvers: [20, 24, 25, 36, 36, 36, 36, 37, 37, 37]
        // Purged tokens are asked for by the next process.
        case .purges: [15, 17, 20, 31, 31, 31]
        // Passwords that are refused, and processes that begin beside a disk that does not answer.
        case .marks: [1, 15, 15, 18, 18, 20, 27, 27, 33, 41, 41]
        // What a person's login brings, on its way to the disk and afterwards.
        case .logins: [15, 17, 20, 21, 22, 34, 34, 34, 35, 39, 39, 39, 39, 40]
        case .processes: [38, 38, 3, 3, 13, 13, 15, 17, 18, 20, 20, 21, 22, 24, 24, 24, 24, 25, 26, 31]
        }
    }

    /// What was purged and a login that was lost can be judged where no other gateway brings them back: alone gateways have those themes
    /// oftener.
    private static let alone: [FaultTheme] = [
        .credentials, .disk, .network, .processes, .handOvers, .marks, .marks, .purges, .purges, .purges, .purges,
        .purges, .logins, .logins, .logins,
    ]
    private static let inFleet: [FaultTheme] = [
        .credentials, .disk, .fleet, .fleet, .forgeries, .network, .processes, .handOvers, .marks, .marks, .logins,
    ]

    static func drawn(_ draw: inout Draw, isFleet: Bool) -> FaultTheme {
        guard !draw.once(in: 5) else { return .everything }
        return draw.element(of: isFleet ? inFleet : alone)
    }

    /// Requests for what a person has logged in for are few: each new token writes what the login has left anew, and so mends what was lost.
    var leavesLoginsAlone: Bool { self == .logins }

    /// Each user has a token of their own, and there are many, so that at each moment some are asked for.
    var hasCrowd: Bool { self == .handOvers || self == .purges }
}

/// Which faults a seed brings, by its draws.
extension Fault.Kind {
    /// It is of little use when it is over at once.
    var lasts: Bool {
        switch self {
        case .password, .secretFlaps, .redisReplayed, .slowDisk, .startsBesideDisk, .atNextAnswer: true
        default: false
        }
    }

    private static let servers = [
        "10.0.0.1:9001", "10.0.0.2:9002", "10.0.1.1:9000", "10.0.1.2:9000", "10.0.1.3:9000", World.secondAddress,
        World.redisAddress,
    ]
    private static let names = [
        "issuer.example", "oam.example", "api0.example", "api1.example", "api2.example", "redis.example",
    ]
    private static let clients = [
        "service", "person", "service@second", "crowd", MobileSocial.client, Person.client,
    ]

    /// What costs no request.
    static func mild(_ draw: inout Draw) -> Fault.Kind {
        switch draw.below(11) {
        case 0: .slow(draw.below(.milliseconds(4)))
        case 1: .shortPieces(100 + draw.below(400))
        case 2: .revokes(draw.element(of: clients))
        case 3: .revokes(clients[0])
        case 4: .dies(World.secondAddress)
        // The delay is below the head start of a server's first address, since the other one may be dying.
        case 5: .slowToConnect(.milliseconds(200))
        case 6: .issuer(.late(draw.below(.seconds(3))))
        case 7: .upstream(draw.below(World.upstreams - 1), .early(closes: draw.once(in: 2)))
        case 9: .revokesNext(draw.element(of: ["service", "service", "service@second"]))
        case 10: .forgets(registrations: false)
        default: .refuses(World.secondAddress)
        }
    }

    /// - Parameter gateways: those that may have what befalls one gateway.
    static func rough(
        _ draw: inout Draw, _ theme: FaultTheme, _ gateways: Range<Int>, isFleet: Bool
    ) -> Fault.Kind {
        let gateway = gateways.lowerBound + draw.below(gateways.count)
        let place = theme.places.map { draw.element(of: $0) } ?? draw.below(isFleet ? 31 : 28)
        return switch place {
        case 0: .issuer(.status(draw.element(of: [429, 500, 503])))
        case 1: .issuer(draw.element(of: [.garbage, .twice, .foreign(401), .foreign(403)]))
        case 2: .issuer(.silence)
        // The delay is either as short as what a late grant may meet, such as a store that is taken back, or far longer.
        case 3: .issuer(.late(draw.below(draw.once(in: 2) ? .milliseconds(800) : .seconds(15))))
        case 4: .issuer(.breaks)
        case 5: .upstream(draw.below(World.upstreams), .status(draw.element(of: [500, 503, 404])))
        case 6: .upstream(draw.below(World.upstreams), .cuts(isReset: draw.once(in: 2)))
        case 7:
            .upstream(
                draw.below(World.upstreams),
                draw.element(of: [.silence, .closes, .early(closes: true), .early(closes: false)]))
        case 8:
            draw.element(of: [
                .refuses(draw.element(of: servers)), .isSilent(draw.element(of: servers)),
                .dies(draw.element(of: servers)),
            ])
        case 9: .breaksConnections(of: gateway)
        case 10: .breaksConnectionsTo(draw.element(of: servers))
        case 11: draw.once(in: 2) ? .slow(draw.below(.milliseconds(800))) : .shortPieces(1 + draw.below(40))
        case 12: .noNames(draw.element(of: names))
        case 13: .revokes(draw.element(of: clients))
        case 14:
            .wallClock(gateway: gateway, nanoseconds: Int64(draw.below(.seconds(7200))) - 3_600_000_000_000)
        case 15: .kill(gateway)
        case 17: .powerCut(gateway)
        case 18: .disk(gateway: gateway, draw.element(of: [.lies, .fails, .hangs, .hangs]))
        case 19: .fullDisk(gateway: gateway, left: draw.below(draw.once(in: 2) ? 4000 : 40_000))
        case 20: .restart(gateway, overlaps: draw.once(in: 2))
        case 21: .reload(gateway)
        case 22: .purge(gateway, thenCut: draw.once(in: 2))
        case 23: .cut(gateway: gateway, draw.element(of: servers))
        case 24:
            .upgrade(
                gateway, draw.element(of: [.beforeStore, .whileOldEnds, .whileOldEnds, .whileOldEnds, .withStore]))
        case 25: .upgrade(gateway, nil)
        case 26: .stops(gateway, withMachine: draw.once(in: 2))
        case 27:
            draw.once(in: 4) ? .secretFlaps : .password(draw.element(of: ["anna", BasicGate.user, MobileSocial.user]))
        case 28: .redis(draw.element(of: [.silence, .readOnly, .late(draw.below(.seconds(3))), .alters]))
        case 29: draw.once(in: 3) ? .redisReplayed : .redisWiped
        case 30: .redisRestarted(keepsData: draw.once(in: 2))
        case 31: .purge(gateway, thenCut: true)
        case 32: .redisReplayed
        case 33: .forgets(registrations: draw.once(in: 2))
        case 36: .issuer(.late(.milliseconds(50) + draw.below(.milliseconds(600))))
        case 37: .upgrade(gateway, .whileOldEnds)
        case 40: .sessionsRot(gateway)
        case 41: .startsBesideDisk(gateway: gateway)
        case 38: .atNextAnswer(gateway, draw.element(of: Fault.Blow.allCases), ofLogin: false)
        case 39:
            .atNextAnswer(
                gateway, draw.element(of: [.purge, .purgeThenRestart, .purgeThenRestart, .kill, .powerCut]),
                ofLogin: true)
        case 35: .slowDisk(gateway: gateway, .milliseconds(100) + draw.below(.milliseconds(600)))
        case 34: .logIn(gateway, anew: !draw.once(in: 3))
        default: .descriptors(gateway: gateway, loop: draw.below(World.loops + 1))
        }
    }
}
