internal import Glibc

/// The folder of a log, held open while its files are looked at: whoever may rename what lies above it leads nobody elsewhere between two
/// steps.
///
/// Root may write into a folder of the gateway's user, who may be hostile by then. So links are never followed, and what stands there
/// already is written to only where it is a regular file of the folder's owner and has no second name.
final class LogPlace {
    /// The log, as it was named.
    let path: String
    /// The log's name in the folder.
    let name: String
    /// Stays open as long as this lives.
    let folder: Int32
    private let owner: (user: uid_t, group: gid_t)

    /// The key file's name.
    var key: String { name + ".key" }
    /// The key file before it has that name.
    var freshKey: String { key + ".new" }
    /// The name of the file that a writer holds locked.
    var lock: String { name + ".lock" }

    init(_ path: String) throws(AuditFault) {
        self.path = path
        let parent: String
        if let slash = path.lastIndex(of: "/") {
            parent = slash == path.startIndex ? "/" : String(path[..<slash])
            name = String(path[path.index(after: slash)...])
        } else {
            (parent, name) = (".", path)
        }
        guard !name.isEmpty else { throw AuditFault(.disk, "\(path) names a folder, not a file") }
        let folder = Glibc.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .system(parent, errno) }
        var status = stat()
        guard fstat(folder, &status) == 0 else {
            let number = errno
            close(folder)
            throw .system(parent, number)
        }
        self.folder = folder
        owner = (status.st_uid, status.st_gid)
    }

    deinit { close(folder) }

    /// Where a file of that name is, for messages.
    func path(of file: String) -> String { path + String(file.dropFirst(name.count)) }

    /// A descriptor, or −1 with `errno`.
    func open(_ file: String, _ flags: Int32) -> Int32 {
        openat(folder, file, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    }

    /// Makes a file that was not there, mode 0600; one that root makes belongs to the owner of the folder, for the gateway has to write it.
    /// - Returns: a descriptor, or −1 with `errno`.
    func make(_ file: String, _ flags: Int32) -> Int32 {
        let descriptor = openat(folder, file, flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0, geteuid() == 0 else { return descriptor }
        guard fchown(descriptor, owner.user, owner.group) == 0 else {
            let number = errno
            unlinkat(folder, file, 0)
            close(descriptor)
            errno = number
            return -1
        }
        return descriptor
    }

    /// Makes a creation or a renaming in the folder last through a power failure.
    func synchronize() -> Bool { fsync(folder) == 0 }

    /// The state of an open file of that name.
    /// - Parameter writes: something will be written to it.
    func status(of descriptor: Int32, _ file: String, writes: Bool) throws(AuditFault) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system(path(of: file), errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw AuditFault(.badFile, "\(path(of: file)) is not a regular file")
        }
        guard writes, geteuid() == 0 else { return status }
        guard status.st_uid == 0 || status.st_uid == owner.user else {
            throw AuditFault(.badFile, "\(path(of: file)) is neither root's nor of the owner of its folder")
        }
        guard status.st_nlink == 1 else {
            throw AuditFault(.badFile, "\(path(of: file)) has another name as well, and may be somebody's else")
        }
        return status
    }
}
