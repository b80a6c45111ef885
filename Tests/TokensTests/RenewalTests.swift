import HotCache
import Testing

@testable import Tokens

/// Refresh-ahead, renewal failing, grace, negative, quarantine (docs/design/tokens.md#states).
@Suite struct RenewalTests {
    static let grace = AccessTokenPolicy(onIssuerFailure: .serveExpired(.seconds(60)), persist: false)
    static let strict = AccessTokenPolicy(onIssuerFailure: .fail, persist: false)

    @Test func wish20_TheFirstUsePastTheRefreshPointStartsOneBackgroundFlight() {
        var bench = Bench.warm()
        #expect(bench.machine.state(at: .seconds(79)) == .fresh)
        #expect(bench.machine.state(at: .seconds(80)) == .refreshAhead)
        #expect(bench.due(1, at: 81) == ["fly #1 refreshAhead"])
        #expect(bench.due(1, at: 81) == [])
        #expect(bench.land(1, at: 82) == ["publish g2 until 177", "report tokenRefreshed"])
        #expect(bench.due(1, at: 83) == [])
    }

    @Test func aWishToRenewThatMeetsAPauseIsGrantedAtItsEnd() {
        var bench = Bench.warm(level: 1)
        _ = bench.challenge(0, ChallengeReport(generation: 1, demand: .level(2)), at: 79)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(5)), at: 79)
        #expect(bench.machine.nextAttempt == nil)
        #expect(bench.due(1, at: 80) == [])
        #expect(bench.tick(at: 84) == ["fly #2 retry"])
    }

    @Test func aStepUpThatMeetsAPauseHasNoGrantMadeForLess() {
        var bench = Bench.warm(level: 1)
        let report = ChallengeReport(generation: 1, demand: .level(2))
        _ = bench.challenge(0, report, at: 5)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(5)), at: 5)
        #expect(bench.challenge(1, report, at: 6) == ["answer [1] failed unavailable"])
        #expect(bench.machine.nextAttempt == nil)
    }

    @Test func aWishToRenewDuringAStepUpThatFailsIsGrantedAfterIt() {
        var bench = Bench.warm(level: 1)
        _ = bench.challenge(0, ChallengeReport(generation: 1, demand: .level(2)), at: 79)
        #expect(bench.due(1, at: 81) == [])
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(5)), at: 82)
        #expect(bench.tick(at: 87) == ["fly #2 retry"])
    }

    @Test func renewalByTimerOnlyForStartupKeys() {
        var lazy = Bench.warm()
        #expect(lazy.machine.nextAttempt == nil)
        #expect(lazy.tick(at: 85) == [])
        var eager = Bench.warm(AccessTokenPolicy(persist: false, renewsByTimer: true))
        #expect(eager.machine.nextAttempt == .seconds(80))
        #expect(eager.tick(at: 80) == ["fly #1 refreshAhead"])
    }

    @Test func startupAsksOnceAndKeepsTrying() {
        var bench = Bench(AccessTokenPolicy(persist: false, renewsByTimer: true))
        #expect(lines(bench.machine.startupRequested(at: 0)) == ["fly #1 startup"])
        #expect(lines(bench.machine.startupRequested(at: 0)) == [])
        #expect(bench.fail(1, at: 1) == ["report acquisition failed unavailable"])
        #expect(bench.tick(at: 2) == ["fly #2 retry"])
        #expect(bench.land(2, at: 3).first == "publish g1 until 98")
    }

    @Test func wish28_AFailedRenewalLeavesAValidTokenServed() {
        var bench = Bench.warm()
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, at: 81) == ["report renewal failed unavailable"])
        #expect(bench.machine.state(at: .seconds(81)) == .renewalFailing)
        #expect(bench.due(1, at: 81) == [])
        #expect(bench.tick(at: 82) == ["fly #2 retry"])
        #expect(bench.land(2, at: 83) == ["publish g2 until 178", "report tokenRefreshed"])
        #expect(bench.machine.state(at: .seconds(84)) == .fresh)
    }

    @Test func wish18_AnExpiredTokenIsNotServedOnSilently() {
        var bench = Bench.warm()
        _ = bench.due(1, at: 94)
        _ = bench.fail(1, at: 94)
        #expect(bench.miss(0, at: 96) == ["fly #2 missed"])
        #expect(bench.fail(2, at: 96) == ["answer [0] failed unavailable", "report acquisition failed unavailable"])
        #expect(bench.machine.servedGeneration(at: .seconds(96)) == nil)
    }

    @Test func onIssuerFailureFailStopsServingWhenARenewalFails() {
        var bench = Bench.warm(Self.strict)
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, at: 81) == ["unpublish", "report acquisition failed unavailable"])
        #expect(bench.miss(0, at: 81) == ["answer [0] failed unavailable"])
    }

    @Test func onIssuerFailureFailStopsServingWhenTheCredentialIsRejected() {
        var bench = Bench.warm(Self.strict)
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, .credentialRejected, at: 81) == ["unpublish", "report credentialQuarantined"])
        #expect(bench.machine.servedGeneration(at: .seconds(81)) == nil)
    }

    @Test func serveExpiredForStretchesTheTokenOnceItsRenewalFails() {
        var bench = Bench.warm(Self.grace)
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, at: 81) == ["publish g1 until 160", "report renewal failed unavailable"])
        #expect(bench.machine.state(at: .seconds(90)) == .renewalFailing)
        #expect(bench.machine.state(at: .seconds(101)) == .expiredGrace)
        #expect(bench.tick(at: 101) == ["fly #2 retry"])
        #expect(bench.fail(2, at: 102) == ["report renewal failed unavailable"])
        #expect(bench.machine.state(at: .seconds(160)) != .expiredGrace)
        #expect(bench.tick(at: 170) == ["fly #3 retry"])
        #expect(bench.fail(3, at: 171) == ["report acquisition failed unavailable"])
        #expect(bench.machine.state(at: .seconds(171)) != .expiredGrace)
    }

    /// The loops go by the times that were published.
    @Test(
        arguments: [
            (.serveValid, 92, "publish g1 until 95"), (.serveValid, 120, "unpublish"), (.fail, 96, "unpublish"),
            (.serveExpired(.seconds(30)), 120, "publish g1 until 130"),
        ] as [(AccessTokenPolicy.OnIssuerFailure, UInt64, String)])
    func aReloadThatEndsAGraceIsToldToTheLoops(
        _ changed: AccessTokenPolicy.OnIssuerFailure, _ second: UInt64, _ expected: String
    ) {
        var bench = Bench.warm(AccessTokenPolicy(onIssuerFailure: .serveExpired(.seconds(60)), persist: false))
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, at: 90).first == "publish g1 until 160")
        let policy = AccessTokenPolicy(onIssuerFailure: changed, persist: false)
        #expect(lines(bench.machine.settingsChanged(to: policy, at: .seconds(second))) == [expected])
        #expect(lines(bench.machine.settingsChanged(to: policy, at: .seconds(second))) == [], "once")
    }

    @Test func serveExpiredForHelpsACallerWhoMeetsTheOutageFirst() {
        var bench = Bench.warm(Self.grace)
        #expect(bench.miss(0, at: 98) == ["fly #1 missed"])
        let expected = ["publish g1 until 160", "answer [0] ready g1", "report renewal failed unavailable"]
        #expect(bench.fail(1, at: 99) == expected)
    }

    // MARK: - Negative

    @Test func aNegativeKeyAnswersAtOnceAndMakesOneTryAtItsEnd() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(20)), at: 0)
        #expect(bench.machine.state(at: .seconds(1)) == .negative(until: .seconds(20)))
        let refused = bench.machine.missed(from: 1, at: .seconds(5))
        #expect(
            refused.first
                == .answer(.loop(1), .failed(.issuerUnavailable(retryAfter: .seconds(20)), retryAfter: .seconds(15))))
        #expect(bench.tick(at: 19) == [])
        #expect(bench.tick(at: 20) == ["fly #2 retry"])
    }

    @Test func aNegativeKeyThatNobodyAskedForIsLeftAlone() {
        var bench = Bench.warm(Self.strict)
        _ = bench.due(1, at: 80)
        _ = bench.fail(1, at: 81)
        #expect(bench.machine.nextAttempt == nil)
        #expect(bench.miss(0, at: 120) == ["fly #2 missed"])
    }

    @Test func wish27_RetryAfterIsObeyedUpToFiveMinutesAndIsNoRejection() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(100_000)), at: 0)
        #expect(bench.machine.state(at: 0) == .negative(until: .seconds(300)))
        #expect(bench.machine.blocked == nil)
    }

    @Test(arguments: [
        GrantFailure.issuerUnavailable(retryAfter: nil), .issuerAnswerInvalid, .timedOut, .configuration, .policyDenied,
        .notPermitted(retryAfter: nil),
    ])
    func wish19_EveryFailureButARejectionIsTriedAgain(_ failure: GrantFailure) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, failure, at: 0)
        #expect(bench.miss(0, at: 31) == ["fly #2 missed"])
    }

    @Test func wish26_WaitsDoubleAndStayWithinNegativeFor() {
        var backoff = Backoff(seed: 7)
        var longest: Nanoseconds = 0
        for round in 0..<64 as Range<UInt64> {
            let full = min(Nanoseconds.seconds(1 << min(round, 10)), .seconds(30))
            let wait = backoff.failed(retryAfter: nil, limit: .seconds(30))
            #expect(wait >= full / 2 && wait <= full)
            longest = max(longest, wait)
        }
        #expect(longest > .seconds(15))
        backoff.succeeded()
        #expect(backoff.failed(retryAfter: nil, limit: .seconds(30)) <= .seconds(1))
    }

    // MARK: - Quarantine

    @Test(arguments: [GrantFailure.credentialRejected, .interactionRequired])
    func aRejectedCredentialStopsEverything(_ failure: GrantFailure) {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let event = failure == .credentialRejected ? "credentialQuarantined" : "loginNeeded"
        #expect(bench.fail(1, failure, at: 1) == ["answer [0] failed \(text(failure))", "report \(event)"])
        #expect(bench.machine.state(at: .seconds(1)) == (failure == .credentialRejected ? .quarantined : .loginNeeded))
        #expect(bench.miss(0, at: 100_000) == ["answer [0] failed \(text(failure))"])
        #expect(bench.machine.nextAttempt == nil)
        #expect(bench.tick(at: 100_001) == [])
    }

    @Test func aNewSecretOrAResetLiftsTheQuarantine() {
        for lift in 0..<2 {
            var bench = Bench()
            _ = bench.miss(0, at: 0)
            _ = bench.fail(1, .credentialRejected, at: 1)
            if lift == 0 {
                #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(2))) == [])
            } else {
                #expect(lines(bench.machine.epochRose(to: 2, cause: .reset, at: .seconds(2))) == [])
            }
            #expect(bench.miss(0, at: 3) == ["fly #2 missed"])
        }
    }

    @Test func aPurgeDoesNotLiftAQuarantine() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .credentialRejected, at: 1)
        _ = bench.machine.epochRose(to: 2, cause: .purge, at: .seconds(2))
        #expect(bench.miss(0, at: 3) == ["answer [0] failed rejected"])
    }

    @Test func aRejectedRenewalLetsTheValidTokenLiveToItsEnd() {
        var bench = Bench.warm()
        _ = bench.due(1, at: 80)
        #expect(bench.fail(1, .credentialRejected, at: 81) == ["report credentialQuarantined"])
        #expect(bench.machine.servedGeneration(at: .seconds(94)) == 1)
        #expect(bench.due(1, at: 85) == [])
        #expect(bench.miss(0, at: 95) == ["answer [0] failed rejected"])
    }

    @Test func rule8_AChangedSecretPurgesNothing() {
        var bench = Bench.warm()
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == [])
        #expect(bench.machine.servedGeneration(at: .seconds(1)) == 1)
    }

    @Test func aWallClockJumpMakesTheTokenRefreshDue() {
        var bench = Bench.warm()
        let actions = bench.machine.wallClockJumped(at: .seconds(10))
        guard case .publish(let fields) = actions.first else {
            Issue.record("not published")
            return
        }
        #expect(fields.refreshAt == .seconds(10) && fields.servedUntil == .seconds(95))
        #expect(bench.due(1, at: 11) == ["fly #1 refreshAhead"])
    }

    @Test func wish22_FiveSecondTokensAreRenewedForEver() {
        var bench = Bench(AccessTokenPolicy(persist: false, renewsByTimer: true))
        _ = bench.machine.startupRequested(at: 0)
        var now: Instant = 0
        for round in 1...2_000 as ClosedRange<UInt64> {
            let lifetime = LifetimePolicy().lifetime(
                sentAt: now, expiresIn: 5, jitter: UInt32(truncatingIfNeeded: round))
            _ = bench.machine.landed(bench.token(round), Grant(generation: round, lifetime: lifetime), at: now)
            guard let next = bench.machine.nextAttempt, next < lifetime.stopServingAt else {
                Issue.record("no renewal after \(round)")
                return
            }
            now = next
            #expect(lines(bench.machine.timerFired(at: now)) == ["fly #\(round + 1) refreshAhead"])
        }
    }
}
