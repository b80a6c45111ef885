import CSQLite
import Glibc

/// SQLite's way to a simulated disk, with the simulation's time and randomness. It offers no shared memory: a store that wanted a mapped index
/// of its log could not be opened.
final class SimulatedVFS {
    let name: String
    private let disk: SimulatedDisk
    private let process: Int
    private let wall: () -> Int64
    private var draw: Draw
    private let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)

    /// - Parameters:
    ///   - name: which no other one of the program has.
    ///   - process: whose way it is.
    ///   - wall: milliseconds since 1970.
    init(_ name: String, _ disk: SimulatedDisk, process: Int, draw: Draw, wall: @escaping () -> Int64) {
        self.name = name
        self.disk = disk
        self.draw = draw
        self.wall = wall
        self.process = process
        var methods = sqlite3_vfs()
        methods.iVersion = 2
        methods.szOsFile = Int32(MemoryLayout<OpenFile>.size)
        methods.mxPathname = 512
        // SQLite keeps the name and the object until the program ends.
        methods.zName = UnsafePointer(strdup(name))
        methods.pAppData = Unmanaged.passRetained(self).toOpaque()
        methods.xOpen = { vfs, path, file, flags, out in SimulatedVFS.of(vfs).open(path, file, flags, out) }
        methods.xDelete = { vfs, path, synchronizes in SimulatedVFS.of(vfs).delete(path, synchronizes != 0) }
        methods.xAccess = { vfs, path, _, result in SimulatedVFS.of(vfs).access(path, result) }
        methods.xFullPathname = { _, path, count, out in
            guard let path, let out, strlen(path) < count else { return SQLITE_CANTOPEN }
            strcpy(out, path)
            return SQLITE_OK
        }
        methods.xRandomness = { vfs, count, out in SimulatedVFS.of(vfs).randomness(count, out) }
        methods.xSleep = { _, microseconds in microseconds }
        methods.xGetLastError = { _, _, _ in 0 }
        methods.xCurrentTime = { vfs, out in
            out?.pointee = Double(SimulatedVFS.of(vfs).julian()) / 86_400_000
            return SQLITE_OK
        }
        methods.xCurrentTimeInt64 = { vfs, out in
            out?.pointee = SimulatedVFS.of(vfs).julian()
            return SQLITE_OK
        }
        vfs.initialize(to: methods)
        sqlite3_vfs_register(vfs, 0)
    }

    private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> SimulatedVFS {
        guard let place = vfs?.pointee.pAppData else { preconditionFailure("a file system without its object") }
        return Unmanaged<SimulatedVFS>.fromOpaque(place).takeUnretainedValue()
    }

    /// Called once, on the thread that next opens the store, which it may have open already, or a file of it.
    var whenOpened: (() -> Void)?

    func opens() {
        let body = whenOpened
        whenOpened = nil
        body?()
    }

    /// The process that this one was made for lives, and the disk works.
    private var works: Bool { disk.isAlive(process) && disk.noteFailure() }

    private func julian() -> sqlite3_int64 { 210_866_760_000_000 + wall() }

    private func randomness(_ count: Int32, _ out: UnsafeMutablePointer<CChar>?) -> Int32 {
        for index in 0..<Int(count) { out?[index] = CChar(truncatingIfNeeded: draw.next()) }
        return count
    }

    // MARK: - Names

    private func open(
        _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
        _ out: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        guard let file, let path else { return SQLITE_CANTOPEN }
        let open = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self)
        open.pointee.methods = nil
        guard works else { return SQLITE_CANTOPEN }
        let name = String(cString: path)
        guard let found = disk.find(name) ?? (flags & SQLITE_OPEN_CREATE != 0 ? disk.make(name) : nil) else {
            return SQLITE_CANTOPEN
        }
        open.pointee.vfs = Unmanaged.passUnretained(self)
        open.pointee.file = Unmanaged.passRetained(found)
        open.pointee.methods = UnsafePointer(fileMethods)
        out?.pointee = flags
        opens()
        return SQLITE_OK
    }

    private func delete(_ path: UnsafePointer<CChar>?, _ synchronizes: Bool) -> Int32 {
        guard works, let path else { return SQLITE_IOERR }
        let name = String(cString: path)
        guard disk.find(name) != nil else { return Code.notThere }
        disk.remove(name)
        if synchronizes { disk.synchronizeNames() }
        return SQLITE_OK
    }

    private func access(_ path: UnsafePointer<CChar>?, _ result: UnsafeMutablePointer<Int32>?) -> Int32 {
        guard works, let path else { return SQLITE_IOERR }
        result?.pointee = disk.find(String(cString: path)) == nil ? 0 : 1
        return SQLITE_OK
    }

    // MARK: - Octets

    fileprivate func read(_ file: SimulatedFile, _ out: UnsafeMutableRawPointer, _ count: Int, _ offset: Int) -> Int32 {
        guard works else { return Code.read }
        let there = max(0, min(count, file.count - offset))
        if there > 0 {
            file.bytes.withUnsafeBytes { bytes in
                out.copyMemory(from: bytes.baseAddress! + offset, byteCount: there)
            }
        }
        guard there < count else { return SQLITE_OK }
        memset(out + there, 0, count - there)
        return Code.shortRead
    }

    fileprivate func write(_ file: SimulatedFile, _ bytes: UnsafeRawPointer, _ count: Int, _ offset: Int) -> Int32 {
        guard works else { return Code.write }
        let growth = max(0, offset + count - file.count)
        guard growth <= disk.free else { return SQLITE_FULL }
        file.write(Array(UnsafeRawBufferPointer(start: bytes, count: count)), at: offset)
        return SQLITE_OK
    }

    fileprivate func truncate(_ file: SimulatedFile, _ count: Int) -> Int32 {
        guard works else { return Code.cut }
        file.cut(to: count)
        return SQLITE_OK
    }

    fileprivate func synchronize(_ file: SimulatedFile) -> Int32 {
        guard works, disk.synchronize(file) else { return Code.synchronize }
        // A new file's name is safe with its first content, as SQLite's own file system sees to.
        disk.synchronizeNames()
        return SQLITE_OK
    }

    fileprivate func isAlive() -> Bool { works }
}

/// SQLite's view of an open file: its own part first.
private struct OpenFile {
    var methods: UnsafePointer<sqlite3_io_methods>?
    var vfs: Unmanaged<SimulatedVFS>?
    var file: Unmanaged<SimulatedFile>?
}

private func parts(_ file: UnsafeMutablePointer<sqlite3_file>?) -> (vfs: SimulatedVFS, file: SimulatedFile)? {
    guard let file else { return nil }
    let open = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self).pointee
    guard let vfs = open.vfs, let content = open.file else { return nil }
    return (vfs.takeUnretainedValue(), content.takeUnretainedValue())
}

/// Codes that SQLite's header reckons out, which Swift does not see.
private enum Code {
    static let read = SQLITE_IOERR | 1 << 8, shortRead = SQLITE_IOERR | 2 << 8, write = SQLITE_IOERR | 3 << 8
    static let synchronize = SQLITE_IOERR | 4 << 8, cut = SQLITE_IOERR | 6 << 8, size = SQLITE_IOERR | 7 << 8
    static let notThere = SQLITE_IOERR | 23 << 8
}

/// Version 1: without shared memory and without mappings.
nonisolated(unsafe) private let fileMethods: UnsafeMutablePointer<sqlite3_io_methods> = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    methods.xClose = { file in
        guard let file else { return SQLITE_OK }
        let open = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self)
        open.pointee.file?.release()
        open.pointee.file = nil
        return SQLITE_OK
    }
    methods.xRead = { file, out, count, offset in
        guard let (vfs, content) = parts(file), let out else { return SQLITE_IOERR }
        return vfs.read(content, out, Int(count), Int(offset))
    }
    methods.xWrite = { file, bytes, count, offset in
        guard let (vfs, content) = parts(file), let bytes else { return SQLITE_IOERR }
        return vfs.write(content, bytes, Int(count), Int(offset))
    }
    methods.xTruncate = { file, count in
        guard let (vfs, content) = parts(file) else { return SQLITE_IOERR }
        return vfs.truncate(content, Int(count))
    }
    methods.xSync = { file, _ in
        guard let (vfs, content) = parts(file) else { return SQLITE_IOERR }
        return vfs.synchronize(content)
    }
    methods.xFileSize = { file, out in
        guard let (vfs, content) = parts(file), vfs.isAlive() else { return Code.size }
        out?.pointee = sqlite3_int64(content.count)
        return SQLITE_OK
    }
    // Between processes the store has a lock of its own, and within one there is one connection.
    methods.xLock = { _, _ in SQLITE_OK }
    methods.xUnlock = { _, _ in SQLITE_OK }
    methods.xCheckReservedLock = { _, out in
        out?.pointee = 0
        return SQLITE_OK
    }
    methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    methods.xSectorSize = { _ in 512 }
    methods.xDeviceCharacteristics = { _ in 0 }
    let place = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    place.initialize(to: methods)
    return place
}()
