internal import DataPath
internal import Handshakes
internal import TokenStore
internal import Tokens

/// The session layer of one issuer and subject, as the keeper holds it: the machine, and the flights that wait for its word.
/// Touched on the keeper's loop only.
final class SessionLock: @unchecked Sendable {
    var machine = SessionMachine()
    var claims: [SessionMachine.Claimant: PendingClaim] = [:]
    /// Who walks the ladder of the flight under way, also when nobody waits for it any more.
    var runner: (token: FlightToken, claim: PendingClaim)?
    /// The session that the step that has just ended brought, until the machine has said what becomes of it.
    var arriving: KeptSession?
    /// Changes that go to disk with that session.
    var besides: [StoreChange] = []
    /// The words of the last failure of each session, which the machine does not keep.
    var failures: [SessionKey: Handshakes.GrantFailure] = [:]
    var alarm: Alarm?

    func takeBesides() -> [StoreChange] {
        defer { besides = [] }
        return besides
    }
}

/// A session's material under the generation by which its machine knows it.
struct KeptSession {
    let key: SessionKey
    let generation: UInt64
    var material: LayerMaterial

    /// The session as the machine knows it.
    func known(isRotated: Bool = false) -> SessionMachine.Session {
        let end = material.lifetime.map { life in
            let (sum, overflow) = material.obtainedAt.addingReportingOverflow(life)
            return overflow ? .max : sum
        }
        return SessionMachine.Session(
            generation: generation, stopServingAt: end ?? .max, hasRefreshToken: material.refreshToken != nil,
            rotated: isRotated, isHuman: material.isHuman)
    }
}

extension KeptSession {
    /// The fate of a session that was made for an older epoch: its issuer has replaced the refresh token all the same
    /// (docs/design/tokens.md#rule-9).
    enum Late: Equatable {
        case dropped, revoked
        /// The session's refresh token alone is kept.
        case kept(LayerMaterial)
    }

    /// - Parameter epoch: for which it was made.
    func late(_ epoch: UInt64, isRevoked: Bool, for identity: KeptIdentity) -> Late {
        guard material.refreshToken != nil || identity.plan.handshake.endsSessions else { return .dropped }
        if isRevoked { return .revoked }
        // A person has logged in since: this is what came of the login before. It is not revoked, because some issuers would revoke
        // everything of this person and client with it.
        guard epoch >= identity.loginEpoch, material.refreshToken != nil else { return .dropped }
        var left = material
        left.lifetime = 0
        return .kept(left)
    }
}

extension LayerMaterial {
    /// The material has nothing in it that a later step could use.
    var isHollow: Bool { bytes.isEmpty && refreshToken == nil && !isHuman }
}

/// The word to a flight that claimed a session.
enum SessionTurn: Sendable {
    /// The flight has its turn to make the step, from the material that stands.
    case run(SessionMachine.Step, LayerMaterial?)
    case ready(LayerMaterial, isFresh: Bool)
    case failed(Handshakes.GrantFailure)
}

/// A flight's wait for its turn.
/// Touched on the keeper's loop only.
final class PendingClaim: @unchecked Sendable {
    let key: SessionKey
    let turn = Wait<SessionTurn>()
    /// Its flight was given up while it made the step.
    var isReleased = false

    init(_ key: SessionKey) { self.key = key }
}
