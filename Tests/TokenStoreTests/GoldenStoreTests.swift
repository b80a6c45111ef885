import GoldenFiles
import Octets
import TLS
import TemporaryFolder
import Testing

@testable import TokenStore

/// The file of a store, apart from what its rows say.
@Suite struct GoldenStoreTests {
    private static let file = GoldenFile(
        "store-file.txt",
        "The file of a store: marks, tables, and a row of kind 2, key 010203, value 0a0b, end 1800000000000, sealed with the key 0102…20.",
        cost:
            "stores on disk are set aside or read as empty: every token, session and registration is lost, and people have to log in "
            + "again.")

    @Test func theFileIsTheOneThatItWas() throws {
        let bytes = (1...32).map { UInt8($0) }
        let key = try SealingKey(bytes: bytes)
        let ring = try SealingKeyRing([key])
        let row = StoredRow(kind: 2, key: [1, 2, 3], value: [10, 11], expiresWall: 1_800_000_000_000)
        let folder = TemporaryFolder("golden")
        let store = TokenStore(path: folder.path + "/tokens.db", keys: ring)
        guard case .owner = store.open(now: 1_700_000_000_000) else {
            Issue.record("the store is not opened")
            return
        }
        let answer = Reply<Bool>()
        store.put(row) { result in if case .success = result { answer.give(true) } else { answer.give(false) } }
        #expect(answer.wait(milliseconds: 10_000) == true)
        store.close()
        let database = try Database(path: folder.path + "/tokens.db")
        var lines = [
            "application id: \(try database.integer("PRAGMA application_id") ?? 0)",
            "version of the tables: \(try database.integer("PRAGMA user_version") ?? 0)",
            "journal: \(try database.text("PRAGMA journal_mode") ?? "")",
            "id of the key: \(SealingKey.name(of: key.id))",
        ]
        // A key's file, in each of its spellings.
        let spellings = [
            ("base64", Array(Base64.encode(bytes).utf8)), ("hexadecimal", Array(hexadecimal(bytes).utf8)),
            ("octets", bytes),
        ]
        for (word, spelling) in spellings {
            lines.append(
                "id of the key out of \(word): \(SealingKey.name(of: try SealingKey(fileContents: spelling).id))")
        }
        let tables = try database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        while try tables.step() {
            let words = (tables.text(0) ?? "").split { $0 == " " || $0 == "\n" }.joined(separator: " ")
            lines.append("table or index: \(words)")
        }
        let rows = try database.prepare("SELECT tag, kind, expires, value FROM rows")
        #expect(try rows.step())
        lines.append("tag of the row: \(hexadecimal(rows.blob(0) ?? []))")
        lines.append("kind of the row: \(rows.integer(1) ?? 0)")
        lines.append("end of the row: \(rows.integer(2) ?? 0)")
        // The seal has random octets: a recorded one stays as long as it opens.
        let tag = rows.blob(0) ?? []
        func opens(_ sealed: [UInt8]) -> Bool {
            // The tag, the kind, 1 for an end, and the end in eight octets, big-endian.
            let binding = tag + [2, 1] + [0, 0, 1, 163, 24, 92, 80, 0]
            return (try? ring.open(sealed, boundTo: binding)) == [0, 0, 0, 3, 1, 2, 3, 10, 11]
        }
        let prefix = "value of the row: "
        let recorded = Self.file.lines.first { $0.hasPrefix(prefix) }.map { octets($0.dropFirst(prefix.count)) }
        let fresh = rows.blob(3) ?? []
        #expect(opens(fresh), "a row is not read as it is written")
        lines.append(prefix + hexadecimal(recorded.flatMap { opens($0) ? $0 : nil } ?? fresh))
        if let difference = Self.file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }
}
