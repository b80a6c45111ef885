import Glibc
import Synchronization
import TLS
import Testing
import TokenStore

/// On a small file system of its own, which only root may mount.
@Suite(.enabled(if: SmallDisk.canBeMade, "needs root and mount(2)")) struct FullDiskTests {
    let disk = SmallDisk(megabytes: 16)

    private func open(on disk: SmallDisk) throws -> TokenStore {
        var options = StoreOptions()
        options.spilledKinds = [3]
        let store = TokenStore(path: disk.database, keys: try ring(1), options: options)
        try #require(store.open(now: 0).census != nil)
        return store
    }

    /// The log has blocks of its own, which are taken, too.
    private func takeEverything(of store: TokenStore) async -> StoreFault.Kind? {
        for number in 0..<1000 {
            if let fault = await store.put(row(1, "n\(number)", String(repeating: "x", count: 20_000))) {
                return fault.kind
            }
        }
        return nil
    }

    @Test func `a full disk degrades and recovers`() async throws {
        // Full before there is a store at all.
        disk.fill()
        let store = TokenStore(path: disk.database, keys: try ring(1))
        guard case .degraded = store.open(now: 0) else {
            Issue.record("opened on a full disk")
            return
        }
        #expect(await store.put(row(1, "a", "1"))?.kind == .full)
        disk.free()
        #expect(await store.put(row(1, "a", "1")) == nil)
        #expect(store.condition.degraded == nil && store.condition.isOwner)
        // Full while it runs.
        disk.fill()
        let large = String(repeating: "x", count: 100_000)
        let fault = await store.put(row(1, "b", large))
        #expect(fault?.kind == .full || fault?.kind == .io, "\(String(describing: fault))")
        disk.free()
        #expect(await store.put(row(1, "c", "3")) == nil)
        store.close()
        let again = TokenStore(path: disk.database, keys: try ring(1))
        #expect(again.open(now: 0).census?.restored == 2)
        #expect(again.restore() == [row(1, "a", "1"), row(1, "c", "3")])
        again.close()
    }

    @Test func `what is to be forgotten is forgotten on a full disk`() async throws {
        let store = try open(on: disk)
        let value = String(repeating: "t", count: 1500)
        for number in 0..<60 { #expect(await store.put(row(1, "k\(number)", value)) == nil) }
        disk.fill()
        #expect(await takeEverything(of: store) == .full)
        for number in 0..<50 {
            #expect(await store.commit([.delete(kind: 1, key: Array("k\(number)".utf8))]) == nil, "\(number)")
            // Whatever becomes free is taken by somebody else.
            disk.fill()
        }
        // In one batch with others that cannot be done.
        let refusals = Mutex(0)
        let deletions = Mutex(0)
        let large = String(repeating: "x", count: 200_000)
        for number in 50..<60 {
            store.commit([.put(row(1, "m\(number)", large))]) { outcome in
                if case .failure = outcome { refusals.withLock { $0 += 1 } }
            }
            store.commit([.delete(kind: 1, key: Array("k\(number)".utf8))]) { outcome in
                if case .success = outcome { deletions.withLock { $0 += 1 } }
            }
        }
        #expect(await store.flush() == nil)
        #expect(deletions.withLock { $0 } == 10 && refusals.withLock { $0 } > 0)
        store.close()
        disk.free()
        let again = try open(on: disk)
        #expect(again.restore().allSatisfy { !$0.key.starts(with: Array("k".utf8)) })
        again.close()
    }

    /// A refresh token that was replaced is good for nothing: what has taken its place has to be stored, again and again.
    @Test func `rows that cannot be had anew are stored on a full disk`() async throws {
        var options = StoreOptions()
        options.lastingKinds = [2]
        let store = TokenStore(path: disk.database, keys: try ring(1), options: options)
        try #require(store.open(now: 0).census != nil)
        let value = String(repeating: "t", count: 1500)
        for number in 0..<20 { #expect(await store.put(row(1, "k\(number)", value)) == nil) }
        #expect(await store.put(row(2, "session", "0")) == nil)
        disk.fill()
        #expect(await takeEverything(of: store) == .full)
        for number in 1...100 {
            #expect(await store.put(row(2, "session", "\(number)" + value)) == nil, "\(number)")
            // It says nothing of the others, and takes nothing from deletions.
            if number % 10 == 0 {
                _ = await store.put(row(1, "k\(number)", value))
                #expect(await store.commit([.delete(kind: 1, key: Array("k\(number / 10)".utf8))]) == nil)
            }
            disk.fill()
        }
        #expect(store.condition.degraded?.kind == .full && store.isDegraded)
        disk.free()
        #expect(await store.put(row(1, "after", value)) == nil)
        #expect(store.condition.degraded == nil)
        store.close()
        let again = TokenStore(path: disk.database, keys: try ring(1), options: options)
        #expect(again.open(now: 0).census != nil)
        #expect(again.restore().contains(row(2, "session", "100" + value)))
        again.close()
    }

    /// What is stored in the log's own blocks has to be moved to the database some time, with the space that deletions need.
    @Test func `what can still be stored on a full disk takes nothing from deletions`() async throws {
        let store = try open(on: disk)
        let value = String(repeating: "t", count: 1500)
        for number in 0..<15 { #expect(await store.put(row(1, "k\(number)", value)) == nil) }
        disk.fill()
        for number in 0..<15 {
            for user in 0..<45 { _ = await store.put(row(3, "u\(number).\(user)", value, expires: 1 << 50)) }
            #expect(await store.commit([.delete(kind: 1, key: Array("k\(number)".utf8))]) == nil, "\(number)")
            disk.fill()
        }
        #expect(store.condition.degraded?.kind == .full)
        disk.free()
        #expect(await store.put(row(1, "after", value)) == nil)
        #expect(store.condition.degraded == nil)
        store.close()
        let again = try open(on: disk)
        #expect(again.restore().map(\.key) == [Array("after".utf8)])
        again.close()
    }

    /// A rotation adds to the log: it ends with the reason, and every row can be read under the key that it has.
    @Test func aRotationThatFindsNoRoomHarmsNothing() async throws {
        let disk = SmallDisk(megabytes: 12)
        let store = try open(on: disk)
        let value = String(repeating: "t", count: 7000)
        for number in 0..<300 { #expect(await store.put(row(3, "k\(number)", value, expires: 1 << 50)) == nil) }
        disk.fill()
        #expect(await takeEverything(of: store) == .full)
        let fault = await store.rotate(to: try ring(2))
        #expect(fault?.kind == .full || fault?.kind == .io, "\(String(describing: fault))")
        #expect(store.condition.job?.failure == fault)
        for number in stride(from: 0, to: 300, by: 7) {
            #expect(await store.fetch(3, "k\(number)") != nil, "\(number)")
        }
        disk.free()
        #expect(await store.rotate(to: try ring(2)) == nil)
        store.close()
        var options = StoreOptions()
        options.spilledKinds = [3]
        let again = TokenStore(path: disk.database, keys: try ring(2), options: options)
        #expect(again.open(now: 0).census != nil)
        #expect(await again.fetch(3, "k299") != nil)
        again.close()
    }

    /// A key that is not whole would open nothing.
    @Test func noKeyIsMadeOnAFullDisk() throws {
        disk.fill()
        #expect(throws: StoreFault.self) { try KeyFile.makeKeyFile(beside: disk.database) }
        #expect(access(KeyFile.path(beside: disk.database), F_OK) != 0)
        disk.free()
        #expect(try KeyFile.makeKeyFile(beside: disk.database).made)
    }

    /// Its pages are more than the log and what is held back for it have blocks for.
    @Test func `a large purge ends on a full disk`() async throws {
        let disk = SmallDisk(megabytes: 6)
        let store = try open(on: disk)
        let value = String(repeating: "t", count: 7000)
        for number in 0..<300 { #expect(await store.put(row(3, "k\(number)", value, expires: 1 << 50)) == nil) }
        disk.fill()
        #expect(await takeEverything(of: store) == .full)
        let outcome: Result<StoreReport, StoreFault> = await withCheckedContinuation { done in
            store.start(.retain(kind: 3) { $0.key.last == UInt8(ascii: "7") }) { done.resume(returning: $0) }
        }
        #expect(try outcome.get().isDone)
        store.close()
        disk.free()
        let again = try open(on: disk)
        for number in 0..<300 {
            let isThere = await again.fetch(3, "k\(number)") != nil
            #expect(isThere == (number % 10 == 7), "\(number)")
        }
        again.close()
    }
}

/// Mounted for a test.
final class SmallDisk: Sendable {
    private let folder = Folder()
    private var mount: String { folder.path + "/small" }
    var database: String { mount + "/tokens.db" }

    static let canBeMade = SmallDisk(megabytes: 1).isMounted

    private let isMounted: Bool

    init(megabytes: Int) {
        let place = folder.path + "/small"
        mkdir(place, 0o700)
        isMounted = Glibc.mount("tmpfs", place, "tmpfs", 0, "size=\(megabytes)m") == 0
    }

    deinit {
        if isMounted { umount2(mount, Int32(MNT_DETACH)) }
        rmdir(mount)
    }

    /// Leaves no free block.
    func fill() {
        let descriptor = open(mount + "/ballast", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(descriptor) }
        let block = [UInt8](repeating: 1, count: 4096)
        while Glibc.write(descriptor, block, block.count) > 0 {}
    }

    func free() { unlink(mount + "/ballast") }
}
