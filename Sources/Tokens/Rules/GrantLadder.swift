/// Cached, refresh token, full grant: one rung down a failure, never back up within one flight (docs/design/tokens.md#rule-6).
public struct GrantLadder: Equatable, Sendable {
    /// The ways to a session, from the cheapest to the dearest.
    public enum Rung: UInt8, Comparable, Sendable, CaseIterable {
        case cached, refreshToken, fullGrant

        /// A cheaper way is less.
        public static func < (left: Rung, right: Rung) -> Bool { left.rawValue < right.rawValue }
    }

    private var remaining: [Rung]

    /// - Parameter rungs: those that exist; sorted here, so no order given can lead up.
    init(_ rungs: some Sequence<Rung>) { remaining = Set(rungs).sorted() }

    /// Where the flight stands; nil where no way is left.
    var rung: Rung? { remaining.first }

    /// Where to go after a failure on the rung.
    /// - Returns: the next rung, or nil: the failure is the flight's.
    public mutating func failed(_ failure: GrantFailure) -> Rung? {
        guard !remaining.isEmpty else { return nil }
        switch failure {
        case .issuerUnavailable, .timedOut, .notPermitted:
            // Says nothing of what was sent; a lower rung would meet the same issuer and might cost an attempt.
            remaining = []
        case .issuerAnswerInvalid, .configuration, .policyDenied, .credentialRejected, .interactionRequired:
            remaining.removeFirst()
        }
        return rung
    }
}
