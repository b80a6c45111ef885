/// How often events of one kind are written, whatever each says: a few at once, then one for each interval. What others cause must not fill a
/// log, and two causes in turn would pass a rule that only looks at the event before.
public struct LogRate: Sendable {
    /// Events that may come together.
    static let burst: UInt64 = 10
    /// Nanoseconds in which one more may come.
    static let interval: UInt64 = 6_000_000_000

    private var left = burst
    private var filledAt: UInt64 = 0
    private var leftOut: Int64 = 0

    /// A full bucket.
    public init() {}

    /// - Parameter now: nanoseconds of a clock that does not go back.
    /// - Returns: how many events of the kind were left out since the last one; nil: this one is, too.
    public mutating func admit(at now: UInt64) -> Int64? {
        let earned = (now &- min(filledAt, now)) / Self.interval
        if earned > 0 {
            left = min(Self.burst, left &+ min(earned, Self.burst))
            // The rest of an interval counts for the next one, unless the bucket was full.
            filledAt = left == Self.burst ? now : filledAt &+ earned &* Self.interval
        }
        guard left > 0 else {
            leftOut &+= 1
            return nil
        }
        if left == Self.burst { filledAt = now }
        left &-= 1
        defer { leftOut = 0 }
        return leftOut
    }
}

extension EventLog {
    /// Leaves an event, if its kind may be written now; it says how many were not.
    public func log(
        _ level: LogLevel, _ message: StaticString, at now: UInt64, within rate: inout LogRate,
        _ fields: @autoclosure () -> [LogField]
    ) {
        guard isEnabled(level), let leftOut = rate.admit(at: now) else { return }
        log(level, message, fields() + (leftOut > 0 ? [LogField("left_out", .count(leftOut))] : []))
    }
}
