import Glibc

/// A folder of its own for a test; it goes with the object, and with it all that was put there.
public final class TemporaryFolder: Sendable {
    /// Absolute, without a slash at its end.
    public let path: String

    /// - Parameter name: says who left it, should a run be killed.
    public init(_ name: String) {
        // mkdtemp(3) wants six of these at the end, and puts a free name in their place.
        var template = Array(("/tmp/cardea-\(name)-" + String(repeating: "X", count: 6)).utf8CString)
        // In /tmp whatever TMPDIR says: addresses of unix sockets have 107 bytes.
        precondition(mkdtemp(&template) != nil, "no folder in /tmp: errno \(errno)")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { remove() }

    /// Before its time, where nothing is released any more, as at a process's end.
    public func remove() { Self.remove(path) }

    /// Names in it, sorted.
    public var names: [String] { Self.names(in: path) ?? [] }

    private static func names(in path: String) -> [String]? {
        guard let directory = opendir(path) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    private static func remove(_ path: String) {
        // A link is removed, not what it leads to.
        guard unlink(path) != 0, let names = names(in: path) else { return }
        for name in names { remove(path + "/" + name) }
        rmdir(path)
    }
}
