import Glibc
import Synchronization
import TLS
import Testing
import TokenStore

@Suite struct OwnershipTests {
    let folder = Folder()

    @Test func `one owner at a time, and the next when it is gone`() async throws {
        let first = TokenStore(path: folder.database, keys: try ring(1))
        #expect(first.open(now: 0).census != nil)
        #expect(await first.put(row(1, "a", "1")) == nil)
        let second = TokenStore(path: folder.database, keys: try ring(1))
        #expect(second.open(now: 0) == .lockedByAnother)
        #expect(await second.put(row(1, "b", "2"))?.kind == .notOwner)
        #expect(second.restore() == [] && !second.condition.isOwner)
        first.close()
        #expect(second.open(now: 0).census?.restored == 1)
        #expect(second.restore() == [row(1, "a", "1")])
        #expect(await second.put(row(1, "b", "2")) == nil)
    }

    @Test func `a store is given away and taken back`() async throws {
        let old = TokenStore(path: folder.database, keys: try ring(1))
        #expect(old.open(now: 0).census != nil)
        let counter = Counter()
        for number in 0..<100 { old.put(row(1, "\(number)", "v")) { if case .success = $0 { counter.add() } } }
        await withCheckedContinuation { done in old.release { done.resume() } }
        // What was queued was written first.
        #expect(counter.value == 100)
        #expect(await old.put(row(1, "late", "v"))?.kind == .notOwner && !old.condition.isOwner)
        let new = TokenStore(path: folder.database, keys: try ring(1))
        #expect(new.open(now: 0).census?.restored == 100)
        #expect(await new.put(row(1, "news", "v")) == nil)
        #expect(old.open(now: 0) == .lockedByAnother)
        new.close()
        #expect(old.open(now: 0).census?.restored == 101)
        #expect(old.restore().contains(row(1, "news", "v")))
        #expect(await old.put(row(1, "again", "v")) == nil)
        #expect(old.close())
    }

    @Test func `a store that is not open refuses at once`() async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(await store.put(row(1, "a", "1"))?.kind == .notOwner)
        #expect(store.open(now: 0).census != nil)
        #expect(store.close())
        #expect(await store.put(row(1, "a", "1"))?.kind == .closed)
        #expect(store.close())
        #expect(store.open(now: 0) == .degraded("the store was closed"))
        let never = TokenStore(path: folder.database, keys: try ring(1))
        #expect(never.close())
    }

    @Test func `what is queued at the close is written`() async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        _ = store.open(now: 0)
        let counter = Counter()
        for number in 0..<500 { store.put(row(1, "\(number)", "v")) { if case .success = $0 { counter.add() } } }
        #expect(store.close())
        #expect(counter.value == 500)
        let again = TokenStore(path: folder.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.restored == 500)
    }

    @Test func `a full queue refuses at once`() async throws {
        var options = StoreOptions()
        options.queueLimit = 2
        let store = TokenStore(path: folder.database, keys: try ring(1), options: options)
        _ = store.open(now: 0)
        // The store's thread is held in a completion while the queue fills.
        let gate = Gate()
        store.put(row(1, "first", "v")) { _ in gate.hold() }
        gate.awaitHolder()
        let refused = Counter()
        let kept = Counter()
        for number in 0..<5 {
            store.put(row(1, "\(number)", "v")) { outcome in
                if case .failure(let fault) = outcome, fault.kind == .queueFull { refused.add() } else { kept.add() }
            }
        }
        #expect(refused.value == 3 && store.condition.queued == 2)
        gate.open()
        #expect(store.close())
        #expect(kept.value == 2)
    }

    // MARK: - Space and permissions

    @Test func `at its bound the file takes no more, but deletions, and then again`() async throws {
        var options = StoreOptions()
        options.maximumBytes = 128 << 10
        let store = TokenStore(path: folder.database, keys: try ring(1), options: options)
        _ = store.open(now: 0)
        let large = String(repeating: "x", count: 20_000)
        var stored = 0
        while stored < 20, await store.put(row(1, "\(stored)", large)) == nil { stored += 1 }
        #expect((3..<8).contains(stored))
        #expect(store.condition.degraded?.kind == .full && store.condition.isOwner)
        #expect(
            await store.commit([.delete(kind: 1, key: Array("0".utf8)), .delete(kind: 1, key: Array("1".utf8))]) == nil)
        #expect(await store.put(row(1, "new", large)) == nil)
        #expect(store.condition.degraded == nil)
        store.close()
        let again = TokenStore(path: folder.database, keys: try ring(1), options: options)
        #expect(again.open(now: 0).census?.restored == stored - 1)
    }

    @Test func `a directory that is missing degrades, and the rows come when it is back`() async throws {
        let earlier = TokenStore(path: folder.database, keys: try ring(1))
        _ = earlier.open(now: 0)
        #expect(await earlier.put(row(1, "a", "1")) == nil)
        #expect(await earlier.put(row(1, "b", "2", expires: 5)) == nil)
        earlier.close()
        let away = folder.path + ".away"
        rename(folder.path, away)
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 10) == .degraded("\(folder.database).lock: No such file or directory"))
        #expect(await store.put(row(1, "c", "3"))?.kind == .io)
        #expect(store.condition.degraded?.kind == .io && !store.condition.isOwner && store.restore() == [])
        rename(away, folder.path)
        #expect(await store.put(row(1, "c", "3")) == nil)
        #expect(store.condition.isOwner && store.condition.degraded == nil)
        #expect(store.restore() == [row(1, "a", "1")])
        store.close()
    }

    // MARK: - The key beside the store

    @Test func `makes a key once`() throws {
        let first = try KeyFile.makeKeyFile(beside: folder.database)
        #expect(first.made && Bytes.mode(folder.database + ".key") == 0o600)
        #expect(folder.names == ["tokens.db.key"])
        let second = try KeyFile.makeKeyFile(beside: folder.database)
        #expect(!second.made && second.keys.map(\.id) == first.keys.map(\.id))
    }

    @Test func `a new key stands in front until the old one goes`() throws {
        let first = try KeyFile.makeKeyFile(beside: folder.database).keys
        let both = try KeyFile.addKey(beside: folder.database)
        #expect(both.count == 2 && both[1].id == first[0].id && both[0].id != first[0].id)
        // A rotation that was cut short goes on with the key that it began with.
        #expect(try KeyFile.addKey(beside: folder.database).map(\.id) == both.map(\.id))
        try KeyFile.keepFirst(beside: folder.database)
        #expect(try KeyFile.makeKeyFile(beside: folder.database).keys.map(\.id) == [both[0].id])
        #expect(Bytes.mode(folder.database + ".key") == 0o600 && folder.names == ["tokens.db.key"])
    }

    @Test func `refuses a key that is none or that others can write`() throws {
        let path = KeyFile.path(beside: folder.database)
        Bytes.write([], to: path)
        #expect(throws: StoreFault.self) { try KeyFile.makeKeyFile(beside: folder.database) }
        Bytes.write((0..<32).map { UInt8($0) }, to: path)
        #expect(throws: Never.self) { try KeyFile.load(path) }
        chmod(path, 0o622)
        #expect(throws: StoreFault.self) { try KeyFile.load(path) }
        unlink(path)
        mkdir(path, 0o700)
        #expect(throws: StoreFault.self) { try KeyFile.load(path) }
        rmdir(path)
        #expect(throws: StoreFault.self) { try KeyFile.makeKeyFile(beside: folder.path + "/missing/tokens.db") }
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
}

/// Holds a thread until it is opened.
private final class Gate: @unchecked Sendable {
    private let held = UnsafeMutablePointer<sem_t>.allocate(capacity: 2)

    init() {
        sem_init(held, 0, 0)
        sem_init(held + 1, 0, 0)
    }

    deinit { held.deallocate() }

    func hold() {
        sem_post(held)
        sem_wait(held + 1)
    }

    func awaitHolder() { sem_wait(held) }
    func open() { sem_post(held + 1) }
}
