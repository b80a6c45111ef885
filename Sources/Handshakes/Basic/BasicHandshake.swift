internal import Octets

/// `basic`: HTTP Basic with one user, sent unasked (RFC 7617).
struct BasicHandshake: Handshake {
    let username: String

    /// Throws `.configuration` if the user name is empty or holds a colon or a control character (RFC 7617 §2).
    init(username: String) throws(GrantFailure) {
        guard !username.isEmpty, !username.utf8.contains(UInt8(ascii: ":")), !username.hasControls else {
            throw .configuration(reason: "username: empty, or with a colon or a control character")
        }
        self.username = username
    }

    var scheme: String { "basic" }
    // A password whose refusals are not counted would be sent until the account is locked, whatever else a route counts as one.
    var statusRule: StatusRule { .refusals(always: [401]) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let password = try await environment.secret("password")
        guard password.isText else {
            throw .secretUnusable(name: "password", reason: "not UTF-8, or with a control character")
        }
        var token = Self.credentials(user: Array(username.utf8), password: password)
        guard token.count <= TokenAlphabet.longest else {
            throw .secretUnusable(
                name: "password",
                reason: "\(token.count) bytes with the user name, at most \(TokenAlphabet.longest) fit")
        }
        return AccessGrant(
            token: Secret(taking: &token), tokenType: "Basic", lifetime: AccessGrant.longestLifetime,
            sentAt: await environment.now())
    }

    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: "Authorization", value: Array("Basic ".utf8) + token)
    }

    /// base64(user ":" password).
    static func credentials(user: [UInt8], password: Secret) -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(user.count + 1 + password.count)
        plain.append(contentsOf: user)
        plain.append(UInt8(ascii: ":"))
        password.withBytes { plain.append(contentsOf: $0) }
        defer { plain.wipe() }
        return Base64.octets(of: plain)
    }
}
