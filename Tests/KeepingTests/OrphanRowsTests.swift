import Testing
import TokenStore

@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// Stored material without an identity (docs/design/tokens.md#rule-8), without the keeper.
@Suite struct OrphanRowsTests {
    private static let day: Int64 = 86_400_000
    private static let issuer = Origin(scheme: "https", host: "issuer", port: 443)

    private static func digest(_ number: UInt8) throws -> IdentityDigest {
        try #require(IdentityDigest(Array(repeating: number, count: 32)))
    }

    private static func key(_ number: UInt8, _ user: ByteString = "ann") throws -> SessionKey {
        SessionKey(digest: try digest(number), issuer: issuer, subject: user)
    }

    private static func session(_ key: SessionKey, _ refreshToken: String?, expires: Int64? = nil) -> StoredRow {
        let row = LayerRow(
            material: Secret("s"), refreshToken: refreshToken.map { Secret($0) }, isHuman: true, wallExpiry: nil,
            original: nil, refreshEnd: nil)
        return StoredRow(
            kind: RowKind.session, key: KeyCodec.encode(key), value: row.encoded(), expiresWall: expires)
    }

    private static func durable(_ number: UInt8) throws -> StoredRow {
        let key = DurableKey(digest: try digest(number), issuer: issuer, part: "registration")
        return StoredRow(kind: RowKind.durable, key: KeyCodec.encode(key), value: [1], expiresWall: nil)
    }

    private static func expiry(_ changes: [StoreChange]) -> Int64? {
        guard changes.count == 1, case .put(let row)? = changes.first else { return nil }
        return row.expiresWall
    }

    private static func puts(_ changes: [StoreChange]) -> [StoredRow] {
        changes.compactMap { if case .put(let row) = $0 { row } else { nil } }
    }

    private static func deletes(_ changes: [StoreChange]) -> [[UInt8]] {
        changes.compactMap { if case .delete(_, let key) = $0 { key } else { nil } }
    }

    @Test func thirtyDaysBeginWhenARowIsFirstFoundWithoutItsIdentity() throws {
        var orphans = OrphanRows()
        let row = Self.session(try Self.key(1), "r")
        #expect(Self.expiry(orphans.add(row, wall: Self.day)) == 31 * Self.day)
        let found = try #require(orphans.rows.first)
        orphans = OrphanRows()
        #expect(orphans.add(found, wall: 5 * Self.day).isEmpty, "the days of before go on")
        #expect(orphans.rows == [found])
        let ends = row.expiring(3 * Self.day)
        #expect(orphans.add(ends, wall: Self.day).isEmpty && orphans.rows.last == ends)
    }

    enum Stored: CaseIterable { case login, ownSession, doubtful, registration, accessToken }

    @Test(arguments: Stored.allCases) func aStoreIsJudgedByTheIdentitiesThatAreThere(stored: Stored) throws {
        let key = try Self.key(1)
        let own = LayerRow(material: Secret("s"), refreshToken: nil, isHuman: false, wallExpiry: nil, original: nil)
        let row =
            switch stored {
            case .login: Self.session(key, "r")
            case .registration: try Self.durable(1)
            case .ownSession, .doubtful:
                StoredRow(
                    kind: RowKind.session, key: KeyCodec.encode(key), value: own.encoded(), expiresWall: nil)
            case .accessToken:
                StoredRow(
                    kind: RowKind.learned,
                    key: KeyCodec.encode(
                        AccessKey(
                            digest: try Self.digest(1), origin: Self.issuer, realm: "r", scopes: [],
                            audience: nil, resource: nil, subject: nil)), value: [], expiresWall: nil)
            }
        var orphans = OrphanRows()
        let sweep = orphans.sweep(
            [row], wall: 0, isConfigured: { _ in false }, keepsRows: { _ in false },
            mayBegin: { _ in stored == .doubtful })
        switch stored {
        case .login, .doubtful, .registration:
            #expect(sweep.deletions.isEmpty && Self.puts(sweep.changes) == [row.expiring(30 * Self.day)])
            #expect(orphans.count == 1)
        case .ownSession, .accessToken:
            #expect(sweep.changes.isEmpty && Self.deletes(sweep.deletions) == [row.key])
            #expect(orphans.isEmpty)
        }
        // The row's identity is there again: the days are not counted any more.
        let back = orphans.sweep(
            [row.expiring(30 * Self.day)], wall: 0, isConfigured: { _ in true }, keepsRows: { _ in true },
            mayBegin: { _ in true })
        #expect(back.deletions.isEmpty && Self.puts(back.changes) == (stored == .accessToken ? [] : [row]))
        // The row's identity is there, and keeps nothing on disk.
        let withdrawn = orphans.sweep(
            [row], wall: 0, isConfigured: { _ in true }, keepsRows: { _ in false }, mayBegin: { _ in true })
        #expect(withdrawn.changes.isEmpty && Self.deletes(withdrawn.deletions) == [row.key])
    }

    @Test func orphansInMemoryAreBounded() throws {
        var orphans = OrphanRows()
        for number in 0...OrphanRows.most {
            let changes = orphans.add(Self.session(try Self.key(1, ByteString("u\(number)")), "r"), wall: 0)
            #expect(changes.count == 1, "those beyond the bound stay on disk for their days")
        }
        #expect(orphans.count == OrphanRows.most)
    }

    @Test func whatNeverWasOnDiskDoesNotComeThere() throws {
        var orphans = OrphanRows()
        #expect(orphans.add(Self.session(try Self.key(1), "r"), wall: 0, isStored: false).isEmpty)
        #expect(orphans.count == 1)
    }

    @Test func whatComesLateTakesThePlaceOfWhatStands() throws {
        var orphans = OrphanRows()
        _ = orphans.add(Self.session(try Self.key(1), "old"), wall: 0)
        _ = orphans.replace(Self.session(try Self.key(1), "new"), wall: 0, isStored: true)
        #expect(orphans.rows.compactMap { LayerRow(encoded: $0.value)?.refreshToken } == [Secret("new")])
    }

    @Test func rowsComeBackWithTheirIdentity() throws {
        var orphans = OrphanRows()
        let (gone, back) = (try Self.digest(1), try Self.digest(2))
        for row in [try Self.durable(1), try Self.durable(2), Self.session(try Self.key(2), "r")] {
            _ = orphans.add(row, wall: 0)
        }
        let returned = orphans.takeBack { $0 == back }
        #expect(returned.map(\.kind) == [RowKind.durable, RowKind.session])
        #expect(orphans.rows.map { $0.nature?.digest } == [gone])
    }

    @Test func aLogoutForgetsWhatTheSameAccountHadBefore() throws {
        var orphans = OrphanRows()
        let rows = [
            Self.session(try Self.key(1), "r1"), try Self.durable(1), Self.session(try Self.key(2, "bob"), "r2"),
            try Self.durable(3),
        ]
        for row in rows { _ = orphans.add(row, wall: 0) }
        // What was configured last has another digest, and leads to the same account.
        let forgotten = orphans.forget(try Self.key(9), at: 7)
        #expect(forgotten.held.map(\.refreshToken) == [Secret("r1")] && forgotten.held.map(\.obtainedAt) == [7])
        #expect(forgotten.gone.count == 2)
        #expect(orphans.rows.map(\.key) == [rows[2].key, rows[3].key])
    }

    @Test func copiesOfASpentRefreshTokenGo() throws {
        var orphans = OrphanRows()
        _ = orphans.add(Self.session(try Self.key(1), "r1"), wall: 0)
        _ = orphans.add(Self.session(try Self.key(2), "r2"), wall: 0)
        let changes = orphans.dropCopies(of: Secret("r1"))
        guard case .delete(RowKind.session, try KeyCodec.encode(Self.key(1)))? = changes.first else {
            Issue.record("it stays on disk")
            return
        }
        #expect(changes.count == 1 && orphans.count == 1 && orphans.dropCopies(of: Secret("r1")).isEmpty)
    }

    @Test func aRowThatCannotBeReadIsNobodys() throws {
        let row = Self.session(try Self.key(1), "r")
        #expect(row.nature?.material == .humanRefreshToken)
        #expect(StoredRow(kind: row.kind, key: row.key, value: [9], expiresWall: nil).nature == nil)
        #expect(StoredRow(kind: row.kind, key: [9], value: row.value, expiresWall: nil).nature == nil)
        #expect(StoredRow(kind: RowKind.markKey, key: [], value: [], expiresWall: nil).nature == nil)
    }
}
