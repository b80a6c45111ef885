internal import Glibc
internal import Octets
package import World

/// `LOG.key`, mode 0600: the key of the next group, replaced after each. Held open between the look at it and its end, so that what is
/// overwritten is what was read.
package final class ChainKeyFile {
    private let place: LogPlace
    /// Of the file that has the name.
    private var descriptor: Int32
    /// What it held when it was opened.
    let state: ChainState

    /// The reason to look at a key file.
    enum Purpose {
        /// To compare it with a log; a copy may be anybody's, and of any mode.
        case verify
        /// To see whether a writer could use it.
        case look
        /// To write a group.
        case write
    }

    /// - Throws: `noKey`, `badFile`, `disk`.
    init(_ place: LogPlace, to purpose: Purpose) throws(AuditFault) {
        let path = place.path(of: place.key)
        let descriptor = place.open(place.key, purpose == .write ? O_RDWR : O_RDONLY)
        guard descriptor >= 0 else {
            let number = errno
            guard number == ENOENT else { throw .system(path, number) }
            throw AuditFault(.noKey, "\(path) is not there; `cardea audit init` makes it")
        }
        do throws(AuditFault) {
            let status = try place.status(of: descriptor, place.key, writes: purpose == .write)
            if purpose != .verify { try Self.check(status, path) }
            state = try Self.state(in: descriptor, path)
        } catch {
            close(descriptor)
            throw error
        }
        self.place = place
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    private static func check(_ status: stat, _ path: String) throws(AuditFault) {
        guard status.st_mode & 0o077 == 0 else {
            throw AuditFault(.badFile, "\(path) is open to others; its mode has to be 0600")
        }
        guard status.st_uid == geteuid() || geteuid() == 0 else {
            throw AuditFault(.badFile, "\(path) is owned by another user")
        }
    }

    private static func state(in descriptor: Int32, _ path: String) throws(AuditFault) -> ChainState {
        // One octet more than there may be, so that a longer file is none.
        var contents = [UInt8](repeating: 0, count: ChainState.longest + 1)
        defer { contents.wipe() }
        let count = pread(descriptor, &contents, contents.count, 0)
        guard count >= 0 else { throw .system(path, errno) }
        guard count <= ChainState.longest, let state = ChainState(contents[..<count]) else {
            throw AuditFault(.badFile, "\(path) holds no key of an audit log")
        }
        return state
    }

    /// Puts the next key in the place of the one that is there, whose octets are overwritten.
    func replace(with state: ChainState) throws(AuditFault) {
        let fresh = try Self.write(state, place)
        guard renameat(place.folder, place.freshKey, place.folder, place.key) == 0 else {
            let number = errno
            close(fresh)
            unlinkat(place.folder, place.freshKey, 0)
            throw .system(place.path(of: place.key), number)
        }
        // A key that comes back after a power failure meets a group that is on disk, and takes one step forward: the one before is there,
        // or this one is.
        // Where the folder cannot be synchronized the name may still lead to the old file after a power failure, and without its key no
        // gateway would start: it is left as it is.
        if place.synchronize() {
            // Best effort: a file system that writes elsewhere, and a disk that does, keep the old octets for a while.
            let zeros = [UInt8](repeating: 0, count: ChainState.longest)
            _ = pwrite(descriptor, zeros, zeros.count, 0)
            _ = fdatasync(descriptor)
        }
        close(descriptor)
        descriptor = fresh
    }

    /// Writes the file under its first name.
    /// - Returns: its descriptor.
    private static func write(_ state: ChainState, _ place: LogPlace) throws(AuditFault) -> Int32 {
        let path = place.path(of: place.freshKey)
        // A kill may have left one.
        unlinkat(place.folder, place.freshKey, 0)
        let descriptor = place.make(place.freshKey, O_RDWR)
        guard descriptor >= 0 else { throw .system(path, errno) }
        var text = state.text
        defer { text.wipe() }
        let written = Glibc.write(descriptor, text, text.count)
        guard written == text.count, fsync(descriptor) == 0 else {
            let number = written >= 0 && written < text.count ? ENOSPC : errno
            close(descriptor)
            unlinkat(place.folder, place.freshKey, 0)
            throw .system(path, number)
        }
        return descriptor
    }
}

// MARK: - The first key

extension ChainKeyFile {
    /// Where the key of the log at this path is.
    package static func path(beside log: String) -> String { log + ".key" }

    /// Begins a chain: the key file gets the key that follows from a new one.
    /// - Returns: the digits of the first key, which is nowhere on disk. Whoever gets them wipes them.
    package static func begin(beside log: String, random: any RandomSource) throws(AuditFault) -> [UInt8] {
        let place = try LogPlace(log)
        let path = place.path(of: place.key)
        let isThere = AuditFault(
            .isThere,
            "\(path) is there already, and its chain goes on; for a new chain move it away together with \(log)")
        var status = stat()
        guard fstatat(place.folder, place.key, &status, AT_SYMLINK_NOFOLLOW) != 0 else { throw isThere }
        if fstatat(place.folder, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_size > 0 {
            throw AuditFault(
                .isThere, "\(log) has records already, which a new key could not verify; move it away first")
        }
        guard let key = ChainKey(wiping: random.bytes(ChainKey.size)) else {
            throw AuditFault(.badFile, "no random octets can be had")
        }
        let digits = key.digits
        let first = ChainState(key: key.next(), group: 1, head: .none, file: 0, size: 0)
        close(try write(first, place))
        defer { unlinkat(place.folder, place.freshKey, 0) }
        // A link does not take the place of what another process made meanwhile.
        guard linkat(place.folder, place.freshKey, place.folder, place.key, 0) == 0 else {
            let number = errno
            throw number == EEXIST ? isThere : .system(path, number)
        }
        guard place.synchronize() else { throw .system(path, errno) }
        return digits
    }

    /// Takes back what `begin` made, where the first key could not be handed out.
    package static func undo(beside log: String) { unlink(path(beside: log)) }
}
