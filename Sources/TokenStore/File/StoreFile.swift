internal import Glibc

/// The files of a store, looked at without SQLite: before it may open a file it must be known whose file it is, because opening
/// recovers the write-ahead log and thereby changes it.
///
///     PATH                    the database (WAL mode, 0600)
///     PATH-wal, PATH-journal  SQLite's logs; belong to exactly this database
///     PATH.lock               held with flock(2) by the owner for life; never deleted, or two processes could each lock "it"
///     PATH.new                a database being made; worthless until renamed
///     PATH.damaged-N          set aside
enum StoreFile {
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

    /// Whether its file system has less left than a few rows need. False where that cannot be known, as with a quota.
    static func hasNoSpace(_ path: String) -> Bool {
        var disk = statvfs()
        guard statvfs(path, &disk) == 0, disk.f_blocks > 0 else { return false }
        // Space that is kept for root is for nobody else.
        let blocks = Int(clamping: geteuid() == 0 ? disk.f_bfree : disk.f_bavail)
        return blocks < (32 << 10) / max(1, Int(clamping: disk.f_frsize))
    }

    /// Judges by the header. `ours` says whose it is, not that it is whole.
    static func inspect(_ path: String) -> Verdict {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT ? .absent : .failed(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .notOurs("not a regular file") }
        guard status.st_uid == geteuid() || geteuid() == 0 else { return .notOurs("owned by another user") }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return .failed(errno) }
        defer { Glibc.close(descriptor) }
        var header = [UInt8](repeating: 0, count: 100)
        let count = pread(descriptor, &header, header.count, 0)
        guard count >= 0 else { return .failed(errno) }
        header.removeLast(header.count - count)
        // No bytes, zeros, or the beginning of a header are what a power failure leaves of a new file: nothing of anybody's.
        let magic = Array("SQLite format 3".utf8) + [0]
        if header.allSatisfy({ $0 == 0 }) { return .damaged }
        guard header.prefix(16).elementsEqual(magic.prefix(header.count)) else {
            return .notOurs("not a SQLite database")
        }
        guard header.count == 100 else { return .damaged }
        let identity = number(header[68..<72])
        guard identity == applicationID else { return .notOurs("a SQLite database of another application") }
        let version = number(header[60..<64])
        return version > schemaVersion ? .newer(Int(version)) : .ours
    }

    /// Identity of a file on its file system; nil when there is none.
    static func identity(_ path: String) -> [UInt64]? {
        var status = stat()
        return stat(path, &status) == 0 ? [UInt64(status.st_dev), UInt64(status.st_ino)] : nil
    }

    /// In bytes; 0 when there is none.
    static func size(_ path: String) -> UInt64 {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(clamping: status.st_size) : 0
    }

    /// Makes the file private to its owner. True when it was not.
    static func tightenMode(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return false }
        return chmod(path, 0o600) == 0
    }

    /// Renames the database and its logs to the first free `PATH.damaged-N`; answers that path, or nil with `errno` set.
    static func setAside(_ path: String) -> String? {
        var number = 1
        while number < maximumSetAside, access("\(path).damaged-\(number)", F_OK) == 0 { number += 1 }
        let target = "\(path).damaged-\(number)"
        // The log goes first: a crash in between leaves a database without its log, which is found damaged again or merely
        // old; the other order would leave a log that SQLite applies to the new database.
        for suffix in logSuffixes where access(path + suffix, F_OK) == 0 {
            guard rename(path + suffix, target + suffix) == 0 else { return nil }
        }
        guard rename(path, target) == 0 else { return nil }
        synchronizeDirectory(of: path)
        return target
    }

    /// Makes an empty file with mode 0600, whatever the umask; SQLite gives its logs the same mode.
    static func createEmpty(_ path: String) throws(TableFault) {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno) }
        defer { Glibc.close(descriptor) }
        guard fchmod(descriptor, 0o600) == 0 else { throw .system(errno) }
        giveToOwner(descriptor, ofFolderOf: path)
    }

    /// A file that root has just made belongs to the owner of its folder: root makes it for the gateway (`cardea check --live`, `cardea
    /// login`), which has another user and could not open it. SQLite gives its logs the owner of the database. Where root may not give
    /// it away, or the file system has no owners, it stays root's.
    static func giveToOwner(_ descriptor: Int32, ofFolderOf path: String) {
        var folder = stat()
        guard geteuid() == 0, stat(directory(of: path), &folder) == 0, folder.st_uid != 0 else { return }
        _ = fchown(descriptor, folder.st_uid, folder.st_gid)
    }

    static func publish(_ fresh: String, as path: String) throws(TableFault) {
        guard rename(fresh, path) == 0 else { throw .system(errno) }
        synchronizeDirectory(of: path)
    }

    /// Removes what an interrupted making left behind, and logs whose database is gone.
    static func removeLeftovers(_ path: String) {
        for suffix in [""] + logSuffixes { unlink(path + ".new" + suffix) }
        for suffix in logSuffixes { unlink(path + suffix) }
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

/// Ownership of a store, for as long as this value lives or the process does. The kernel gives it up at any kind of death.
struct StoreLock: ~Copyable {
    private let descriptor: Int32

    enum Refusal: Error {
        case heldByAnother
        case failed(Int32)
    }

    init(_ path: String) throws(Refusal) {
        // What was there before is nobody's to give away: it may be a link to a file of somebody else.
        let made = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        let descriptor =
            made >= 0 || errno != EEXIST ? made : Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .failed(errno) }
        if made >= 0 { StoreFile.giveToOwner(made, ofFolderOf: path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            Glibc.close(descriptor)
            throw number == EWOULDBLOCK ? .heldByAnother : .failed(number)
        }
        self.descriptor = descriptor
    }

    /// Unlocked by name, not only closed: a child that was forked and has not come to its exec yet holds the same lock.
    deinit {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }
}
