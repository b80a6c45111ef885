internal import Glibc

/// The open log. Its name is looked up for each group, so that a renamed one is not written to any more.
final class LogDescriptor {
    private let path: String
    private let descriptor: Int32
    /// The inode, by which it is known again.
    let number: UInt64

    init(_ place: LogPlace) throws(AuditFault) {
        let path = place.path
        var descriptor = place.open(place.name, O_RDWR | O_APPEND)
        if descriptor < 0, errno == ENOENT {
            descriptor = place.make(place.name, O_RDWR | O_APPEND)
            // Without it a power failure could leave the next key without the records before it.
            guard descriptor < 0 || place.synchronize() else {
                let number = errno
                close(descriptor)
                throw .system(path, number)
            }
        }
        guard descriptor >= 0 else { throw .system(path, errno) }
        do throws(AuditFault) {
            number = UInt64(try place.status(of: descriptor, place.name, writes: true).st_ino) & UInt64(Int64.max)
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// In octets.
    func size() throws(AuditFault) -> UInt64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system(path, errno) }
        return UInt64(clamping: status.st_size)
    }

    /// Octets of the middle or the end of the file; fewer where it ends before.
    func octets(from start: UInt64, count: UInt64) throws(AuditFault) -> [UInt8] {
        var octets = [UInt8](repeating: 0, count: Int(clamping: count))
        var filled = 0
        while filled < octets.count {
            let left = octets.count - filled
            let read = octets.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + filled }, left, off_t(clamping: start) + off_t(filled))
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { throw .system(path, errno) }
            if read == 0 { break }
            filled += read
        }
        octets.removeLast(octets.count - filled)
        return octets
    }

    /// Everything is on disk afterwards.
    func append(_ octets: [UInt8]) throws(AuditFault) {
        var written = 0
        while written < octets.count {
            let left = octets.count - written
            let count = octets.withUnsafeBytes { write(descriptor, $0.baseAddress.map { $0 + written }, left) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .system(path, count == 0 ? ENOSPC : errno) }
            written += count
        }
        guard fdatasync(descriptor) == 0 else { throw .system(path, errno) }
    }

    /// Takes back what was written behind `size`, as far as that can be done.
    func cut(to size: UInt64) { _ = ftruncate(descriptor, off_t(clamping: size)) }

    /// Cuts off a torn record, before anything is written behind it.
    func shorten(to size: UInt64) throws(AuditFault) {
        guard ftruncate(descriptor, off_t(clamping: size)) == 0, fdatasync(descriptor) == 0 else {
            throw .system(path, errno)
        }
    }
}

/// One writer at a time, by flock(2) on a file that is never deleted; the kernel gives it up at any kind of death.
final class GroupLock {
    private let descriptor: Int32

    /// - Throws: `busy` when another process writes; nobody waits for it here.
    init(_ place: LogPlace) throws(AuditFault) {
        let path = place.path(of: place.lock)
        var descriptor = place.open(place.lock, O_RDWR)
        if descriptor < 0, errno == ENOENT { descriptor = place.make(place.lock, O_RDWR) }
        // Another process made it between the two.
        if descriptor < 0, errno == EEXIST { descriptor = place.open(place.lock, O_RDWR) }
        guard descriptor >= 0 else { throw .system(path, errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            close(descriptor)
            throw number == EWOULDBLOCK ? AuditFault(.busy, "another process writes to the log") : .system(path, number)
        }
        self.descriptor = descriptor
    }

    /// Unlocked by name, not only closed: a child that was forked and has not come to its exec yet holds the same lock.
    deinit {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
