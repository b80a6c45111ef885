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
    /// The material of a person's login ends soon.
    case loginDue = "login_due"
    case renewalFailing = "renewal_failing"
    case acquiring
    case unproven
    case refreshDue = "refresh_due"
    case fresh
    /// There is no token, and nothing is under way or waited for: mostly before the first request.
    case idle
}
