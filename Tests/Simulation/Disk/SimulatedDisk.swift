import Glibc
import Synchronization
import TokenStore

/// The disk of one gateway's machine, in memory. It keeps what was synchronized through a cut of the power; of what was not, it keeps what the
/// seed says: some writes and not others, the last one in part, names before their contents or after.
final class SimulatedDisk: @unchecked Sendable {
    /// How it behaves for now.
    enum Mood: Equatable {
        case well
        /// Nothing can be read or written.
        case fails
        /// Whoever asks it for something waits.
        case hangs
        /// It says that it has synchronized, and has not.
        case lies
    }

    var mood = Mood.well {
        didSet {
            disturbances += 1
            if mood == .lies { hasLied = true }
        }
    }
    /// Nanoseconds by which whatever is written takes longer.
    var slowness: UInt64 = 0
    /// Octets in all; files and what is held back share them.
    var capacity = size {
        didSet {
            disturbances += 1
            if capacity < Self.size { hasBeenFull = true }
        }
    }
    static let size = 64 << 20
    /// It has lied or failed, so that nothing is promised of what it kept.
    private(set) var hasLied = false
    /// Somebody has spoiled rows of it, which is as good as a lie.
    var hasRotted = false {
        didSet { hasLied = hasLied || hasRotted }
    }
    private(set) var hasFailed = false
    private(set) var hasBeenFull = false
    /// The disk has kept its word, does so now, and answers, though it may have had no room.
    var isOnlyFull: Bool { !hasLied && !hasFailed && mood == .well }
    /// What it said to have kept, it has kept.
    var hasKeptItsWord: Bool { !hasLied && !hasFailed && !hasBeenFull }
    /// How often something has begun or ended to be wrong with it.
    private(set) var disturbances = 0
    var isWell: Bool { mood == .well && capacity == Self.size }
    private(set) var synchronizations: UInt64 = 0

    /// Processes that use it; whatever one that is gone had open is dead.
    private var alive: Set<Int> = []
    private var processes = 0
    private var names: [String: SimulatedFile] = [:]
    /// Names as a cut of the power would leave them at least.
    private var keptNames: [String: SimulatedFile] = [:]
    private var pendingNames: [NameChange] = []
    /// Who has each lock.
    private var locks: [String: Int] = [:]
    /// Octets of files without a name.
    private var held: [ObjectIdentifier: (process: Int, octets: Int)] = [:]
    private var draw: Draw
    private var identities: UInt64 = 0

    fileprivate enum NameChange {
        case put(String, SimulatedFile)
        case remove(String)
    }

    init(_ draw: Draw) { self.draw = draw }

    // MARK: - Processes and power

    /// - Returns: the number of a new process.
    func processBegins() -> Int {
        processes += 1
        alive.insert(processes)
        return processes
    }

    /// The process is gone, and its locks with it.
    func processEnds(_ process: Int) {
        alive.remove(process)
        locks = locks.filter { $0.value != process }
        held = held.filter { $0.value.process != process }
    }

    func isAlive(_ process: Int) -> Bool { alive.contains(process) }

    /// Everything that was not synchronized is lost, or not.
    func cutPower() {
        for change in pendingNames.prefix(draw.below(pendingNames.count + 1)) { change.apply(to: &keptNames) }
        pendingNames = []
        names = keptNames
        for file in Set(names.values) { file.cutPower(&draw) }
    }

    // MARK: - Files

    var used: Int { Set(names.values).reduce(0) { $0 + $1.count } + held.values.reduce(0) { $0 + $1.octets } }
    var free: Int { max(0, capacity - used) }

    func find(_ path: String) -> SimulatedFile? { names[path] }

    func make(_ path: String) -> SimulatedFile {
        identities += 1
        let file = SimulatedFile(identity: identities)
        put(path, file)
        return file
    }

    fileprivate func put(_ path: String, _ file: SimulatedFile) {
        names[path] = file
        pendingNames.append(.put(path, file))
    }

    func remove(_ path: String) {
        guard names.removeValue(forKey: path) != nil else { return }
        pendingNames.append(.remove(path))
    }

    func synchronizeNames() {
        guard mood != .lies else { return }
        for change in pendingNames { change.apply(to: &keptNames) }
        pendingNames = []
    }

    /// - Returns: whether the content is safe now, or said to be.
    func synchronize(_ file: SimulatedFile) -> Bool {
        synchronizations += 1
        guard noteFailure() else { return false }
        if mood != .lies { file.synchronize() }
        return true
    }

    /// - Returns: false where the disk fails now.
    func noteFailure() -> Bool {
        if mood == .fails { hasFailed = true }
        return mood != .fails
    }

    fileprivate func hold(_ octets: Int, for file: AnyObject, of process: Int) -> Int32 {
        let before = held[ObjectIdentifier(file)]?.octets ?? 0
        guard octets - before <= free else { return ENOSPC }
        held[ObjectIdentifier(file)] = (process, octets)
        return 0
    }

    fileprivate func giveBack(_ file: AnyObject, to octets: Int = 0) {
        if let before = held[ObjectIdentifier(file)], before.octets > octets {
            held[ObjectIdentifier(file)]?.octets = octets
        }
    }

    /// Octets of every file, to look for secrets in.
    var contents: [(path: String, bytes: [UInt8])] { names.sorted { $0.key < $1.key }.map { ($0.key, $0.value.bytes) } }
}

extension SimulatedDisk.NameChange {
    fileprivate func apply(to names: inout [String: SimulatedFile]) {
        switch self {
        case .put(let path, let file): names[path] = file
        case .remove(let path): names[path] = nil
        }
    }
}

/// The content of one file, and what of it would survive a cut of the power.
final class SimulatedFile: Hashable {
    let identity: UInt64
    private(set) var bytes: [UInt8] = []
    private var kept: [UInt8] = []
    private var pending: [Change] = []

    private enum Change {
        case write(Int, [UInt8])
        case cut(Int)
    }

    /// What a disk writes at once.
    private static let sector = 512

    init(identity: UInt64) { self.identity = identity }

    var count: Int { bytes.count }

    func write(_ data: [UInt8], at offset: Int) {
        Self.apply(.write(offset, data), to: &bytes)
        pending.append(.write(offset, data))
    }

    func cut(to count: Int) {
        Self.apply(.cut(count), to: &bytes)
        pending.append(.cut(count))
    }

    /// The changes are made once more, in a copy of its own: a store synchronizes after each few pages, and a whole copy for each is slow.
    func synchronize() {
        for change in pending { Self.apply(change, to: &kept) }
        pending = []
    }

    func cutPower(_ draw: inout Draw) {
        for change in pending where draw.once(in: 2) {
            switch change {
            case .cut: Self.apply(change, to: &kept)
            case .write(let offset, let data):
                // A part of it, in whole sectors.
                let sectors = (data.count + Self.sector - 1) / Self.sector
                let whole = draw.once(in: 3) ? draw.below(sectors + 1) : sectors
                Self.apply(.write(offset, Array(data.prefix(whole * Self.sector))), to: &kept)
            }
        }
        bytes = kept
        pending = []
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .cut(let count):
            if count < bytes.count {
                bytes.removeLast(bytes.count - count)
            } else {
                bytes += [UInt8](repeating: 0, count: count - bytes.count)
            }
        case .write(let offset, let data):
            if offset + data.count > bytes.count {
                bytes += [UInt8](repeating: 0, count: offset + data.count - bytes.count)
            }
            data.withUnsafeBytes { source in
                bytes.withUnsafeMutableBytes {
                    UnsafeMutableRawBufferPointer(rebasing: $0[offset...]).copyMemory(from: source)
                }
            }
        }
    }

    static func == (left: SimulatedFile, right: SimulatedFile) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

// MARK: - What the store asks of it

extension SimulatedDisk {
    /// The disk as one process has it.
    struct Mount: StoreDisk {
        let disk: SimulatedDisk
        let process: Int
        let sqlite: String?
        /// Called before each opening, on the thread that opens.
        let opens: @Sendable () -> Void

        func status(of path: String, follows: Bool) -> DiskResult<DiskFile> {
            guard disk.noteFailure() else { return .failure(DiskErrno(EIO)) }
            guard let file = disk.find(path) else { return .failure(DiskErrno(ENOENT)) }
            return .success(
                DiskFile(
                    isRegular: true, isOurs: true, isPrivate: true, size: UInt64(file.count),
                    identity: [1, file.identity]))
        }

        func beginning(of path: String, count: Int) -> DiskResult<[UInt8]> {
            guard disk.noteFailure() else { return .failure(DiskErrno(EIO)) }
            guard let file = disk.find(path) else { return .failure(DiskErrno(ENOENT)) }
            return .success(Array(file.bytes.prefix(count)))
        }

        func makePrivate(_ path: String) -> Bool { true }

        func create(_ path: String) -> Int32 {
            guard disk.noteFailure() else { return EIO }
            guard disk.find(path) == nil else { return EEXIST }
            _ = disk.make(path)
            return 0
        }

        func exists(_ path: String) -> Bool { disk.find(path) != nil }

        var hangs: Bool {
            opens()
            return disk.mood == .hangs
        }

        func rename(_ path: String, to target: String) -> Int32 {
            guard disk.noteFailure() else { return EIO }
            guard let file = disk.find(path) else { return ENOENT }
            disk.put(target, file)
            disk.remove(path)
            return 0
        }

        func remove(_ path: String) { if disk.noteFailure() { disk.remove(path) } }

        func synchronizeFolder(of path: String) -> Bool {
            guard disk.noteFailure() else { return false }
            disk.synchronizeNames()
            return true
        }

        func hasNoSpace(at path: String) -> Bool { disk.free < 32 << 10 }

        func lock(_ path: String) throws(StoreLockRefusal) -> any StoreLock {
            guard disk.noteFailure() else { throw .failed(EIO) }
            // A thread of a process that is dead goes on for a moment, and gets nothing that another one would have to wait for.
            guard disk.locks[path] == nil, disk.isAlive(process) else { throw .heldByAnother }
            disk.locks[path] = process
            return SimulatedLock(disk, path, process)
        }

        func nameless(in folder: String) -> (any NamelessFile)? { SimulatedNameless(disk, process) }
    }

    fileprivate func unlock(_ path: String, of process: Int) { if locks[path] == process { locks[path] = nil } }
}

private final class SimulatedLock: StoreLock, @unchecked Sendable {
    private let disk: SimulatedDisk
    private let path: String
    private let process: Int

    init(_ disk: SimulatedDisk, _ path: String, _ process: Int) {
        self.disk = disk
        self.path = path
        self.process = process
    }

    deinit { disk.unlock(path, of: process) }
}

private final class SimulatedNameless: NamelessFile, @unchecked Sendable {
    private let machine: SimulatedDisk
    private let process: Int

    init(_ machine: SimulatedDisk, _ process: Int) {
        self.machine = machine
        self.process = process
    }

    deinit { if isAlive { machine.giveBack(self) } }

    private var isAlive: Bool { machine.isAlive(process) }
    var disk: (blocks: Int, octets: Int)? { (machine.capacity / 4096, 4096) }
    func take(_ octets: Int) -> Int32 { isAlive ? machine.hold(octets, for: self, of: process) : EIO }
    func cut(to octets: Int) { if isAlive { machine.giveBack(self, to: octets) } }
}
