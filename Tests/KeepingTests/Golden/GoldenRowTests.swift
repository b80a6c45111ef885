import Fleet
import GoldenFiles
import ScriptedWorld
import TLS
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import TokenStore
@testable import Tokens

/// Keys and values of rows before a store seals them. A fleet shares the values in the same form.
@Suite struct GoldenRowTests {
    private typealias Kind = RowKind
    private static let digest = IdentityDigest((0..<32).map { UInt8($0) })
    private static let origin = Tokens.Origin(scheme: "https", host: "idp.example.com", port: 443)
    private static let markKey: [UInt8] = (1...32).map { UInt8($0) }
    private static let file = GoldenFile(
        "store-rows.txt",
        "Kind of a row, its name, what it shows, and key and value in hexadecimal before they are sealed.",
        cost:
            "what a store has kept is not understood after an upgrade and dropped: tokens are asked for again, sessions and "
            + "registrations are lost, refused passwords and spent refresh tokens are sent once more.")

    @Test func everyRowHasTheOctetsThatItHad() throws {
        let digest = try #require(Self.digest)
        let session = SessionKey(digest: digest, issuer: Self.origin, subject: "jane")
        let access = AccessKey(
            digest: digest, origin: Tokens.Origin(scheme: "https", host: "api.example.com", port: 8443), realm: "HR_WG",
            scopes: ["a"])
        let key = try SealingKey(bytes: Self.markKey)
        let mark = AttemptMark(
            account: Account(issuer: Self.origin, user: "svc-hr"),
            secretHash: ByteString(key.tag(Array("password".utf8))))
        var lines: [String] = []
        func add(_ kind: UInt8, _ name: String, _ what: String, _ key: [UInt8], _ value: [UInt8]) {
            lines.append("kind \(kind) \(name), \(what): \(hexadecimal(key)) \(hexadecimal(value))")
        }
        for (what, row) in Self.accessRows { add(Kind.access, "token", what, KeyCodec.encode(access), row.encoded()) }
        for (what, row) in Self.layerRows {
            add(Kind.session, "session", what, KeyCodec.encode(session), row.encoded())
        }
        for part in [DurablePart.registration, .device, .proofKey] {
            add(
                Kind.durable, "durable", "part '\(part.name)'",
                KeyCodec.encode(DurableKey(digest: digest, issuer: Self.origin, part: ByteString(part.name))),
                Self.layerRows[0].row.encoded())
        }
        var table = LearnedTable()
        _ = table.learnChallenge(of: "HR_WG", at: LearnedEntry(path: Array("/hr/a".utf8), method: Array("GET".utf8)))
        var tableKey = access
        tableKey.realm = "realm"
        add(Kind.learned, "learned", "a table of realms", KeyCodec.encode(tableKey), table.encode())
        var ledger = AttemptLedger()
        add(Kind.attempt, "attempt", "spent", AttemptRow.key(of: mark), ledger.spend(mark).bytes ?? [])
        _ = ledger.rejected(mark, remaining: 2)
        for row in ledger.takeHistory() {
            add(Kind.history, "history", "rejected", AttemptRow.key(of: row.mark), row.bytes ?? [])
        }
        let markRow = Attempts(try #require(MarkKey(bytes: Self.markKey))).keyRow
        add(markRow.kind, "mark key", "the key of the hashes", markRow.key, markRow.value)
        add(Kind.owners, "owners", "the digests of all identities, sorted", [], digest.bytes)
        let version = try #require(SessionVersion(octets: [0, 0, 0, 0, 0, 0, 1, 2]))
        add(Kind.version, "version", "of a session, 258", KeyCodec.encode(session), version.octets)
        let first = key.tag(Array("first-refresh-token".utf8))
        for (what, subject, current) in [
            ("replaced", "jane", "next"), ("without a user", nil, "next"), ("nothing left", "jane", nil),
        ] as [(String, ByteString?, String?)] {
            let row = FamilyRow(
                lock: SessionLockKey(issuer: Self.origin, subject: subject), current: current.map { Secret($0) })
            add(Kind.family, "family", what, first, row.encoded())
        }
        if let difference = Self.file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    private static let accessRows: [(what: String, row: AccessRow)] = [
        (
            "with all of it",
            AccessRow(
                line: Secret("Bearer t"), wallExpiry: 1_800_000_000_000, original: 3_600_000_000_000, level: 2,
                granted: ["b", "a"])
        ),
        ("without level and scopes", AccessRow(line: Secret(""), wallExpiry: 0, original: 1, level: nil, granted: [])),
    ]
    private static let layerRows: [(what: String, row: LayerRow)] = [
        (
            "for good",
            LayerRow(material: Secret("m"), refreshToken: nil, isHuman: false, wallExpiry: nil, original: nil)
        ),
        (
            "with an end",
            LayerRow(
                material: Secret("m"), refreshToken: nil, isHuman: true, wallExpiry: 1_800_000_000_000,
                original: 60_000_000_000)
        ),
        (
            "with a refresh token",
            LayerRow(material: Secret(""), refreshToken: Secret("r"), isHuman: false, wallExpiry: nil, original: nil)
        ),
        (
            "with all of it",
            LayerRow(
                material: Secret("m"), refreshToken: Secret("r"), isHuman: true, wallExpiry: 1_800_000_000_000,
                original: 60_000_000_000,
                refreshEnd: (1_900_000_000_000, 120_000_000_000))
        ),
    ]

    /// Rows of older versions are read for what they were.
    @Test func whatIsRecordedDecodesToItself() throws {
        #expect(!Self.file.lines.isEmpty)
        for line in Self.file.lines {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            let (key, value) = (octets(words[words.count - 2]), octets(words[words.count - 1]))
            switch UInt8(words[1]) {
            case Kind.access:
                #expect(try KeyCodec.encode(KeyCodec.accessKey(key)) == key)
                #expect(AccessRow(encoded: value)?.encoded() == value, "\(line)")
            case Kind.session:
                #expect(try KeyCodec.encode(KeyCodec.sessionKey(key)) == key)
                #expect(LayerRow(encoded: value)?.encoded() == value, "\(line)")
            case Kind.durable:
                #expect(try KeyCodec.encode(KeyCodec.durableKey(key)) == key)
                #expect(LayerRow(encoded: value)?.encoded() == value, "\(line)")
            case Kind.family: #expect(FamilyRow(encoded: value)?.encoded() == value, "\(line)")
            case Kind.version: #expect(SessionVersion(octets: value)?.octets == value, "\(line)")
            case Kind.markKey:
                #expect(
                    try MarkKey(
                        in: [StoredRow(kind: Kind.markKey, key: key, value: value)], random: SeededRandom()
                    ).bytes == value)
            default: break
            }
        }
    }

    /// The numbers stand in every store.
    @Test func everyKindHasTheNumberThatItHad() {
        let kinds: [(String, UInt8)] = [
            ("access", Kind.access), ("session", Kind.session), ("durable", Kind.durable), ("learned", Kind.learned),
            ("attempt", Kind.attempt),
            ("markKey", Kind.markKey), ("owners", Kind.owners), ("version", Kind.version), ("family", Kind.family),
            ("history", Kind.history),
        ]
        var lines = kinds.map { "number of \($0.0): \($0.1)" }
        lines += Kind.names.map { "word of \($0.kind): \($0.name)" }
        lines += Kind.spilled.map { "looked up one by one: \($0)" }
        lines += Kind.lasting.map { "never given up for space: \($0)" }
        let file = GoldenFile(
            "store-kinds.txt", "Kinds of rows.",
            cost: "rows of a store are taken for something else, or not read at all.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }
}
