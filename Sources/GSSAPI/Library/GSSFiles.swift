internal import Glibc

/// Checks of configured files before the library is asked, because its answers do not tell a missing keytab from a missing key.
enum GSSFiles {
    /// The most bytes of a path, PATH_MAX of Linux.
    static let maximumPath = 4096

    /// - Throws: `invalidArgument` for a path that is relative (the library would resolve it against the working directory),
    ///   too long, or has control characters.
    static func check(path: String) throws(GSSFault) {
        let bytes = path.utf8
        guard bytes.first == UInt8(ascii: "/"), bytes.count < maximumPath,
            !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { throw GSSFault(.invalidArgument, "the path of a keytab or cache is not absolute or not well-formed") }
    }

    /// A keytab begins with 5 and the version 1 or 2 (MIT's "Keytab file format").
    ///
    /// - Throws: `keytabUnreadable` with the system's reason, or because the beginning is another.
    static func check(keytab path: String) throws(GSSFault) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            throw GSSFault(
                .keytabUnreadable, "the keytab \(path) cannot be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        var start: [UInt8] = [0, 0]
        guard read(file, &start, start.count) == start.count, start == [5, 1] || start == [5, 2] else {
            throw GSSFault(.keytabUnreadable, "the file \(path) is not a keytab")
        }
    }
}
