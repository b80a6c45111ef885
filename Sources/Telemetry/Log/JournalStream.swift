internal import Glibc

/// The stream to the journal that systemd has given a process as its standard output or error: the numbers of its socket, as the variable
/// JOURNAL_STREAM has them (systemd.exec(5)).
///
/// The journal takes a severity from the beginning of a line, `<4>` for a warning, and keeps the rest as it is (sd-daemon(3)). A process whose
/// output leads elsewhere may have inherited the variable: the numbers tell.
public struct JournalStream: Sendable, Equatable {
    private let device: UInt64
    private let inode: UInt64

    /// - Parameter value: of JOURNAL_STREAM: two decimal numbers with a colon between them.
    /// - Returns: nil for anything else.
    public init?(_ value: String?) {
        let numbers = (value ?? "").split(separator: ":", omittingEmptySubsequences: false).map { UInt64($0) }
        guard numbers.count == 2, let device = numbers[0], let inode = numbers[1] else { return nil }
        self.device = device
        self.inode = inode
    }

    /// Whether a descriptor leads into this stream.
    public func isOpen(as descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && UInt64(status.st_dev) == device && UInt64(status.st_ino) == inode
    }
}

/// Severities of syslog, as they stand before a line for the journal.
public enum JournalPriority {
    /// Of a message that tells why a process ends.
    public static let error: StaticString = "<3>"
    /// Of an access record, whatever became of its request.
    static let record: StaticString = "<6>"
}

extension LogLevel {
    var priority: StaticString {
        switch self {
        case .debug: "<7>"
        case .info: JournalPriority.record
        case .warn: "<4>"
        case .error: JournalPriority.error
        }
    }
}
