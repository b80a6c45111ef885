/// A span of time: zero to a hundred years. Sums, differences and products stay within.
public struct TimeSpan: Sendable, Hashable, Comparable {
    /// A hundred years of 365.25 days. The end is this near, so that a moment of any clock of ours plus a span still fits into 64 bits.
    public static let longest = TimeSpan(nanoseconds: mostNanoseconds)
    /// No time.
    public static let zero = TimeSpan(nanoseconds: 0)
    private static let mostNanoseconds: UInt64 = 36_525 * 86_400 * 1_000_000_000

    /// The unit of a received number. The raw value is in nanoseconds.
    public enum Unit: UInt64, Sendable {
        case nanoseconds = 1
        case microseconds = 1000
        case milliseconds = 1_000_000
        case seconds = 1_000_000_000
    }

    /// At most a hundred years.
    public let nanoseconds: UInt64

    /// More than a hundred years become a hundred.
    public init(nanoseconds: UInt64) { self.nanoseconds = min(nanoseconds, Self.mostNanoseconds) }

    /// Negative numbers give no time, those that are too large give the longest.
    public init(_ number: ReceivedNumber, _ unit: Unit) {
        self = TimeSpan(nanoseconds: unit.rawValue) * number.clamped(to: 0...UInt64.max)
    }

    /// Negative numbers give no time, those that are too large give the longest; a number of ours has no trap either.
    public init(_ number: some BinaryInteger, _ unit: Unit) { self.init(ReceivedNumber(number), unit) }

    /// Negative numbers and what is no number give no time.
    public init(seconds: Double) {
        let nanoseconds = seconds * 1e9
        guard nanoseconds > 0 else {
            self = .zero
            return
        }
        self.init(nanoseconds: nanoseconds < Double(Self.mostNanoseconds) ? UInt64(nanoseconds) : Self.mostNanoseconds)
    }

    /// Digits with at most one dot among them; nil for anything else. A minus sign in front gives no time.
    public init?(decimalSeconds text: some StringProtocol) {
        let isNegative = text.utf8.first == UInt8(ascii: "-")
        let digits = text.utf8.dropFirst(isNegative ? 1 : 0)
        guard (1...32).contains(digits.count),
            digits.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            let seconds = Double(String(decoding: digits, as: UTF8.self))
        else { return nil }
        self.init(seconds: isNegative ? -seconds : seconds)
    }

    /// Rounded down.
    public var milliseconds: Int64 { Int64(nanoseconds / 1_000_000) }
    /// Rounded down.
    public var seconds: Int64 { Int64(nanoseconds / 1_000_000_000) }

    /// A shorter span is less.
    public static func < (left: TimeSpan, right: TimeSpan) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The sum, at most the longest span.
    public static func + (left: TimeSpan, right: TimeSpan) -> TimeSpan {
        // Two of the longest fit into 64 bits.
        TimeSpan(nanoseconds: left.nanoseconds + right.nanoseconds)
    }

    /// The difference, at least no time.
    public static func - (left: TimeSpan, right: TimeSpan) -> TimeSpan {
        TimeSpan(nanoseconds: left.nanoseconds - min(left.nanoseconds, right.nanoseconds))
    }

    /// The product, at most the longest span.
    public static func * (span: TimeSpan, times: UInt64) -> TimeSpan {
        let (product, overflow) = span.nanoseconds.multipliedReportingOverflow(by: times)
        return overflow ? .longest : TimeSpan(nanoseconds: product)
    }
}

/// A moment of a wall clock, ours or another's: milliseconds since 1970, in the years 1970 to 9999.
public struct WallTime: Sendable, Hashable, Comparable {
    /// The bounds of the milliseconds.
    public static let range: ClosedRange<Int64> = 0...253_402_300_799_999

    /// Milliseconds since 1970, within `range`.
    public let milliseconds: Int64

    /// The nearest moment of the range.
    public init(milliseconds: ReceivedNumber) { self.milliseconds = milliseconds.clamped(to: Self.range) }
    /// The nearest moment of the range.
    public init(milliseconds: Int64) { self.init(milliseconds: ReceivedNumber(milliseconds)) }

    /// The nearest moment of the range.
    public init(seconds: ReceivedNumber) {
        milliseconds = seconds.clamped(to: 0...Self.range.upperBound / 1000) * 1000
    }

    /// An earlier moment is less.
    public static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }

    /// At most the end of the year 9999.
    public static func + (time: WallTime, span: TimeSpan) -> WallTime {
        // Both are far below half of what 64 bits hold.
        WallTime(milliseconds: time.milliseconds + span.milliseconds)
    }

    /// The time left until this moment; nothing where it has passed.
    public func left(at now: WallTime) -> TimeSpan {
        TimeSpan(ReceivedNumber(milliseconds - min(milliseconds, now.milliseconds)), .milliseconds)
    }
}
