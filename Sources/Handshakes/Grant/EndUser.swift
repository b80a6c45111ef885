/// For whom a token is wanted, where each end user has one (`subject` of a route).
public enum EndUser: Sendable {
    /// A name that the gateway vouches for: from a header of an admitted caller, or from its certificate.
    case name(String)
    /// The caller's own token, which the issuer judges.
    case token(Secret)

    /// Where a configured text takes a user's name.
    public static let placeholder = "{subject}"

    /// When the caller's token says that it ends, in seconds since 1970; nil for names, and for tokens that do not say.
    public var expiry: Int64? {
        guard case .token(let token) = self else { return nil }
        return JWTTimes(token)?.expires
    }
}
