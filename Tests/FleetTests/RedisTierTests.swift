internal import Glibc
internal import Numbers
import Synchronization
internal import TLS
import Testing

@testable import Fleet

/// Against Debian's redis-server, from many threads at once; under the thread sanitizer too.
@Suite struct RedisTierTests {
    @Test func oneHoldsTheLeaseAtATimeAndEverybodyGetsTheValue() throws {
        let server = try RedisServer()
        let tiers = try (0..<3).map { _ in try tier(server) }
        defer { for tier in tiers { tier.stop() } }
        let name = tiers[0].name(.token, [1])
        let holders = Atomic<Int>(0)
        let made = Atomic<Int>(0)
        let wrong = Atomic<Int>(0)
        let threads = (0..<6).map { number in
            RunningThread {
                let tier = tiers[number % tiers.count]
                for round in 0..<40 {
                    // Each round refuses the value of the one before, as a burst of 401s does.
                    let refused = round == 0 ? nil : tier.identity(of: [UInt8(round - 1)])
                    let wanted = tier.identity(of: [UInt8(round)])
                    while true {
                        let claim = Waiting<SharedClaim>.of {
                            tier.claim(name, unless: refused, isDead: false, completion: $0)
                        }
                        if case .success(.value(let bytes, let identity, _)) = claim {
                            if identity != tier.identity(of: bytes) { wrong.add(1, ordering: .relaxed) }
                            // Others may be rounds ahead.
                            if bytes[0] >= UInt8(round) { break }
                        }
                        guard case .success(.lease(let lease)) = claim else {
                            usleep(500)
                            continue
                        }
                        let others = holders.add(1, ordering: .sequentiallyConsistent).oldValue
                        let renewed = Waiting<Bool>.of { tier.renew(lease, completion: $0) }
                        holders.subtract(1, ordering: .sequentiallyConsistent)
                        let published = Waiting<Bool>.of {
                            tier.publish(
                                [UInt8(round)], as: wanted, under: lease, for: TimeSpan(60, .seconds), completion: $0)
                        }
                        let isGood = others == 0 && (try? renewed.get()) == true && (try? published.get()) == true
                        if isGood { made.add(1, ordering: .relaxed) } else { wrong.add(1, ordering: .relaxed) }
                        break
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(made.load(ordering: .relaxed) == 40)
        #expect(wrong.load(ordering: .relaxed) == 0, "two held one lease, or a lease was worth nothing")
    }

    @Test func whatIsUnderWayWhenItStopsIsAnswered() throws {
        let server = try RedisServer()
        let tier = try tier(server)
        let name = tier.name(.session, [2])
        let answered = Atomic<Int>(0)
        let asked = 300
        for number in 0..<asked {
            tier.session(name) { _ in answered.add(1, ordering: .relaxed) }
            if number == asked / 2 { tier.stop() }
        }
        for _ in 0..<2000 where answered.load(ordering: .relaxed) < asked { usleep(5000) }
        #expect(answered.load(ordering: .relaxed) == asked)
    }

    @Test func aServerThatIsWipedIsNoticedByWhoWouldSpendSomething() throws {
        let server = try RedisServer()
        let told = Atomic<Int>(0)
        let tier = try tier(server) { if $0 == .forgotten { told.add(1, ordering: .relaxed) } }
        defer { tier.stop() }
        let attempt = SharedAttempt(account: tier.name(.account, [1]), secret: tier.name(.secret, [2]), number: "1")
        func verdict() -> SharedVerdict? {
            try? Waiting<SharedVerdict>.of { tier.spend(attempt, limit: 1, completion: $0) }.get()
        }
        for _ in 0..<200 where verdict() == .settling { usleep(50_000) }
        // Answered in order: the refusal is booked when this one is.
        tier.rejected(attempt)
        #expect(try Waiting<UInt32?>.of { tier.spent(attempt, completion: $0) }.get() == 1)
        try server.command("FLUSHALL")
        #expect(verdict() == .settling)
        #expect(try Waiting<UInt32?>.of { tier.spent(attempt, completion: $0) }.get() == nil)
        for _ in 0..<400 where told.load(ordering: .relaxed) == 0 { usleep(5000) }
        #expect(told.load(ordering: .relaxed) == 1)
    }

    /// Whoever may write to the server writes what no gateway of ours counts to.
    @Test(arguments: ["9223372036854775807", "-1", "99999999999999999999999", "9007199254740993", "1e3", ""])
    func aVersionThatNobodyCountsToIsNone(version: String) throws {
        let server = try RedisServer()
        let tier = try tier(server)
        defer { tier.stop() }
        let (lane, name) = (tier.name(.lane, [1]), tier.name(.session, [1]))
        let session = SharedSession(version: .none.next, value: [7], lasts: TimeSpan(60, .seconds))
        let offered = Waiting<Bool>.of { tier.offer(session, name, under: nil, completion: $0) }
        #expect(try offered.get())
        try server.command("HSET", tier.key(.session, name), "version", version)
        #expect(throws: RedisFault.self) { try Waiting<SharedSession?>.of { tier.session(name, completion: $0) }.get() }
        // The turn is not lost, and starts from what the gateway has itself.
        for _ in 0..<200 {
            let turn = try Waiting<SharedTurn>.of {
                tier.turn(lane, session: name, spends: true, completion: $0)
            }.get()
            if case .settling = turn {
                usleep(50_000)
                continue
            }
            guard case .lease(_, nil) = turn else {
                Issue.record("no turn, or with a session: \(turn)")
                return
            }
            return
        }
        Issue.record("never settled")
    }

    @Test func aLifeOfCenturiesIsCut() throws {
        let server = try RedisServer()
        let tier = try tier(server)
        defer { tier.stop() }
        let name = tier.name(.session, [1])
        let session = SharedSession(version: .none.next, value: [7], lasts: TimeSpan(60, .seconds))
        let offered = Waiting<Bool>.of { tier.offer(session, name, under: nil, completion: $0) }
        #expect(try offered.get())
        try server.command("PEXPIRE", tier.key(.session, name), "100000000000000")
        let found = try Waiting<SharedSession?>.of { tier.session(name, completion: $0) }.get()
        #expect(found?.lasts == .longest)
    }

    private func tier(
        _ server: RedisServer, news: @escaping @Sendable (FleetNews) -> Void = { _ in }
    ) throws -> RedisTier {
        let key = try SealingKey(bytes: (0..<32).map { UInt8(200 - $0) })
        let isUp = Atomic<Bool>(false)
        let tier = try RedisTier(
            RedisSettings(place: .unix(path: server.socket)), keys: FleetKeys(SealingKeyRing([key])), news: news
        ) { if $0 == nil { isUp.store(true, ordering: .releasing) } }
        try tier.start()
        for _ in 0..<2000 where !isUp.load(ordering: .acquiring) { usleep(5000) }
        let isThere = isUp.load(ordering: .acquiring)
        try #require(isThere)
        return tier
    }
}
