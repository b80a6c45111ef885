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
                                [UInt8(round)], as: wanted, under: lease, askedFor: .zero, for: TimeSpan(60, .seconds),
                                completion: $0)
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
        let tier = try tier(server, news: { if $0 == .forgotten { told.add(1, ordering: .relaxed) } })
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

    @Test func aResetThatIsPublishedAgainCountsOnce() throws {
        let server = try RedisServer()
        let told = Atomic<Int>(0)
        let ended = Atomic<Bool>(false)
        let count: @Sendable (FleetNews) -> Void = { news in
            if case .reset = news { told.add(1, ordering: .relaxed) }
            if case .released = news { ended.store(true, ordering: .releasing) }
        }
        let tier = try tier(server, format: .new, news: count)
        defer { tier.stop() }
        let name = tier.name(.account, [1])
        let message = String(decoding: try tier.keys.seal(.reset(account: name), at: tier.now), as: UTF8.self)
        for _ in 0..<3 { try server.command("PUBLISH", tier.channel, message) }
        // In the order in which they were published.
        let last = String(decoding: try tier.keys.seal(.released(name), at: tier.now), as: UTF8.self)
        try server.command("PUBLISH", tier.channel, last)
        for _ in 0..<2000 where !ended.load(ordering: .acquiring) { usleep(5000) }
        #expect(ended.load(ordering: .acquiring) && told.load(ordering: .relaxed) == 1)
    }

    @Test func whoGetsALeaseThatWasTakenAwayHasHeardOfTheStep() throws {
        let server = try RedisServer()
        let heard = Mutex<[String]>([])
        let note: @Sendable (FleetNews) -> Void = { news in
            if case .spending(_, let owner, false) = news { heard.withLock { $0.append(owner) } }
        }
        let tiers = [try tier(server, format: .new), try tier(server, format: .new, news: note)]
        defer { for tier in tiers { tier.stop() } }
        let (lock, name) = (tiers[0].name(.lock, [1]), tiers[0].name(.session, [1]))
        func lease(_ tier: RunningTier) throws -> (lease: SharedLease, heard: [String])? {
            for _ in 0..<200 {
                let (turn, heard) = try Waiting<(SharedTurn, [String])>.of { completion in
                    tier.turn(lock, session: name, spends: true) { turn in
                        completion(turn.map { ($0, heard.withLock { $0 }) })
                    }
                }.get()
                guard case .lease(let lease, _) = turn else {
                    usleep(50_000)
                    continue
                }
                return (lease, heard)
            }
            return nil
        }
        let first = try #require(try lease(tiers[0]))
        try server.command("DEL", tiers[0].key(.lease, lock), tiers[0].key(.spending, lock))
        let second = try #require(try lease(tiers[1]))
        #expect(second.heard == [first.lease.owner, second.lease.owner])
    }

    /// A gateway whose commit was lost offers its session when the server is back, and the mark of its step goes with that: whoever has heard of
    /// the beginning has to hear of the end.
    @Test(arguments: [false, true]) func anOfferUnderALeaseTellsThatItsStepIsOver(isOlder: Bool) throws {
        let server = try RedisServer()
        let over = Mutex<[String]>([])
        let note: @Sendable (FleetNews) -> Void = { news in
            if case .spending(_, let owner, true) = news { over.withLock { $0.append(owner) } }
        }
        let tier = try tier(server, format: .new, news: note)
        defer { tier.stop() }
        let (lock, name) = (tier.name(.lock, [1]), tier.name(.session, [1]))
        var lease: SharedLease?
        for _ in 0..<200 where lease == nil {
            let turn = try Waiting<SharedTurn>.of { tier.turn(lock, session: name, spends: true, completion: $0) }.get()
            if case .lease(let given, _) = turn { lease = given } else { usleep(50_000) }
        }
        let held = try #require(lease)
        let version = SessionVersion.none.next
        if isOlder {
            let newer = SharedSession(version: version.next, value: [2])
            #expect(try Waiting<Bool>.of { tier.offer(newer, name, under: nil, completion: $0) }.get())
        }
        let session = SharedSession(version: version, value: [1])
        let isNewest = try Waiting<Bool>.of { tier.offer(session, name, under: held, completion: $0) }.get()
        #expect(isNewest == !isOlder)
        for _ in 0..<2000 where over.withLock({ $0.isEmpty }) { usleep(5000) }
        #expect(over.withLock { $0 } == [held.owner])
    }

    /// Whoever may write to the server writes what no gateway of ours counts to.
    @Test(arguments: [
        "9223372036854775807", "-1", "99999999999999999999999", "9007199254740993", "4503599627370497", "1e3",
    ])
    func aVersionThatNobodyCountsToIsNone(version: String) throws {
        let server = try RedisServer()
        let tier = try tier(server, format: .old)
        defer { tier.stop() }
        let (lock, name) = (tier.name(.lock, [1]), tier.name(.session, [1]))
        let session = SharedSession(version: .none.next, value: [7], lasts: TimeSpan(60, .seconds))
        let offered = Waiting<Bool>.of { tier.offer(session, name, under: nil, completion: $0) }
        #expect(try offered.get())
        try server.command("HSET", tier.key(.session, name), "version", version)
        #expect(throws: SharedFault.self) {
            try Waiting<SharedSession?>.of { tier.session(name, completion: $0) }.get()
        }
        // The turn is not lost, and starts from what the gateway has itself.
        for _ in 0..<200 {
            let turn = try Waiting<SharedTurn>.of {
                tier.turn(lock, session: name, spends: true, completion: $0)
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
        let tier = try tier(server, format: .old)
        defer { tier.stop() }
        let name = tier.name(.session, [1])
        let session = SharedSession(version: .none.next, value: [7], lasts: TimeSpan(60, .seconds))
        let offered = Waiting<Bool>.of { tier.offer(session, name, under: nil, completion: $0) }
        #expect(try offered.get())
        try server.command("PEXPIRE", tier.key(.session, name), "100000000000000")
        let found = try Waiting<SharedSession?>.of { tier.session(name, completion: $0) }.get()
        #expect(found?.lasts == .longest)
    }

    // MARK: - Formats

    private static func left(_ tier: RunningTier, _ name: SharedName) throws -> SharedSession? {
        try Waiting<SharedSession?>.of { tier.session(name, completion: $0) }.get()
    }

    @discardableResult
    private static func offer(_ tier: RunningTier, _ name: SharedName, _ version: Int64, _ value: UInt8) throws -> Bool
    {
        let version = try #require(SessionVersion(ReceivedNumber(version)))
        let session = SharedSession(version: version, value: [value], lasts: TimeSpan(600, .seconds))
        return try Waiting<Bool>.of { tier.offer(session, name, under: nil, completion: $0) }.get()
    }

    /// Who writes what and who finds it: of two gateways of one fleet.
    @Test(arguments: FleetFormat.allCases, FleetFormat.allCases)
    func aSessionIsFoundInTheFormatsThatAreRead(writer: FleetFormat, reader: FleetFormat) throws {
        let server = try RedisServer()
        let (one, other) = (try tier(server, format: writer), try tier(server, format: reader))
        defer { for tier in [one, other] { tier.stop() } }
        let name = one.name(.session, [1])
        #expect(try Self.offer(one, name, 5, 7))
        let isFound = writer == .both || reader == .both || writer == reader
        #expect(try Self.left(other, name)?.value == (isFound ? [7] : nil))
        #expect(try Self.offer(other, name, 4, 8) == !isFound)
        #expect(try Self.offer(other, name, 6, 9))
        #expect(try Self.left(other, name)?.value == [9])
    }

    /// Anybody may say something in the old format; whoever takes the new one alone does not listen.
    @Test(arguments: FleetFormat.allCases) func newsAreHeardInTheFormatsThatAreRead(format: FleetFormat) throws {
        let server = try RedisServer()
        let heard = Mutex<[FleetNews]>([])
        let tier = try tier(server, format: format, news: { news in heard.withLock { $0.append(news) } })
        let other = try self.tier(server, format: format)
        defer { for tier in [tier, other] { tier.stop() } }
        let (forged, name) = (tier.name(.account, [1]), tier.name(.session, [2]))
        try server.command("PUBLISH", tier.keys.prefix + "news", "reset \(forged.text)")
        // Told in order: what was to be heard of the first has been heard when the last is. With both formats one is told in each, and heard
        // once.
        try Self.offer(other, name, 1, 1)
        try Self.offer(other, tier.name(.session, [3]), 1, 1)
        // The old format tells no version.
        let version = format == .old ? nil : SessionVersion.none.next
        let last = FleetNews.session(tier.name(.session, [3]), version: version)
        for _ in 0..<2000 where !heard.withLock({ $0.contains(last) }) { usleep(5000) }
        let all: [FleetNews] = [.reset(account: forged), .session(name, version: version), last]
        #expect(heard.withLock { $0 } == (format == .new ? Array(all.dropFirst()) : all))
    }

    /// A gateway that knows only the old format makes a step: whoever reads both puts it beside, for those that take the new one alone.
    @Test func aStepInTheOldFormatReachesTheNewOneByWhoReadsBoth() throws {
        let server = try RedisServer()
        let tiers = try FleetFormat.allCases.map { try tier(server, format: $0) }
        defer { for tier in tiers { tier.stop() } }
        let (old, both, new) = (tiers[0], tiers[1], tiers[2])
        let name = old.name(.session, [1])
        #expect(try Self.offer(both, name, 1, 1))
        // As gateways of that time do: fields that they do not know stay as they are.
        let sealed = try old.keys.seal([2], for: name).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let key = old.key(.session, name)
        try server.command("EVAL", Self.writing, "1", key, "2", sealed)
        #expect(try Self.left(new, name)?.value == [1])
        #expect(try Self.left(both, name)?.value == [2])
        // Answered in order: what was put beside is there when a second look is.
        _ = try Self.left(both, name)
        #expect(try Self.left(new, name)?.value == [2])
        #expect(try Self.left(new, name)?.version == Self.left(both, name)?.version)
    }

    private static let writing = """
        local value = ARGV[2]:gsub('..', function(octet) return string.char(tonumber(octet, 16)) end)
        redis.call('HSET', KEYS[1], 'version', ARGV[1], 'value', value)
        """

    /// A gateway that knows only the old format ends a session: it is over in both.
    @Test func anEndInTheOldFormatIsOneInTheNew() throws {
        let server = try RedisServer()
        let (both, new) = (try tier(server), try tier(server, format: .new))
        defer { for tier in [both, new] { tier.stop() } }
        let name = both.name(.session, [1])
        try Self.offer(both, name, 3, 7)
        try server.command("HDEL", both.key(.session, name), "value")
        let ended = try #require(try Self.left(both, name))
        #expect(ended.value.isEmpty && ended.version.description == "3")
        // Answered in order: what was put beside is there when a second look is.
        _ = try Self.left(both, name)
        #expect(try Self.left(new, name)?.value == [])
        #expect(try Self.offer(new, name, 3, 8) == false)
        #expect(try Self.offer(new, name, 4, 9))
    }

    /// Whoever has missed a step ends what it knows, and not what came after.
    @Test(arguments: [1, 2, 3] as [Int64]) func whatIsOlderEndsNothing(version: Int64) throws {
        let server = try RedisServer()
        let tier = try tier(server)
        defer { tier.stop() }
        let name = tier.name(.session, [1])
        try Self.offer(tier, name, 2, 7)
        tier.endSession(name, version: try #require(SessionVersion(ReceivedNumber(version))))
        // Two looks and a change: answered in order.
        for _ in 0..<3 { _ = try Self.left(tier, name) }
        #expect(try Self.left(tier, name)?.value == (version < 2 ? [7] : []))
    }

    @Test(arguments: ["version", "value"]) func whatCannotBeReadHidesNothing(field: String) throws {
        let server = try RedisServer()
        let tier = try tier(server)
        defer { tier.stop() }
        let name = tier.name(.session, [1])
        try Self.offer(tier, name, 3, 7)
        try server.command("HSET", tier.key(.session, name), field, "9223372036854775807")
        #expect(try Self.left(tier, name)?.value == [7])
        try server.command("HSET", tier.key(.session, name), "sealed", "x")
        #expect(throws: SharedFault.self) { try Self.left(tier, name) }
        // It gives way to what can be read.
        #expect(try Self.offer(tier, name, 1, 8))
        #expect(try Self.left(tier, name)?.value == [8])
    }

    /// In the new format an old value keeps its version, whatever stands beside it, and no end can be put off.
    @Test func whatIsPutBackIsAsOldAsItWas() throws {
        let server = try RedisServer()
        let clock = Atomic<Int64>(1_800_000_000_000)
        let tier = try tier(server, format: .new, wall: { WallTime(milliseconds: clock.load(ordering: .relaxed)) })
        defer { tier.stop() }
        let (name, copy) = (tier.name(.session, [1]), "copy")
        try Self.offer(tier, name, 1, 1)
        try server.command("COPY", tier.key(.session, name), copy)
        try Self.offer(tier, name, 2, 2)
        try server.command("COPY", copy, tier.key(.session, name), "REPLACE")
        try server.command("HSET", tier.key(.session, name), "version", "99", "value", "x")
        try server.command("PERSIST", tier.key(.session, name))
        let found = try #require(try Self.left(tier, name))
        #expect(found.version.description == "1" && found.value == [1])
        #expect(try #require(found.lasts) <= TimeSpan(720, .seconds))
        clock.add(720_001, ordering: .relaxed)
        #expect(try Self.left(tier, name)?.lasts == .zero)
        // It gives way to what is newer.
        #expect(try Self.offer(tier, name, 2, 3))
        #expect(try Self.left(tier, name)?.value == [3])
    }

    /// The server takes up later than it was sent what a gateway gives it, after it stood still.
    @Test func aTokenThatComesLateHasLessLeft() throws {
        let server = try RedisServer()
        let tier = try tier(server)
        defer { tier.stop() }
        let name = tier.name(.token, [1])
        func claim() throws -> SharedClaim {
            try Waiting<SharedClaim>.of { tier.claim(name, unless: nil, isDead: false, completion: $0) }.get()
        }
        /// Seconds that are left of 60 where the server is `seconds` late.
        func left(late seconds: Int64, age: TimeSpan = .zero) throws -> TimeSpan {
            try server.command("DEL", tier.key(.value, name))
            guard case .lease(let lease) = try claim() else {
                Issue.record("no lease")
                return .zero
            }
            // The generation's end is set as if the lease had been given so much earlier.
            let end = 604_800_000 - (seconds * 1000 + age.milliseconds)
            try server.command("PEXPIRE", tier.key(.generation, name), "\(end)")
            let isPut = try Waiting<Bool>.of {
                tier.publish(
                    [1], as: "one", under: lease, askedFor: age, for: TimeSpan(60, .seconds), completion: $0)
            }.get()
            #expect(isPut)
            guard case .value(_, _, let left?) = try claim() else { return .zero }
            return left
        }
        let whole = try left(late: 0)
        #expect(whole <= TimeSpan(60, .seconds) && whole > TimeSpan(50, .seconds))
        let slow = try left(late: 0, age: TimeSpan(200, .seconds))
        #expect(slow <= TimeSpan(60, .seconds) && slow > TimeSpan(50, .seconds))
        let less = try left(late: 40)
        #expect(less <= TimeSpan(20, .seconds) && less > TimeSpan(10, .seconds))
        #expect(try left(late: 61) <= TimeSpan(1, .milliseconds))
    }

    @Test func aTokenEndsWhenItWasSealedTo() throws {
        let server = try RedisServer()
        let clock = Atomic<Int64>(1_800_000_000_000)
        let tier = try tier(server, format: .new, wall: { WallTime(milliseconds: clock.load(ordering: .relaxed)) })
        defer { tier.stop() }
        let name = tier.name(.token, [1])
        func claim() throws -> SharedClaim {
            try Waiting<SharedClaim>.of { tier.claim(name, unless: nil, isDead: false, completion: $0) }.get()
        }
        guard case .lease(let lease) = try claim() else { return #expect(Bool(false), "no lease") }
        let life = TimeSpan(60, .seconds)
        #expect(
            try Waiting<Bool>.of {
                tier.publish([1], as: "one", under: lease, askedFor: .zero, for: life, completion: $0)
            }.get())
        try server.command("PEXPIRE", tier.key(.value, name), "100000000000000")
        clock.add(180_000, ordering: .relaxed)
        guard case .value([1], "one", TimeSpan.zero) = try claim() else {
            return #expect(Bool(false), "it has no end, or another one")
        }
        try server.command("HSET", tier.key(.value, name), "id", "two")
        #expect(throws: SharedFault.self) { _ = try claim() }
        // In the old format alone it is none.
        try server.command("HDEL", tier.key(.value, name), "sealed")
        guard case .lease = try claim() else { return #expect(Bool(false), "a value of the old format") }
    }

    private func tier(
        _ server: RedisServer, format: FleetFormat = .both,
        wall: @escaping @Sendable () -> WallTime = { WallTime(milliseconds: 1_800_000_000_000) },
        news: @escaping @Sendable (FleetNews) -> Void = { _ in }
    ) throws -> RunningTier {
        let key = try SealingKey(bytes: (0..<32).map { UInt8(200 - $0) })
        let tier = try RunningTier(server, key: key, format: format, wall: wall, news: news)
        for _ in 0..<2000 where !tier.isUp.load(ordering: .acquiring) { usleep(5000) }
        let isThere = tier.isUp.load(ordering: .acquiring)
        try #require(isThere)
        return tier
    }
}
