import Glibc
import Synchronization
import TLS
import Testing

@testable import TokenStore

/// The machine's disk, but for the calls that a test has fail.
final class FailingDisk: StoreDisk {
    enum Call: Hashable, Sendable { case status, beginning, create, rename, lock }

    private let machine = MachineDisk()
    private let state = Mutex<(faults: [Call: Int32], isStrange: Bool, isFull: Bool)>(([:], false, false))

    /// The call fails with this number of `errno`, or works again.
    func set(_ call: Call, _ number: Int32?) { state.withLock { $0.faults[call] = number } }
    /// Every file belongs to another user.
    func becomeStrange() { state.withLock { $0.isStrange = true } }

    /// There is no space, or there is again.
    func set(isFull: Bool) { state.withLock { $0.isFull = isFull } }

    private func fault(_ call: Call) -> Int32? { state.withLock { $0.faults[call] } }

    var sqlite: String? { nil }
    func status(of path: String, follows: Bool) -> DiskResult<DiskFile> {
        if let number = fault(.status) { return .failure(DiskErrno(number)) }
        let isStrange = state.withLock { $0.isStrange }
        return machine.status(of: path, follows: follows).map { file in
            var file = file
            if isStrange { file.isOurs = false }
            return file
        }
    }
    func beginning(of path: String, count: Int) -> DiskResult<[UInt8]> {
        if let number = fault(.beginning) { return .failure(DiskErrno(number)) }
        return machine.beginning(of: path, count: count)
    }
    func makePrivate(_ path: String) -> Bool { machine.makePrivate(path) }
    func create(_ path: String) -> Int32 { fault(.create) ?? machine.create(path) }
    func exists(_ path: String) -> Bool { machine.exists(path) }
    func rename(_ path: String, to target: String) -> Int32 { fault(.rename) ?? machine.rename(path, to: target) }
    func remove(_ path: String) { machine.remove(path) }
    func synchronizeFolder(of path: String) -> Bool { machine.synchronizeFolder(of: path) }
    func hasNoSpace(at path: String) -> Bool { state.withLock { $0.isFull } || machine.hasNoSpace(at: path) }
    func lock(_ path: String) throws(StoreLockRefusal) -> any StoreLock {
        if let number = fault(.lock) { throw .failed(number) }
        return try machine.lock(path)
    }
    func nameless(in folder: String) -> (any NamelessFile)? { machine.nameless(in: folder) }
}

/// A disk that fails is no reason to lose what is on it: nothing is replaced, and the store works again when the disk does.
@Suite struct FailingDiskTests {
    let folder = Folder()
    let disk = FailingDisk()

    private func store(repairs: Bool = true) throws -> TokenStore {
        var options = StoreOptions()
        options.disk = disk
        options.repairs = repairs
        return TokenStore(path: folder.database, keys: try ring(1), options: options)
    }

    private func fill() async throws {
        let store = try store()
        #expect(store.open(now: 0).census != nil)
        #expect(await store.put(row(1, "a", "1")) == nil)
        #expect(store.close())
    }

    @Test(arguments: [
        (FailingDisk.Call.status, EACCES, StoreFault.Kind.readOnly), (.status, EIO, .io), (.beginning, EIO, .io),
        (.beginning, EPERM, .readOnly), (.lock, EROFS, .readOnly), (.lock, ENOLCK, .io),
    ])
    func whatCannotBeReadIsLeftAlone(call: FailingDisk.Call, number: Int32, kind: StoreFault.Kind) async throws {
        try await fill()
        let before = Bytes.read(folder.database)
        disk.set(call, number)
        let store = try store()
        let reason = String(cString: strerror(number))
        let place = call == .lock ? folder.database + ".lock" : folder.database
        #expect(store.open(now: 0) == .degraded("\(place): \(reason)"))
        #expect(await store.put(row(1, "b", "2"))?.kind == kind)
        #expect(store.isDegraded && store.condition.degraded?.kind == kind)
        #expect(Bytes.read(folder.database) == before && store.condition.setAside == [])
        disk.set(call, nil)
        #expect(await store.put(row(1, "b", "2")) == nil)
        #expect(store.restore() == [row(1, "a", "1")] && !store.isDegraded)
        store.close()
    }

    /// Deletions have space that is held back for them: neither they nor the opening say that the store works.
    @Test func `a disk that answers again and is full does not count as working`() async throws {
        try await fill()
        disk.set(.beginning, EIO)
        let store = try store()
        #expect(store.open(now: 0).census == nil)
        disk.set(.beginning, nil)
        disk.set(isFull: true)
        #expect(await store.commit([.delete(kind: 1, key: row(1, "a", "").key)]) == nil)
        #expect(store.isDegraded)
        #expect(await store.put(row(1, "b", "2")) == nil, "in blocks that the log has already")
        #expect(store.isDegraded)
        disk.set(isFull: false)
        #expect(await store.put(row(1, "b", "2")) == nil)
        #expect(!store.isDegraded)
        store.close()
    }

    @Test func aFileOfAnotherUserIsLeftAlone() async throws {
        try await fill()
        let before = Bytes.read(folder.database)
        disk.becomeStrange()
        let store = try store()
        #expect(store.open(now: 0) == .notOurs("owned by another user"))
        #expect(await store.put(row(1, "b", "2"))?.kind == .notOwner)
        #expect(Bytes.read(folder.database) == before)
        store.close()
    }

    /// A damaged store is evidence: where it cannot be moved out of the way, it is not written over either.
    @Test func aDamagedFileThatCannotBeSetAsideStays() async throws {
        Bytes.write([UInt8](repeating: 0, count: 5000), to: folder.database)
        disk.set(.rename, EROFS)
        let store = try store()
        #expect(store.open(now: 0) == .degraded("\(folder.database): \(String(cString: strerror(EROFS)))"))
        #expect(Bytes.read(folder.database) == [UInt8](repeating: 0, count: 5000))
        #expect(store.condition.setAside == [])
        disk.set(.rename, nil)
        #expect(await store.put(row(1, "a", "1")) == nil)
        #expect(store.condition.setAside == ["\(folder.database).damaged-1"])
        store.close()
    }

    @Test(arguments: [
        (FailingDisk.Call.create, ENOSPC, StoreFault.Kind.full), (.create, EDQUOT, .full), (.create, EACCES, .readOnly),
        (.rename, EIO, .io),
    ])
    func aNewStoreAppearsWholeOrNotAtAll(call: FailingDisk.Call, number: Int32, kind: StoreFault.Kind) async throws {
        disk.set(call, number)
        let store = try store()
        #expect(store.open(now: 0) == .degraded("\(folder.database): \(String(cString: strerror(number)))"))
        #expect(await store.put(row(1, "a", "1"))?.kind == kind)
        #expect(access(folder.database, F_OK) != 0)
        disk.set(call, nil)
        #expect(await store.put(row(1, "a", "1")) == nil)
        #expect(store.condition.isOwner && !folder.names.contains("tokens.db.new"))
        store.close()
    }

    /// An opening that only looks makes nothing.
    @Test func withoutRepairsAMissingStoreIsNotMade() throws {
        let store = try store(repairs: false)
        #expect(store.open(now: 0) == .degraded("\(folder.database): \(String(cString: strerror(ENOENT)))"))
        #expect(access(folder.database, F_OK) != 0)
        store.close()
    }

    @Test func withoutRepairsADamagedStoreIsNotTouched() throws {
        Bytes.write([UInt8](repeating: 0, count: 5000), to: folder.database)
        let store = try store(repairs: false)
        #expect(store.open(now: 0) == .degraded("\(folder.database): the header is damaged"))
        #expect(Bytes.read(folder.database) == [UInt8](repeating: 0, count: 5000))
        store.close()
    }

    // MARK: - The machine's disk

    @Test func theMachinesDiskTellsWhatItCannotDo() throws {
        let machine = MachineDisk()
        Bytes.write([1, 2, 3], to: folder.path + "/file")
        symlink(folder.path + "/file", folder.path + "/link")
        func fault(_ result: DiskResult<[UInt8]>) -> Int32? {
            if case .failure(let fault) = result { fault.number } else { nil }
        }
        #expect(fault(machine.beginning(of: folder.path + "/link", count: 3)) == ELOOP, "a link is not followed")
        #expect(fault(machine.beginning(of: folder.path, count: 3)) == EISDIR)
        #expect(try machine.beginning(of: folder.path + "/file", count: 9).get() == [1, 2, 3])
        #expect(machine.create(folder.path + "/file") == EEXIST, "nothing is written over")
        #expect(machine.create(folder.path + "/fresh") == 0 && Bytes.mode(folder.path + "/fresh") == 0o600)
        let nowhere = folder.path + "/nowhere/file"
        #expect(!machine.hasNoSpace(at: nowhere) && !machine.synchronizeFolder(of: nowhere))
        #expect(machine.nameless(in: folder.path + "/nowhere") == nil)
        #expect(throws: StoreLockRefusal.self) { try machine.lock(nowhere) }
    }

    @Test(arguments: [("tokens.db", "."), ("/tokens.db", "/"), ("/a/b/tokens.db", "/a/b"), ("a/tokens.db", "a")])
    func theFolderOfAPath(path: String, folder: String) { #expect(StoreFile.directory(of: path) == folder) }

    /// The store tells whether an error is one of space, of rights or of the disk.
    @Test(
        arguments: [
            (13, StoreFault.Kind.full), (8, .readOnly), (3, .readOnly), (23, .readOnly), (10, .io), (11, .io), (7, .io),
        ] as [(Int32, StoreFault.Kind)])
    func anErrorOfSQLiteIsTold(code: Int32, kind: StoreFault.Kind) {
        #expect(TableFault.sqlite(code, "x").storeFault == StoreFault(kind, "x"))
        #expect(TableFault(kind: .sealing, text: "x").storeFault.kind == .sealing)
        #expect(TableFault(kind: .damage, text: "x").needsReopening)
        #expect(!TableFault(kind: .full, text: "x").needsReopening, "a full disk says nothing of the connection")
    }

    // MARK: - Space that is held back

    private final class CountedFile: NamelessFile {
        let disk: (blocks: Int, octets: Int)?
        private let most: Int
        private let state = Mutex(0)
        init(disk: (blocks: Int, octets: Int)?, most: Int) {
            self.disk = disk
            self.most = most
        }
        var held: Int { state.withLock { $0 } }
        func take(_ octets: Int) -> Int32 {
            guard octets <= most else { return ENOSPC }
            state.withLock { $0 = octets }
            return 0
        }
        func cut(to octets: Int) { state.withLock { $0 = octets } }
    }

    private struct OneFileDisk: StoreDisk {
        let file: CountedFile
        let machine = MachineDisk()
        var sqlite: String? { nil }
        func status(of path: String, follows: Bool) -> DiskResult<DiskFile> {
            machine.status(of: path, follows: follows)
        }
        func beginning(of path: String, count: Int) -> DiskResult<[UInt8]> { machine.beginning(of: path, count: count) }
        func makePrivate(_ path: String) -> Bool { false }
        func create(_ path: String) -> Int32 { EROFS }
        func exists(_ path: String) -> Bool { false }
        func rename(_ path: String, to target: String) -> Int32 { EROFS }
        func remove(_ path: String) {}
        func synchronizeFolder(of path: String) -> Bool { false }
        func hasNoSpace(at path: String) -> Bool { false }
        func lock(_ path: String) throws(StoreLockRefusal) -> any StoreLock { throw .failed(EROFS) }
        func nameless(in folder: String) -> (any NamelessFile)? { file }
    }

    /// Blocks of the disk and octets of one, what the disk gives at most, and what is held of it.
    @Test(
        arguments: [
            (nil, 1 << 30, nil), ((0, 4096), 1 << 30, 2 << 20), ((1 << 20, 4096), 1 << 30, 2 << 20),
            ((2048, 4096), 1 << 30, 1 << 20), ((2048, 4096), 300 << 10, 256 << 10), ((8, 4096), 1 << 30, nil),
            ((2048, 4096), 1000, 0),
        ] as [((Int, Int)?, Int, Int?)])
    func asMuchIsHeldBackAsTheDiskBears(size: (Int, Int)?, most: Int, held: Int?) {
        let file = CountedFile(disk: size.map { (blocks: $0.0, octets: $0.1) }, most: most)
        var made = SpaceReserve.made(on: OneFileDisk(file: file), in: folder.path, SpaceReserve.forDeletions)
        let isHeld = made?.held
        #expect(isHeld == held && file.held == held ?? 0)
        made?.release()
        #expect(file.held == 0)
    }
}
