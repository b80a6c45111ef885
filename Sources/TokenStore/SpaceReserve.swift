internal import Glibc

/// Space on the disk that is held back for deletions. SQLite writes a deletion to its log before it makes it, so on a full disk nothing
/// could be purged or logged out: the row would be found again.
///
/// Blocks of a file without a name: nothing is left of them when the process ends. Lives on the store's thread.
struct SpaceReserve: ~Copyable {
    private let descriptor: Int32
    /// Bytes; less than `most` on a disk that had no more.
    private(set) var held = 0

    /// As much as the log may hold before it is moved to the database: it has to be moved before it can be written from its beginning again.
    static let most = 1 << 20
    /// Of a small disk an eighth.
    private let share: Int
    /// Too little to be of use below it.
    private static let least = 32 << 10

    /// - Parameter path: beside the database. Nothing stands there afterwards.
    init?(path: String) {
        // Of a process that was killed between the two calls that follow.
        unlink(path)
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        unlink(path)
        self.descriptor = descriptor
        var disk = statvfs()
        share =
            fstatvfs(descriptor, &disk) == 0 ? min(Int(clamping: disk.f_blocks / 8), Self.most) * Int(disk.f_frsize) : 0
        hold()
    }

    deinit { close(descriptor) }
}

extension SpaceReserve {
    /// Takes what is missing, or as much of it as there is.
    mutating func hold() {
        var wanted = min(Self.most, share)
        while wanted > held, wanted >= Self.least {
            if posix_fallocate(descriptor, 0, off_t(wanted)) == 0 {
                held = wanted
                return
            }
            // A part of it may have been taken before the disk was full.
            ftruncate(descriptor, off_t(held))
            wanted /= 2
        }
    }

    /// Gives it to whoever writes next: it is ours no more, and another program may be quicker.
    mutating func release() {
        ftruncate(descriptor, 0)
        held = 0
    }
}
