import Testing

@testable import Tokens

@Suite struct SessionTests {
    static let key = SessionKey(digest: digest(1), issuer: issuer, subject: "svc")
    static let sibling = SessionKey(digest: digest(2), issuer: issuer, subject: "svc")

    static func lines(_ actions: [SessionMachine.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .run(let step): "run #\(step.token.id) \(step.rung) of \(step.key.digest.bytes[0])"
            case .commit(let key, let generation): "commit g\(generation) of \(key.digest.bytes[0])"
            case .deliver(let claimants, .ready(let generation)): "deliver \(claimants) g\(generation)"
            case .deliver(let claimants, .failed(let failure)): "deliver \(claimants) failed \(text(failure))"
            case .dropRefreshToken: "drop refresh token"
            case .discard(let token, let revoke): "discard #\(token.id)" + (revoke ? " revoke" : "")
            case .report(let event): "report \(text(event))"
            }
        }
    }

    /// The machine of one lock with its standing.
    struct Lock {
        var machine = SessionMachine()
        var standing = Standing(digest: digest(1), secretVersion: 1, epoch: 1)

        mutating func claim(
            _ claimant: UInt64, _ key: SessionKey = SessionTests.key, full: Bool = true, at second: UInt64 = 0
        ) -> [String] {
            var standing = standing
            standing.digest = key.digest
            return lines(
                machine.claimed(key, by: claimant, standing: standing, canGrantFully: full, at: .seconds(second)))
        }

        func token(_ id: UInt64, _ key: SessionKey = SessionTests.key, secretVersion: UInt64 = 1) -> FlightToken {
            FlightToken(id: id, standing: Standing(digest: key.digest, secretVersion: secretVersion, epoch: 1))
        }

        mutating func succeed(
            _ id: UInt64, _ key: SessionKey = SessionTests.key, generation: UInt64, refresh: Bool = true,
            rotated: Bool = false
        ) -> [String] {
            let session = SessionMachine.Session(
                generation: generation, stopServingAt: .seconds(100), hasRefreshToken: refresh, rotated: rotated)
            return lines(machine.stepSucceeded(token(id, key), session))
        }

        mutating func fail(_ id: UInt64, _ failure: GrantFailure, _ key: SessionKey = SessionTests.key) -> [String] {
            lines(machine.stepFailed(token(id, key), failure))
        }

        private func lines(_ actions: [SessionMachine.Action]) -> [String] { SessionTests.lines(actions) }
    }

    @Test func claimsOfOneSessionShareAFlight() {
        var lock = Lock()
        #expect(lock.claim(1) == ["run #1 fullGrant of 1"])
        #expect(lock.claim(2) == [])
        #expect(lock.succeed(1, generation: 7) == ["commit g7 of 1", "deliver [1, 2] g7"])
        #expect(lock.claim(3) == ["deliver [3] g7"])
        #expect(lock.machine.isIdle)
    }

    @Test func stepsThatBringAnAccessTokenAreSharedWithNobody() {
        var lock = Lock()
        func claim(_ claimant: UInt64) -> [String] {
            Self.lines(
                lock.machine.claimed(
                    Self.key, by: claimant, standing: lock.standing, canGrantFully: true, isOwn: true, at: 0))
        }
        #expect(claim(1) == ["run #1 fullGrant of 1"])
        #expect(claim(2) == [] && claim(3) == [])
        #expect(lock.machine.leader == 1)
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["commit g7 of 1"])
        let next = Self.lines(lock.machine.committed(Self.key, generation: 7, succeeded: true))
        #expect(next == ["deliver [1] g7", "run #2 refreshToken of 1"])
        lock.machine.released(3)
        #expect(lock.fail(2, .timedOut) == ["deliver [2] failed timedOut"])
        #expect(claim(4) == ["run #3 refreshToken of 1"])
    }

    @Test func identitiesWithTheSameUserTakeTurns() {
        var lock = Lock()
        _ = lock.claim(1)
        #expect(lock.claim(2, Self.sibling) == [])
        #expect(lock.fail(1, .timedOut) == ["deliver [1] failed timedOut", "run #2 fullGrant of 2"])
        #expect(lock.succeed(2, Self.sibling, generation: 8) == ["commit g8 of 2", "deliver [2] g8"])
    }

    @Test func rule4_ARotatedRefreshTokenIsCommittedBeforeTheSessionIsUsed() {
        var lock = Lock()
        _ = lock.claim(1)
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["commit g7 of 1"])
        #expect(lock.claim(2) == [])
        let delivered = Self.lines(lock.machine.committed(Self.key, generation: 7, succeeded: true))
        #expect(delivered == ["deliver [1, 2] g7"])
        #expect(Self.lines(lock.machine.committed(Self.key, generation: 7, succeeded: true)) == [])
    }

    @Test func rule4_AFailedCommitIsReportedAndTheSessionUsed() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7, rotated: true)
        let delivered = Self.lines(lock.machine.committed(Self.key, generation: 7, succeeded: false))
        #expect(delivered == ["report storeDegraded", "deliver [1] g7"])
    }

    @Test func wish33_ARefusedRefreshTokenLeadsToAFullGrant() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7)
        #expect(lock.claim(2, at: 100) == ["run #2 refreshToken of 1"])
        #expect(lock.fail(2, .credentialRejected) == ["drop refresh token", "run #2 fullGrant of 1"])
        #expect(lock.fail(2, .credentialRejected) == ["deliver [2] failed rejected", "report credentialQuarantined"])
        #expect(lock.claim(3, at: 100) == ["deliver [3] failed rejected"])
    }

    @Test func aRefusedRefreshTokenWithNothingBelowNeedsAPerson() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7)
        #expect(lock.claim(2, full: false, at: 100) == ["run #2 refreshToken of 1"])
        let expected = ["drop refresh token", "deliver [2] failed login", "report loginNeeded"]
        #expect(lock.fail(2, .credentialRejected) == expected)
    }

    @Test func withoutAnyRungAPersonIsNeeded() {
        var lock = Lock()
        #expect(lock.claim(1, full: false) == ["deliver [1] failed login", "report loginNeeded"])
    }

    @Test func wish27_AnIssuerThatIsDownCostsNoRefreshToken() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7)
        _ = lock.claim(2, at: 100)
        #expect(lock.fail(2, .issuerUnavailable(retryAfter: nil)) == ["deliver [2] failed unavailable"])
        #expect(lock.claim(3, at: 101) == ["run #3 refreshToken of 1"])
    }

    @Test func oam_ADeadUserTokenMeansOneNewLoginPerFlight() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7, refresh: false)
        let standing = lock.standing
        let again = lock.machine.sessionRefused(
            Self.key, generation: 7, by: 1, standing: standing, canGrantFully: true, at: 0)
        #expect(Self.lines(again) == ["run #2 fullGrant of 1"])
        _ = lock.succeed(2, generation: 8, refresh: false)
        let final = lock.machine.sessionRefused(
            Self.key, generation: 8, by: 1, standing: standing, canGrantFully: true, at: 0)
        #expect(Self.lines(final) == ["deliver [1] failed denied"])
        lock.machine.released(1)
        #expect(lock.claim(1) == ["run #3 fullGrant of 1"])
    }

    @Test func aLateRefusalOfAnOlderSessionGetsTheCurrentOne() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 8)
        let actions = lock.machine.sessionRefused(
            Self.key, generation: 7, by: 5, standing: lock.standing, canGrantFully: true, at: 0)
        #expect(Self.lines(actions) == ["deliver [5] g8"])
    }

    // MARK: - Rule 9 (docs/design/tokens.md#rule-9) (docs/design/tokens.md#rule-9)

    @Test func rule9_TheLockStaysTakenUntilACutOffStepIsKnown() {
        var lock = Lock()
        _ = lock.claim(1)
        let actions = lock.machine.epochRose(of: digest(1), to: 2, cause: .reload)
        #expect(Self.lines(actions) == ["deliver [1] failed unavailable"])
        lock.standing.epoch = 2
        #expect(lock.claim(2) == [])
        #expect(lock.succeed(1, generation: 7) == ["discard #1", "run #2 fullGrant of 1"])
    }

    @Test func rule9_AfterALogoutTheLateRefreshTokenIsRevoked() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .logout)
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["discard #1 revoke"])
        #expect(lock.machine.isIdle)
    }

    @Test func rule9_TheRefusalOfAnOldSecretDoesNotBlockTheNewOne() {
        var lock = Lock()
        _ = lock.claim(1)
        lock.machine.refusalsLifted(of: digest(1), secretVersion: 2)
        lock.standing.secretVersion = 2
        #expect(lock.claim(2) == [])
        #expect(lock.fail(1, .credentialRejected) == ["deliver [1] failed rejected", "run #2 fullGrant of 1"])
    }

    @Test func aResetLiftsTheQuarantineAndAPurgeKeepsWhatAPersonBrought() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.fail(1, .credentialRejected)
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .reset)
        #expect(lock.machine.refusal(of: Self.key) == nil)
        let human = SessionMachine.Session(
            generation: 9, stopServingAt: .seconds(100), hasRefreshToken: true, isHuman: true)
        lock.machine.adopted(Self.key, human)
        _ = lock.machine.epochRose(of: digest(1), to: 3, cause: .purge)
        #expect(lock.claim(2, full: false) == ["run #2 refreshToken of 1"])
    }

    @Test func aPurgeKeepsALoginThatCannotBeRenewed() {
        var lock = Lock()
        lock.machine.adopted(
            Self.key,
            SessionMachine.Session(
                generation: 9, stopServingAt: .seconds(100), hasRefreshToken: false, isHuman: true))
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .purge)
        #expect(lock.machine.session(Self.key, at: 0)?.generation == 9)
        _ = lock.machine.epochRose(of: digest(1), to: 3, cause: .logout)
        #expect(lock.machine.session(Self.key, at: 0) == nil)
    }

    // MARK: - Rule 8 (docs/design/tokens.md#rule-8) (docs/design/tokens.md#rule-8)

    @Test func rule8_WhatComesLateForAnIdentityThatLeftIsKept() {
        var lock = Lock()
        _ = lock.claim(1)
        #expect(Self.lines(lock.machine.retired(digest(1))) == ["deliver [1] failed unavailable"])
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["discard #1"])
        #expect(lock.machine.isIdle)
    }

    @Test func rule8_AfterALogoutItIsRevokedAlsoWhenTheIdentityLeft() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .logout)
        _ = lock.machine.retired(digest(1))
        #expect(lock.machine.remembered == [digest(1)])
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["discard #1 revoke"])
        #expect(lock.machine.remembered == [])
    }

    /// Epochs and versions begin anew with an identity that comes back.
    @Test func rule8_OneThatComesBackIsNotJudgedByItsEarlierLife() {
        var lock = Lock()
        _ = lock.machine.epochRose(of: digest(1), to: 7, cause: .logout)
        lock.machine.refusalsLifted(of: digest(1), secretVersion: 5)
        _ = lock.machine.retired(digest(1))
        #expect(lock.machine.remembered == [])
        lock.machine.returned(digest(1), logoutEpoch: 0, secretVersion: 1)
        _ = lock.claim(1)
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .reload)
        #expect(lock.claim(2) == [])
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["discard #1", "run #2 fullGrant of 1"])
        _ = lock.fail(2, .credentialRejected)
        #expect(lock.machine.refusal(of: Self.key) == .credentialRejected)
    }

    @Test func rule8_OneThatReturnsWhileItsStepRunsKeepsItsOwnLogout() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .logout)
        _ = lock.machine.retired(digest(1))
        lock.machine.returned(digest(1), logoutEpoch: 2, secretVersion: 1)
        #expect(lock.succeed(1, generation: 7, rotated: true) == ["discard #1 revoke"])
        #expect(lock.machine.remembered == [digest(1)])
    }

    @Test func aClaimantThatWentAwayIsNotTold() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.claim(2, Self.sibling)
        lock.machine.released(1)
        lock.machine.released(2)
        #expect(lock.succeed(1, generation: 7) == ["commit g7 of 1"])
        #expect(lock.machine.isIdle)
    }
}
