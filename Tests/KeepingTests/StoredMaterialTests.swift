import Numbers
import Testing
import TokenStore

@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// Layers in rows, by both clocks, without the keeper.
@Suite struct StoredMaterialTests {
    private static let second: UInt64 = 1_000_000_000

    private static func material(_ refreshToken: String?, lifetime: UInt64?) -> LayerMaterial {
        LayerMaterial(
            bytes: Secret("s"), obtainedAt: 10 * second, lifetime: lifetime,
            refreshToken: refreshToken.map { Secret($0) })
    }

    /// The clock since boot begins anew with each boot, the wall clock goes on.
    private static func afterReboot(
        _ material: LayerMaterial, written: UInt64, read: Int64
    ) -> (row: StoredRow, material: LayerMaterial?) {
        let row = StoredRow(
            RowKind.session, [1], material, at: Moment(now: written * second, wall: 1_000_000))
        return (
            row, LayerRow(encoded: row.value)?.material(at: Moment(now: 5, wall: 1_000_000 + read * 1000))
        )
    }

    @Test(arguments: [(10, 0, 60), (30, 0, 40), (30, 15, 25)]) func theRestOfALifeOutlivesABoot(
        written: UInt64, read: Int64, left: UInt64
    ) throws {
        let (row, material) = Self.afterReboot(
            Self.material(nil, lifetime: 60 * Self.second), written: written, read: read)
        #expect(row.expiresWall == 1_000_000 + (70 - Int64(written)) * 1000)
        #expect(try #require(material).lifetime == left * Self.second && material?.obtainedAt == 5)
    }

    @Test func nothingIsLeftOfAnEndedSessionButItsRefreshToken() throws {
        let life = 60 * Self.second
        #expect(Self.afterReboot(Self.material(nil, lifetime: life), written: 10, read: 61).material == nil)
        let (row, material) = Self.afterReboot(Self.material("r", lifetime: life), written: 10, read: 61)
        #expect(row.expiresWall == nil, "its issuer knows how long it is good")
        #expect(try #require(material).refreshToken == Secret("r") && material?.lifetime == 0)
    }

    @Test func aWallClockThatWasSetBackLengthensNoLife() throws {
        let (_, material) = Self.afterReboot(Self.material(nil, lifetime: 60 * Self.second), written: 10, read: -500)
        #expect(try #require(material).lifetime == 60 * Self.second)
    }

    @Test func theLifeOfARefreshTokenIsKeptToo() throws {
        var given = Self.material("r", lifetime: nil)
        given.refreshLife = RefreshLife(left: 100 * Self.second, whole: 200 * Self.second)
        let found = try #require(Self.afterReboot(given, written: 20, read: 10).material)
        #expect(found.refreshLife == RefreshLife(left: 80 * Self.second, whole: 200 * Self.second))
    }

    /// A row that was cut off is nobody's login, and none of its beginning is used.
    @Test func aRowThatIsCutOffIsNone() throws {
        let whole = LayerRow(
            material: Secret("s"), refreshToken: Secret("r"), isHuman: true, wallExpiry: 5, original: 6,
            refreshEnd: (7, 8)
        ).encoded()
        let read = try #require(LayerRow(encoded: whole))
        #expect(read.refreshToken == Secret("r") && read.refreshEnd?.wall == 7 && read.isHuman)
        for length in 0..<whole.count { #expect(LayerRow(encoded: Array(whole.prefix(length))) == nil, "\(length)") }
        #expect(LayerRow(encoded: whole + [0]) == nil)
        let access = AccessRow(
            line: Secret("l"), wallExpiry: 5, original: 6, level: nil, granted: ScopeSet(["a", "b"])
        ).encoded()
        #expect(AccessRow(encoded: access)?.line == Secret("l"))
        for length in 0..<access.count { #expect(AccessRow(encoded: Array(access.prefix(length))) == nil) }
        #expect(AccessRow(encoded: access + [0]) == nil)
    }

    /// A life whose end no clock reaches is one without an end.
    @Test func aLifeThatNeverEndsIsServed() throws {
        let digest = try #require(IdentityDigest(Array(repeating: 1, count: 32)))
        let key = SessionKey(
            digest: digest, issuer: Origin(scheme: "https", host: "issuer", port: 443), subject: nil)
        var session = KeptSession(key: key, generation: 1, material: Self.material(nil, lifetime: .max - 1))
        #expect(session.known().stopServingAt == .max)
        session.material.lifetime = 5
        #expect(session.known().stopServingAt == 10 * Self.second + 5)
    }
}
