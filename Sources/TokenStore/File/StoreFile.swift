internal import Glibc

/// The files of a store, looked at without SQLite: before it may open a file it must be known whose file it is, because opening
/// recovers the write-ahead log and thereby changes it.
///
///     PATH                    the database (WAL mode, 0600)
///     PATH-wal, PATH-journal  SQLite's logs; belong to exactly this database
///     PATH.lock               held with flock(2) by the owner for life; never deleted, or two processes could each lock "it"
///     PATH.new                a database being made; worthless until renamed
///     PATH.damaged-N          set aside
struct StoreFile: Sendable {
    /// The database's.
    let path: String
    let disk: any StoreDisk

    init(_ path: String, _ disk: any StoreDisk) {
        self.path = path
        self.disk = disk
    }

    /// "CARD" in the header of the database (SQLite's application_id, file offset 68, big-endian).
    static let applicationID: UInt32 = 0x4341_5244
    /// SQLite's user_version, file offset 60, big-endian. Raised when an older program could misread the rows.
    static let schemaVersion: UInt32 = 1
    static let logSuffixes = ["-wal", "-shm", "-journal"]
    /// Set-aside files are for a person to look at; a disk that damages files daily must not be filled with them.
    static let maximumSetAside = 10

    enum Verdict: Equatable {
        case absent, ours
        case damaged
        case notOurs(String)
        case newer(Int)
        case failed(Int32)
    }

    /// Judges by the header. `ours` says whose it is, not that it is whole.
    func inspect() -> Verdict {
        switch disk.status(of: path, follows: false) {
        case .failure(let fault): return fault.number == ENOENT ? .absent : .failed(fault.number)
        case .success(let file) where !file.isRegular: return .notOurs("not a regular file")
        case .success(let file) where !file.isOurs: return .notOurs("owned by another user")
        case .success: break
        }
        let header: [UInt8]
        switch disk.beginning(of: path, count: 100) {
        case .failure(let fault): return .failed(fault.number)
        case .success(let bytes): header = bytes
        }
        // No bytes, zeros, or the beginning of a header are what a power failure leaves of a new file: nothing of anybody's.
        let magic = Array("SQLite format 3".utf8) + [0]
        if header.allSatisfy({ $0 == 0 }) { return .damaged }
        guard header.prefix(16).elementsEqual(magic.prefix(header.count)) else {
            return .notOurs("not a SQLite database")
        }
        guard header.count == 100 else { return .damaged }
        let identity = Self.number(header[68..<72])
        guard identity == Self.applicationID else { return .notOurs("a SQLite database of another application") }
        let version = Self.number(header[60..<64])
        return version > Self.schemaVersion ? .newer(Int(version)) : .ours
    }

    /// Identity of the file on its file system; nil when there is none.
    var identity: [UInt64]? { try? disk.status(of: path, follows: true).get().identity }

    /// In bytes; 0 when there is none.
    var size: UInt64 { (try? disk.status(of: path, follows: true).get().size) ?? 0 }
    /// Octets of the write-ahead log; 0 when there is none.
    var logSize: UInt64 { StoreFile(path + "-wal", disk).size }

    /// Makes the file private to its owner. True when it was not.
    func tightenMode() -> Bool {
        guard case .success(let file) = disk.status(of: path, follows: false), !file.isPrivate else { return false }
        return disk.makePrivate(path)
    }

    /// Renames the database and its logs to the first free `PATH.damaged-N`.
    /// - Returns: that path, or a number of `errno`.
    func setAside() -> DiskResult<String> {
        var number = 1
        while number < Self.maximumSetAside, disk.exists("\(path).damaged-\(number)") { number += 1 }
        let target = "\(path).damaged-\(number)"
        // The log goes first: a crash in between leaves a database without its log, which is found damaged again or merely
        // old; the other order would leave a log that SQLite applies to the new database.
        for suffix in Self.logSuffixes + [""] where suffix.isEmpty || disk.exists(path + suffix) {
            let fault = disk.rename(path + suffix, to: target + suffix)
            guard fault == 0 else { return .failure(DiskErrno(fault)) }
        }
        disk.synchronizeFolder(of: path)
        return .success(target)
    }

    func createEmpty() throws(TableFault) {
        let fault = disk.create(path)
        guard fault == 0 else { throw .system(fault) }
    }

    func publish(_ fresh: StoreFile) throws(TableFault) {
        let fault = disk.rename(fresh.path, to: path)
        guard fault == 0 else { throw .system(fault) }
        disk.synchronizeFolder(of: path)
    }

    /// Removes what an interrupted making left behind, and logs whose database is gone.
    func removeLeftovers() {
        for suffix in [""] + Self.logSuffixes { disk.remove(path + ".new" + suffix) }
        for suffix in Self.logSuffixes { disk.remove(path + suffix) }
    }

    /// A file that root has just made belongs to the owner of its folder: root makes it for the gateway (`cardea check --live`, `cardea
    /// login`), which has another user and could not open it. SQLite gives its logs the owner of the database. Where root may not give
    /// it away, or the file system has no owners, it stays root's.
    static func giveToOwner(_ descriptor: Int32, ofFolderOf path: String) {
        var folder = stat()
        guard geteuid() == 0, stat(directory(of: path), &folder) == 0, folder.st_uid != 0 else { return }
        _ = fchown(descriptor, folder.st_uid, folder.st_gid)
    }

    /// Makes a rename or a creation in the directory of `path` last through a power failure.
    @discardableResult
    static func synchronizeDirectory(of path: String) -> Bool {
        let descriptor = Glibc.open(directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func errorText(_ number: Int32) -> String {
        strerror(number).map { String(cString: $0) } ?? "error \(number)"
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}
