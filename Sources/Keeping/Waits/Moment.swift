/// A moment by both clocks.
struct Moment {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    let now: UInt64
    /// Milliseconds since 1970.
    let wall: Int64
}
