internal import Fleet

/// A lease while the work under it runs.
/// Touched on the keeper's loop only.
final class FleetHold: @unchecked Sendable {
    let lease: SharedLease
    let alarm: Alarm
    var isOver = false

    init(_ lease: SharedLease, _ alarm: Alarm) {
        self.lease = lease
        self.alarm = alarm
    }
}
