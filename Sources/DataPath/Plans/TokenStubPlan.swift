internal import HTTP1

/// How a route answers callers' own token requests (`token_stub`): with a placeholder, whatever they show to get a token.
package struct TokenStubPlan: Sendable {
    let grants: TokenStubGrants
    /// Seconds.
    let lifetime: Int

    package init(grants: TokenStubGrants, lifetime: Int) {
        self.grants = grants
        self.lifetime = lifetime
    }
}

/// Grants that need nobody at a browser: what comes before the others' token request, only an authorization server can answer.
package struct TokenStubGrants: OptionSet, Sendable {
    package let rawValue: UInt8
    package static let clientCredentials = TokenStubGrants(rawValue: 1)
    package static let password = TokenStubGrants(rawValue: 2)
    package static let refreshToken = TokenStubGrants(rawValue: 4)
    package static let jwtBearer = TokenStubGrants(rawValue: 8)
    package static let saml2Bearer = TokenStubGrants(rawValue: 16)
    package static let tokenExchange = TokenStubGrants(rawValue: 32)

    package init(rawValue: UInt8) { self.rawValue = rawValue }
}

extension TokenStubGrants {
    /// Finds the grant that a request's `grant_type` names; nil where it is none of these.
    init?(named name: [UInt8]) {
        let extensions = "urn:ietf:params:oauth:grant-type:"
        switch String(decoding: name, as: UTF8.self) {
        case "client_credentials": self = .clientCredentials
        case "password": self = .password
        case "refresh_token": self = .refreshToken
        case extensions + "jwt-bearer": self = .jwtBearer
        case extensions + "saml2-bearer": self = .saml2Bearer
        case extensions + "token-exchange": self = .tokenExchange
        default: return nil
        }
    }
}

// MARK: - Answers

extension TokenStubPlan {
    static let allowedMethods = "POST, OPTIONS"

    /// RFC 6749 §5.1. No `scope`: what was asked for is as good as granted.
    func token(for grant: TokenStubGrants) -> String {
        var body = "{\"access_token\":\"\(Placeholder.text)\",\"token_type\":\"Bearer\",\"expires_in\":\(lifetime)"
        // RFC 8693 §2.2.1.
        if grant == .tokenExchange {
            body += ",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:access_token\""
        }
        return body + "}\n"
    }

    /// RFC 6749 §5.2.
    static func error(_ code: StaticString, _ description: StaticString) -> String {
        "{\"error\":\"\(code)\",\"error_description\":\"\(description)\"}\n"
    }

    static func message(_ status: Int, lines: String = "", body: String, headOnly: Bool, closes: Bool)
        -> [UInt8]
    {
        var head =
            "HTTP/1.1 \(status) \(reasonPhrase(status))\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
        // Both, as RFC 6749 §5.1 has them: the second for caches of HTTP/1.0.
        head += "Cache-Control: no-store\r\nPragma: no-cache\r\n" + lines
        if closes { head += "Connection: close\r\n" }
        head += "\r\n"
        return Array(headOnly ? head.utf8 : (head + body).utf8)
    }
}
