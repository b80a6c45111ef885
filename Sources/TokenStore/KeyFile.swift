internal import Glibc
public import TLS

/// The sealing key that is made when none is configured: `PATH.key`, beside the store. It protects a copy of the database that
/// leaves the machine without it, and nothing else; hence the warning that goes with it.
public enum KeyFile {
    public static func path(beside store: String) -> String { store + ".key" }

    /// Reads the key beside `store`, or makes it: 32 random bytes, mode 0600.
    /// - Returns: the key, and whether it was made just now.
    /// - Throws: `.io` when it can be neither read nor made, `.sealing` when what is there is no key.
    public static func makeKeyFile(beside store: String) throws(StoreFault) -> (key: SealingKey, made: Bool) {
        let path = path(beside: store)
        if access(path, F_OK) == 0 { return (try load(path), false) }
        var bytes = randomBytes(SealingKey.size)
        defer { wipe(&bytes) }
        let made = try write(bytes, to: path)
        // Another process may have been quicker: its key is the one in the file.
        return (try load(path), made)
    }

    /// - Throws: `.io` when it cannot be read, or could be written by others; `.sealing` when it is no key.
    public static func load(_ path: String) throws(StoreFault) -> SealingKey {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw fault(path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw fault(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw StoreFault(.io, "\(path) is not a regular file") }
        guard status.st_mode & 0o022 == 0 else { throw StoreFault(.io, "\(path) can be written by others") }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw StoreFault(.io, "\(path) is owned by another user")
        }
        var contents = [UInt8](repeating: 0, count: 256)
        defer { wipe(&contents) }
        let count = read(descriptor, &contents, contents.count)
        guard count >= 0 else { throw fault(path, errno) }
        var used = Array(contents.prefix(count))
        defer { wipe(&used) }
        do {
            return try SealingKey(fileContents: used)
        } catch {
            throw StoreFault(.sealing, "\(path): \(error)")
        }
    }

    // MARK: -

    /// Written under another name and linked, so that a crash leaves no short key and two processes do not overwrite each other's.
    /// False when the file exists already.
    private static func write(_ bytes: [UInt8], to path: String) throws(StoreFault) -> Bool {
        let fresh = "\(path).\(getpid()).new"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault(fresh, errno) }
        defer {
            close(descriptor)
            unlink(fresh)
        }
        guard fchmod(descriptor, 0o600) == 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count,
            fsync(descriptor) == 0
        else { throw fault(fresh, errno) }
        guard link(fresh, path) == 0 else {
            guard errno == EEXIST else { throw fault(path, errno) }
            return false
        }
        // The key must be on disk before anything is sealed with it.
        guard StoreFile.synchronizeDirectory(of: path) else { throw fault(path, errno) }
        return true
    }

    private static func fault(_ path: String, _ number: Int32) -> StoreFault {
        StoreFault(.io, "\(path): \(StoreFile.errorText(number))")
    }
}
