import Glibc
import TLS
import Testing
import TokenStore

@Suite struct RestoreTests {
    let folder = Folder()

    /// Opens, lets `body` write, closes.
    private func session(_ keys: SealingKeyRing, now: Int64 = 0, _ body: (TokenStore) async -> Void) async {
        let store = TokenStore(path: folder.database, keys: keys)
        #expect(store.open(now: now).census != nil)
        await body(store)
        #expect(store.close())
    }

    @Test func `a new store is empty, private, and leaves only its files`() async throws {
        let before = umask(0)
        defer { umask(before) }
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .owner(StoreCensus()))
        #expect(store.restore() == [])
        #expect(await store.put(row(1, "k", "v")) == nil)
        #expect(folder.names == ["tokens.db", "tokens.db-wal", "tokens.db.lock"])
        for name in folder.names { #expect(Bytes.mode("\(folder.path)/\(name)") == 0o600) }
        #expect(store.condition.isOwner && store.condition.commits == 1 && store.condition.degraded == nil)
        #expect(store.close())
        #expect(folder.names == ["tokens.db", "tokens.db.lock"])
    }

    /// As on a disk that was slow at the start, whose rows are taken later than asked for.
    @Test func `what was deleted since the opening is not restored`() async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        _ = store.open(now: 0)
        for name in ["kept", "deleted"] { #expect(await store.put(row(1, name, "old")) == nil) }
        #expect(await store.put(row(1, "expired", "old", expires: 1000)) == nil)
        #expect(await store.put(row(2, "of a kind", "old")) == nil)
        store.close()
        let again = TokenStore(path: folder.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.restored == 4)
        #expect(
            await again.commit([.delete(kind: 1, key: Array("deleted".utf8)), .deleteExpired(before: 2000)]) == nil)
        #expect(await again.commit([.deleteAll(kind: 2)]) == nil)
        #expect(again.restore() == [row(1, "kept", "old")])
    }

    @Test func `rows come back by kind, then in the order of their last commit`() async throws {
        let keys = try ring(1)
        await session(keys) { store in
            #expect(await store.put(row(3, "access-1", "a1", expires: 2000)) == nil)
            #expect(await store.put(row(2, "session", "s")) == nil)
            #expect(await store.put(row(3, "access-2", "a2")) == nil)
            #expect(await store.put(row(1, "device", "")) == nil)
            #expect(await store.put(row(3, "access-1", "a1 again", expires: 3000)) == nil)
        }
        let store = TokenStore(path: folder.database, keys: keys)
        #expect(store.open(now: 1000).census?.restored == 4)
        #expect(
            store.restore() == [
                row(1, "device", ""), row(2, "session", "s"), row(3, "access-2", "a2"),
                row(3, "access-1", "a1 again", expires: 3000),
            ])
        #expect(store.restore() == [])
    }

    @Test func `what has expired is not restored and is gone`() async throws {
        let keys = try ring(1)
        await session(keys) { store in
            #expect(await store.put(row(3, "old", "1", expires: 999)) == nil)
            #expect(await store.put(row(3, "edge", "2", expires: 1000)) == nil)
            #expect(await store.put(row(3, "ever", "3")) == nil)
        }
        let store = TokenStore(path: folder.database, keys: keys)
        #expect(store.open(now: 1000) == .owner(census(restored: 2, expired: 1)))
        #expect(await store.commit([.deleteExpired(before: 1001)]) == nil)
        store.close()
        let again = TokenStore(path: folder.database, keys: keys)
        #expect(again.open(now: 0) == .owner(census(restored: 1)))
        #expect(again.restore().map(\.value) == [Array("3".utf8)])
    }

    @Test func `deletes by key and by kind, and a transaction is one`() async throws {
        let keys = try ring(1)
        await session(keys) { store in
            for name in ["a", "b", "c"] {
                #expect(await store.put(row(1, name, name)) == nil)
                #expect(await store.put(row(2, name, name)) == nil)
            }
            #expect(
                await store.commit([
                    .delete(kind: 1, key: Array("b".utf8)), .deleteAll(kind: 2), .put(row(2, "d", "d")),
                ]) == nil)
            let large = StoredRow(kind: 1, key: [], value: [UInt8](repeating: 0, count: StoredRow.maximumValueSize + 1))
            #expect(await store.commit([.deleteAll(kind: 1), .put(large)])?.kind == .tooLarge)
            #expect(await store.commit([]) == nil)
            #expect(await store.flush() == nil)
            #expect(await store.compact() == nil)
        }
        let store = TokenStore(path: folder.database, keys: keys)
        #expect(store.open(now: 0).census?.restored == 3)
        #expect(store.restore() == [row(1, "a", "a"), row(1, "c", "c"), row(2, "d", "d")])
    }

    @Test func `the largest row fits`() async throws {
        let keys = try ring(1)
        let large = StoredRow(
            kind: 255, key: [UInt8](repeating: 1, count: StoredRow.maximumKeySize),
            value: [UInt8](repeating: 2, count: StoredRow.maximumValueSize), expiresWall: .max)
        await session(keys) { store in #expect(await store.put(large) == nil) }
        let store = TokenStore(path: folder.database, keys: keys)
        #expect(store.open(now: 0).census?.restored == 1)
        #expect(store.restore() == [large])
    }

    @Test func `no plaintext ever stands in a file`() async throws {
        let keys = try ring(1)
        let store = TokenStore(path: folder.database, keys: keys)
        _ = store.open(now: 0)
        let name = "identity=hr;user=svc-hr-person;scope=invoices.read"
        for turn in 0..<50 {
            #expect(await store.put(row(3, "\(name)\(turn % 5)", "eyJhbGciOiJub25lIn0.token-\(turn)")) == nil)
        }
        #expect(await store.commit([.delete(kind: 3, key: Array("\(name)0".utf8))]) == nil)
        func search() {
            for file in folder.names {
                let bytes = Bytes.read("\(folder.path)/\(file)")
                for text in ["svc-hr", "invoices", "identity", "eyJ", "token-"] {
                    #expect(!Bytes.contain(bytes, text), "\(text) in \(file)")
                }
            }
        }
        search()
        store.close()
        search()
        #expect(Bytes.contain(Bytes.read(folder.database), "SQLite format 3"))
    }

    // MARK: - Keys

    @Test func `an older key opens, rotation moves every row to the first`() async throws {
        await session(try ring(1)) { store in
            #expect(await store.put(row(1, "a", "1")) == nil)
            #expect(await store.put(row(1, "b", "2")) == nil)
            #expect(await store.put(row(1, "c", "3")) == nil)
        }
        await session(try ring(2, 1)) { store in
            #expect(store.restore().count == 3)
            // Written under another tag, yet it is the same row; and so it is for a deletion.
            #expect(await store.put(row(1, "a", "1 again")) == nil)
            #expect(await store.commit([.delete(kind: 1, key: Array("b".utf8))]) == nil)
        }
        await session(try ring(2, 1)) { store in
            #expect(store.restore() == [row(1, "c", "3"), row(1, "a", "1 again")])
            #expect(await store.rotate() == nil)
        }
        await session(try ring(2)) { store in #expect(store.restore().count == 2) }
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0) == .unknownKey([try sealingKey(2).id]))
    }

    @Test func `an unknown key leaves the file alone and is named`() async throws {
        await session(try ring(1)) { store in #expect(await store.put(row(1, "a", "1")) == nil) }
        let before = Bytes.read(folder.database)
        let store = TokenStore(path: folder.database, keys: try ring(2))
        #expect(store.open(now: 0) == .unknownKey([try sealingKey(1).id]))
        #expect(store.restore() == [])
        let fault = await store.put(row(1, "b", "2"))
        #expect(fault?.kind == .notOwner)
        #expect(fault?.message.contains(SealingKey.name(of: try sealingKey(1).id)) == true)
        #expect(!store.condition.isOwner)
        // The lock is free for whoever has the key.
        await session(try ring(1)) { store in #expect(store.restore() == [row(1, "a", "1")]) }
        store.close()
        #expect(Bytes.read(folder.database).count == before.count)
    }

    private func census(restored: Int, expired: Int = 0) -> StoreCensus {
        var census = StoreCensus()
        census.restored = restored
        census.expired = expired
        return census
    }
}
