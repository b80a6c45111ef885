/// A moment by both clocks.
struct Moment {
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    let now: UInt64
    /// Milliseconds since 1970.
    let wall: Int64

    /// When so many nanoseconds after an earlier moment are over.
    func wall(_ span: UInt64, after earlier: UInt64) -> Int64 {
        wall + Int64(clamping: (span - min(span, now - min(now, earlier))) / 1_000_000)
    }
}
