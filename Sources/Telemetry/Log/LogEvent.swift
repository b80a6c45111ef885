/// Something that an operator acts on: a fixed message, and typed fields beside it.
///
/// Redaction is structural. The message is a literal; a field is a name, a number or a fixed word. Nothing here takes bytes
/// of a message, a header or a token.
public struct LogEvent: Sendable {
    /// Nanoseconds of the wall clock since 1970.
    public let time: UInt64
    /// How severe the event is.
    let level: LogLevel
    /// Names the event; the same text for every event of a kind.
    public let message: StaticString
    /// In the order in which they are written.
    public let fields: [LogField]
}

/// Severities, in rising order.
public enum LogLevel: UInt8, Sendable, Comparable, CaseIterable {
    case debug, info, warn, error

    /// A lesser severity is less.
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

/// A field of an event.
public struct LogField: Sendable {
    /// The field's name in the line.
    public let key: StaticString
    /// Formatted when the line is written.
    public let value: LogValue

    /// Memberwise.
    public init(_ key: StaticString, _ value: LogValue) {
        self.key = key
        self.value = value
    }
}

/// The value of a field.
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
    /// The 16 octets of a W3C trace id, in network order.
    case trace(high: UInt64, low: UInt64)
}

/// How lines are written (`log.format`).
public enum LogFormat: UInt8, Sendable { case json, text }
