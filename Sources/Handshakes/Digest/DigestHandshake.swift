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

    /// The strongest challenge that is offered and allowed; of equals the first.
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        var best: DigestChallenge?
        var complaint: String?
        for item in AuthChallenge.list(answer.values(of: "WWW-Authenticate")) where item.scheme.matches("digest") {
            do throws(DigestChallenge.Complaint) {
                let challenge = try DigestChallenge(item)
                if let reason = settings.reason(against: challenge) { throw DigestChallenge.Complaint(reason) }
                if best.map({ challenge.algorithm.family.rank < $0.algorithm.family.rank }) ?? true { best = challenge }
            } catch { complaint = complaint ?? error.reason }
        }
        guard let best else { return complaint.map { .unusable(reason: "Digest: \($0)") } ?? .none }
        return .nonce(DigestNonce(best), Challenge(resource: answer.requestURL))
    }
}

extension DigestAlgorithm.Family {
    /// 0 is the strongest.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
