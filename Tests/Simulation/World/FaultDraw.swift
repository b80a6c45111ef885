/// Which faults a seed brings, by its draws.
extension Fault.Kind {
    /// It is of little use when it is over at once.
    var lasts: Bool {
        switch self {
        case .password, .secretFlaps: true
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
    private static let clients = ["service", "person", "service@second", "crowd", MobileSocial.client]

    /// What costs no request.
    static func mild(_ draw: inout Draw) -> Fault.Kind {
        switch draw.below(6) {
        case 0: .slow(draw.below(.milliseconds(4)))
        case 1: .shortPieces(100 + draw.below(400))
        case 2: .revokes(draw.element(of: clients))
        case 3: .dies(World.secondAddress)
        case 4: .upstream(draw.below(World.upstreams - 1), .early(closes: false))
        default: .refuses(World.secondAddress)
        }
    }

    static func rough(_ draw: inout Draw, _ gateways: Int, isFleet: Bool) -> Fault.Kind {
        switch draw.below(isFleet ? 31 : 28) {
        case 0: .issuer(.status(draw.element(of: [429, 500, 503])))
        case 1: .issuer(draw.element(of: [.garbage, .twice, .foreign(401), .foreign(403)]))
        case 2: .issuer(.silence)
        case 3: .issuer(.late(draw.below(.seconds(15))))
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
        case 9: .breaksConnections(of: draw.below(gateways))
        case 10: .breaksConnectionsTo(draw.element(of: servers))
        case 11: draw.once(in: 2) ? .slow(draw.below(.milliseconds(800))) : .shortPieces(1 + draw.below(40))
        case 12: .noNames(draw.element(of: names))
        case 13: .revokes(draw.element(of: clients))
        case 14:
            .wallClock(
                gateway: draw.below(gateways), nanoseconds: Int64(draw.below(.seconds(7200))) - 3_600_000_000_000)
        case 15: .kill(draw.below(gateways))
        case 17: .powerCut(draw.below(gateways))
        case 18: .disk(gateway: draw.below(gateways), draw.element(of: [.lies, .fails, .hangs]))
        case 19: .fullDisk(gateway: draw.below(gateways), left: draw.below(40_000))
        case 20: .restart(draw.below(gateways))
        case 21: .reload(draw.below(gateways))
        case 22: .purge(draw.below(gateways))
        case 23: .cut(gateway: draw.below(gateways), draw.element(of: servers))
        case 24:
            .upgrade(
                draw.below(gateways),
                draw.once(in: 3) ? draw.element(of: [.beforeStore, .whileOldEnds, .withStore]) : nil)
        case 25: .upgrade(draw.below(gateways), nil)
        case 26: .stops(draw.below(gateways), withMachine: draw.once(in: 2))
        case 27:
            draw.once(in: 4) ? .secretFlaps : .password(draw.element(of: ["anna", BasicGate.user, MobileSocial.user]))
        case 28: .redis(draw.element(of: [.silence, .readOnly, .late(draw.below(.seconds(3))), .alters]))
        case 29: .redisWiped
        case 30: .redisRestarted(keepsData: draw.once(in: 2))
        default: .descriptors(gateway: draw.below(gateways), loop: draw.below(World.loops + 1))
        }
    }
}
