/// A point in time: nanoseconds of `CLOCK_BOOTTIME`.
public typealias Instant = UInt64

/// A span of time in nanoseconds.
public typealias Nanoseconds = UInt64

extension UInt64 {
    /// Nanoseconds of that many seconds, at most `UInt64.max`.
    public static func seconds(_ seconds: UInt64) -> UInt64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : product
    }

    /// Saturates at 2^64 − 1.
    static func milliseconds(_ milliseconds: UInt64) -> UInt64 {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : product
    }

    /// The sum, at most `UInt64.max`: "never" plus anything stays never.
    func saturatingAdd(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }

    /// The difference, at least 0.
    func saturatingSubtract(_ other: UInt64) -> UInt64 { self > other ? self - other : 0 }
}

/// Watches the offset between the wall clock and `CLOCK_BOOTTIME`.
public struct WallClockWatch: Sendable {
    /// A larger step makes every token refresh-due.
    static let tolerated: Int64 = 30_000_000_000

    private var offset: Int64?

    /// A watch that has seen no clock yet; the first look tells nothing.
    public init() {}

    /// - Parameters:
    ///   - wall: nanoseconds since 1970, `CLOCK_REALTIME`.
    ///   - boot: nanoseconds of `CLOCK_BOOTTIME`, read next to it.
    /// - Returns: true if the wall clock stepped by more than 30 s since the last look. Slow slewing never does.
    public mutating func observe(wall: Int64, boot: Instant) -> Bool {
        let now = wall &- Int64(clamping: boot)
        defer { offset = now }
        guard let offset else { return false }
        let (step, overflow) = now.subtractingReportingOverflow(offset)
        return overflow || step.magnitude > Self.tolerated.magnitude
    }
}

/// How far an issuer's clock is from ours; for absolute times only, learned over TLS only (the caller sees to that).
public struct ClockSkew: Sendable, Equatable {
    /// More is not skew but nonsense.
    public static let limit: Int64 = 86_400

    /// Issuer minus us, in seconds.
    public private(set) var seconds: Int64 = 0

    /// No skew.
    public init() {}

    /// - Returns: false, and nothing is learned, if the two are more than 24 h apart.
    @discardableResult
    public mutating func learn(issuerDate: Int64, wall: Int64) -> Bool {
        let (difference, overflow) = issuerDate.subtractingReportingOverflow(wall)
        guard !overflow, difference.magnitude <= Self.limit.magnitude else { return false }
        seconds = difference
        return true
    }

    /// Seconds of life left of an absolute expiry (`exp`, seconds since 1970) as the issuer's clock sees it.
    public func remaining(until expiry: Int64, wall: Int64) -> Int64 {
        let issuerNow = wall.addingReportingOverflow(seconds)
        guard !issuerNow.overflow else { return 0 }
        let left = expiry.subtractingReportingOverflow(issuerNow.partialValue)
        return left.overflow ? (expiry < 0 ? 0 : .max) : left.partialValue
    }
}

/// A small generator (SplitMix64) for jitter only. Its seed is a parameter, so a machine's answers can be written down.
struct Jitter: Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0 to `bound`, both included.
    mutating func upTo(_ bound: UInt64) -> UInt64 { bound == .max ? next() : next() % (bound + 1) }
}

/// Delays between attempts at an issuer: they double, and half of each is jitter.
public struct Backoff: Sendable {
    /// The wait after the first failure, jitter included, is at most this long.
    public static let first: Nanoseconds = .seconds(1)
    /// The most a `Retry-After` is obeyed.
    static let retryAfterLimit: Nanoseconds = .seconds(300)

    /// Failures in a row since the last success.
    private(set) var failures: UInt32 = 0
    private var jitter: Jitter

    /// - Parameter seed: of the jitter.
    init(seed: UInt64) { jitter = Jitter(seed: seed) }

    /// The next wait is the first again.
    mutating func succeeded() { failures = 0 }

    /// The wait after one more failure.
    /// - Parameters:
    ///   - retryAfter: what the issuer asked for; obeyed as a minimum, up to 5 min.
    ///   - limit: the longest wait without such a wish.
    public mutating func failed(retryAfter: Nanoseconds?, limit: Nanoseconds) -> Nanoseconds {
        failures = failures == .max ? .max : failures + 1
        let doubled = Self.first << UInt64(min(failures - 1, 20))
        let full = min(doubled, max(limit, 1))
        let spread = full / 2 + jitter.upTo(full - full / 2)
        guard let retryAfter else { return spread }
        return max(min(retryAfter, Self.retryAfterLimit), min(spread, Self.retryAfterLimit))
    }
}
