import ScriptedWorld
import Testing
import TokenStore
import World

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// Attempts and durable parts, without the keeper.
@Suite struct AttemptsTests {
    private static let account = Account(issuer: Origin(scheme: "https", host: "issuer", port: 443), user: "ann")
    private static let once = AttemptLedger.Policy(loginAttempts: 1)

    private func mark(_ attempts: Attempts, _ secret: String) -> AttemptMark {
        AttemptMark(account: Self.account, secretHash: ByteString(attempts.hash(Secret(secret))))
    }

    /// What `begin` throws.
    private func refusal(_ attempts: inout Attempts, _ mark: AttemptMark) -> Handshakes.GrantFailure? {
        do throws(Handshakes.GrantFailure) { try attempts.begin(mark, Self.once) } catch { return error }
        return nil
    }

    @Test func aSecretThatIsOnItsWayIsNotSentBesideIt() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        let mark = mark(attempts, "p")
        #expect(refusal(&attempts, mark) == nil)
        _ = attempts.ledger.spend(mark, Self.once)
        guard case .issuerUnavailable? = refusal(&attempts, mark) else {
            Issue.record("sent beside itself")
            return
        }
        // Its answer was lost: it counts, and is no refusal of the issuer's.
        #expect(attempts.settle(.unknown, of: mark) == [])
        #expect(refusal(&attempts, mark) == .unanswered)
        #expect(attempts.settle(.rejected, of: mark) != [])
        #expect(refusal(&attempts, mark) == .quarantined)
    }

    @Test func whatWasNotSentIsGivenBack() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        let mark = mark(attempts, "p")
        #expect(refusal(&attempts, mark) == nil)
        attempts.cancel(mark)
        #expect(refusal(&attempts, mark) == nil)
        _ = attempts.ledger.spend(mark, Self.once)
        _ = attempts.settle(.notSent, of: mark)
        #expect(refusal(&attempts, mark) == nil)
    }

    @Test func aPasswordThatWasAcceptedNeedsNoMarkAheadOfIt() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        let mark = mark(attempts, "p")
        #expect(attempts.needsMark(mark, Self.once))
        _ = attempts.ledger.spend(mark, Self.once)
        _ = attempts.settle(.accepted, of: mark)
        #expect(!attempts.needsMark(mark, Self.once))
        _ = attempts.ledger.spend(mark, Self.once)
        #expect(attempts.needsMark(mark, Self.once), "the one more try is marked first")
    }

    @Test func marksGoToDiskWithTheKeyOfTheirHashes() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        #expect(attempts.changes([]).count == 0)
        let changes = attempts.changes(attempts.bookRejected(mark(attempts, "p")))
        guard case .put(attempts.keyRow)? = changes.last else {
            Issue.record("the key is missing")
            return
        }
        // Two rows of the count, one of the history, the key.
        #expect(changes.count == 4)
        var restored = Attempts(try MarkKey(in: [attempts.keyRow], random: SeededRandom(seed: 2)))
        for case .put(let row) in changes { restored.restore(row) }
        #expect(refusal(&restored, mark(restored, "p")) == .quarantined)
    }

    @Test func anotherKeyHashesAnew() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        let before = attempts.hash(Secret("p"))
        #expect(attempts.adopt(keyBytes: attempts.key.bytes) == false)
        #expect(attempts.adopt(keyBytes: [1, 2, 3]) == false, "no key")
        #expect(attempts.adopt(keyBytes: try MarkKey(random: SeededRandom(seed: 2)).bytes) == true)
        #expect(attempts.hash(Secret("p")) != before)
    }

    @Test func onePartIsMadeOnceAndTheOthersWait() throws {
        var parts = DurableParts()
        let digest = try #require(IdentityDigest(Array(repeating: 1, count: 32)))
        let key = DurableKey(digest: digest, issuer: Self.account.issuer, part: "registration")
        let material = LayerMaterial(bytes: Secret("m"), obtainedAt: 0, lifetime: nil)
        let waits = (0..<3).map { _ in Wait<DurableTurn>() }
        guard case .make? = parts.claim(key, waits[0], at: 1) else {
            Issue.record("the first makes it")
            return
        }
        for wait in waits[1...] where parts.claim(key, wait, at: 1) != nil { Issue.record("it is being made") }
        parts[key] = material
        let told = parts.made(key)
        #expect(told.count == 2 && told[0] === waits[1] && told[1] === waits[2])
        guard case .standing? = parts.claim(key, Wait(), at: 1) else {
            Issue.record("it stands")
            return
        }
        let other = LayerMaterial(bytes: Secret("n"), obtainedAt: 0, lifetime: nil)
        #expect(parts.drop(key, ifStill: other) == false, "another flight has replaced it")
        #expect(parts.drop(key, ifStill: material) == true)
        #expect(parts.remove(key) == false)
        parts[key] = material
        #expect(parts.forget(digest) == [key])
        #expect(parts.held.isEmpty)
    }

    private struct NoRandomness: RandomSource {
        func bytes(_ count: Int) -> [UInt8] { [] }
    }

    /// Marks under a key that anybody could know would tell the passwords behind them.
    @Test func thereIsNoKeyWithoutRandomness() throws {
        #expect(throws: GatewayFault.self) { try MarkKey(random: NoRandomness()) }
        let row = Attempts(try MarkKey(random: SeededRandom())).keyRow
        #expect(try MarkKey(in: [row], random: NoRandomness()).bytes == row.value)
    }

    /// Nothing of a mark that cannot be read is kept, and nothing is written of a family that nobody knows.
    @Test func rowsThatSayNothingChangeNothing() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        for kind in [RowKind.family, RowKind.markKey] {
            attempts.restore(StoredRow(kind: kind, key: [1], value: [0xFF], expiresWall: nil))
        }
        #expect(attempts.familyRows(of: ByteString([1])).isEmpty)
        #expect(refusal(&attempts, mark(attempts, "p")) == nil)
    }

    // MARK: - Families

    private func session() throws -> SessionKey {
        let digest = try #require(IdentityDigest(Array(repeating: 1, count: 32)))
        return SessionKey(digest: digest, issuer: Self.account.issuer, subject: "ann")
    }

    /// The store has the marks of another key, which was not read at the start: what was spent until then stays spent.
    @Test func aFamilyIsMarkedAnewWithAnotherKey() throws {
        var attempts = Attempts(try MarkKey(random: SeededRandom()))
        let (lock, first) = (try session().lock, Secret("first"))
        attempts.families.begin(with: first, hash: ByteString(attempts.hash(first)), in: lock)
        #expect(attempts.families.replaced(first, by: Secret("second")) != nil)
        #expect(attempts.adopt(keyBytes: try MarkKey(random: SeededRandom(seed: 2)).bytes) == true)
        #expect(attempts.standing(ofFirst: first, in: lock, beside: nil, []) == .replaced(by: Secret("second")))
    }

    /// A session whose beginning is not known moves on before the token that its identity names has been read.
    @Test func aSessionOfUnknownBeginningIsFollowed() throws {
        let (key, first) = (try session(), Secret("first"))
        /// The standing of the first refresh token when it is read, after a change to the token of its session.
        func standing(after change: (inout RefreshTokenFamilies) -> ByteString?) -> FirstRefreshToken {
            var families = RefreshTokenFamilies()
            families.found(Secret("a"), under: key)
            let family = change(&families)
            let isMarked = families.presume(first, hash: ByteString([7]), of: key)
            let standing = families.standing(of: ByteString([7]), in: key.lock)
            #expect(family == nil && isMarked == (standing != .unspent))
            return standing
        }
        #expect(standing { $0.replaced(Secret("a"), by: Secret("b")) } == .replaced(by: Secret("b")))
        // The session has ended, and the first token is spent all the same.
        #expect(standing { $0.ended(Secret("a")) } == .spent)
        // The issuer has refused it: then the first is as good as it ever was.
        #expect(standing { $0.refused(Secret("a")) } == .unspent)
    }
}
