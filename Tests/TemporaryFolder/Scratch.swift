public import Glibc

/// A directory that goes with the test.
public final class Scratch {
    private let folder = TemporaryFolder("configuration")
    public var path: String { folder.path }

    public init() {}

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

    @discardableResult
    public func write(_ name: String, _ text: String, mode: mode_t = 0o600) -> String {
        write(name, Array(text.utf8), mode: mode)
    }
}
