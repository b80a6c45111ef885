internal import Glibc

/// The wall clock of handshakes, unless a test hands them another.
enum WallClock {
    /// Milliseconds since 1970.
    static let milliseconds: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    static let seconds: @Sendable () -> Int64 = { Int64(time(nil)) }
}
