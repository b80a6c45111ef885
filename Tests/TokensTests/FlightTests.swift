import Testing

@testable import Tokens

/// Flights (docs/design/tokens.md#rule-1, docs/design/tokens.md#rule-4, docs/design/tokens.md#rule-9) and the states of a key that
/// nobody challenges.
@Suite struct FlightTests {
    /// What another gateway was granted ends a flight only where it is what its waiters were challenged for.
    @Test(arguments: [
        (Flight.Reason.steppedUp, ["b", "c"], ["a", "b", "c"], true), (.steppedUp, ["b", "c"], ["a", "b"], false),
        (.challenged, ["b"], ["b"], true), (.restarted, ["b"], ["a"], false), (.refreshAhead, ["b"], ["a"], true),
        (.missed, [], [], true), (.challenged, [], [], true),
    ])
    func anothersTokenIsTakenForWhatIsOwed(
        _ reason: Flight.Reason, _ asked: [ByteString], _ granted: [ByteString], isTaken: Bool
    ) {
        let configured: ScopeSet = ["a"]
        var bench = Bench()
        bench.machine.scopes = configured
        _ = bench.machine.start(reason, for: Demand(scopes: ScopeSet(asked)), at: 0)
        #expect(bench.machine.accepts(granted: ScopeSet(granted), configured: configured) == isTaken)
    }

    /// Whoever is challenged while a renewal is under way that asks for as much is owed it by then.
    @Test func anothersTokenEndsNoRenewalForWhichSomebodyWaitsWhoWasChallenged() {
        var bench = Bench.warm()
        bench.machine.scopes = ["a", "b"]
        #expect(bench.due(1, at: 81) == ["fly #1 refreshAhead"])
        #expect(bench.machine.accepts(granted: ["a"], configured: []))
        #expect(bench.challenge(0, ChallengeReport(generation: 1, demand: .lacking(["b"])), at: 81) == [])
        #expect(!bench.machine.accepts(granted: ["a"], configured: []))
        #expect(bench.machine.accepts(granted: ["b"], configured: []))
    }

    @Test func rule1_FollowersGetTheLeadersTokenAndEachLoopOneAnswer() {
        var bench = Bench()
        #expect(bench.miss(0, at: 0) == ["fly #1 missed"])
        #expect(bench.miss(2, at: 0) == [])
        #expect(bench.miss(2, at: 1) == [])
        #expect(bench.machine.state(at: .seconds(1)) == .acquiring)
        #expect(bench.land(1, at: 2) == ["publish g1 until 97", "answer [0, 2] ready g1 new", "report tokenAcquired"])
        #expect(bench.machine.state(at: .seconds(3)) == .fresh)
        #expect(bench.miss(1, at: 3) == ["publish g1 until 97", "answer [1] ready g1"])
    }

    @Test func rule1_FollowersGetTheLeadersFailure() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.miss(3, at: 0)
        #expect(bench.fail(1, at: 1) == ["answer [0, 3] failed unavailable", "report acquisition failed unavailable"])
        #expect(bench.miss(1, at: 1) == ["answer [1] failed unavailable"])
    }

    @Test func rule1_EveryWaitIsBoundedAndALateTokenIsStillUsed() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(bench.tick(at: 9) == [])
        #expect(bench.tick(at: 10) == ["answer [0] failed timedOut"])
        #expect(bench.miss(1, at: 11) == ["answer [1] failed timedOut"])
        #expect(bench.land(1, at: 12) == ["publish g1 until 107", "report tokenAcquired"])
    }

    @Test func rule1_AFlightThatNeverLandsIsAbandoned() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.tick(at: 10)
        #expect(bench.tick(at: 30) == ["abandon #1", "report acquisition failed timedOut"])
        #expect(bench.miss(0, at: 40) == ["fly #2 missed"])
        #expect(bench.land(1, at: 41) == ["discard #1"])
    }

    /// A program may take longer than callers wait three times: another run beside it would not be quicker.
    @Test func rule1_AFlightThatHasItsOwnTimeIsNotAbandonedBefore() {
        var policy = AccessTokenPolicy(persist: false)
        policy.flightTime = .seconds(62)
        var bench = Bench(policy)
        _ = bench.miss(0, at: 0)
        _ = bench.tick(at: 10)
        #expect(bench.tick(at: 61) == [])
        #expect(bench.tick(at: 62) == ["abandon #1", "report acquisition failed timedOut"])
    }

    // MARK: - Rule 4 (docs/design/tokens.md#rule-4) (docs/design/tokens.md#rule-4)

    @Test func rule4_CommitComesBeforePublication() {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.miss(0, at: 0)
        #expect(bench.land(1, at: 1) == ["commit g1"])
        #expect(bench.miss(1, at: 1) == [])
        let actions = bench.machine.committed(generation: 1, succeeded: true, at: .seconds(1))
        #expect(lines(actions) == ["publish g1 until 96", "answer [0, 1] ready g1 new", "report tokenAcquired"])
    }

    @Test func rule4_AnAccessTokenWaitsAtMost100Milliseconds() {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.machine.missed(from: 0, at: 0)
        let landed = bench.machine.landed(bench.token(1), bench.grant(at: 0), at: 0)
        #expect(landed == [.commit(generation: 1), .schedule(.milliseconds(100))])
        #expect(lines(bench.machine.timerFired(at: .milliseconds(99))) == [])
        let published = ["publish g1 until 95", "answer [0] ready g1 new", "report tokenAcquired"]
        #expect(lines(bench.machine.timerFired(at: .milliseconds(100))) == published)
        #expect(lines(bench.machine.committed(generation: 1, succeeded: true, at: .seconds(1))) == [])
    }

    @Test func rule4_ARotatedRefreshTokenIsCommittedFirstEvenWithoutPersist() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(bench.land(1, at: 1, rotated: true) == ["commit g1"])
        #expect(bench.tick(at: 2) == [])
        let actions = bench.machine.committed(generation: 1, succeeded: true, at: .seconds(3))
        #expect(lines(actions) == ["publish g1 until 96", "answer [0] ready g1 new", "report tokenAcquired"])
    }

    @Test func rule4_AStoreThatCannotCommitIsDegradedAndTheTokenIsServedFromMemory() {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.miss(0, at: 0)
        _ = bench.land(1, at: 0)
        let actions = bench.machine.committed(generation: 1, succeeded: false, at: 0)
        #expect(lines(actions).first == "report storeDegraded")
        #expect(lines(actions).dropFirst().first == "publish g1 until 95")
    }

    @Test func rule4_AStoreThatNeverAnswersForARotatedTokenIsDegraded() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.land(1, at: 0, rotated: true)
        #expect(bench.tick(at: 5).prefix(2) == ["report storeDegraded", "publish g1 until 95"])
    }

    @Test func aTokenThatIsDeadOnArrivalIsAFailureAndItsRotationIsKept() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let grant = bench.grant(at: 0)
        let actions = bench.machine.landed(bench.token(1), grant, at: .seconds(95))
        let expected = ["discard #1", "answer [0] failed invalid", "report acquisition failed invalid"]
        #expect(lines(actions) == expected)
    }

    // MARK: - Rule 9 (docs/design/tokens.md#rule-9) (docs/design/tokens.md#rule-9)

    @Test func rule9_AnOutcomeOfAnOlderEpochIsNotPublishedAndItsWaitersFlyAnew() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let actions = bench.machine.epochRose(to: 2, cause: .purge, at: .seconds(1))
        #expect(lines(actions) == ["abandon #1", "unpublish", "delete row", "fly #2 restarted"])
        #expect(bench.land(1, at: 2) == ["discard #1"])
        #expect(bench.land(2, at: 3, epoch: 2).contains("answer [0] ready g2 new"))
    }

    @Test func rule9_AfterALogoutALateRotatedTokenIsRevoked() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        let actions = bench.machine.epochRose(to: 2, cause: .logout, at: .seconds(1))
        #expect(lines(actions) == ["abandon #1", "unpublish", "delete row", "answer [0] failed login"])
        #expect(bench.land(1, at: 2) == ["discard #1 revoke"])
    }

    @Test func rule9_AnEpochThatRisesDuringTheCommitKeepsTheTokenBack() {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.miss(0, at: 0)
        _ = bench.land(1, at: 0)
        #expect(lines(bench.machine.epochRose(to: 2, cause: .reload, at: 0)) == ["fly #2 restarted"])
        #expect(lines(bench.machine.committed(generation: 1, succeeded: true, at: 0)) == [])
    }

    @Test func rule9_AReloadTakesABackgroundRenewalUpAgain() {
        var bench = Bench.warm()
        #expect(bench.due(1, at: 81) == ["fly #1 refreshAhead"])
        #expect(
            lines(bench.machine.epochRose(to: 2, cause: .reload, at: .seconds(82))) == [
                "abandon #1", "fly #2 restarted",
            ])
        #expect(bench.machine.servedGeneration(at: .seconds(82)) == 1)
    }

    @Test func rule9_TheRefusalOfAnOldSecretSaysNothingOfTheNewOne() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == [])
        #expect(bench.fail(1, .credentialRejected, at: 2) == ["fly #2 restarted"])
        #expect(bench.machine.blocked == nil)
    }

    /// What the flight that takes up a cut-off one is for: its waiters are owed that, and others wait for nothing less.
    @Test(
        arguments: Interruption.allCases, [Demand.token, .level(3), .lacking(["b"]), Demand(level: 3, scopes: ["b"])])
    func rule9_ARestartedFlightIsForWhatItsPredecessorWas(_ interruption: Interruption, _ demand: Demand) {
        var bench = Bench(AccessTokenPolicy(persist: false))
        _ = bench.challenge(0, ChallengeReport(generation: 0, demand: demand), at: 0)
        let first = bench.machine.flight
        switch interruption {
        case .secret:
            _ = bench.machine.secretChanged(to: 2, at: .seconds(1))
            _ = bench.fail(1, .credentialRejected, at: 2)
        case .epoch(let cause): _ = bench.machine.epochRose(to: 2, cause: cause, at: .seconds(1))
        }
        let flight = bench.machine.flight
        #expect(flight?.reason == .restarted && flight?.level == demand.level && flight?.scopes == first?.scopes)
        // One who needs the same waits for it; one who needs more has a flight of his own.
        #expect(bench.challenge(1, ChallengeReport(generation: 0, demand: demand), at: 2) == [])
        #expect(bench.challenge(2, ChallengeReport(generation: 0, demand: .level(4)), at: 2) == ["postpone"])
        #expect(bench.challenge(2, ChallengeReport(generation: 0, demand: .lacking(["c"])), at: 2) == ["postpone"])
    }

    enum Interruption: CaseIterable {
        case secret, epoch(EpochCause)
        static let allCases: [Interruption] = [.secret, .epoch(.purge), .epoch(.reset), .epoch(.reload)]
    }

    /// The issuer has answered: the challenge is spent, and without it a flight brings less than the waiters were challenged for.
    @Test(arguments: [EpochCause.purge, .reset, .reload])
    func rule9_ALevelWhoseChallengeIsSpentIsNotRestarted(_ cause: EpochCause) {
        var bench = Bench(AccessTokenPolicy())
        _ = bench.challenge(0, ChallengeReport(generation: 0, demand: .level(3)), at: 0)
        _ = bench.land(1, at: 0, level: 3)
        #expect(bench.machine.landingGrant != nil)
        let actions = lines(bench.machine.epochRose(to: 2, cause: cause, at: .seconds(0)))
        #expect(actions.last == "answer [0] failed unavailable" && bench.machine.flight == nil, "\(actions)")
    }

    /// A program that brings another secret each time: the second flight in a row whose secret is not the latest ends with the pause of a
    /// failing issuer. It does not block either, since the latest secret was refused by nobody.
    @Test func rule9_SecretsThatChangeWithEachReadingAreNotSentOneAfterTheOther() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == [])
        #expect(bench.fail(1, .credentialRejected, at: 2) == ["fly #2 restarted"])
        #expect(lines(bench.machine.secretChanged(to: 3, at: .seconds(3))) == [])
        let last = bench.machine.failed(bench.token(2, secretVersion: 2), .credentialRejected, at: .seconds(4))
        #expect(!lines(last).contains { $0.hasPrefix("fly") })
        #expect(bench.machine.blocked == nil && bench.machine.pause != nil)
        // The flight after the pause sends the latest, and its refusal blocks.
        #expect(bench.miss(1, at: 100).contains { $0.hasPrefix("fly #3") })
        _ = bench.machine.failed(bench.token(3, secretVersion: 3), .credentialRejected, at: .seconds(101))
        #expect(bench.machine.blocked == .credentialRejected)
    }

    /// What signs with the secret itself must not go on with the old one.
    @Test func aTokenThatHoldsASecretIsRenewedWhenThatChanges() {
        var policy = AccessTokenPolicy(persist: false)
        policy.holdsSecrets = true
        var bench = Bench.warm(policy)
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == ["fly #1 refreshAhead"])
        // The flight has read the next one already, or will.
        #expect(lines(bench.machine.secretChanged(to: 3, at: .seconds(2))) == [])
        policy.holdsSecrets = false
        bench = Bench.warm(policy)
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == [])
    }

    /// A flight reads its secrets after it has begun. What it read is what was refused, whatever stood there at its beginning.
    @Test func rule9_ARefusalIsOfTheSecretThatWasReadLast() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        #expect(lines(bench.machine.secretChanged(to: 2, at: .seconds(1))) == [])
        _ = bench.machine.failed(bench.token(1), .credentialRejected, with: 2, at: .seconds(2))
        #expect(bench.machine.flight == nil && bench.machine.blocked == .credentialRejected)
    }

    @Test func anEpochThatDoesNotRiseIsNoEvent() {
        var bench = Bench.warm()
        #expect(lines(bench.machine.epochRose(to: 1, cause: .purge, at: 0)) == [])
        #expect(bench.machine.servedGeneration(at: 0) == 1)
    }

    // MARK: - The end of a key, and tokens from elsewhere

    @Test func aRetiredKeySendsItsWaitersBackToTheRoute() {
        var bench = Bench()
        _ = bench.miss(1, at: 0)
        #expect(lines(bench.machine.retired(at: 0)) == ["unpublish", "abandon #1", "answer [1] moved"])
    }

    @Test func wish31_ARestoredTokenIsServedWithTheIssuerDown() {
        var bench = Bench()
        let grant = bench.grant(at: 0)
        #expect(lines(bench.machine.adopted(grant, from: .store, at: .seconds(50))) == ["publish g1 until 95"])
        #expect(bench.miss(0, at: 60) == ["publish g1 until 95", "answer [0] ready g1"])
    }

    /// The store came back and gave the very token that was refused to all who waited for its successor (seed 79085522).
    @Test(arguments: [Demand.token, .lacking(["b"])])
    func aRowIsNoAnswerToAChallengeThatAFlightAnswers(demand: Demand) {
        var bench = Bench.warm()
        let row = bench.machine.heldGrant!
        let report = ChallengeReport(generation: 1, demand: demand)
        #expect(bench.challenge(0, report, at: 1).last?.hasPrefix("fly #1") == true)
        #expect(lines(bench.machine.lost(at: .seconds(2))) == [])
        #expect(lines(bench.machine.adopted(row, from: .store, at: .seconds(3))) == [])
        #expect(bench.land(1, at: 4).contains("answer [0] ready g2 new"))
    }

    @Test func aRowIsNoAnswerToAChallengeThatJoinedAFlight() {
        var bench = Bench()
        #expect(bench.miss(1, at: 0) == ["fly #1 missed"])
        #expect(bench.challenge(0, ChallengeReport(generation: 1), at: 1) == [])
        let row = bench.grant(at: 0)
        #expect(lines(bench.machine.adopted(row, from: .store, at: .seconds(3))) == [])
    }

    @Test func aRowIsTheAnswerToThoseWhoMissed() {
        var bench = Bench()
        #expect(bench.miss(1, at: 0) == ["fly #1 missed"])
        let row = bench.grant(at: 0)
        #expect(lines(bench.machine.adopted(row, from: .store, at: .seconds(3))).contains("answer [1] ready g1"))
    }

    @Test func aRestoredTokenPastItsTimeIsNotServed() {
        var bench = Bench()
        let grant = bench.grant(at: 0)
        #expect(lines(bench.machine.adopted(grant, from: .store, at: .seconds(95))) == [])
        #expect(bench.machine.state(at: .seconds(95)) == .empty)
    }

    @Test func connectivityOnlineNeverServesFromTheStoreAndOfflineNeverAsks() {
        var online = Bench(AccessTokenPolicy(connectivity: .online))
        let grant = online.grant(at: 0)
        #expect(lines(online.machine.adopted(grant, from: .store, at: 0)) == [])
        var offline = Bench.warm(AccessTokenPolicy(connectivity: .offline))
        #expect(offline.due(1, at: 85) == [])
        #expect(offline.miss(0, at: 85) == ["publish g1 until 95", "answer [0] ready g1"])
        #expect(offline.miss(0, at: 95) == ["answer [0] failed notPermitted"])
        #expect(offline.challenge(0, ChallengeReport(generation: 1), at: 96) == ["answer [0] failed notPermitted"])
    }

    @Test func rule8_ANewStaticValueIsPublishedAtOnce() {
        var bench = Bench.warm(AccessTokenPolicy(persist: false, canRegrant: false))
        let grant = bench.grant(at: 10)
        #expect(lines(bench.machine.adopted(grant, from: .configuration, at: .seconds(10))) == ["publish g2 until 105"])
    }

    @Test func aColdKeyThatNeedsAChallengeAsksForAScout() {
        var bench = Bench(AccessTokenPolicy(persist: false, needsChallenge: true))
        #expect(bench.miss(2, at: 0) == ["scout [2]"])
        #expect(bench.challenge(2, ChallengeReport(generation: 0), at: 1) == ["fly #1 challenged"])
        #expect(bench.miss(1, at: 1) == [])
        #expect(bench.land(1, at: 2).contains("answer [1, 2] ready g1 new"))
        #expect(bench.due(1, at: 85) == [])
    }

    @Test func withoutItsChallengeACutOffFlightIsNotRepeated() {
        var bench = Bench(AccessTokenPolicy(persist: false, needsChallenge: true))
        _ = bench.challenge(0, ChallengeReport(generation: 0), at: 0)
        let actions = bench.machine.epochRose(to: 2, cause: .reload, at: 0)
        #expect(lines(actions) == ["abandon #1", "answer [0] failed unavailable"])
    }

    @Test func theTimerFollowsTheEarliestDeadline() {
        var bench = Bench(AccessTokenPolicy())
        #expect(bench.machine.missed(from: 0, at: 0).last == .schedule(.seconds(10)))
        #expect(bench.machine.missed(from: 1, at: 0).isEmpty)
        #expect(bench.machine.timerFired(at: .seconds(10)).last == .schedule(.seconds(30)))
        #expect(
            bench.machine.landed(bench.token(1), bench.grant(at: 10), at: .seconds(11)).last
                == .schedule(.seconds(11) + .milliseconds(100)))
        #expect(bench.machine.committed(generation: 1, succeeded: true, at: .seconds(11)).last == .cancelTimer)
    }
}
