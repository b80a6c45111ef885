import Glibc
import Synchronization
import TLS
import Testing

@testable import TokenStore

/// Each call is answered exactly once, also where there is no store to ask, and in the order that callers rely on.
@Suite struct RefusalTests {
    let folder = Folder()

    /// The answers to one call of each kind.
    private func ask(_ store: TokenStore) -> [StoreFault.Kind?] {
        let answers = Mutex<[StoreFault.Kind?]>([])
        @Sendable func note<Value>(_ outcome: Result<Value, StoreFault>) {
            answers.withLock { if case .failure(let fault) = outcome { $0.append(fault.kind) } else { $0.append(nil) } }
        }
        store.fetch(kind: 1, key: [1]) { note($0) }
        store.measure { note($0) }
        store.start(.compact) { note($0) }
        store.commit([.delete(kind: 1, key: [1])]) { note($0) }
        store.flush { note($0) }
        return answers.withLock { $0 }
    }

    @Test func aStoreThatIsNotOpenAnswersEveryCallOnce() throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(ask(store) == [.notOwner, .notOwner, .notOwner, .notOwner, .notOwner])
        let released = Mutex(0)
        store.release { released.withLock { $0 += 1 } }
        #expect(released.withLock { $0 } == 1, "there is nothing to give up")
        #expect(store.open(now: 0).census != nil)
        #expect(store.close())
        #expect(ask(store) == [.closed, .closed, .closed, .closed, .closed])
        store.release { released.withLock { $0 += 1 } }
        #expect(released.withLock { $0 } == 2)
    }

    @Test func aStoreOfAnotherProcessAnswersEveryCallOnce() async throws {
        let first = TokenStore(path: folder.database, keys: try ring(1))
        #expect(first.open(now: 0).census != nil)
        let second = TokenStore(path: folder.database, keys: try ring(1))
        #expect(second.open(now: 0) == .lockedByAnother)
        #expect(await second.flush()?.kind == .notOwner)
        #expect(await second.report(.verify(thorough: true)).fault?.kind == .notOwner)
        await #expect(throws: StoreFault.self) { try await second.measure() }
        second.close()
        first.close()
    }

    /// A row is never written to a log by its content.
    @Test func aRowIsToldByItsKindAndSize() {
        let text = "\(row(7, "user@example.com", "secret"))"
        #expect(text == "StoredRow(kind 7, 6 bytes)")
    }

    // MARK: - Order

    private func turning() throws -> TokenStore {
        var options = StoreOptions()
        options.hasThread = false
        options.spilledKinds = [3]
        let store = TokenStore(path: folder.database, keys: try ring(1), options: options)
        try #require(store.open(now: 0).census != nil)
        return store
    }

    private func add(_ store: TokenStore, _ rows: [StoredRow]) {
        store.commit(rows.map { .put($0) }) { outcome in
            if case .failure(let fault) = outcome { Issue.record("\(fault)") }
        }
        store.turn()
    }

    /// Rows that have expired long ago go with any commit.
    private static let far: Int64 = 1 << 50

    /// A lookup sees the changes before it that may be about its row, and need not wait for the others.
    @Test(arguments: [
        (StoreChange.deleteExpired(before: far + 10), "changed", false),
        (.deleteExpired(before: far + 5), "changed", true),
        (.delete(kind: 3, key: Array("a".utf8)), "changed", false), (.deleteAll(kind: 3), "changed", false),
        (.delete(kind: 3, key: Array("b".utf8)), "looked up", true), (.deleteAll(kind: 2), "looked up", true),
        (.put(row(3, "a", "2", expires: far + 7)), "changed", true),
    ])
    func aLookupSeesTheChangesOfItsRow(change: StoreChange, first: String, isThere: Bool) throws {
        let store = try turning()
        add(store, [row(3, "a", "1", expires: Self.far + 7), row(3, "b", "1", expires: Self.far + 20)])
        let order = Mutex<[String]>([])
        let found = Mutex<StoredRow?>(nil)
        store.commit([change]) { _ in order.withLock { $0.append("changed") } }
        store.fetch(kind: 3, key: Array("a".utf8)) { outcome in
            order.withLock { $0.append("looked up") }
            found.withLock { $0 = (try? outcome.get()) ?? nil }
        }
        store.turn()
        #expect(order.withLock { $0.first } == first && order.withLock { $0.count } == 2)
        #expect((found.withLock { $0 } != nil) == isThere)
        store.close()
    }

    // MARK: - Jobs

    private func rows(_ count: Int, length: Int = 10) -> [StoredRow] {
        (0..<count).map { row(3, "k\($0)", String(repeating: "v", count: length), expires: 1 << 50) }
    }

    private func open(_ keys: SealingKeyRing, repairs: Bool = true) throws -> TokenStore {
        var options = StoreOptions()
        options.spilledKinds = [3]
        options.repairs = repairs
        let store = TokenStore(path: folder.database, keys: keys, options: options)
        try #require(store.open(now: 0).census != nil)
        return store
    }

    private func fill(_ rows: [StoredRow]) async throws {
        let store = try open(try ring(1))
        for start in stride(from: 0, to: rows.count, by: 200) {
            #expect(await store.commit(rows[start...].prefix(200).map { .put($0) }) == nil)
        }
        #expect(store.close())
    }

    /// A row that cannot be opened is counted and left; the others get their new key.
    @Test func aRotationCountsWhatItCannotSeal() async throws {
        try await fill(rows(5))
        try sqlite("UPDATE rows SET expires = 5 WHERE sequence = 2", in: folder.database)
        let store = try open(try ring(2, 1))
        let report = try #require(await store.report(.rotate(nil)).report)
        #expect(report.damaged == 1 && report.resealed == 4 && report.rows == 5)
        store.close()
        let new = try open(try ring(2))
        #expect(await new.fetch(3, "k0") != nil)
        #expect(await new.fetch(3, "k1") == nil)
        new.close()
    }

    /// An opening that only looks finds the rows that one with repairs would have removed.
    @Test(arguments: [
        "UPDATE rows SET kind = 'text' WHERE sequence = 2", "UPDATE rows SET value = 7 WHERE sequence = 2",
        "UPDATE rows SET kind = 4711 WHERE sequence = 2",
    ])
    func aVerificationCountsWhatIsNoRow(change: String) async throws {
        try await fill(rows(5))
        try sqlite(change, in: folder.database)
        let before = Bytes.read(folder.database)
        let store = try open(try ring(1), repairs: false)
        let report = try #require(await store.report(.verify(thorough: false)).report)
        #expect(report.damaged == 1 && report.rows == 5 && report.finding == nil)
        store.close()
        #expect(Bytes.read(folder.database) == before)
    }

    /// SQLite finds what no row shows: an index that does not agree with its table.
    @Test func aThoroughVerificationTellsWhatSQLiteFinds() async throws {
        try await fill(rows(5))
        try sqlite(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                + "'CREATE INDEX rows_by_kind ON rows (expires, kind)' WHERE name = 'rows_by_kind'",
            in: folder.database, before: ".dbconfig defensive off")
        let store = try open(try ring(1), repairs: false)
        let quick = try #require(await store.report(.verify(thorough: false)).report)
        #expect(quick.damaged == 0 && quick.finding == nil)
        let thorough = try #require(await store.report(.verify(thorough: true)).report)
        #expect(thorough.damaged == 0 && thorough.finding?.contains("rows_by_kind") == true, "\(thorough)")
        store.close()
    }

    /// More free pages than one step gives back.
    @Test func aCompactionGoesOnUntilNothingIsFree() async throws {
        try await fill(rows(900, length: 3900))
        let store = try open(try ring(1))
        #expect(await store.commit([.deleteAll(kind: 3)]) == nil)
        let report = try #require(await store.report(.compact).report)
        #expect(report.bytes < 256 << 10 && Bytes.read(folder.database).count == report.bytes)
        store.close()
    }

    /// Pages that turn bad while the store runs: the file is set aside as it was found, and the store goes on with a new one.
    @Test func aFileThatIsDamagedInUseIsSetAside() async throws {
        try await fill(rows(1500, length: 3000))
        let store = try open(try ring(1))
        var bytes = Bytes.read(folder.database)
        bytes.replaceSubrange(4096..., with: [UInt8](repeating: 0xA5, count: bytes.count - 4096))
        Bytes.write(bytes, to: folder.database)
        let aside = "\(folder.database).damaged-1"
        for number in 0..<1500 where store.condition.setAside.isEmpty { _ = await store.fetch(3, "k\(number)") }
        #expect(store.condition.setAside == [aside])
        #expect(Bytes.read(aside) == bytes, "closing it wrote nothing")
        #expect(await store.put(row(1, "a", "1")) == nil)
        #expect(await store.fetch(3, "k7") == nil)
        #expect(await store.fetch(1, "a") == row(1, "a", "1"))
        store.close()
    }

    // MARK: - Keys beside the store

    private var keyFile: String { KeyFile.path(beside: folder.database) }

    @Test func theOnlyKeyIsKept() throws {
        #expect(try KeyFile.makeKeyFile(beside: folder.database).made)
        let before = Bytes.read(keyFile)
        try KeyFile.keepFirst(beside: folder.database)
        #expect(Bytes.read(keyFile) == before)
        #expect(try !KeyFile.makeKeyFile(beside: folder.database).made)
    }

    @Test func aKeyFileThatCannotBeReadOrMadeIsTold() throws {
        #expect(throws: StoreFault(.io, "\(keyFile): \(String(cString: strerror(ENOENT)))")) {
            try KeyFile.load(keyFile)
        }
        let nowhere = folder.path + "/nowhere/tokens.db"
        #expect(throws: StoreFault.self) { try KeyFile.makeKeyFile(beside: nowhere) }
        mkdir(keyFile, 0o700)
        #expect(throws: StoreFault(.io, "\(keyFile) is not a regular file")) {
            try KeyFile.makeKeyFile(beside: folder.database)
        }
        rmdir(keyFile)
    }

    /// Whoever else could write the key could have put in one that they know.
    @Test(.enabled(if: geteuid() == 0, "only root may give a file away"))
    func aKeyOfAnotherUserIsNotUsed() throws {
        _ = try KeyFile.makeKeyFile(beside: folder.database)
        chown(keyFile, 4711, 4711)
        #expect(throws: StoreFault(.io, "\(keyFile) is owned by another user")) { try KeyFile.load(keyFile) }
        chown(folder.path, 4711, 4711)
        #expect(try KeyFile.load(keyFile).count == 1, "unless the folder is theirs too")
        chown(folder.path, 0, 0)
    }
}
