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

extension OAuth2Handshake {
    /// A configured text with the user's name in it. What is written around a name is fixed, so that no name can pass for another one's.
    static func filled(_ text: String, for user: EndUser?) throws(GrantFailure) -> String {
        guard text.contains(EndUser.placeholder) else { return text }
        guard case .name(let name)? = user else {
            throw .configuration(reason: "\(EndUser.placeholder): the route has no subject with a name")
        }
        // Octet by octet, and what was put in is not looked at again.
        let filled = Array(text.utf8).replacing(Array(EndUser.placeholder.utf8), with: Array(name.utf8))
        return String(decoding: filled, as: UTF8.self)
    }
}
