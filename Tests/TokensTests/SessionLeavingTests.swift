import Testing

@testable import Tokens

/// The end of sessions, refusals and steps of one identity, beside those of another of the same lock
/// (docs/design/tokens.md#rule-8, docs/design/tokens.md#rule-9).
@Suite struct SessionLeavingTests {
    typealias Lock = SessionTests.Lock
    static let key = SessionTests.key
    static let sibling = SessionTests.sibling
    static let session = SessionMachine.Session(
        generation: 7, stopServingAt: .seconds(100), hasRefreshToken: true, isHuman: true)

    /// Both identities' credentials were refused.
    static func refused() -> Lock {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.fail(1, .credentialRejected)
        _ = lock.claim(2, sibling)
        _ = lock.fail(2, .credentialRejected, sibling)
        #expect(lock.machine.refusal(of: key) != nil && lock.machine.refusal(of: sibling) != nil)
        return lock
    }

    enum Lift: CaseIterable { case secret, reset, retirement }

    @Test(arguments: Lift.allCases)
    func aRefusalIsLiftedForItsIdentityAlone(_ lift: Lift) {
        var lock = Self.refused()
        switch lift {
        case .secret: lock.machine.refusalsLifted(of: digest(1), secretVersion: 2)
        case .reset: _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .reset)
        case .retirement: _ = lock.machine.retired(digest(1))
        }
        #expect(lock.machine.refusal(of: Self.key) == nil)
        #expect(lock.machine.refusal(of: Self.sibling) == .credentialRejected)
    }

    enum Removal: CaseIterable { case logout, retirement }

    @Test(arguments: Removal.allCases)
    func sessionsGoWithTheirIdentityAlone(_ removal: Removal) {
        var lock = Lock()
        lock.machine.adopted(Self.key, Self.session)
        lock.machine.adopted(Self.sibling, Self.session)
        switch removal {
        case .logout: _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .logout)
        case .retirement: _ = lock.machine.retired(digest(1))
        }
        #expect(lock.machine.session(Self.key, at: 0) == nil)
        #expect(lock.machine.session(Self.sibling, at: 0)?.generation == 7)
    }

    @Test func aSecretThatChangedIsNotRememberedOfAnIdentityThatLeft() {
        var lock = Lock()
        lock.machine.refusalsLifted(of: digest(1), secretVersion: 2)
        _ = lock.claim(1)
        _ = lock.machine.retired(digest(1))
        #expect(lock.machine.remembered == [digest(1)], "until its step is over")
        #expect(lock.fail(1, .timedOut) == ["discard #1"])
        #expect(lock.machine.remembered.isEmpty)
    }

    @Test func claimantsOfACutOffStepAreToldOnce() {
        var lock = Lock()
        _ = lock.claim(1)
        #expect(lock.machine.leader == 1)
        let told = SessionTests.lines(lock.machine.epochRose(of: digest(1), to: 2, cause: .reload))
        #expect(told == ["deliver [1] failed unavailable"])
        #expect(lock.machine.leader == nil, "nobody waits for it any more")
        #expect(SessionTests.lines(lock.machine.epochRose(of: digest(1), to: 3, cause: .reload)) == [])
    }

    /// The step is over and only the commit is left, so no second password step could lock the account.
    @Test func aSessionThatWaitsForItsCommitFreesTheLockWhenItIsCutOff() {
        var lock = Lock()
        _ = lock.claim(1)
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["commit g7 of 1"])
        #expect(lock.claim(2, Self.sibling) == [])
        let actions = SessionTests.lines(lock.machine.epochRose(of: digest(1), to: 2, cause: .reset))
        #expect(actions == ["deliver [1] failed unavailable", "run #2 fullGrant of 2"])
        #expect(SessionTests.lines(lock.machine.committed(Self.key, generation: 7, succeeded: true)) == [])
    }

    @Test func aFirstSecretThatIsRefusedBlocks() {
        for version in [0, 1] as [UInt64] {
            var lock = Lock()
            lock.standing.secretVersion = version
            _ = lock.claim(1)
            _ = lock.machine.stepFailed(lock.token(1, secretVersion: version), .credentialRejected)
            #expect(lock.machine.refusal(of: Self.key) == .credentialRejected, "\(version)")
        }
    }

    // MARK: - Nothing left

    enum Rest: CaseIterable { case step, queue, session, refusal, claimant }

    /// Each case has one kind of thing that a lock can have, and none of the others where that can be.
    @Test(arguments: Rest.allCases)
    func aLockWithAnythingInItIsNotEmpty(_ rest: Rest) {
        var lock = Lock()
        switch rest {
        case .step: _ = lock.claim(1)
        case .queue:
            _ = lock.claim(1)
            _ = lock.claim(2, Self.sibling)
        case .session: lock.machine.adopted(Self.key, Self.session)
        case .refusal: _ = lock.claim(1, full: false)
        case .claimant:
            _ = lock.machine.sessionRefused(
                Self.key, generation: 7, by: 1, standing: lock.standing, canGrantFully: true, at: 0)
            _ = lock.fail(1, .timedOut)
        }
        #expect(!lock.machine.isEmpty)
        #expect(lock.machine.isIdle == (rest != .step && rest != .queue))
    }

    /// A claimant that was told of a dead session is remembered for as long as its flight.
    @Test func aClaimantThatIsReleasedMayBeToldOfADeadSessionAgain() {
        var lock = Lock()
        for turn in 1...2 as ClosedRange<UInt64> {
            let actions = lock.machine.sessionRefused(
                Self.key, generation: 7, by: 1, standing: lock.standing, canGrantFully: true, at: 0)
            #expect(SessionTests.lines(actions) == ["run #\(turn) fullGrant of 1"])
            _ = lock.fail(turn, .timedOut)
            lock.machine.released(1)
            #expect(lock.machine.isEmpty)
        }
    }
}
