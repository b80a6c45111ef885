internal import Octets

/// `static`: the secret itself is the header value.
struct StaticHandshake: Handshake {
    /// Header to set.
    let header: String
    /// Text before the value, its trailing space included.
    let prefix: String

    /// Throws `.configuration` if the header is no field name or the prefix no field content.
    init(header: String = "Authorization", prefix: String = "") throws(GrantFailure) {
        guard header.isFieldName else { throw .configuration(reason: "header: not a field name") }
        guard prefix.isFieldContent, prefix.utf8.first != 0x20 else {
            throw .configuration(reason: "prefix: not visible ASCII")
        }
        self.header = header
        self.prefix = prefix
    }

    var scheme: String { "static" }
    var statusRule: StatusRule { .refusals() }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let value = try await environment.secret("value")
        guard value.count <= TokenAlphabet.longest else {
            throw .secretUnusable(name: "value", reason: "\(value.count) bytes, at most \(TokenAlphabet.longest) fit")
        }
        guard TokenAlphabet.fieldValue.admits(value) else {
            throw .secretUnusable(name: "value", reason: "empty, or not fit for a header")
        }
        return AccessGrant(
            token: value, tokenType: "", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }

    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: header, value: Array(prefix.utf8) + token)
    }
}

extension String {
    var isFieldName: Bool { (1...128).contains(utf8.count) && utf8.allSatisfy(\.isTokenCharacter) }
    var isFieldContent: Bool { utf8.count <= 8192 && utf8.allSatisfy { (0x20...0x7E).contains($0) } }
    var hasControls: Bool { utf8.contains(where: \.isControl) }
}
