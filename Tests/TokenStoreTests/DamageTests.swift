import Glibc
import TLS
import Testing
import TokenStore

@Suite struct DamageTests {
    let folder = Folder()

    private func fill(_ count: Int = 3) async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0).census != nil)
        for number in 0..<count { #expect(await store.put(row(1, "key \(number)", "value \(number)")) == nil) }
        #expect(store.close())
    }

    private func sql(_ statements: String, before command: String = ".bail on") throws {
        try sqlite(statements, in: folder.database, before: command)
    }

    @Test(arguments: ["empty", "zeros", "head only", "page of zeros behind the head", "truncated", "garbage inside"])
    func `a damaged file is set aside and rebuilt`(kind: String) async throws {
        try await fill(200)
        var bytes = Bytes.read(folder.database)
        switch kind {
        case "empty": bytes = []
        case "zeros": bytes = [UInt8](repeating: 0, count: bytes.count)
        case "head only": bytes = Array(bytes.prefix(40))
        case "page of zeros behind the head":
            bytes.replaceSubrange(100..<4096, with: [UInt8](repeating: 0, count: 3996))
        case "truncated": bytes = Array(bytes.prefix(bytes.count / 2))
        default: bytes.replaceSubrange(4096..., with: [UInt8](repeating: 0xa5, count: bytes.count - 4096))
        }
        Bytes.write(bytes, to: folder.database)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        let aside = "\(folder.database).damaged-1"
        #expect(store.open(now: 0) == .setAside(aside))
        #expect(Bytes.read(aside) == bytes)
        #expect(store.restore() == [] && store.condition.isOwner && store.condition.setAside == [aside])
        #expect(await store.put(row(1, "k", "v")) == nil)
        store.close()
        let again = TokenStore(path: folder.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.restored == 1)
    }

    @Test func `files set aside do not overwrite each other, up to a bound`() throws {
        for number in 1...12 {
            Bytes.write([0, 0], to: folder.database)
            let store = TokenStore(path: folder.database, keys: try ring(1))
            #expect(store.open(now: 0) == .setAside("\(folder.database).damaged-\(min(number, 10))"))
            store.close()
        }
    }

    @Test func `somebody else's file is left alone`() async throws {
        Bytes.write(Array("name,password\n".utf8), to: folder.database)
        let text = TokenStore(path: folder.database, keys: try ring(1))
        #expect(text.open(now: 0) == .notOurs("not a SQLite database"))
        #expect(await text.put(row(1, "k", "v"))?.kind == .notOwner)
        #expect(Bytes.read(folder.database) == Array("name,password\n".utf8))
        text.close()
        unlink(folder.database)

        try sql("CREATE TABLE cookies (value TEXT); INSERT INTO cookies VALUES ('x')")
        let before = Bytes.read(folder.database)
        let other = TokenStore(path: folder.database, keys: try ring(1))
        #expect(other.open(now: 0) == .notOurs("a SQLite database of another application"))
        other.close()
        #expect(Bytes.read(folder.database) == before)
        unlink(folder.database)

        symlink("/dev/null", folder.database)
        let link = TokenStore(path: folder.database, keys: try ring(1))
        #expect(link.open(now: 0) == .notOurs("not a regular file"))
        #expect(link.condition.degraded?.kind == .notOwner)
    }

    @Test func `a file from the future is left alone`() async throws {
        try await fill()
        try sql("PRAGMA user_version = 2")
        let before = Bytes.read(folder.database)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .newer(version: 2))
        store.close()
        #expect(Bytes.read(folder.database) == before)
    }

    @Test func `a future version that stands only in the log is seen too`() async throws {
        try await fill()
        let before = Bytes.read(folder.database)
        try sql("PRAGMA user_version = 7", before: ".dbconfig no_ckpt_on_close on")
        #expect(Bytes.read(folder.database) == before)
        let log = Bytes.read(folder.database + "-wal")
        #expect(!log.isEmpty)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .newer(version: 7))
        store.close()
        #expect(Bytes.read(folder.database) == before && Bytes.read(folder.database + "-wal") == log)
    }

    @Test(arguments: [
        "UPDATE rows SET value = zeroblob(80) WHERE sequence = 2",
        "UPDATE rows SET value = NULL WHERE 0; UPDATE rows SET value = 'text' WHERE sequence = 2",
        "UPDATE rows SET expires = 99999999 WHERE sequence = 2",
        "UPDATE rows SET expires = 'never' WHERE sequence = 2",
        "UPDATE rows SET kind = 2 WHERE sequence = 2",
        "UPDATE rows SET kind = 4711 WHERE sequence = 2",
        "UPDATE rows SET kind = 'text' WHERE sequence = 2",
        "UPDATE rows SET tag = zeroblob(32) WHERE sequence = 2",
        "UPDATE rows SET value = (SELECT value FROM rows WHERE sequence = 1) WHERE sequence = 2",
    ])
    func `a damaged row is dropped and counted`(change: String) async throws {
        try await fill()
        try sql(change)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        let census = store.open(now: 0).census
        #expect(census?.restored == 2 && census?.damagedCount == 1)
        #expect(store.condition.damagedRows == 1)
        #expect(store.restore() == [row(1, "key 0", "value 0"), row(1, "key 2", "value 2")])
        store.close()
        let again = TokenStore(path: folder.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.damagedCount == 0)
    }

    @Test(arguments: [
        "DROP TABLE rows", "DROP TABLE keys",
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END", "PRAGMA user_version = 0",
    ])
    func `a file without our schema is set aside`(change: String) async throws {
        try await fill()
        try sql(change)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .setAside("\(folder.database).damaged-1"))
    }

    @Test func `a key that nobody listed is damage, not an unknown key`() async throws {
        try await fill()
        try sql("DELETE FROM keys")
        let store = TokenStore(path: folder.database, keys: try ring(2))
        #expect(store.open(now: 0).census?.damaged == [1: 3])
    }

    @Test func `a mode too wide is tightened`() async throws {
        try await fill()
        chmod(folder.database, 0o644)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0).census?.modeTightened == true)
        #expect(Bytes.mode(folder.database) == 0o600)
    }

    @Test func `a log whose database is gone is not applied to the next one`() async throws {
        try await fill()
        Bytes.write([UInt8](repeating: 7, count: 5000), to: folder.database + "-wal")
        unlink(folder.database)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .owner(StoreCensus()))
    }

    @Test func `a file deleted under us is made again`() async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0).census != nil)
        #expect(await store.put(row(1, "lost", "v")) == nil)
        unlink(folder.database)
        #expect(await store.put(row(1, "kept", "v")) == nil)
        store.close()
        let again = TokenStore(path: folder.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.restored == 1)
        #expect(again.restore().map(\.key) == [Array("kept".utf8)])
    }
}
