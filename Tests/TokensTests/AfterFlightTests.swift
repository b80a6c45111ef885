import HotCache
import Testing

@testable import Tokens

/// The traces that a flight leaves for the flights after it: scopes, pauses, and whose secret was refused last.
@Suite struct AfterFlightTests {
    @Test(arguments: [true, false])
    func onlyScopesThatWereGrantedAreAskedForAgain(_ isGranted: Bool) {
        var bench = Bench.warm()
        let report = ChallengeReport(generation: 1, demand: .lacking(["b"]))
        #expect(bench.challenge(0, report, at: 5) == ["fly #1 steppedUp"])
        _ = isGranted ? bench.land(1, at: 6) : bench.fail(1, at: 6)
        #expect(bench.due(isGranted ? 2 : 1, at: 90) == ["fly #2 refreshAhead"])
        #expect(bench.machine.flight?.scopes == (isGranted ? ["b"] : []))
    }

    @Test func aTokenThatLandsEndsThePauseAndItsGrowth() throws {
        var bench = Bench(AccessTokenPolicy(persist: false, renewsByTimer: true))
        for turn in 1...6 as ClosedRange<UInt64> {
            _ = bench.miss(0, at: turn * 100)
            _ = bench.fail(turn, at: turn * 100)
        }
        #expect(bench.miss(0, at: 700) == ["fly #7 missed"])
        _ = bench.land(7, at: 700)
        #expect(bench.machine.pausedUntil == nil)
        #expect(bench.machine.nextAttempt == .seconds(780), "the refresh point of the new token")
        #expect(bench.tick(at: 780) == ["fly #8 refreshAhead"])
        _ = bench.fail(8, at: 780)
        #expect(try #require(bench.machine.pausedUntil) <= .seconds(780) + Backoff.first)
    }

    enum Ending: CaseIterable { case landed, unavailable, refused }

    /// A secret that changes after that, however the flight ended, changes for the first time in a row again.
    @Test(arguments: Ending.allCases)
    func rule9_AFlightThatEndedWithTheLatestSecretEndsTheSeriesOfOldOnes(_ ending: Ending) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.machine.secretChanged(to: 2, at: .seconds(1))
        #expect(bench.fail(1, .credentialRejected, at: 2) == ["fly #2 restarted"])
        let token = bench.token(2, secretVersion: 2)
        switch ending {
        case .landed: _ = bench.machine.landed(token, bench.grant(at: 3), at: .seconds(3))
        case .unavailable: _ = bench.machine.failed(token, Bench.unavailable, at: .seconds(3))
        case .refused: _ = bench.machine.failed(token, .credentialRejected, at: .seconds(3))
        }
        _ = bench.machine.secretChanged(to: 3, at: .seconds(150))
        #expect(bench.miss(0, at: 200) == ["fly #3 missed"])
        _ = bench.machine.secretChanged(to: 4, at: .seconds(201))
        let third = bench.token(3, secretVersion: 3)
        let actions = lines(bench.machine.failed(third, .credentialRejected, at: .seconds(202)))
        #expect(actions == ["fly #4 restarted"])
    }

    /// The challenge of a flight goes with it, so nothing takes the flight up, and the next challenge must not wait for it.
    @Test func rule9_AFlightWithAnOldSecretThatIsNotTakenUpIsOver() {
        var bench = Bench(AccessTokenPolicy(persist: false, needsChallenge: true))
        #expect(bench.challenge(0, ChallengeReport(generation: 0), at: 0) == ["fly #1 challenged"])
        _ = bench.machine.secretChanged(to: 2, at: .seconds(1))
        #expect(bench.fail(1, .credentialRejected, at: 2) == ["answer [0] failed unavailable"])
        #expect(bench.challenge(0, ChallengeReport(generation: 0), at: 3) == ["fly #2 challenged"])
    }

    @Test func whoWasAnsweredWithAnAdoptedTokenIsNotAnsweredByTheFlight() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let grant = bench.grant(at: 0)
        let adopted = lines(bench.machine.adopted(grant, from: .configuration, at: 0))
        #expect(adopted == ["publish g1 until 95", "answer [0] ready g1"])
        #expect(bench.land(1, at: 1) == ["publish g2 until 96", "report tokenAcquired"])
    }

    @Test func whileATryIsUnderWayTheKeyIsNotPaused() {
        var bench = Bench.warm()
        _ = bench.due(1, at: 80)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(5)), at: 80)
        #expect(bench.machine.state(at: .seconds(84)) == .renewalFailing)
        #expect(bench.tick(at: 85) == ["fly #2 retry"])
        #expect(bench.machine.state(at: .seconds(85)) == .refreshAhead)
    }

    @Test func aRejectionTakesThePlaceOfThePauseBeforeIt() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(5)), at: 0)
        #expect(bench.machine.pausedUntil == .seconds(5))
        #expect(bench.tick(at: 5) == ["fly #2 retry"])
        _ = bench.fail(2, .credentialRejected, at: 6)
        #expect(bench.machine.pausedUntil == nil, "no time ends it")
    }

    /// The token that is served was not enough for who waits; sent again with it, the request would spend its one replay in vain.
    @Test func aStepUpWhoseTokenDiesBeforeItsCommitIsNotAnsweredWithTheOldToken() {
        var bench = Bench.warm(level: 1)
        let report = ChallengeReport(generation: 1, demand: .level(2))
        #expect(bench.challenge(0, report, at: 4) == ["fly #1 steppedUp"])
        let lifetime = LifetimePolicy().lifetime(sentAt: .seconds(5), expiresIn: 2, jitter: 0)
        let brief = Grant(generation: 2, lifetime: lifetime, level: 2, rotated: true)
        #expect(lines(bench.machine.landed(bench.token(1), brief, at: .seconds(5))) == ["commit g2"])
        let actions = lines(bench.machine.committed(generation: 2, succeeded: true, at: .seconds(8)))
        #expect(actions == ["answer [0] failed invalid", "report renewal failed invalid"])
        #expect(bench.machine.servedGeneration(at: .seconds(8)) == 1)
    }

    /// The flight may have begun before or after a logout in epoch 2, or there has been none.
    @Test(
        arguments: [
            (2, 1, "discard #9 revoke"), (2, 2, "discard #9"), (2, 3, "discard #9"), (nil, 0, "discard #9"),
        ] as [(UInt64?, UInt64, String)])
    func rule9_OnlyWhatBeganBeforeTheLogoutIsRevoked(_ logout: UInt64?, _ epoch: UInt64, _ expected: String) {
        var bench = Bench()
        if let logout { _ = bench.machine.epochRose(to: logout, cause: .logout, at: 0) }
        #expect(bench.land(9, at: 1, epoch: epoch) == [expected])
    }

    enum Point: CaseIterable { case inFlight, landing, served }

    @Test(arguments: Point.allCases)
    func nothingOfARetiredKeyIsUnderWayOrServed(_ point: Point) {
        var bench: Bench
        switch point {
        case .inFlight:
            bench = Bench()
            _ = bench.miss(0, at: 0)
        case .landing:
            bench = Bench(AccessTokenPolicy())
            _ = bench.miss(0, at: 0)
            #expect(bench.land(1, at: 0) == ["commit g1"])
        case .served: bench = Bench.warm()
        }
        _ = bench.machine.retired(at: 1)
        #expect(!bench.machine.isBusy && bench.machine.heldGrant == nil)
        #expect(bench.machine.state(at: 1) == .empty)
        #expect(bench.land(1, at: 1) == ["discard #1"])
        #expect(lines(bench.machine.committed(generation: 1, succeeded: true, at: 1)) == [])
    }
}
