internal import Tokens

/// The state of a token, and of an identity, whose state is the worst of its tokens', worst first.
///
/// The raw value is its one name: on the page, in `tokens` and `explain`, in `/readyz` and `/status`, and as the metric's label.
public enum IdentityState: String, Sendable, CaseIterable {
    case quarantined
    /// The gateway's own store cannot be read: what is known of the credential is not known.
    case storeUnusable = "store_unusable"
    case loginNeeded = "login_needed"
    /// The last try failed, and nothing is waited for.
    case failed
    /// The last try failed, and the next one waits.
    case negative
    case expiredServed = "expired_served"
    /// The material of a person's login ends soon, or an upstream asks for a login of another kind.
    case loginDue = "login_due"
    case renewalFailing = "renewal_failing"
    case acquiring
    case unproven
    case refreshDue = "refresh_due"
    case fresh
    /// No token is there, and no grant is under way or waited for: mostly before the first request.
    case idle
}

extension IdentityState {
    /// The meaning of the state, for people; docs/reference/states.md is made of it.
    package var meaning: String {
        switch self {
        case .quarantined:
            "The issuer refused the credential. It is not sent again until the secret changes or 'cardea reset' lifts it."
        case .storeUnusable: "What the store holds is needed, and the store cannot be read."
        case .loginNeeded: "A person has to log in: 'cardea login'."
        case .failed: "The last try failed, and nothing is waited for."
        case .negative: "The last try failed, and the next one waits."
        case .expiredServed:
            "Renewals fail, and the expired token is still served, for as long as 'serve_expired_for' says."
        case .loginDue: "A person's login ends soon, or an upstream asks for a stronger one: 'cardea login' brings it."
        case .renewalFailing: "Renewals fail; the token is still valid and served."
        case .acquiring: "A token is being obtained."
        case .unproven: "A password is known that no answer has judged yet."
        case .refreshDue: "The token is valid, and its renewal is due."
        case .fresh: "The token is valid, and no renewal is due."
        case .idle: "There is no token, and nobody has asked for one: mostly before the first request."
        }
    }

    /// - Parameter now: nanoseconds of `CLOCK_BOOTTIME`.
    init(_ token: KeptToken, at now: UInt64) {
        if let probation = token.probation {
            switch probation.state {
            case .unproven: self = .unproven
            case .proven: self = .fresh
            case .quarantined: self = .quarantined
            }
            return
        }
        self =
            switch token.machine.state(at: now) {
            case .empty: .idle
            case .acquiring: .acquiring
            case .fresh: .fresh
            case .refreshAhead: .refreshDue
            case .renewalFailing: .renewalFailing
            case .expiredGrace: .expiredServed
            case .negative: .negative
            case .quarantined: .quarantined
            case .loginNeeded: .loginNeeded
            }
    }
}
