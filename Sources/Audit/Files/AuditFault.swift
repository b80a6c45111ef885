internal import Glibc

/// Why the audit log could not be written or its key not be had. Holds names of files and the system's words.
package struct AuditFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind, for code that decides by it.
    package let kind: Kind
    /// The text for people.
    package let description: String

    /// The kinds of faults that callers tell apart.
    package enum Kind: Sendable, Equatable {
        /// The disk, its space or its permissions; a later try may go better.
        case disk
        /// Another process writes a group at this moment.
        case busy
        /// There is no key; `audit init` makes one.
        case noKey
        /// There is a key already.
        case isThere
        /// A file holds something else, is open to others, or may be somebody's else.
        case badFile
    }

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// A system call on a file failed.
    static func system(_ path: String, _ number: Int32) -> AuditFault {
        AuditFault(.disk, "\(path): \(strerror(number).map { String(cString: $0) } ?? "error \(number)")")
    }
}
