internal import Configuration
internal import HTTP1
internal import Octets

/// `digest`: HTTP Digest with one user (RFC 7616). The password is the token; what is sent of it is computed for each request.
struct DigestHandshake: Handshake {
    let settings: DigestSettings
    let inspectedStatuses: [Int]

    /// - Parameter statuses: of a route that names its own; a 401 always asks for an answer.
    /// - Throws: `.configuration` where the user's name cannot be put into a field.
    init(_ settings: DigestSettings, statuses: [Int]?) throws(GrantFailure) {
        guard !settings.username.isEmpty, !settings.username.utf8.contains(UInt8(ascii: ":")),
            !settings.username.hasControls
        else { throw .configuration(reason: "username: empty, or with a colon or a control character") }
        self.settings = settings
        inspectedStatuses = [401] + (statuses ?? []).filter { $0 != 401 }
    }

    var scheme: String { "digest" }
    var statusRule: StatusRule { .known }
    var signer: (any RequestSigner)? { DigestSigner(settings: settings) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let password = try await environment.secret("password")
        guard password.isText else {
            throw .secretUnusable(name: "password", reason: "not UTF-8, or with a control character")
        }
        guard password.count <= TokenAlphabet.longest else {
            throw .secretUnusable(
                name: "password", reason: "\(password.count) bytes, at most \(TokenAlphabet.longest) fit")
        }
        return AccessGrant(
            token: password, tokenType: "", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }

    /// Not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "Authorization", value: token) }

    var explanation: [String] {
        let words = settings.algorithms.map(\.rawValue).joined(separator: ", ")
        let covered =
            settings.protections.contains(.authInt)
            ? "method, target and, where the server asks for it, body" : "method and target"
        return [
            "answers the Digest challenge of the upstream (\(words)); an answer covers \(covered)",
            "without a nonce at hand a request goes out bare, and again with the nonce that its 401 brings",
        ]
    }

    // MARK: - Challenges

    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        switch settings.choice(of: answer.values(of: "WWW-Authenticate")) {
        case .none: .none
        case .unusable(let reason): .unusable(reason: reason)
        case .challenge(let challenge): .nonce(DigestNonce(challenge), Challenge(resource: answer.requestURL))
        }
    }
}
