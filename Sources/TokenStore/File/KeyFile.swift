internal import Glibc
internal import Octets
public import TLS
internal import World

/// The sealing keys that are made when none is configured: `PATH.key`, beside the store. They protect a copy of the database that
/// leaves the machine without it, and nothing else; hence the warning that goes with it. One key a line; the first seals.
public enum KeyFile {
    /// Where the keys of the store at this path are.
    public static func path(beside store: String) -> String { store + ".key" }

    /// Reads the keys beside `store`, or makes one: 32 random bytes, mode 0600.
    /// - Returns: the keys, and whether one was made just now.
    /// - Throws: `.io` when they can be neither read nor made, `.sealing` when what is there is no key.
    public static func makeKeyFile(beside store: String) throws(StoreFault) -> (keys: [SealingKey], made: Bool) {
        let path = path(beside: store)
        if access(path, F_OK) == 0 { return (try load(path), false) }
        var bytes = SystemRandom().bytes(SealingKey.size)
        defer { bytes.wipe() }
        let made = try write(bytes, to: path, replacing: false)
        // Another process may have been quicker: its key is the one in the file.
        return (try load(path), made)
    }

    /// Puts a new key in front of those that are there.
    /// - Returns: all of them.
    public static func addKey(beside store: String) throws(StoreFault) -> [SealingKey] {
        let path = path(beside: store)
        var lines = try lines(path)
        defer { for index in lines.indices { lines[index].wipe() } }
        // More than one: a rotation was cut short, and its key is in front already.
        guard lines.count == 1 else { return try load(path) }
        var fresh = SystemRandom().bytes(SealingKey.size)
        defer { fresh.wipe() }
        try replace(path, with: [Array(Base64.encode(fresh).utf8)] + lines)
        return try load(path)
    }

    /// Drops every key but the first.
    public static func keepFirst(beside store: String) throws(StoreFault) {
        let path = path(beside: store)
        var lines = try lines(path)
        defer { for index in lines.indices { lines[index].wipe() } }
        guard lines.count > 1 else { return }
        try replace(path, with: Array(lines.prefix(1)))
    }

    /// - Throws: `.io` when it cannot be read, or could be written by others; `.sealing` when it holds no key.
    public static func load(_ path: String) throws(StoreFault) -> [SealingKey] {
        var lines = try lines(path)
        defer { for index in lines.indices { lines[index].wipe() } }
        var keys: [SealingKey] = []
        do throws(SealingFault) {
            for line in lines { keys.append(try SealingKey(fileContents: line)) }
        } catch {
            throw StoreFault(.sealing, "\(path): \(error)")
        }
        return keys
    }

    // MARK: -

    /// The keys as text; one that stands there as bytes becomes text.
    private static func lines(_ path: String) throws(StoreFault) -> [[UInt8]] {
        var contents = try contents(path)
        defer { contents.wipe() }
        if contents.count == SealingKey.size { return [Array(Base64.encode(contents).utf8)] }
        let lines = contents.split(separator: UInt8(ascii: "\n")).map { Array($0) }
        guard !lines.isEmpty else { throw StoreFault(.sealing, "\(path): \(SealingFault.badKey)") }
        return lines
    }

    private static func contents(_ path: String) throws(StoreFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw fault(path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw fault(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw StoreFault(.io, "\(path) is not a regular file") }
        guard status.st_mode & 0o022 == 0 else { throw StoreFault(.io, "\(path) can be written by others") }
        var folder = stat()
        // A key that root has made was given to the owner of the folder.
        let isOwners =
            geteuid() == 0 && stat(StoreFile.directory(of: path), &folder) == 0 && status.st_uid == folder.st_uid
        guard status.st_uid == geteuid() || status.st_uid == 0 || isOwners else {
            throw StoreFault(.io, "\(path) is owned by another user")
        }
        var contents = [UInt8](repeating: 0, count: 1024)
        defer { contents.wipe() }
        let count = read(descriptor, &contents, contents.count)
        guard count >= 0 else { throw fault(path, errno) }
        return Array(contents.prefix(count))
    }

    private static func replace(_ path: String, with lines: [[UInt8]]) throws(StoreFault) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        for line in lines { bytes += line + [UInt8(ascii: "\n")] }
        defer { bytes.wipe() }
        _ = try write(bytes, to: path, replacing: true)
    }

    /// Written under another name and moved, so that a crash leaves no short key. A new file is linked instead, so that two processes do not
    /// overwrite each other's: false when there is one already.
    private static func write(_ bytes: [UInt8], to path: String, replacing: Bool) throws(StoreFault) -> Bool {
        let fresh = "\(path).\(getpid()).new"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault(fresh, errno) }
        defer {
            close(descriptor)
            unlink(fresh)
        }
        StoreFile.giveToOwner(descriptor, ofFolderOf: path)
        guard fchmod(descriptor, 0o600) == 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count,
            fsync(descriptor) == 0
        else { throw fault(fresh, errno) }
        guard (replacing ? rename(fresh, path) : link(fresh, path)) == 0 else {
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
