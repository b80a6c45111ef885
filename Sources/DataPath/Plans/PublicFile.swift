internal import Glibc

/// A file with nothing to hide, such as a certificate: it is read as it stands, whoever else may read it.
package enum PublicFile {
    /// Bytes at most: the system's store of authorities has a quarter of it.
    private static let limit = 1 << 20

    /// In words, without the path.
    package struct Fault: Error {
        package let reason: String
        /// To this user.
        package var isForbidden = false
    }

    /// Blocks for as long as the disk does; not for a pipe.
    package static func read(_ path: String) throws(Fault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let code = errno
            throw Fault(reason: String(cString: strerror(code)), isForbidden: code == EACCES || code == EPERM)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= limit {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count == 0 { return bytes }
            guard count > 0 else { throw Fault(reason: String(cString: strerror(errno))) }
            bytes += piece[..<count]
        }
        throw Fault(reason: "larger than 1 MiB")
    }
}
