import Testing

@testable import Tokens

/// What a refusal by an upstream does (docs/design/tokens.md#rule-2, docs/design/tokens.md#rule-3).
@Suite struct ChallengeTests {
    static let refused = ChallengeReport(generation: 1)

    static func replayed(_ generation: UInt64, justGranted: Bool = true) -> ChallengeReport {
        ChallengeReport(generation: generation, isReplay: true, justGranted: justGranted)
    }

    @Test func wish11_ABurstOfRefusalsIsOneGrant() {
        var bench = Bench.warm()
        #expect(bench.challenge(0, Self.refused, at: 5) == ["unpublish", "fly #1 challenged"])
        #expect(bench.challenge(1, Self.refused, at: 5) == [])
        #expect(bench.challenge(2, Self.refused, at: 5) == [])
        #expect(bench.miss(3, at: 5) == [])
        let expected = ["publish g2 until 101", "answer [0, 1, 2, 3] ready g2 new", "report challengeAnswered"]
        #expect(bench.land(1, at: 6) == expected)
    }

    @Test func wish12_ALateRefusalOfAnOlderGenerationReplaysWithTheCurrentOne() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.land(1, at: 6)
        #expect(bench.challenge(1, Self.refused, at: 7) == ["answer [1] ready g2 new"])
        #expect(bench.machine.servedGeneration(at: .seconds(7)) == 2)
    }

    @Test func aChallengeWithoutACredentialReplaysWithTheHeldToken() {
        var bench = Bench.warm()
        #expect(bench.challenge(0, ChallengeReport(generation: 0), at: 5) == ["answer [0] ready g1"])
    }

    @Test func rule3_ARefusalStartsAGrantWhateverTheTokensAge() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.land(1, at: 1)
        #expect(bench.challenge(0, Self.refused, at: 1) == ["unpublish", "fly #2 challenged"])
    }

    @Test func rule3_ARefusalDuringRefreshAheadJoinsIt() {
        var bench = Bench.warm()
        _ = bench.due(1, at: 80)
        #expect(bench.challenge(0, Self.refused, at: 81) == ["unpublish"])
        #expect(bench.land(1, at: 82).contains("answer [0] ready g2 new"))
    }

    // MARK: - The no-regrant window

    /// g2 was granted for a refusal at 6, and its replay is refused at 7.
    static func inWindow(level: Int? = nil) -> Bench {
        var bench = Bench.warm(level: level)
        _ = bench.challenge(0, refused, at: 5)
        _ = bench.land(1, at: 6, level: level)
        #expect(bench.challenge(0, replayed(2), at: 7) == ["answer [0] final", "report challengeRefused"])
        return bench
    }

    @Test func rule3_ARefusedReplayOpensTheWindowAndTheTokenStaysServed() {
        var bench = Self.inWindow()
        #expect(bench.machine.servedGeneration(at: .seconds(7)) == 2)
        let final = ["answer [1] final", "report challengeRefused"]
        #expect(bench.challenge(1, ChallengeReport(generation: 2), at: 7) == final)
        #expect(bench.machine.flight == nil)
    }

    /// The request waited for g2 because g1 was refused at this path.
    @Test func rule3_ARequestThatWaitedForAReplaysTokenCountsAsOne() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.miss(1, at: 5)
        _ = bench.land(1, at: 6)
        let waiter = ChallengeReport(generation: 2, justGranted: true)
        #expect(bench.challenge(1, waiter, at: 7) == ["answer [1] final", "report challengeRefused"])
        #expect(bench.challenge(2, ChallengeReport(generation: 2), at: 7).first == "answer [2] final", "in the window")
        #expect(bench.machine.flight == nil && bench.machine.servedGeneration(at: .seconds(7)) == 2)
    }

    /// At another path it is the first refusal.
    @Test func rule3_ARequestThatWaitedForAnotherPathsReplayIsGrantedForOnce() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.miss(1, at: 5)
        _ = bench.land(1, at: 6)
        let waiter = ChallengeReport(generation: 2, justGranted: true, target: RequestTarget(path: 1))
        #expect(bench.challenge(1, waiter, at: 7) == ["unpublish", "fly #2 challenged"])
    }

    /// A grant that another path has begun meanwhile is had without a cost.
    @Test func rule3_ARequestThatWaitedJoinsAGrantThatIsUnderWay() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.miss(1, at: 5)
        _ = bench.land(1, at: 6)
        _ = bench.challenge(0, ChallengeReport(generation: 2, target: RequestTarget(path: 1)), at: 7)
        #expect(bench.challenge(1, ChallengeReport(generation: 2, justGranted: true), at: 7) == [])
        #expect(bench.land(2, at: 8).contains("answer [0, 1] ready g3 new"))
    }

    /// A long answer that ends in a refusal much later is a revocation's.
    @Test func rule3_ARequestThatWaitedAndIsRefusedLaterIsGrantedFor() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.miss(1, at: 5)
        _ = bench.land(1, at: 6)
        let later = bench.challenge(1, ChallengeReport(generation: 2, justGranted: true), at: 11)
        #expect(later == ["unpublish", "fly #2 challenged"])
    }

    /// A first token that is refused shows nothing yet: it was not granted because another was refused.
    @Test func rule3_ARefusalOfAFirstTokenHoldsNobody() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.land(1, at: 1)
        let first = ChallengeReport(generation: 1, justGranted: true)
        #expect(bench.challenge(0, first, at: 1) == ["unpublish", "fly #2 challenged"])
        #expect(bench.challenge(1, first, at: 1) == [])
    }

    @Test func rule3_OneUnluckyMomentHoldsItsPathForASecondAndNoOther() {
        var bench = Self.inWindow()
        let other = ChallengeReport(generation: 2, target: RequestTarget(path: 1))
        #expect(bench.challenge(1, other, at: 7) == ["unpublish", "fly #2 challenged"])
        _ = bench.land(2, at: 7)
        #expect(bench.challenge(0, ChallengeReport(generation: 3), at: 7).first == "answer [0] final")
        #expect(bench.challenge(0, ChallengeReport(generation: 3), at: 8) == ["unpublish", "fly #3 challenged"])
    }

    @Test func rule3_TheWindowDoublesAsLongAsItGoesOn() {
        var bench = Self.inWindow()
        var (opened, generation) = (UInt64(7), UInt64(2))
        for (turn, span) in ([1, 2, 4, 8, 16, 30, 30] as [UInt64]).enumerated() {
            #expect(bench.challenge(1, ChallengeReport(generation: generation), at: opened + span - 1).count == 2)
            opened += span
            let granted = bench.challenge(0, ChallengeReport(generation: generation), at: opened)
            #expect(granted == ["unpublish", "fly #\(turn + 2) challenged"])
            generation += 1
            _ = bench.land(UInt64(turn) + 2, at: opened)
            #expect(bench.challenge(0, Self.replayed(generation), at: opened).first == "answer [0] final")
        }
        // After as long again without another one, it is the first.
        _ = bench.challenge(0, ChallengeReport(generation: generation), at: opened + 60)
        _ = bench.land(9, at: opened + 60)
        _ = bench.challenge(0, Self.replayed(generation + 1), at: opened + 60)
        let granted = bench.challenge(0, ChallengeReport(generation: generation + 1), at: opened + 61)
        #expect(granted == ["unpublish", "fly #10 challenged"])
    }

    /// Each request has a path of its own, and each grant's token is refused: the fourth path is held without a grant.
    @Test func rule3_ARouteIsHeldAfterThreeOfItsPaths() {
        var bench = Bench.warm()
        var grants: UInt64 = 0
        for path in 0..<8 {
            let target = RequestTarget(route: 5, path: path)
            let report = ChallengeReport(generation: bench.generation, target: target)
            guard bench.challenge(0, report, at: 5).first == "unpublish" else { continue }
            grants += 1
            _ = bench.land(grants, at: 5)
            let again = ChallengeReport(
                generation: bench.generation, isReplay: true, justGranted: true, target: target)
            #expect(bench.challenge(0, again, at: 5).first == "answer [0] final")
        }
        #expect(grants == 3)
        let other = ChallengeReport(generation: bench.generation, target: RequestTarget(route: 6, path: 9))
        #expect(bench.challenge(0, other, at: 5).first == "unpublish", "another route of the key is not")
    }

    /// A burst that was sent the same token twice revoked is one moment, whatever the number of its paths.
    @Test func rule3_ABurstIsOneRefusal() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.land(1, at: 6)
        for path in 0..<40 {
            let report = ChallengeReport(
                generation: 2, isReplay: true, justGranted: true, target: RequestTarget(path: path))
            _ = bench.challenge(0, report, at: 6)
        }
        let next = ChallengeReport(generation: 2, target: RequestTarget(path: 41))
        #expect(bench.challenge(0, next, at: 6) == ["unpublish", "fly #2 challenged"])
    }

    @Test func rule3_OneUrlThatAlwaysRefusesNeverHoldsItsRoute() {
        var bench = Bench.warm()
        var grants: UInt64 = 0
        for second in 5..<600 as Range<UInt64> {
            let target = RequestTarget(path: 1)
            let report = ChallengeReport(generation: bench.generation, target: target)
            guard bench.challenge(0, report, at: second).first == "unpublish" else { continue }
            grants += 1
            _ = bench.land(grants, at: second)
            let again = ChallengeReport(
                generation: bench.generation, isReplay: true, justGranted: true, target: target)
            _ = bench.challenge(0, again, at: second)
            #expect(!bench.machine.windows.holds(RequestTarget(path: 2), at: .seconds(second)))
        }
        #expect((5...30).contains(grants))
    }

    @Test func rule3_TheWindowEndsAndIsNotProlongedByFurtherRefusals() {
        var bench = Self.inWindow()
        for _ in 0..<9 { _ = bench.challenge(1, Self.replayed(2), at: 7) }
        let granted = bench.challenge(1, ChallengeReport(generation: 2), at: 8)
        #expect(granted == ["unpublish", "fly #2 challenged"])
    }

    @Test func rule3_OnlyTheReplayWithAJustGrantedTokenOpensTheWindow() {
        var bench = Bench.warm()
        let answered = bench.challenge(0, Self.replayed(1, justGranted: false), at: 5)
        #expect(answered == ["answer [0] final", "report challengeRefused", "unpublish", "fly #1 challenged"])
        #expect(bench.machine.windows == RegrantWindows())
        #expect(bench.land(1, at: 6) == ["publish g2 until 101", "report challengeAnswered"])
    }

    @Test func rule3_AReplayThatIsRefusedWithAnOutdatedTokenIsFinalForItsCallerOnly() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        _ = bench.land(1, at: 6)
        #expect(bench.challenge(1, Self.replayed(1), at: 7) == ["answer [1] final", "report challengeRefused"])
        #expect(bench.machine.windows == RegrantWindows() && bench.machine.flight == nil)
    }

    @Test func rule3_RenewalByTimeGoesOnInTheWindow() {
        var bench = Self.inWindow()
        #expect(bench.due(2, at: 7) == ["fly #2 refreshAhead"])
        _ = bench.land(2, at: 7)
        #expect(bench.challenge(0, ChallengeReport(generation: 3), at: 7).first == "answer [0] final")
    }

    // MARK: - Step-up

    static func level(_ level: Int, generation: UInt64) -> ChallengeReport {
        ChallengeReport(generation: generation, demand: .level(level))
    }

    @Test func oam_AHigherLevelIsAMissNotARefusal() {
        var bench = Bench.warm(level: 1)
        #expect(bench.challenge(0, Self.level(2, generation: 1), at: 5) == ["fly #1 steppedUp"])
        #expect(bench.machine.servedGeneration(at: .seconds(5)) == 1)
        #expect(bench.land(1, at: 6, level: 2).contains("answer [0] ready g2 new"))
    }

    @Test(arguments: [1, 2])
    func oam_AnEqualOrLowerLevelIsARefusal(_ level: Int) {
        var bench = Bench.warm(level: 2)
        #expect(bench.challenge(0, Self.level(level, generation: 1), at: 5) == ["unpublish", "fly #1 challenged"])
    }

    @Test func rule3_AStepUpPassesTheWindowThreeTimes() {
        var bench = Self.inWindow(level: 1)
        for step in 0..<3 as Range<UInt64> {
            let report = Self.level(Int(step) + 2, generation: 2 + step)
            #expect(bench.challenge(0, report, at: 7) == ["fly #\(step + 2) steppedUp"])
            _ = bench.land(step + 2, at: 7, level: Int(step) + 2)
        }
        #expect(bench.challenge(0, Self.level(9, generation: 5), at: 7).first == "answer [0] final")
        #expect(bench.challenge(0, Self.level(9, generation: 5), at: 40) == ["fly #5 steppedUp"])
    }

    @Test func aFailedStepUpLeavesTheTokenServed() {
        var bench = Bench.warm(level: 1)
        _ = bench.challenge(0, Self.level(2, generation: 1), at: 5)
        #expect(bench.fail(1, at: 6) == ["answer [0] failed unavailable", "report renewal failed unavailable"])
        #expect(bench.machine.servedGeneration(at: .seconds(6)) == 1)
    }

    @Test func aReplayThatIsAskedForMoreIsFinalWithoutAWindow() {
        var bench = Bench.warm(level: 1)
        var report = Self.level(2, generation: 1)
        report.isReplay = true
        report.justGranted = true
        #expect(bench.challenge(0, report, at: 5) == ["answer [0] final", "report challengeRefused"])
        #expect(bench.machine.windows == RegrantWindows())
    }

    @Test func aWiderScopeIsAStepUp() {
        var bench = Bench.warm()
        let report = ChallengeReport(generation: 1, demand: .lacking(["b"]))
        #expect(bench.challenge(0, report, at: 5) == ["fly #1 steppedUp"])
    }

    /// Holds a token of another gateway, to which the issuer gave more than anybody may ask for.
    private static func sharing() -> Bench {
        var bench = Bench(AccessTokenPolicy(persist: false, allowedScopes: ["a", "b"]))
        _ = bench.miss(0, at: 0)
        var grant = bench.grant(at: 0)
        (grant.asked, grant.granted, grant.isShared) = ([], ["a", "x"], true)
        _ = bench.machine.landed(bench.token(1), grant, at: 0)
        return bench
    }

    @Test func aWiderScopeIsAskedForBesideThoseThatAnotherGatewayHasGot() {
        var bench = Self.sharing()
        let report = ChallengeReport(generation: bench.generation, demand: .lacking(["b"]))
        #expect(bench.challenge(0, report, at: 5) == ["fly #2 steppedUp"])
        #expect(bench.machine.flight?.scopes == ["a", "b"])
    }

    /// The other gateways would have the narrower token from it, and be challenged for what they had.
    @Test func neitherARenewalNorARefusalNarrowsWhatAnotherGatewayHasGot() {
        var bench = Self.sharing()
        let report = ChallengeReport(generation: bench.generation)
        #expect(bench.challenge(0, report, at: 5) == ["unpublish", "fly #2 challenged"])
        #expect(bench.machine.flight?.scopes == ["a"])
        bench = Self.sharing()
        #expect(bench.due(bench.generation, at: 80) == ["fly #2 refreshAhead"])
        #expect(bench.machine.flight?.scopes == ["a"])
    }

    @Test func scopesThatWereAskedForAreNotAskedForAgainInVain() {
        var bench = Bench.warm()
        var report = ChallengeReport(generation: 1, demand: .lacking(["a"]))
        #expect(bench.challenge(0, report, at: 5) == ["fly #1 steppedUp"])
        _ = bench.land(1, at: 6)
        report.generation = bench.machine.heldGrant?.generation ?? 0
        (report.isReplay, report.justGranted) = (true, true)
        #expect(bench.challenge(0, report, at: 7) == ["answer [0] final", "report challengeRefused"])
        #expect(bench.machine.windows == RegrantWindows(), "a revoked token is replaced all the same")
        (report.isReplay, report.justGranted) = (false, false)
        #expect(bench.challenge(0, report, at: 7) == ["answer [0] final", "report challengeRefused"])
        report.target.route = 6
        #expect(bench.challenge(0, report, at: 7) == ["fly #2 steppedUp"], "another route of the key is not held")
        _ = bench.land(2, at: 7)
        report.target.route = 0
        report.generation = 3
        report.demand = .lacking(["b"])
        #expect(bench.challenge(0, report, at: 7) == ["fly #3 steppedUp"], "other scopes are")
    }

    /// The upstream asks for a scope that the token has, each time: the windows grow as those of refusals do
    /// (docs/design/tokens.md#rule-3).
    @Test func aScopeThatIsNeverEnoughIsAskedForLessAndLess() {
        var bench = Bench.warm()
        var granted: [UInt64] = []
        for second in 5..<80 as Range<UInt64> {
            var report = ChallengeReport(
                generation: bench.machine.heldGrant?.generation ?? 0, demand: .lacking(["a"]))
            guard bench.challenge(0, report, at: second).first?.hasPrefix("fly") == true else { continue }
            granted.append(second)
            _ = bench.land(UInt64(granted.count), at: second)
            (report.generation, report.isReplay, report.justGranted) = (bench.generation, true, true)
            // However many were under way with it.
            for _ in 0..<3 { _ = bench.challenge(0, report, at: second) }
        }
        #expect(granted == [5, 6, 8, 12, 20, 36, 66])
    }

    /// However fast the requests come.
    @Test(arguments: [100, 1000] as [UInt64])
    func levelsWithoutAnEndCostAtMostTwentyGrantsIn150Requests(_ pace: UInt64) {
        var bench = Bench.warm(level: 1)
        var (grants, early) = (UInt64(0), UInt64(0))
        for turn in 0..<150 as Range<UInt64> {
            let now: Instant = .seconds(5) + .milliseconds(pace * turn)
            let generation = bench.machine.heldGrant?.generation ?? 0
            let level = 2 + Int(turn)
            let answer = lines(bench.machine.challenged(from: 0, Self.level(level, generation: generation), at: now))
            guard answer.first?.hasPrefix("fly") == true else { continue }
            grants += 1
            if now < .seconds(6) { early += 1 }
            bench.generation += 1
            let lifetime = LifetimePolicy().lifetime(sentAt: now, expiresIn: 100, jitter: 0)
            let grant = Grant(generation: bench.generation, lifetime: lifetime, level: level)
            _ = bench.machine.landed(bench.token(grants), grant, at: now)
            var again = Self.level(level + 1, generation: bench.generation)
            (again.isReplay, again.justGranted) = (true, true)
            #expect(lines(bench.machine.challenged(from: 0, again, at: now)).first == "answer [0] final")
        }
        #expect(grants <= 20, "\(grants)")
        // One who needs a few levels more is not held up by it.
        #expect(pace == 1000 || early == 4, "\(early)")
    }

    // MARK: - With the issuer down

    @Test func wish17_ARefusedTokenIsNeverTheAnswerToItsRefusal() {
        for policy in [AccessTokenPolicy(persist: false), RenewalTests.grace, RenewalTests.strict] {
            var bench = Bench.warm(policy)
            _ = bench.challenge(0, Self.refused, at: 5)
            #expect(bench.fail(1, at: 6).contains("answer [0] failed unavailable"))
            #expect(bench.challenge(1, Self.refused, at: 6) == ["answer [1] failed unavailable"])
        }
    }

    @Test func oneBadPathDoesNotCutOffTheOthersWhileTheIssuerIsDown() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        let expected = [
            "publish g1 until 95", "answer [0] failed unavailable", "report renewal failed unavailable",
        ]
        #expect(bench.fail(1, at: 6) == expected)
        #expect(bench.machine.state(at: .seconds(6)) == .renewalFailing)
    }

    @Test func aRefusedTokenGetsNoGrace() {
        var bench = Bench.warm(RenewalTests.grace)
        _ = bench.challenge(0, Self.refused, at: 94)
        #expect(bench.fail(1, at: 97) == ["answer [0] failed unavailable", "report acquisition failed unavailable"])
    }

    @Test func aRefusedTokenWhoseCredentialIsRejectedIsGone() {
        var bench = Bench.warm()
        _ = bench.challenge(0, Self.refused, at: 5)
        #expect(
            bench.fail(1, .credentialRejected, at: 6) == ["answer [0] failed rejected", "report credentialQuarantined"])
        #expect(bench.machine.servedGeneration(at: .seconds(6)) == nil)
        #expect(bench.challenge(0, Self.refused, at: 7) == ["answer [0] failed rejected"])
    }

    @Test func whereTheSecretIsTheTokenARefusalIsFinal() {
        var bench = Bench.warm(AccessTokenPolicy(persist: false, canRegrant: false))
        #expect(bench.challenge(0, Self.refused, at: 5) == ["answer [0] final", "report challengeRefused"])
        #expect(bench.machine.servedGeneration(at: .seconds(5)) == 1)
    }
}
