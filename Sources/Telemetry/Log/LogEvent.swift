/// Something that an operator acts on: a fixed message, and typed fields beside it.
///
/// Redaction is structural. The message is a literal; a field is a name, a number or a fixed word. Nothing here takes bytes
/// of a message, a header or a token.
public struct LogEvent: Sendable {
    /// Nanoseconds of the wall clock since 1970.
    public let time: UInt64
    public let level: LogLevel
    public let message: StaticString
    public let fields: [LogField]
}

/// Severities, in rising order.
public enum LogLevel: UInt8, Sendable, Comparable, CaseIterable {
    case debug, info, warn, error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    var word: StaticString {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warn: "warn"
        case .error: "error"
        }
    }
}

/// One field of an event.
public struct LogField: Sendable {
    public let key: StaticString
    public let value: LogValue

    public init(_ key: StaticString, _ value: LogValue) {
        self.key = key
        self.value = value
    }
}

/// What a field may hold.
public enum LogValue: Sendable {
    /// A name from the configuration, a host, a file name. At most 256 bytes are written.
    case name(String)
    /// A word of ours: a state, a kind, a reason.
    case word(StaticString)
    case count(Int64)
    /// Nanoseconds; written in milliseconds.
    case duration(UInt64)
    /// A status code or an `errno`.
    case code(Int)
    case flag(Bool)
    case address(LogAddress)
}

/// How lines are written (`log.format`).
public enum LogFormat: UInt8, Sendable { case json, text }
