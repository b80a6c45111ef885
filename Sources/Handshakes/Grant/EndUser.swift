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
        // By hand: Foundation's replacement would go on in what it has put in.
        let parts = text.components(separatedBy: EndUser.placeholder)
        return parts.joined(separator: name)
    }
}

extension String {
    fileprivate func components(separatedBy separator: String) -> [String] {
        let (text, mark) = (Array(utf8), Array(separator.utf8))
        var parts: [[UInt8]] = [[]]
        var index = 0
        while index < text.count {
            if text[index...].starts(with: mark) {
                parts.append([])
                index += mark.count
            } else {
                parts[parts.count - 1].append(text[index])
                index += 1
            }
        }
        return parts.map { String(decoding: $0, as: UTF8.self) }
    }
}
