import HotCache
import Testing

@testable import Tokens

/// Every limit in time at its very moment, and a nanosecond before it (docs/design/tokens.md#times).
@Suite struct MomentTests {
    static let fiveSeconds = GrantFailure.issuerUnavailable(retryAfter: .seconds(5))

    // MARK: - States

    @Test func theGraceBeginsWhenServingWouldHaveStopped() {
        var bench = Bench.warm(RenewalTests.grace)
        _ = bench.due(1, at: 90)
        _ = bench.fail(1, at: 90)
        #expect(bench.machine.state(at: .seconds(95) - 1) == .renewalFailing)
        #expect(bench.machine.state(at: .seconds(95)) == .expiredGrace)
    }

    @Test func aPauseThatNobodyWaitsForIsOverAtItsEnd() {
        var served = Bench.warm(level: 1)
        _ = served.challenge(0, ChallengeReport(generation: 1, demand: .level(2)), at: 5)
        _ = served.fail(1, Self.fiveSeconds, at: 5)
        #expect(served.machine.state(at: .seconds(10) - 1) == .renewalFailing)
        #expect(served.machine.state(at: .seconds(10)) == .fresh)
        var empty = Bench()
        _ = empty.miss(0, at: 5)
        _ = empty.fail(1, Self.fiveSeconds, at: 5)
        #expect(empty.machine.state(at: .seconds(10) - 1) == .negative(until: .seconds(10)))
        #expect(empty.machine.state(at: .seconds(10)) == .empty)
    }

    // MARK: - The end of a pause

    /// A request may come in the moment when the timer is about to fire.
    @Test(
        arguments: [(.seconds(5) - 1, ["answer [1] failed unavailable"]), (.seconds(5), ["fly #2 missed"])]
            as [(Instant, [String])])
    func aMissFliesAtTheEndOfThePause(_ now: Instant, _ expected: [String]) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, Self.fiveSeconds, at: 0)
        #expect(lines(bench.machine.missed(from: 1, at: now)) == expected)
    }

    @Test(arguments: [(Instant.seconds(85) - 1, []), (.seconds(85), ["fly #2 refreshAhead"])] as [(Instant, [String])])
    func aRenewalFliesAtTheEndOfThePause(_ now: Instant, _ expected: [String]) {
        var bench = Bench.warm()
        _ = bench.due(1, at: 80)
        _ = bench.fail(1, Self.fiveSeconds, at: 80)
        #expect(lines(bench.machine.refreshDue(generation: 1, at: now)) == expected)
    }

    /// A token that was given up is wanted by nobody, until a caller comes during the pause.
    @Test func aCallerDuringAPauseHasOneTryMadeAtItsEnd() {
        var bench = Bench.warm(RenewalTests.strict)
        _ = bench.due(1, at: 80)
        _ = bench.fail(1, Self.fiveSeconds, at: 80)
        #expect(bench.machine.nextAttempt == nil)
        #expect(bench.miss(0, at: 81) == ["answer [0] failed unavailable"])
        #expect(bench.machine.nextAttempt == .seconds(85))
        #expect(bench.tick(at: 85) == ["fly #2 retry"])
    }

    @Test(arguments: [(79, nil), (80, .seconds(85))] as [(UInt64, Instant?)])
    func aStepUpThatFailsAtTheRefreshPointLeavesARenewalToDo(_ second: UInt64, _ next: Instant?) {
        var bench = Bench.warm(level: 1)
        _ = bench.challenge(0, ChallengeReport(generation: 1, demand: .level(2)), at: 75)
        _ = bench.fail(1, Self.fiveSeconds, at: second)
        #expect(bench.machine.nextAttempt == next)
    }

    // MARK: - Those who wait

    /// A flight that is overdue takes no more waiters, whatever their demand, and whether the timer has fired by then or not.
    @Test(arguments: [Demand.token, .level(1), .level(2)])
    func nobodyWaitsForAFlightFromTheEndOfItsTimeOn(_ demand: Demand) {
        var bench = Bench()
        _ = bench.challenge(0, ChallengeReport(generation: 0, demand: .level(1)), at: 0)
        let report = ChallengeReport(generation: 0, demand: demand)
        let early = lines(bench.machine.challenged(from: 1, report, at: .seconds(10) - 1))
        #expect(early == (demand == .level(2) ? ["postpone"] : []))
        #expect(bench.challenge(2, report, at: 10) == ["answer [2] failed timedOut"])
        #expect(bench.miss(3, at: 10) == ["answer [3] failed timedOut"])
    }

    @Test func whoeverIsTimedOutMayComeAgainInASecond() {
        let told = AccessTokenMachine.Action.answer(.loop(0), .failed(.timedOut, retryAfter: .seconds(1)))
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(bench.machine.timerFired(at: .seconds(10)).first == told)
        #expect(bench.machine.missed(from: 0, at: .seconds(11)).first == told)
    }

    /// The flight has brought its token already, which is of level 1.
    @Test(arguments: [(1, []), (2, ["postpone"])] as [(Int, [String])])
    func aTokenThatWaitsForItsCommitIsWaitedForByThoseItServes(_ level: Int, _ expected: [String]) {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.challenge(0, ChallengeReport(generation: 0, demand: .level(1)), at: 0)
        #expect(bench.land(1, at: 0, level: 1) == ["commit g1"])
        let report = ChallengeReport(generation: 0, demand: .level(level))
        #expect(bench.challenge(1, report, at: 0) == expected)
    }

    /// A flight that no challenge began may bring any level, even none.
    @Test func aChallengeForTheLowestLevelDoesNotWaitForAFlightOfNone() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(bench.challenge(1, ChallengeReport(generation: 0, demand: .level(0)), at: 0) == ["postpone"])
        #expect(bench.challenge(1, ChallengeReport(generation: 0, demand: .token), at: 0) == [])
    }

    @Test func anothersTokenEndsNothingWhereNothingIsUnderWay() {
        #expect(!Bench().machine.accepts(granted: ["a"], configured: ["a"]))
        #expect(!Bench.warm().machine.accepts(granted: [], configured: []))
    }

    // MARK: - The end of a token's time

    @Test(arguments: [true, false])
    func aTokenWhoseCommitTakesAllItsLifeIsNoAnswer(isInTime: Bool) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let landed = bench.machine.landed(bench.token(1), bench.grant(at: 0, rotated: true), at: .seconds(94))
        #expect(lines(landed) == ["commit g1"])
        let now = isInTime ? Instant.seconds(95) - 1 : .seconds(95)
        let actions = lines(bench.machine.committed(generation: 1, succeeded: true, at: now))
        #expect(actions.contains("answer [0] ready g1 new") == isInTime)
        #expect(actions.contains("answer [0] failed invalid") == !isInTime)
    }

    @Test(
        arguments: [(94, "report renewal failed unavailable"), (95, "report acquisition failed unavailable")]
            as [(UInt64, String)])
    func aRenewalThatFailsWhenServingStopsLeavesNoToken(_ second: UInt64, _ expected: String) {
        var bench = Bench.warm()
        _ = bench.due(1, at: 90)
        #expect(bench.fail(1, at: second) == [expected])
        #expect((bench.machine.heldGrant != nil) == (second < 95))
    }

    /// The token was refused once, by one URL; the flight for its successor is cut off, and not taken up without the challenge.
    @Test(arguments: [(94, ["publish g1 until 95"]), (95, [])] as [(UInt64, [String])])
    func aRefusedTokenIsServedAgainToItsEnd(_ second: UInt64, _ published: [String]) {
        var bench = Bench.warm(AccessTokenPolicy(persist: false, needsChallenge: true))
        #expect(bench.challenge(0, ChallengeReport(generation: 1), at: 90) == ["unpublish", "fly #1 challenged"])
        let actions = lines(bench.machine.epochRose(to: 2, cause: .reload, at: .seconds(second)))
        #expect(actions == ["abandon #1"] + published + ["answer [0] failed unavailable"])
    }

    @Test(arguments: [(94, "fly #1 refreshAhead"), (95, "fly #1 retry")] as [(UInt64, String)])
    func aTimerThatFiresWhenServingStopsHasNothingToRenew(_ second: UInt64, _ expected: String) {
        var bench = Bench.warm(AccessTokenPolicy(persist: false, renewsByTimer: true))
        #expect(bench.tick(at: second) == [expected])
        #expect((bench.machine.heldGrant != nil) == (second < 95))
    }

    // MARK: - Clock and timer

    @Test func aStepOfTheWallClockMakesATokenDueUnlessItIsAlready() {
        var bench = Bench.warm()
        #expect(lines(bench.machine.wallClockJumped(at: .seconds(80))) == [], "due at this moment anyway")
        #expect(lines(bench.machine.wallClockJumped(at: .seconds(80) - 1)) == ["publish g1 until 95"])
        #expect(bench.machine.state(at: .seconds(80) - 1) == .refreshAhead)
        var eager = Bench.warm(AccessTokenPolicy(persist: false, renewsByTimer: true))
        let actions = eager.machine.wallClockJumped(at: .seconds(10))
        #expect(actions.last == .schedule(.seconds(10)))
    }

    @Test func aTimerThatFiresEarlyIsSetAgain() {
        var bench = Bench()
        #expect(bench.machine.missed(from: 0, at: 0).last == .schedule(.seconds(10)))
        #expect(bench.machine.timerFired(at: .seconds(10) - 1) == [.schedule(.seconds(10))])
    }
}
