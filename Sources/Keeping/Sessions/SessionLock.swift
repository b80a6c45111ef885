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
