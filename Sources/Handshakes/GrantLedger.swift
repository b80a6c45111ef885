/// What a flight may know and leave behind, as the keeper offers it: the layers below the access token, the secrets, and the
/// account of password attempts. One ledger serves one flight of one identity.
///
/// Everything read before an `await` is read again after it (design §3.3 rule 9).
public protocol GrantLedger: Sendable {
    nonisolated(nonsending) func material(_ layer: Layer) async -> LayerMaterial?

    /// Returns once the material is durable, or the store is degraded. Throws when the flight's epoch has passed.
    nonisolated(nonsending) func commit(_ layer: Layer, _ material: LayerMaterial) async throws(GrantFailure)

    /// Drops the layer if it still holds this material; one that another flight has put there since stays.
    nonisolated(nonsending) func drop(_ layer: Layer, ifStill material: LayerMaterial) async

    /// Reads a secret by its configuration key: `password`, `client_secret`, `value`. One flight gets one version throughout,
    /// so that the mark of an attempt and the bytes sent belong together.
    nonisolated(nonsending) func secret(_ name: String) async throws(GrantFailure) -> Secret

    /// Returns once the mark is on disk; only then may the password leave. May wait for another flight of the same user.
    /// Throws `.quarantined` when no attempt is left.
    nonisolated(nonsending) func spendAttempt(user: String) async throws(GrantFailure)

    /// Says what became of the attempt spent last. Called exactly once for each.
    nonisolated(nonsending) func settleAttempt(_ outcome: AttemptOutcome) async

    /// Nanoseconds of CLOCK_BOOTTIME.
    nonisolated(nonsending) func now() async -> UInt64
}

/// The layers below the access token.
public enum Layer: Sendable, Hashable, CaseIterable {
    /// Registration handle.
    case durable
    /// User token.
    case session
}

/// What one layer holds.
public struct LayerMaterial: Sendable, Equatable {
    public var bytes: Secret
    /// Nanoseconds of CLOCK_BOOTTIME, before the request that brought it was sent.
    public var obtainedAt: UInt64
    /// Nanoseconds; nil: until it is refused.
    public var lifetime: UInt64?

    public init(bytes: Secret, obtainedAt: UInt64, lifetime: UInt64?) {
        self.bytes = bytes
        self.obtainedAt = obtainedAt
        self.lifetime = lifetime
    }

    public func isLive(at now: UInt64) -> Bool {
        guard let lifetime else { return true }
        // A start in the future can only come from a damaged row: what is left is then its whole life at most.
        guard now > obtainedAt else { return lifetime > 0 }
        return now - obtainedAt < lifetime
    }
}

/// What became of a password that was marked as spent.
public enum AttemptOutcome: Sendable, Equatable {
    case accepted
    /// The issuer judged the password and refused it.
    case rejected
    /// The password did not leave, or the answer proves that it was not judged (5xx, unknown path, client refused): the mark
    /// is taken back.
    case notSent
    /// It may have been judged: the attempt stays spent.
    case unknown
}
