import Testing

@testable import Tokens

/// Claims that wait behind another identity's step, and what is remembered of identities that come and go.
@Suite struct SessionQueueTests {
    typealias Lock = SessionTests.Lock
    static let key = SessionTests.key
    static let sibling = SessionTests.sibling

    @Test func claimsOfOneSessionThatWaitShareTheNextFlight() {
        var lock = Lock()
        _ = lock.claim(1, Self.sibling)
        #expect(lock.claim(2) == [] && lock.claim(3) == [] && lock.claim(4, Self.sibling) == [])
        #expect(lock.fail(1, .timedOut, Self.sibling) == ["deliver [1, 4] failed timedOut", "run #2 fullGrant of 1"])
        #expect(lock.succeed(2, generation: 7) == ["commit g7 of 1", "deliver [2, 3] g7"])
    }

    @Test func claimsOfAnotherStandingWaitForAFlightOfTheirOwn() {
        var lock = Lock()
        _ = lock.claim(1, Self.sibling)
        _ = lock.claim(2)
        lock.standing.secretVersion = 2
        _ = lock.claim(3)
        #expect(lock.fail(1, .timedOut, Self.sibling) == ["deliver [1] failed timedOut", "run #2 fullGrant of 1"])
        // The secret is refused: whoever waits with the same key is not to send it again.
        #expect(
            lock.fail(2, .credentialRejected) == [
                "deliver [2] failed rejected", "report credentialQuarantined", "deliver [3] failed rejected",
            ])
        #expect(lock.machine.isIdle && lock.machine.refusal(of: Self.key) == .credentialRejected)
        #expect(lock.machine.refusal(of: Self.sibling) == nil)
        lock.machine.adopted(
            Self.key, SessionMachine.Session(generation: 9, stopServingAt: .seconds(100), hasRefreshToken: true))
        #expect(lock.machine.refusal(of: Self.key) == nil, "a session that was brought ends the refusal")
    }

    @Test func aNewEpochEndsWhatWaitsForItsIdentityAlone() {
        var lock = Lock()
        let third = SessionKey(digest: digest(3), issuer: issuer, subject: "svc")
        _ = lock.claim(1, third)
        _ = lock.claim(2)
        _ = lock.claim(3, Self.sibling)
        let ended = SessionTests.lines(lock.machine.epochRose(of: digest(1), to: 2, cause: .reset))
        #expect(ended == ["deliver [2] failed unavailable"])
        #expect(lock.fail(1, .timedOut, third) == ["deliver [1] failed timedOut", "run #2 fullGrant of 2"])
        #expect(lock.fail(2, .timedOut, Self.sibling) == ["deliver [3] failed timedOut"])
        #expect(lock.machine.isIdle)
    }

    @Test func everyDigestOfWhichThereIsAnythingIsNamed() {
        var lock = Lock()
        #expect(lock.machine.digests.isEmpty && lock.machine.isEmpty)
        _ = lock.claim(1)
        #expect(lock.machine.digests == [digest(1)], "of the step under way")
        _ = lock.claim(2, Self.sibling)
        #expect(lock.machine.digests == [digest(1), digest(2)], "and of the claim that waits")
        _ = lock.succeed(1, generation: 7)
        _ = lock.fail(2, .credentialRejected, Self.sibling)
        #expect(lock.machine.digests == [digest(1), digest(2)], "of a session and of a refusal")
        #expect(lock.machine.remembered.isEmpty && !lock.machine.isEmpty)
        lock.machine.forgotten(Self.key, generation: 6)
        #expect(lock.machine.session(Self.key, at: 0) != nil, "another session than the one meant")
        lock.machine.forgotten(Self.key, generation: 7)
        #expect(lock.machine.session(Self.key, at: 0) == nil && lock.machine.digests == [digest(2)])
    }

    @Test func anIdentityThatLeavesDuringAStepIsRememberedUntilItsEnd() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.machine.retired(digest(1))
        #expect(lock.machine.remembered == [digest(1)] && !lock.machine.isEmpty)
        #expect(lock.fail(1, .timedOut) == ["discard #1"])
        #expect(lock.machine.remembered.isEmpty && lock.machine.isEmpty)
        _ = lock.claim(2)
        _ = lock.machine.retired(digest(1))
        lock.machine.returned(digest(1), logoutEpoch: 0, secretVersion: 1)
        #expect(lock.machine.remembered.isEmpty, "the first secret and no logout are nothing to remember")
        lock.machine.returned(digest(1), logoutEpoch: 1, secretVersion: 1)
        #expect(lock.machine.remembered == [digest(1)])
        lock.machine.returned(digest(1), logoutEpoch: 0, secretVersion: 2)
        #expect(lock.machine.remembered == [digest(1)])
        // The step of before comes back: it is the identity's again, and nothing of it is forgotten.
        _ = lock.fail(2, .timedOut)
        #expect(lock.machine.remembered == [digest(1)])
    }

    @Test func aRefusalOfAnOlderSecretBlocksNothing() {
        for (version, isBlocked) in [(UInt64(1), false), (2, true)] {
            var lock = Lock()
            lock.machine.refusalsLifted(of: digest(1), secretVersion: 2)
            lock.standing.secretVersion = version
            _ = lock.claim(1)
            _ = lock.machine.stepFailed(lock.token(1, secretVersion: version), .credentialRejected)
            #expect((lock.machine.refusal(of: Self.key) != nil) == isBlocked, "\(version)")
        }
    }

    @Test func aRefusedRefreshTokenIsNotTriedAgain() {
        var lock = Lock()
        _ = lock.claim(1)
        _ = lock.succeed(1, generation: 7)
        #expect(lock.claim(2, at: 200) == ["run #2 refreshToken of 1"])
        #expect(lock.fail(2, .credentialRejected) == ["drop refresh token", "run #2 fullGrant of 1"])
        #expect(lock.fail(2, .timedOut) == ["deliver [2] failed timedOut"])
        #expect(lock.claim(3, at: 200) == ["run #3 fullGrant of 1"])
    }

    @Test func aPurgeTakesWhatNoPersonBrought() {
        for isHuman in [false, true] {
            var lock = Lock()
            let plain = SessionMachine.Session(generation: 7, stopServingAt: .seconds(100), hasRefreshToken: true)
            let human = SessionMachine.Session(
                generation: 7, stopServingAt: .seconds(100), hasRefreshToken: true, isHuman: true)
            lock.machine.adopted(Self.key, isHuman ? human : plain)
            _ = lock.machine.epochRose(of: digest(1), to: 2, cause: .purge)
            #expect(lock.machine.session(Self.key, at: 0) == nil)
            #expect(lock.claim(1) == ["run #1 \(isHuman ? "refreshToken" : "fullGrant") of 1"])
        }
    }

    @Test func aSessionIsNotRotatedUnlessItSaysSo() {
        var lock = Lock()
        _ = lock.claim(1)
        let plain = SessionMachine.Session(generation: 7, stopServingAt: .seconds(100), hasRefreshToken: true)
        let delivered = SessionTests.lines(lock.machine.stepSucceeded(lock.token(1), plain))
        #expect(delivered == ["commit g7 of 1", "deliver [1] g7"], "nobody waits for its commit")
    }

    @Test func onlyWhatWasMadeBeforeALogoutIsRevoked() {
        func discard(logout: UInt64?, epoch: UInt64) -> [String] {
            var lock = Lock()
            if let logout { _ = lock.machine.epochRose(of: digest(1), to: logout, cause: .logout) }
            let token = FlightToken(id: 9, standing: Standing(digest: digest(1), secretVersion: 1, epoch: epoch))
            return SessionTests.lines(lock.machine.stepFailed(token, .timedOut))
        }
        #expect(discard(logout: nil, epoch: 0) == ["discard #9"])
        #expect(discard(logout: 5, epoch: 5) == ["discard #9"])
        #expect(discard(logout: 5, epoch: 4) == ["discard #9 revoke"])
    }
}

/// What windows hold on to, and for how long.
@Suite struct RegrantMemoryTests {
    static let limit = RegrantWindowsTests.limit

    @Test func challengesThatAskForMorePassAFewTimes() {
        var windows = RegrantWindowsTests.held()
        let now: Instant = .seconds(5) + .milliseconds(500)
        for target in [RequestTarget(path: 9), RequestTarget(path: 1)] {
            var passed = 0
            while passed < 100, windows.pass(at: target, now: now) { passed += 1 }
            #expect((1..<100).contains(passed), "\(target)")
        }
        #expect(windows.pass(at: RequestTarget(route: 1, path: 9), now: now) == true, "a route that is not held")
    }

    @Test func theOldestPathMakesRoomForTheSeventeenth() {
        var windows = RegrantWindows()
        func target(_ number: Int) -> RequestTarget { RequestTarget(route: number, path: number) }
        for number in 1...16 {
            let now: Instant = .seconds(5) + .milliseconds(UInt64(number))
            _ = windows.refused(UInt64(number), at: target(number), limit: Self.limit, now: now)
        }
        let now: Instant = .seconds(5) + .milliseconds(500)
        #expect((1...16).allSatisfy { windows.holds(target($0), at: now) })
        _ = windows.refused(17, at: target(17), limit: Self.limit, now: now)
        #expect((1...17).filter { !windows.holds(target($0), at: now) } == [1])
        // One that is known already takes nobody's place.
        _ = windows.refused(18, at: target(17), limit: Self.limit, now: now)
        #expect((1...17).filter { !windows.holds(target($0), at: now) } == [1])
    }

    /// The ninth token takes the place of the first, whose refusal counts as news then.
    @Test(arguments: [(8, false), (9, true)] as [(UInt64, Bool)])
    func ofARouteTheLastEightTokensAreKnown(_ count: UInt64, isNews: Bool) {
        var windows = RegrantWindows()
        let target = RequestTarget(path: 1)
        for generation in 1...count {
            let isFirst = windows.refused(generation, at: target, limit: Self.limit, now: .seconds(5))
            #expect(isFirst)
        }
        #expect(windows.refused(1, at: target, limit: Self.limit, now: .seconds(5)) == isNews)
    }

    @Test func aRouteThatWasHeldLongAgoIsForgotten() {
        var windows = RegrantWindowsTests.held()
        var fresh = RegrantWindows()
        let target = RequestTarget(route: 2, path: 7)
        _ = windows.refused(99, at: target, limit: Self.limit, now: .seconds(100_000))
        _ = fresh.refused(99, at: target, limit: Self.limit, now: .seconds(100_000))
        #expect(windows == fresh)
    }
}
