internal import Fleet
internal import Numbers

/// A lease while the work under it runs.
/// Touched on the keeper's loop only.
final class FleetHold: @unchecked Sendable {
    let lease: SharedLease
    /// When it was asked for, nanoseconds of the loop's clock.
    let askedAt: UInt64
    let alarm: Alarm
    var isOver = false

    func age(at now: UInt64) -> TimeSpan { TimeSpan(nanoseconds: now - min(askedAt, now)) }

    init(_ lease: SharedLease, askedAt: UInt64, _ alarm: Alarm) {
        self.lease = lease
        self.askedAt = askedAt
        self.alarm = alarm
    }
}
