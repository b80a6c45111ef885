import Testing

@testable import Tokens

/// The end of quarantines, pauses and windows by a new secret, changed settings or an operator
/// (docs/design/tokens.md#rule-8, docs/design/tokens.md#rule-9).
@Suite struct RefusalLiftTests {
    static let eager = AccessTokenPolicy(persist: false, renewsByTimer: true)

    enum Lift: CaseIterable {
        case secret, settings, reset

        /// The settings that are told as changed are those of before.
        func apply(to bench: inout Bench, at second: UInt64) -> [String] {
            switch self {
            case .secret: lines(bench.machine.secretChanged(to: 2, at: .seconds(second)))
            case .settings: lines(bench.machine.settingsChanged(to: bench.machine.policy, at: .seconds(second)))
            case .reset: lines(bench.machine.epochRose(to: 2, cause: .reset, at: .seconds(second)))
            }
        }
    }

    @Test(
        arguments: Lift.allCases, [.credentialRejected, .issuerUnavailable(retryAfter: .seconds(60))] as [GrantFailure])
    func aKeyThatIsToHaveATokenAlwaysTriesAtOnce(_ lift: Lift, _ failure: GrantFailure) {
        var bench = Bench(Self.eager)
        #expect(lines(bench.machine.startupRequested(at: 0)) == ["fly #1 startup"])
        _ = bench.fail(1, failure, at: 1)
        #expect(lift.apply(to: &bench, at: 2) == ["fly #2 retry"])
    }

    @Test(arguments: Lift.allCases)
    func whereNothingWasRefusedNothingIsTried(_ lift: Lift) {
        var bench = Bench(Self.eager)
        #expect(lift.apply(to: &bench, at: 2) == [])
        #expect(!bench.machine.isBusy)
    }

    @Test(arguments: Lift.allCases)
    func aKeyThatNeedsAChallengeTriesNothingByItself(_ lift: Lift) {
        var bench = Bench(AccessTokenPolicy(persist: false, renewsByTimer: true, needsChallenge: true))
        _ = bench.challenge(0, ChallengeReport(generation: 0), at: 0)
        _ = bench.fail(1, .credentialRejected, at: 1)
        #expect(lift.apply(to: &bench, at: 2) == [])
    }

    /// A step-up failed and left a token whose refresh point is at 80.
    @Test(arguments: Lift.allCases, [79, 80] as [UInt64])
    func aTokenThatIsNotDueYetIsNotRenewedForIt(_ lift: Lift, _ second: UInt64) {
        var bench = Bench.warm(Self.eager, level: 1)
        _ = bench.challenge(0, ChallengeReport(generation: 1, demand: .level(2)), at: 50)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(60)), at: 50)
        #expect(bench.machine.pausedUntil == .seconds(110))
        #expect(lift.apply(to: &bench, at: second) == (second < 80 ? [] : ["fly #2 retry"]))
        #expect(bench.machine.nextAttempt == (second < 80 ? .seconds(80) : nil))
    }

    @Test(arguments: Lift.allCases)
    func aPauseThatIsLiftedIsOverAndTheNextIsAFirstOne(_ lift: Lift) throws {
        var bench = Bench()
        for turn in 1...6 as ClosedRange<UInt64> {
            _ = bench.miss(0, at: turn * 100)
            _ = bench.fail(turn, at: turn * 100)
        }
        #expect(bench.miss(1, at: 601) == ["answer [1] failed unavailable"])
        #expect(lift.apply(to: &bench, at: 601) == [])
        #expect(bench.miss(1, at: 601) == ["fly #7 missed"])
        let token = try #require(bench.machine.flight).token
        _ = bench.machine.failed(token, Bench.unavailable, at: .seconds(601))
        #expect(try #require(bench.machine.pausedUntil) <= .seconds(601) + Backoff.first)
    }

    @Test func changedSettingsHoldForTheNextRequest() {
        var bench = Bench()
        let offline = AccessTokenPolicy(persist: false, connectivity: .offline)
        #expect(lines(bench.machine.settingsChanged(to: offline, at: 0)) == [])
        #expect(bench.miss(0, at: 1) == ["answer [0] failed notPermitted"])
        #expect(lines(bench.machine.settingsChanged(to: AccessTokenPolicy(persist: false), at: .seconds(2))) == [])
        #expect(bench.miss(0, at: 2) == ["fly #1 missed"])
    }

    @Test(arguments: [EpochCause.purge, .logout])
    func aPauseDoesNotOutliveItsToken(_ cause: EpochCause) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(60)), at: 0)
        _ = bench.machine.epochRose(to: 2, cause: cause, at: .seconds(1))
        #expect(bench.machine.state(at: .seconds(1)) == .empty)
        #expect(bench.miss(0, at: 1) == ["fly #2 missed"])
    }

    static let causes: [(EpochCause, Bool)] = [(.purge, true), (.logout, true), (.reset, true), (.reload, false)]

    /// The path has refused a token that was just granted.
    @Test(arguments: causes)
    func windowsOfRefusalsEndButByAReload(_ cause: EpochCause, isForgotten: Bool) {
        var bench = ChallengeTests.inWindow()
        _ = bench.machine.epochRose(to: 2, cause: cause, at: .seconds(7))
        _ = bench.machine.adopted(bench.grant(at: 7), from: .configuration, at: .seconds(7))
        let actions = bench.challenge(1, ChallengeReport(generation: bench.generation), at: 7)
        #expect(actions.first == (isForgotten ? "unpublish" : "answer [1] final"))
        #expect(bench.machine.isBusy == isForgotten)
    }

    /// The route asks for a scope that the token was just granted.
    @Test(arguments: causes)
    func windowsOfDemandsThatNothingMeetsEndButByAReload(_ cause: EpochCause, isForgotten: Bool) {
        var bench = Bench.warm()
        var report = ChallengeReport(generation: 1, demand: .lacking(["a"]))
        #expect(bench.challenge(0, report, at: 5) == ["fly #1 steppedUp"])
        _ = bench.land(1, at: 6)
        (report.generation, report.isReplay, report.justGranted) = (2, true, true)
        #expect(bench.challenge(0, report, at: 7).first == "answer [0] final")
        _ = bench.machine.epochRose(to: 2, cause: cause, at: .seconds(7))
        var grant = bench.grant(at: 7)
        grant.granted = ["a"]
        _ = bench.machine.adopted(grant, from: .configuration, at: .seconds(7))
        (report.generation, report.isReplay, report.justGranted) = (3, false, false)
        let expected = isForgotten ? ["fly #2 steppedUp"] : ["answer [0] final", "report challengeRefused"]
        #expect(bench.challenge(0, report, at: 7) == expected)
    }
}
