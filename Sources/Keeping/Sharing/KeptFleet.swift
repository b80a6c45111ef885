package import Fleet
internal import Handshakes
internal import Numbers
internal import Reactor
internal import Tokens

/// The shared tier as the keeper holds it: what is known of the server, who waits for news, and what this gateway has to bring back when a
/// server has lost something.
/// Touched on the keeper's loop only.
package final class KeptFleet: @unchecked Sendable {
    enum State: Equatable {
        case connecting, serving
        case degraded(String)
    }

    let tier: any SharedTier
    /// Shown to operators.
    let place: String
    let format: FleetFormat
    var state = State.connecting
    /// Who knows a name of news. Entries of tokens that are gone are met and dropped.
    var tokens: [SharedName: AccessKey] = [:]
    var waits: [SharedName: [Wait<Void>]] = [:]
    /// Who waits for the first connection.
    var arrivals: [Wait<Void>] = []
    /// How far the sessions have come, as the fleet counts them.
    var versions = FleetVersions()
    /// The sessions that news are about, by the names in them. Entries of sessions that are gone are dropped now and then.
    var sessionNames: [SharedName: SessionKey] = [:]
    /// The versions of all other sessions that news have told.
    var heard = HeardSessions()
    /// When the others were last asked for a session that the server does not have. Nanoseconds of the loop's clock.
    var recalls: [SessionKey: UInt64] = [:]
    /// Versions of which operators were told that they are lost.
    var toldLost: [SessionKey: SessionVersion] = [:]
    /// Turns whose outcome could not be committed: what they spent is known to this gateway alone.
    var uncommitted: [SessionKey: SharedLease] = [:]
    /// Steps that spend a refresh token, here and elsewhere.
    var spending = SpendingTurns()
    /// Turns that are held, to be renewed at once when the server is there again.
    var holds: [FleetHold] = []
    var attempts: [AttemptMark: SharedAttempt] = [:]

    /// Tokens that another gateway had obtained.
    var taken: UInt64 = 0
    /// Grants that were made without a confirmed lease.
    var alone: UInt64 = 0
    /// Values that came too late to be published.
    var late: UInt64 = 0
    /// Steps that were not made for want of a confirmed lease.
    var withheld: UInt64 = 0

    package init(tier: any SharedTier, place: String, format: FleetFormat) {
        self.tier = tier
        self.place = place
        self.format = format
    }
}

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

/// A turn with the lock of a session.
/// Touched on the keeper's loop only.
final class FleetTurn: @unchecked Sendable {
    let hold: FleetHold
    let key: SessionKey
    let name: SharedName
    /// The rung and the material that the step starts from.
    let rung: SessionRung
    let standing: LayerMaterial?
    /// Another gateway has brought what was wanted.
    let ready: LayerMaterial?
    /// The newest version that the fleet has, or is known to have had.
    let version: SessionVersion

    init(
        hold: FleetHold, key: SessionKey, name: SharedName, rung: SessionRung, standing: LayerMaterial?,
        ready: LayerMaterial?, version: SessionVersion
    ) {
        self.hold = hold
        self.key = key
        self.name = name
        self.rung = rung
        self.standing = standing
        self.ready = ready
        self.version = version
    }
}
