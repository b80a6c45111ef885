import CYAML
import Glibc

/// Bounded reading of files and directories, with the system's words for what goes wrong.
package enum FileReader {
    package struct Fault: Error {
        package var message: String
    }

    static func lastFault() -> String { String(cString: strerror(errno)) }

    /// At most `bound` + 1 bytes, so that the caller sees that there are more.
    package static func read(_ path: String, bound: Int) throws(Fault) -> [UInt8] {
        // Not blocking: a pipe in the place of a file would hold the start up for ever.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { throw Fault(message: lastFault()) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw Fault(message: lastFault()) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Fault(message: "not a regular file") }
        return try read(file, bound: bound)
    }

    static func read(_ file: Int32, bound: Int) throws(Fault) -> [UInt8] {
        // Whole at once: growth would leave copies of a secret behind that nobody wipes.
        var bytes = [UInt8](repeating: 0, count: bound + 1)
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { raw in
                Glibc.read(file, raw.baseAddress.map { $0 + filled }, raw.count - filled)
            }
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw Fault(message: lastFault())
            }
            filled += count
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether both are files of the same octets, or both folders, whose files are compared by themselves. A file that cannot be read is no
    /// copy.
    package static func areCopies(_ one: String, _ other: String) -> Bool {
        if isDirectory(one), isDirectory(other) { return true }
        guard let first = try? read(one, bound: YAMLReader.Bound.bytes),
            let second = try? read(other, bound: YAMLReader.Bound.bytes)
        else { return false }
        return first == second
    }

    /// Names in bytewise order, at most `bound`.
    static func names(in path: String, bound: Int) throws(Fault) -> [String] {
        guard let directory = opendir(path) else { throw Fault(message: lastFault()) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
                field.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." { continue }
            guard names.count < bound else { throw Fault(message: "more than \(bound) entries") }
            names.append(name)
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
