import ScriptedWorld
import Synchronization
import TLS
import Testing
import TokenStore

/// Rows that are looked up instead of read at boot.
@Suite struct SpillTests {
    let folder = Folder()
    static let hour: Int64 = 3_600_000

    private func options(maximumBytes: Int = 2 << 30, now: Int64 = 0) -> StoreOptions {
        var options = StoreOptions()
        options.spilledKinds = [3]
        options.maximumBytes = maximumBytes
        options.time = ScriptedTime(wall: now * 1_000_000)
        return options
    }

    private func open(_ options: StoreOptions, _ keys: SealingKeyRing, now: Int64 = 0) -> (
        TokenStore, StoreOpening
    ) {
        let store = TokenStore(path: folder.database, keys: keys, options: options)
        return (store, store.open(now: now))
    }

    @Test func `opening reads the other kinds only, and a lookup finds the rest`() async throws {
        let keys = try ring(1)
        let (first, _) = open(options(), keys)
        let changes = (0..<300).map { StoreChange.put(row(3, "k\($0)", "v\($0)", expires: 9)) }
        #expect(await first.commit(changes) == nil)
        #expect(await first.put(row(2, "session", "s")) == nil)
        first.close()
        let (store, opening) = open(options(), keys, now: 100)
        #expect(opening.census?.restored == 1 && store.restore() == [row(2, "session", "s")])
        // Expired or not is for the asker to judge.
        #expect(await store.fetch(3, "k17") == row(3, "k17", "v17", expires: 9))
        #expect(await store.fetch(3, "k300") == nil)
        #expect(await store.fetch(2, "k17") == nil)
        let some = store.fetch(kind: 3, keys: ["k5", "nobody", "k6"].map { Array($0.utf8) }, within: 5000)
        #expect(some.count == 3 && some[Array("nobody".utf8)] == .some(nil))
        #expect(some[Array("k5".utf8)] == .some(row(3, "k5", "v5", expires: 9)))
    }

    @Test func `rows are counted by kind, also those that opening does not read`() async throws {
        let keys = try ring(1)
        let (store, _) = open(options(), keys)
        let changes = (0..<300).map { StoreChange.put(row(3, "k\($0)", "v\($0)", expires: 9)) }
        #expect(await store.commit(changes) == nil)
        #expect(await store.put(row(3, "k7", "again", expires: 9)) == nil)
        #expect(await store.put(row(2, "session", "s")) == nil)
        let size = try await store.measure()
        #expect(size.rows == [2: 1, 3: 300])
        #expect(size.databaseBytes > 0 && size.logBytes > 0)
        store.close()
        #expect(try await open(options(), keys).0.measure().rows == [2: 1, 3: 300])
        await #expect(throws: StoreFault.self) { try await store.measure() }
    }

    @Test func `a lookup sees the changes before it`() async throws {
        let (store, _) = open(options(), try ring(1))
        let seen = Mutex<[String]>([])
        for number in 0..<20 {
            store.put(row(3, "k", "\(number)")) { _ in }
            store.fetch(kind: 3, key: Array("k".utf8)) { found in
                let text = (try? found.get()).flatMap { $0 }.map { String(decoding: $0.value, as: UTF8.self) }
                seen.withLock { $0.append(text ?? "nothing") }
            }
        }
        #expect(await store.flush() == nil)
        #expect(seen.withLock { $0 } == (0..<20).map { "\($0)" })
    }

    @Test func `a damaged row is dropped at its lookup and counted`() async throws {
        let keys = try ring(1)
        let (first, _) = open(options(), keys)
        #expect(await first.put(row(3, "a", "secret text")) == nil)
        first.close()
        try sqlite("UPDATE rows SET expires = 7", in: folder.database)
        let (store, _) = open(options(), keys)
        #expect(await store.fetch(3, "a") == nil)
        #expect(store.condition.damagedRows == 1)
        let report = try #require(await store.report(.verify(thorough: true)).report)
        #expect(report.rows == 0 && report.finding == nil)
    }

    @Test func `at its bound the file drops what expires first and keeps what is not spilled`() async throws {
        let keys = try ring(1)
        let (store, _) = open(options(maximumBytes: 512 << 10), keys)
        #expect(await store.put(row(2, "session", "s")) == nil)
        let value = String(repeating: "x", count: 900)
        // Descending: the first put expires last.
        for start in stride(from: 0, to: 2000, by: 40) {
            let changes = (start..<start + 40).map {
                StoreChange.put(row(3, "k\($0)", value, expires: Int64(1_000_000 - $0)))
            }
            #expect(await store.commit(changes) == nil, "\(start)")
        }
        #expect(Bytes.read(folder.database).count <= 512 << 10)
        #expect(await store.fetch(3, "k0") != nil)
        store.close()
        let (again, _) = open(options(maximumBytes: 512 << 10), keys)
        #expect(again.restore() == [row(2, "session", "s")])
    }

    @Test func `long expired rows go with the commits that follow`() async throws {
        let keys = try ring(1)
        let (store, _) = open(options(now: 2 * Self.hour), keys)
        let old = (0..<40).map { StoreChange.put(row(3, "k\($0)", "v", expires: Self.hour / 2)) }
        #expect(await store.commit(old) == nil)
        // Within the grace: kept.
        #expect(await store.put(row(3, "grace", "v", expires: Self.hour + 1)) == nil)
        for number in 0..<10 { #expect(await store.put(row(3, "new\(number)", "v")) == nil) }
        let report = try #require(await store.report(.verify(thorough: true)).report)
        #expect(report.rows == 11 && report.damaged == 0 && report.finding == nil)
        #expect(await store.fetch(3, "grace") != nil)
    }

    @Test func `a file without the index of kinds gets one`() async throws {
        let keys = try ring(1)
        let (first, _) = open(options(), keys)
        #expect(await first.put(row(2, "a", "1")) == nil)
        first.close()
        try sqlite("DROP INDEX rows_by_kind", in: folder.database)
        let (store, opening) = open(options(), keys)
        #expect(opening.census?.restored == 1)
        store.close()
        #expect(Bytes.contain(Bytes.read(folder.database), "rows_by_kind"))
    }
}
