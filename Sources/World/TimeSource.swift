internal import Glibc

/// The machine's clocks, for all that runs on no loop; a loop has those of its kernel. Handed to whoever needs them: `SystemTime` is the real
/// form, tests have a scripted one.
public protocol TimeSource: Sendable {
    /// Nanoseconds of `CLOCK_BOOTTIME`, which goes on while the machine is suspended, as the lifetimes of tokens do.
    func sinceBoot() -> UInt64
    /// Nanoseconds of `CLOCK_MONOTONIC`, which stands still while the machine is suspended: for waits.
    func awake() -> UInt64
    /// Nanoseconds of the wall clock since 1970.
    func wallNanoseconds() -> Int64
    /// Blocks the calling thread, which may not be a loop's.
    func pause(milliseconds: UInt32)
}

extension TimeSource {
    /// Milliseconds of the wall clock since 1970.
    public func wallMilliseconds() -> Int64 { wallNanoseconds() / 1_000_000 }
    /// Seconds of the wall clock since 1970.
    public func wallSeconds() -> Int64 { wallNanoseconds() / 1_000_000_000 }
}

/// The kernel's clocks.
public struct SystemTime: TimeSource {
    /// Holds nothing.
    public init() {}

    /// `CLOCK_BOOTTIME` in nanoseconds.
    public func sinceBoot() -> UInt64 { UInt64(Self.read(CLOCK_BOOTTIME)) }
    /// `CLOCK_MONOTONIC` in nanoseconds.
    public func awake() -> UInt64 { UInt64(Self.read(CLOCK_MONOTONIC)) }
    /// `CLOCK_REALTIME` in nanoseconds, 0 before 1970.
    public func wallNanoseconds() -> Int64 { Self.read(CLOCK_REALTIME) }

    /// Sleeps for the whole time, whatever signals come.
    public func pause(milliseconds: UInt32) {
        var left = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        // A signal cuts the pause short and leaves the rest.
        withUnsafeMutablePointer(to: &left) { left in while nanosleep(left, left) != 0, errno == EINTR {} }
    }

    /// Never negative: a wall clock before 1970 counts as 1970.
    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        let (nanoseconds, overflows) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : max(nanoseconds, 0) &+ Int64(time.tv_nsec)
    }
}
