internal import CSQLite
internal import Glibc

/// The disk of this machine.
public struct MachineDisk: StoreDisk {
    /// Holds nothing.
    public init() {}

    /// SQLite's own.
    public var sqlite: String? { nil }

    /// By `stat` or `lstat`.
    public func status(of path: String, follows: Bool) -> DiskResult<DiskFile> {
        var status = stat()
        guard (follows ? stat(path, &status) : lstat(path, &status)) == 0 else { return .failure(DiskErrno(errno)) }
        return .success(
            DiskFile(
                isRegular: status.st_mode & S_IFMT == S_IFREG, isOurs: status.st_uid == geteuid() || geteuid() == 0,
                isPrivate: status.st_mode & 0o077 == 0, size: UInt64(clamping: status.st_size),
                identity: [UInt64(status.st_dev), UInt64(status.st_ino)]))
    }

    /// By `pread`.
    public func beginning(of path: String, count: Int) -> DiskResult<[UInt8]> {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return .failure(DiskErrno(errno)) }
        defer { Glibc.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = pread(descriptor, &bytes, count, 0)
        guard read >= 0 else { return .failure(DiskErrno(errno)) }
        bytes.removeLast(count - read)
        return .success(bytes)
    }

    /// By `chmod`.
    public func makePrivate(_ path: String) -> Bool { chmod(path, 0o600) == 0 }

    /// Mode 0600 whatever the umask; SQLite gives its logs the same mode.
    public func create(_ path: String) -> Int32 {
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { Glibc.close(descriptor) }
        guard fchmod(descriptor, 0o600) == 0 else { return errno }
        StoreFile.giveToOwner(descriptor, ofFolderOf: path)
        return 0
    }

    /// By `access`.
    public func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
    /// By `rename`.
    public func rename(_ path: String, to target: String) -> Int32 { Glibc.rename(path, target) == 0 ? 0 : errno }
    /// By `unlink`.
    public func remove(_ path: String) { unlink(path) }
    /// By `fsync` of the folder.
    public func synchronizeFolder(of path: String) -> Bool { StoreFile.synchronizeDirectory(of: path) }

    /// By `statvfs`.
    public func hasNoSpace(at path: String) -> Bool {
        var disk = statvfs()
        guard statvfs(path, &disk) == 0, disk.f_blocks > 0 else { return false }
        // Space that is kept for root is for nobody else.
        let blocks = Int(clamping: geteuid() == 0 ? disk.f_bfree : disk.f_bavail)
        return blocks < (32 << 10) / max(1, Int(clamping: disk.f_frsize))
    }

    /// By `flock`.
    public func lock(_ path: String) throws(StoreLockRefusal) -> any StoreLock { try FileLock(path) }

    /// By `O_TMPFILE`.
    public func nameless(in folder: String) -> (any NamelessFile)? {
        let descriptor = cardea_nameless_file(folder)
        return descriptor >= 0 ? MachineNamelessFile(descriptor) : nil
    }
}

/// The kernel gives the lock up at any kind of death.
private final class FileLock: StoreLock {
    private let descriptor: Int32

    init(_ path: String) throws(StoreLockRefusal) {
        // A file that was there before is not given away: it may be a link to a file of somebody else.
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

private final class MachineNamelessFile: NamelessFile {
    private let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    var disk: (blocks: Int, octets: Int)? {
        var disk = statvfs()
        guard fstatvfs(descriptor, &disk) == 0 else { return nil }
        return (Int(clamping: disk.f_blocks), Int(clamping: disk.f_frsize))
    }

    func take(_ octets: Int) -> Int32 { cardea_reserve(descriptor, octets) }
    func cut(to octets: Int) { ftruncate(descriptor, off_t(octets)) }
}
