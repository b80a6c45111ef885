/// Why a grant brought no token. Carries no bytes of the issuer.
public enum GrantFailure: Error, Hashable, Sendable {
    /// Not reached, 5xx, 429, "temporarily unavailable". Never a refusal of the credential.
    case issuerUnavailable(retryAfter: Nanoseconds?)
    /// An answer that is no token: HTML, a redirect, a missing member, bytes outside the scheme's alphabet.
    case issuerAnswerInvalid
    case timedOut
    /// `connectivity: offline`, or a step that this process may not make (no store lock, no lease, upgrade under way).
    case notPermitted(retryAfter: Nanoseconds?)
    /// The issuer says the request is wrong: unknown scope, service or client.
    case configuration
    /// The issuer says this credential may not have this token.
    case policyDenied
    /// Password, secret, assertion or certificate refused, locked or expired.
    case credentialRejected
    /// A person must log in.
    case interactionRequired

    /// The key's conduct after a failure.
    public enum Consequence: Sendable {
        /// Wait and try again.
        case backoff
        /// Nothing until the secret changes, an operator resets, or a person logs in.
        case block
    }

    /// The consequence for the next attempts.
    public var consequence: Consequence {
        switch self {
        case .credentialRejected, .interactionRequired: .block
        case .issuerUnavailable, .issuerAnswerInvalid, .timedOut, .notPermitted, .configuration, .policyDenied: .backoff
        }
    }

    /// The wait that the issuer, or the gateway, asked for.
    public var retryAfter: Nanoseconds? {
        switch self {
        case .issuerUnavailable(let wait), .notPermitted(let wait): wait
        case .issuerAnswerInvalid, .timedOut, .configuration, .policyDenied, .credentialRejected,
            .interactionRequired:
            nil
        }
    }
}
