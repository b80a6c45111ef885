/// Why the shared server did not do something. `message` is safe to log.
public struct SharedFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults that callers tell apart.
    public enum Kind: Sendable, Equatable {
        /// Not connected, or no longer.
        case unavailable
        /// No answer in time.
        case slow
        /// The server answered with an error.
        case refused
        /// The server's answer does not fit the question, or a value cannot be sealed, opened or put there.
        case invalid
        /// Too much waits for it.
        case queueFull
    }

    /// The kind, for code that decides by it.
    public let kind: Kind
    /// The text for people.
    public let message: String

    /// - Parameter message: safe to log.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
