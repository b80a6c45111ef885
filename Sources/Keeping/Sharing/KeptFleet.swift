package import DataPath
package import Fleet
internal import Handshakes
internal import Tokens

/// The shared tier as the keeper holds it: what is known of the server, who waits for news, and what this gateway has to bring back when a
/// server has lost something.
package struct KeptFleet: Sendable {
    /// Nil without `store.shared`; then the rest here means nothing.
    let tier: (any SharedTier)?
    /// Shown to operators.
    let address: String
    let format: FleetFormat
    /// The authorities by which the server is judged; nil without TLS.
    package let trust: TrustAnchors?
    var server = FleetServer()
    /// How far the sessions have come, as the fleet counts them.
    var sessions = FleetSessions()
    var waits = NewsWaits()
    /// Steps that spend a refresh token, here and elsewhere.
    var spending = SpendingTurns()
    /// Turns that are held, to be renewed at once when the server is there again.
    var holds: [FleetHold] = []
    var attempts: [AttemptMark: SharedAttempt] = [:]
    /// The tokens that news are about, by the names in them. An entry whose token is gone is dropped when it is met.
    private var tokens: [SharedName: AccessKey] = [:]

    /// Tokens that another gateway had obtained.
    var taken: UInt64 = 0
    /// Grants that were made without a confirmed lease.
    var alone: UInt64 = 0
    /// Values that came too late to be published.
    var late: UInt64 = 0
    /// Steps that were not made for want of a confirmed lease.
    var withheld: UInt64 = 0

    package init(
        tier: (any SharedTier)? = nil, address: String = "", format: FleetFormat = .new, trust: TrustAnchors? = nil
    ) {
        self.tier = tier
        self.address = address
        self.format = format
        self.trust = trust
    }

    /// News under this name are about the token from now on.
    mutating func met(_ name: SharedName, _ key: AccessKey, beside table: TokenTable) {
        // Names of tokens that are gone are looked for only when they outnumber the others: until then, news that meet them drop them.
        if tokens.count > 2 * table.count + 1024 { tokens = tokens.filter { table[$0.value] != nil } }
        tokens[name] = key
    }

    mutating func token(_ name: SharedName, in table: TokenTable) -> KeptToken? {
        guard let token = tokens[name].flatMap({ table[$0] }) else {
            tokens[name] = nil
            return nil
        }
        return token
    }
}

/// A turn with the lock of a session.
struct FleetTurn: Sendable {
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
}
