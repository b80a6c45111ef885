/// Why the store did not do something. `message` is safe to log: file names, SQLite's and the system's texts, key ids.
public struct StoreFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind, for code that decides by it.
    public let kind: Kind
    /// The text for people.
    public let message: String

    /// The kinds of faults that callers tell apart.
    public enum Kind: Sendable, Equatable {
        /// No space, or the configured bound of the file is reached. Later puts try again.
        case full
        /// The file or its file system does not take writes. Later puts try again.
        case readOnly
        /// The disk or SQLite failed. Later puts try again, on a new connection.
        case io
        /// This process does not own the file: locked by another, not ours, newer, or sealed with an unknown key.
        case notOwner
        /// Key or value is over its bound.
        case tooLarge
        /// Too many operations wait for the disk.
        case queueFull
        /// Another job is under way.
        case busy
        /// The store was closed.
        case closed
        /// The value could not be sealed.
        case sealing
    }

    /// - Parameter message: for operators; holds no value of a row.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
