import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// The keeper's sessions and their locks, without the keeper.
@Suite struct SessionsTests {
    private static let issuer = Origin(scheme: "https", host: "issuer", port: 443)

    private static func key(_ user: String, _ digest: UInt8 = 1) throws -> SessionKey {
        let digest = try #require(IdentityDigest(Array(repeating: digest, count: 32)))
        return SessionKey(digest: digest, issuer: issuer, subject: ByteString(user))
    }

    private static func material(_ text: String, refreshToken: String? = nil, lifetime: UInt64? = 100) -> LayerMaterial
    {
        LayerMaterial(
            bytes: Secret(text), obtainedAt: 0, lifetime: lifetime, refreshToken: refreshToken.map { Secret($0) })
    }

    private func adopted(_ key: SessionKey, _ material: LayerMaterial) -> Sessions {
        var sessions = Sessions()
        let session = KeptSession(key: key, generation: 7, material: material)
        sessions[key] = session
        sessions.lock(of: key, []).machine.adopted(key, session.known())
        return sessions
    }

    @Test func aSessionIsLiveUntilItEndsOrIsVoid() throws {
        let key = try Self.key("ann")
        let sessions = adopted(key, Self.material("s"))
        #expect(sessions.live(key, at: 99) != nil)
        #expect(sessions.live(key, at: 100) == nil)
        sessions.void(key, generation: 8)
        #expect(sessions.live(key, at: 99) == nil)
    }

    @Test func anEndedSessionKeepsItsRefreshToken() throws {
        let key = try Self.key("ann")
        var sessions = adopted(key, Self.material("s", refreshToken: "r"))
        #expect(sessions.end(key)?.lifetime == 0)
        #expect(sessions.hasRefreshToken(key) && sessions.sparesPassword(key, at: 1))
        sessions = adopted(key, Self.material("s"))
        #expect(sessions.end(key) == nil)
        #expect(sessions[key] == nil)
    }

    @Test func aRefusedRefreshTokenLeavesALiveSession() throws {
        let key = try Self.key("ann")
        var sessions = adopted(key, Self.material("s", refreshToken: "r"))
        #expect(sessions.dropRefreshToken(of: key, at: 50)?.refreshToken == nil)
        #expect(sessions[key] != nil)
        sessions = adopted(key, Self.material("s", refreshToken: "r"))
        #expect(sessions.dropRefreshToken(of: key, at: 100) == nil)
        #expect(sessions[key] == nil)
    }

    @Test func whatBelongsToNoIdentityIsTakenInTheOrderOfItsKeys() throws {
        var sessions = Sessions()
        for (user, digest) in [("bob", 1), ("ann", 1), ("ann", 2)] as [(String, UInt8)] {
            let key = try Self.key(user, digest)
            sessions[key] = KeptSession(key: key, generation: 1, material: Self.material("s"))
            sessions.parts[DurableKey(digest: key.digest, issuer: Self.issuer, part: ByteString(user))] =
                Self.material("p")
        }
        let kept = try Self.key("ann", 2)
        let gone = sessions.takeForeign { $0 == kept.digest }
        #expect(gone.sessions.map(\.key) == [try Self.key("ann"), try Self.key("bob")])
        #expect(gone.parts.map(\.key.part) == ["ann", "bob"])
        #expect(Array(sessions.held.keys) == [kept] && sessions.parts.inOrder.map(\.key.digest) == [kept.digest])
    }

    enum Kept: CaseIterable { case bare, renewable, humanBare, human }

    /// docs/design/tokens.md#rule-8
    @Test(arguments: [EpochCause.purge, .logout, .reset, .reload], Kept.allCases)
    func aPurgeSendsNoPersonToTheLoginPage(cause: EpochCause, kept: Kept) throws {
        let key = try Self.key("ann")
        var material = Self.material("s", refreshToken: kept == .bare || kept == .humanBare ? nil : "r")
        material.isHuman = kept == .human || kept == .humanBare
        let ending = adopted(key, material).ending(key.digest, by: cause).map(\.isRenewable)
        switch (cause, kept) {
        case (.purge, .human): #expect(ending == [true], "what it has is the refresh token")
        case (.purge, .humanBare), (.reset, _), (.reload, _): #expect(ending.isEmpty)
        default: #expect(ending == [false])
        }
    }

    @Test func aSessionThatComesTooLateIsKeptOnlyForItsRefreshToken() throws {
        let identity = try #require(try KeeperScene(Plans.client()).inKeeper { $0.identities }.first)
        let key = try Self.key("ann")
        let bare = KeptSession(key: key, generation: 1, material: Self.material("s"))
        let session = KeptSession(key: key, generation: 1, material: Self.material("s", refreshToken: "r"))
        #expect(bare.late(1, isRevoked: false, for: identity) == .dropped)
        #expect(session.late(1, isRevoked: true, for: identity) == .revoked)
        var ended = session.material
        ended.lifetime = 0
        #expect(session.late(1, isRevoked: false, for: identity) == .kept(ended))
        identity.loginEpoch = 2
        #expect(session.late(1, isRevoked: false, for: identity) == .dropped, "a person has logged in since")
    }

    @Test func aRegistrationIsDoubtedUntilAnotherStandsOrAStepSucceeds() throws {
        let identity = try #require(try KeeperScene(Plans.client()).inKeeper { $0.identities }.first)
        let key = try #require(identity.durableKey(.registration))
        var parts = DurableParts()
        #expect(parts.note(doubt: true, of: identity, at: 1) == .unchanged, "there is none")
        parts[key] = Self.material("first")
        guard case .noted(let doubt, _) = parts.note(doubt: true, of: identity, at: 1) else {
            Issue.record("nothing is noted")
            return
        }
        #expect(parts.doubtsRegistration(of: identity))
        #expect(parts.note(doubt: true, of: identity, at: 2) == .unchanged, "known already")
        parts[key] = Self.material("second")
        #expect(!parts.doubtsRegistration(of: identity))
        #expect(parts.note(doubt: false, of: identity, at: 3) == .over(doubt))
    }

    @Test func oneLockServesAllIdentitiesOfAnAccount() throws {
        var sessions = Sessions()
        let lock = try sessions.lock(of: Self.key("ann", 1), [])
        #expect(try sessions.lock(of: Self.key("ann", 2), []) === lock)
        #expect(try sessions.lock(of: Self.key("bob", 1), []) !== lock)
    }

    @Test func aFlightThatIsGivenUpIsToldAtEachLockWhereItWaits() throws {
        var sessions = Sessions()
        let (ann, bob) = (try Self.key("ann"), try Self.key("bob"))
        let claimant = sessions.nextClaimant()
        let first = sessions.claim(ann, by: claimant, at: sessions.lock(of: ann, []))
        let second = sessions.claim(bob, by: claimant, at: sessions.lock(of: bob, []))
        let lock = sessions.lock(of: bob, [])
        lock.runner = (FlightToken(id: 1, standing: Standing(digest: bob.digest, secretVersion: 1, epoch: 1)), second)
        let told = sessions.release(claimant)
        #expect(told.count == 1 && told.first === first)
        #expect(second.isReleased, "whoever makes a step hears of it when the step has ended")
        #expect(sessions.release(claimant).count == 0)
    }

    @Test func locksWithNothingToRememberAreSwept() throws {
        var sessions = Sessions()
        let claimant = sessions.nextClaimant()
        let waiting = try Self.key("waits")
        _ = sessions.claim(waiting, by: claimant, at: sessions.lock(of: waiting, []))
        for number in 0..<1100 { _ = try sessions.lock(of: Self.key("u\(number)"), []) }
        #expect(sessions.locks.count < 200)
        #expect(sessions.locks[waiting.lock] != nil)
    }
}
