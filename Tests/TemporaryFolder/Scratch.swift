public import Glibc

/// A directory that goes with the test.
public final class Scratch {
    private let folder = TemporaryFolder("configuration")
    /// Absolute, without a slash at its end.
    public var path: String { folder.path }

    /// An empty directory.
    public init() {}

    /// Writes the file anew.
    /// - Returns: its path.
    @discardableResult
    public func write(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o600) -> String {
        let file = path + "/" + name
        if let handle = fopen(file, "w") {
            fwrite(bytes, 1, bytes.count, handle)
            fclose(handle)
        }
        chmod(file, mode)
        return file
    }

    /// Writes the file anew, in UTF-8.
    /// - Returns: its path.
    @discardableResult
    public func write(_ name: String, _ text: String, mode: mode_t = 0o600) -> String {
        write(name, Array(text.utf8), mode: mode)
    }
}
