import Testing

@testable import Tokens

/// Numbers that pages and configurations name, and what happens at them and one beyond.
@Suite struct BoundaryTests {
    @Test func numbersThatAreWrittenDownAreThese() {
        #expect(LifetimePolicy.longest == .seconds(31_622_400), "366 days")
        #expect(Orphans.keptForMilliseconds == 2_592_000_000, "30 days")
        #expect(Breaker.longest == .seconds(30) && Backoff.retryAfterLimit == .seconds(300))
        #expect(LearnedTable.entryLimit > 0 && LearnedTable.realmLimit == 16)
        #expect(AttemptLedger.Policy().loginAttempts == 1, "`login_attempts` where an identity says nothing")
    }

    @Test func timeSaturatesAndNeverWraps() {
        #expect(UInt64.seconds(.max) == .max && UInt64.seconds(2) == 2_000_000_000)
        #expect(UInt64.milliseconds(.max) == .max && UInt64.milliseconds(2) == 2_000_000)
        #expect(UInt64.max.saturatingAdd(1) == .max && UInt64(1).saturatingAdd(2) == 3)
        #expect(UInt64(1).saturatingSubtract(2) == 0 && UInt64(3).saturatingSubtract(2) == 1)
    }

    @Test func aStepOfTheWallClockIsMoreThanHalfAMinute() {
        for (step, isStep) in [(30_000_000_000, false), (30_000_000_001, true), (-30_000_000_000, false)]
            as [(Int64, Bool)]
        {
            var watch = WallClockWatch()
            #expect(watch.observe(wall: 100, boot: 100) == false)
            #expect(watch.observe(wall: 200 + step, boot: 200) == isStep)
            #expect(watch.observe(wall: 300 + step, boot: 300) == false, "once for each step")
        }
    }

    @Test func skewOfADayIsLearnedAndMoreIsNot() {
        var skew = ClockSkew()
        #expect(skew.learn(issuerDate: 86_400, wall: 0) && skew.seconds == 86_400)
        #expect(!skew.learn(issuerDate: 86_401, wall: 0) && skew.seconds == 86_400)
        #expect(skew.learn(issuerDate: .max, wall: -1) == false, "a difference that has no number")
        #expect(skew.learn(issuerDate: 10, wall: 0) && skew.remaining(until: 100, wall: 0) == 90)
        #expect(skew.remaining(until: 100, wall: .max) == 0 && skew.remaining(until: .min, wall: 1) == 0)
        var behind = ClockSkew()
        #expect(behind.learn(issuerDate: -10, wall: 0) && behind.remaining(until: .max, wall: 0) == .max)
    }

    @Test func anIssuerOfWhichNothingIsLearnedHasOurClock() {
        let skew = ClockSkew()
        #expect(skew.seconds == 0 && skew.remaining(until: 100, wall: 40) == 60)
        #expect(skew.remaining(until: 0, wall: .min) == .max, "an end in 1970, seen from before all time")
        #expect(skew.remaining(until: -1, wall: .max) == .min, "and a second before it, seen from the end of time")
    }

    /// A million seconds are twelve days, which is longer than anybody waits for, and the shift has the bits for it.
    @Test func pausesDoubleTwentyTimesHoweverLongTheLimit() {
        var backoff = Backoff(seed: 1)
        var longest: Nanoseconds = 0
        for _ in 0..<100 { longest = max(longest, backoff.failed(retryAfter: nil, limit: .max)) }
        #expect((.seconds(1 << 19)...(.seconds(1 << 20))).contains(longest))
    }

    /// The generator's own numbers (SplitMix64), so that a jitter that was written down comes again.
    @Test func jitterFollowsFromItsSeed() {
        var jitter = Jitter(seed: 1_234_567)
        let first = (0..<5).map { _ in jitter.upTo(.max) }
        #expect(
            first == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
            ])
        for _ in 0..<100 { #expect(jitter.upTo(1) <= 1) }
        let coins = (0..<100).map { _ in jitter.upTo(1) }
        #expect(Set(coins) == [0, 1], "both ends belong to it")
    }

    @Test func aLifeThatIsLeftIsLeftToItsLastMillisecond() {
        func left(_ expiry: Int64, _ now: Int64, original: Nanoseconds = .seconds(10)) -> Nanoseconds? {
            LifetimePolicy().restored(
                wallExpiry: expiry, original: original, wallNow: now, now: .seconds(100), jitter: 0
            ).map { $0.expiresAt - .seconds(100) }
        }
        #expect(left(1, 0) == .milliseconds(1) && left(0, 0) == nil && left(-1, 0) == nil)
        #expect(left(20_000, 0) == .seconds(10), "no more than it began with")
        #expect(left(1, 0, original: 0) == nil && left(1, 0, original: 1) == 1)
        // Clocks that are nonsense: a token that ended before all time, and two that end after it.
        #expect(left(.min, 1) == nil && left(.max, -1) == .seconds(10) && left(0, .min) == .seconds(10))
        let shortest = LifetimePolicy(defaultLifetime: 0).lifetime(sentAt: 5, expiresIn: nil, jitter: 0)
        #expect(shortest.original == 1 && shortest.expiresAt == 6)
    }

    @Test func aMemberIsReadUpToItsLimit() throws {
        for (count, isTaken) in [(KeyCodec.memberLimit, true), (KeyCodec.memberLimit + 1, false)] {
            var writer = ByteWriter(1, 5)
            writer.put([UInt8](repeating: 7, count: count))
            var reader = try ByteReader(writer.bytes, 1, 5)
            if isTaken {
                #expect(try reader.member().count == 65_536)
                #expect(throws: Never.self) { try reader.end() }
            } else {
                #expect(throws: KeyCodec.Fault.tooLong) { try reader.member() }
            }
        }
    }

    @Test func generationsGoOnFromTheHighestInUse() {
        var counter = GenerationCounter(after: 4)
        #expect(counter.next() == 5 && counter.next() == 6)
        var first = GenerationCounter()
        #expect(first.next() == 1, "0 says that no token was sent")
    }

    @Test func waitersOfAFlightThatWasCutOffMayAskAgainAfterASecond() {
        var bench = Bench(AccessTokenPolicy(persist: false, needsChallenge: true))
        _ = bench.machine.challenged(from: 0, ChallengeReport(generation: 0), at: 0)
        #expect(bench.machine.flight != nil)
        let actions = bench.machine.epochRose(to: 2, cause: .purge, at: 0)
        let told = Outcome.failed(.issuerUnavailable(retryAfter: .seconds(1)), retryAfter: .seconds(1))
        #expect(actions.contains(.answer(.loop(0), told)))
    }

    @Test func aRowOfTheLedgerWithMoreBehindItIsNoRow() {
        let mark = AttemptMark(account: Account(issuer: issuer, user: "svc"), secretHash: "h1")
        var ledger = AttemptLedger()
        let row = ledger.spend(mark).bytes ?? []
        for (bytes, verdict) in [
            (row, AttemptLedger.Verdict.spent), (row + [0], .unreadable), ([UInt8](row.dropLast()), .unreadable),
        ] {
            var next = AttemptLedger()
            next.restore(bytes)
            #expect(next.verdict(for: mark, AttemptLedger.Policy()) == verdict)
        }
    }

    @Test func anOutageThatIsOverLeavesNothingBehind() throws {
        var breaker = Breaker(seed: 1)
        var pause: Nanoseconds?
        // Long enough for a pause of many seconds.
        var now: Instant = 0
        for _ in 0..<12 {
            if let begun = breaker.failed(retryAfter: nil, at: now) { pause = begun }
            now += .seconds(60)
            _ = breaker.ask(at: now)
        }
        #expect(try #require(pause) > .seconds(10))
        breaker.answered()
        for _ in 0..<4 { #expect(breaker.failed(retryAfter: nil, at: now) == nil, "five in a row are an outage again") }
        let next = breaker.failed(retryAfter: nil, at: now)
        #expect(try #require(next) <= Backoff.first, "and its pauses begin anew")
    }
}

/// What a machine forgets when its key is purged, retired or taken up again.
@Suite struct ForgettingTests {
    @Test func aTokenThatNobodyFetchedServesWhoWaits() {
        var bench = Bench()
        #expect(bench.miss(0, at: 0) == ["fly #1 missed"])
        let grant = bench.grant(at: 0)
        let adopted = lines(bench.machine.adopted(grant, from: .configuration, at: 0))
        #expect(adopted == ["publish g1 until 95", "answer [0] ready g1"])
        let lost = lines(bench.machine.lost(at: .seconds(1)))
        #expect(lost == [] && bench.machine.state(at: .seconds(1)) == .acquiring)
    }

    @Test func aPurgeEndsThePauseAndItsGrowth() {
        var bench = Bench()
        var second: UInt64 = 0
        for id in 1...6 as ClosedRange<UInt64> {
            _ = bench.miss(0, at: second)
            _ = bench.fail(id, at: second)
            second += 100
        }
        let purged = lines(bench.machine.epochRose(to: 2, cause: .purge, at: .seconds(second)))
        #expect(purged == ["unpublish", "delete row"] && bench.machine.state(at: .seconds(second)) == .empty)
        #expect(bench.miss(0, at: second) == ["fly #7 missed"])
        _ = bench.machine.failed(bench.token(7, epoch: 2), Bench.unavailable, at: .seconds(second))
        guard case .negative(let until) = bench.machine.state(at: .seconds(second)) else {
            Issue.record("no pause")
            return
        }
        #expect(until - .seconds(second) <= Backoff.first)
    }

    @Test func aKeyThatIsGonePausesForNobody() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, at: 0)
        #expect(bench.machine.state(at: 1) != .empty)
        _ = bench.machine.retired(at: 1)
        #expect(bench.machine.state(at: 1) == .empty)
    }

    @Test func aRenewalThatWasMissedIsTakenUpOnce() {
        var bench = Bench.warm()
        _ = bench.machine.suspended(at: .seconds(79))
        #expect(bench.due(1, at: 79) == [])
        let resumed = lines(bench.machine.resumed(at: .seconds(80)))
        #expect(resumed == ["fly #1 refreshAhead"])
        #expect(bench.land(1, at: 84) == ["publish g2 until 179", "report tokenRefreshed"])
        _ = bench.machine.suspended(at: .seconds(165))
        let again = lines(bench.machine.resumed(at: .seconds(166)))
        #expect(again == [], "nobody has asked this time")
    }
}
