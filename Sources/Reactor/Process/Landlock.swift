internal import CLinux
internal import Glibc

/// Gives up every file that is not named, for the calling thread and whatever it starts, for good (landlock(7)). What is open stays open,
/// and so does looking at what exists: the kernel restricts what is done with files, not the walk to them.
public enum Landlock {
    /// Rights to a path and everything below it.
    public struct Rights: OptionSet, Sendable {
        /// Bits of `LANDLOCK_ACCESS_FS_*`.
        public let rawValue: UInt64
        /// Any bits are allowed.
        public init(rawValue: UInt64) { self.rawValue = rawValue }

        /// `LANDLOCK_ACCESS_FS_EXECUTE`.
        public static let execute = Rights(rawValue: 1 << 0)
        /// `LANDLOCK_ACCESS_FS_WRITE_FILE`.
        public static let writeFile = Rights(rawValue: 1 << 1)
        /// `LANDLOCK_ACCESS_FS_READ_FILE`.
        public static let readFile = Rights(rawValue: 1 << 2)
        /// `LANDLOCK_ACCESS_FS_READ_DIR`: listing a folder.
        public static let readFolder = Rights(rawValue: 1 << 3)
        /// `LANDLOCK_ACCESS_FS_REMOVE_DIR`: removing empty folders.
        public static let removeFolder = Rights(rawValue: 1 << 4)
        /// `LANDLOCK_ACCESS_FS_REMOVE_FILE`.
        public static let removeFile = Rights(rawValue: 1 << 5)
        /// `LANDLOCK_ACCESS_FS_MAKE_REG`: making and renaming regular files.
        public static let makeFile = Rights(rawValue: 1 << 8)
        /// `LANDLOCK_ACCESS_FS_MAKE_SOCK`: binding a unix socket.
        public static let makeSocket = Rights(rawValue: 1 << 9)
        /// `LANDLOCK_ACCESS_FS_TRUNCATE`.
        public static let truncate = Rights(rawValue: 1 << 14)

        /// The rights that mean something where the path is no folder.
        fileprivate static let ofFiles: Rights = [.execute, .writeFile, .readFile, .truncate]

        /// Every right that the kernel can take away. Moving into other folders (2), truncating (3) and device controls (5) came later;
        /// before, the first was refused to everybody and the others to nobody.
        fileprivate static func all(version: Int32) -> Rights {
            let count =
                switch version {
                case ...1: 13
                case 2: 14
                case 3, 4: 15
                default: 16
                }
            return Rights(rawValue: 1 << UInt64(count) - 1)
        }
    }

    /// Why the process was not restricted.
    public enum Fault: Error, Equatable, CustomStringConvertible {
        /// Not built into the kernel, or not switched on.
        case unavailable
        /// The call and its errno.
        case refused(String, Int32)

        /// For an operator; the system's text for the error.
        public var description: String {
            switch self {
            case .unavailable: "this kernel has no Landlock"
            case .refused(let call, let code): "\(call): \(String(cString: strerror(code)))"
            }
        }
    }

    /// Before any other thread exists, and after `Hardening.apply`.
    /// - Parameters:
    ///   - allowed: what stays allowed; links are followed.
    ///   - keepsSignals: no process outside can be sent a signal, from version 6 of the kernel's interface on.
    ///   - absent: gets the paths that could not be opened, with the reason; they stay forbidden also when they come to be.
    /// - Returns: the version of the kernel's interface.
    public static func enforce(
        _ allowed: [(path: String, rights: Rights)], keepsSignals: Bool = true, absent: (String, Int32) -> Void
    ) throws(Fault) -> Int {
        let version = cardea_landlock_version()
        guard version > 0 else {
            // Anything else is the word of a filter around us.
            throw version == -ENOSYS || version == -EOPNOTSUPP
                ? .unavailable : .refused("landlock_create_ruleset", -version)
        }
        let handled = Rights.all(version: version)
        let signals: UInt64 = keepsSignals && version >= 6 ? 1 << 1 : 0
        let rules = cardea_landlock_ruleset(handled.rawValue, signals)
        guard rules >= 0 else { throw .refused("landlock_create_ruleset", -rules) }
        defer { close(rules) }
        for (path, rights) in allowed {
            let code = cardea_landlock_allow(
                rules, path, rights.intersection(handled).rawValue, Rights.ofFiles.rawValue)
            if code < 0 { absent(path, -code) }
        }
        let code = cardea_landlock_enforce(rules)
        guard code == 0 else { throw .refused("landlock_restrict_self", -code) }
        return Int(version)
    }
}
