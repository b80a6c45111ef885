import Glibc
import Synchronization
import TLS
import Testing
import TokenStore

/// Rotation, verification and compaction, while the store is in use.
@Suite struct JobTests {
    let folder = Folder()

    private func open(_ keys: SealingKeyRing) throws -> TokenStore {
        var options = StoreOptions()
        options.spilledKinds = [3]
        let store = TokenStore(path: folder.database, keys: keys, options: options)
        try #require(store.open(now: 0).census != nil)
        return store
    }

    private func fill(_ store: TokenStore, _ count: Int) async {
        let changes = (0..<count).map { StoreChange.put(row(3, "k\($0)", "v\($0)", expires: 1 << 50)) }
        #expect(await store.commit(changes) == nil)
    }

    @Test func `a key is replaced while the store serves, and the old one opens nothing afterwards`() async throws {
        let store = try open(try ring(1))
        await fill(store, 1500)
        #expect(await store.put(row(2, "session", "s")) == nil)
        let missing = Mutex(0)
        let ring2 = try ring(2)
        let done = Mutex<StoreReport?>(nil)
        store.start(.rotate(ring2)) { outcome in done.withLock { $0 = try? outcome.get() } }
        // Looked up and changed while the rows move from key to key.
        for round in 0..<600 {
            let number = round * 37 % 1500
            if await store.fetch(3, "k\(number)") == nil { missing.withLock { $0 += 1 } }
            if round % 50 == 0 { #expect(await store.put(row(3, "k\(number)", "new", expires: 1 << 50)) == nil) }
        }
        #expect(missing.withLock { $0 } == 0)
        while done.withLock({ $0 }) == nil { #expect(await store.flush() == nil) }
        let report = try #require(done.withLock { $0 })
        #expect(report.isDone && report.damaged == 0 && report.resealed >= 1400)
        #expect(report.key == SealingKey.name(of: try sealingKey(2).id))
        #expect(store.condition.job == report)
        store.close()
        let old = TokenStore(path: folder.database, keys: try ring(1))
        #expect(old.open(now: 0) == .unknownKey([try sealingKey(2).id]))
        old.close()
        let new = try open(try ring(2))
        #expect(new.restore() == [row(2, "session", "s")])
        #expect(await new.fetch(3, "k1")?.value == Array("v1".utf8))
        let verified = try #require(await new.report(.verify(thorough: true)).report)
        #expect(verified.rows == 1501 && verified.damaged == 0)
    }

    @Test func `a rotation that was cut short needs both keys and can be taken up`() async throws {
        let first = try open(try ring(1))
        await fill(first, 1000)
        let ended = Mutex<StoreFault?>(nil)
        first.start(.rotate(try ring(2))) { outcome in
            if case .failure(let fault) = outcome { ended.withLock { $0 = fault } }
        }
        // One step at most, then the end: the store's thread waits here until the closing is queued, or has come with this very batch.
        first.put(row(2, "last", "1")) { [unowned first] _ in
            for _ in 0..<1000 where first.condition.queued == 0 { usleep(1000) }
        }
        first.close()
        #expect(ended.withLock { $0 }?.kind == .closed)
        let half = TokenStore(path: folder.database, keys: try ring(2))
        #expect(half.open(now: 0) == .unknownKey([try sealingKey(1).id]))
        half.close()
        let store = try open(try ring(2, 1))
        #expect(await store.rotate() == nil)
        store.close()
        let again = try open(try ring(2))
        #expect(await again.report(.verify(thorough: false)).report?.damaged == 0)
    }

    @Test func `one job at a time`() async throws {
        let store = try open(try ring(1))
        await fill(store, 1000)
        let refused = Mutex<StoreFault?>(nil)
        // The store's thread waits here until both are queued: the first must not be over when the second comes.
        let bothQueued = Mutex(false)
        store.put(row(2, "last", "1")) { _ in
            for _ in 0..<5000 where !bothQueued.withLock({ $0 }) { usleep(1000) }
        }
        store.start(.verify(thorough: false)) { _ in }
        store.start(.compact) { outcome in
            if case .failure(let fault) = outcome { refused.withLock { $0 = fault } }
        }
        bothQueued.withLock { $0 = true }
        #expect(await store.flush() == nil)
        #expect(refused.withLock { $0 }?.kind == .busy)
    }

    @Test func `verification finds a row under a strange tag and a row that was swapped`() async throws {
        let first = try open(try ring(1))
        await fill(first, 20)
        first.close()
        try sqlite(
            "UPDATE rows SET tag = randomblob(32) WHERE sequence = 3; UPDATE rows SET value = "
                + "(SELECT value FROM rows WHERE sequence = 1) WHERE sequence = 2", in: folder.database)
        let store = try open(try ring(1))
        let report = try #require(await store.report(.verify(thorough: true)).report)
        #expect(report.rows == 20 && report.total == 20 && report.damaged == 2 && report.finding == nil)
    }

    @Test func `compaction gives the space back`() async throws {
        let store = try open(try ring(1))
        await fill(store, 4000)
        #expect(await store.commit([.deleteAll(kind: 3)]) == nil)
        #expect(await store.put(row(2, "a", "1")) == nil)
        let before = Bytes.read(folder.database).count
        let report = try #require(await store.report(.compact).report)
        #expect(report.isDone && report.bytes < before / 4)
        #expect(Bytes.read(folder.database).count == report.bytes)
    }
}
