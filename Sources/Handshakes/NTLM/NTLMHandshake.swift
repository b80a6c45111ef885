internal import Configuration
internal import HTTP1
internal import Octets

/// `ntlm`: NTLM version 2 with one user. The key that is made of the password is the token; what is sent of it is computed for each connection.
struct NTLMHandshake: Handshake {
    let settings: NTLMSettings
    let inspectedStatuses: [Int]

    /// - Parameter statuses: of a route that names its own; a 401 always asks for an answer.
    /// - Throws: `.configuration` where the user's name cannot be put into a message.
    init(_ settings: NTLMSettings, statuses: [Int]?) throws(GrantFailure) {
        guard !settings.username.isEmpty, !settings.username.hasControls, !settings.domain.hasControls,
            !NTLMUser(domain: settings.domain, name: settings.username).isLong
        else { throw .configuration(reason: "username: empty, too long, or with a control character") }
        self.settings = settings
        inspectedStatuses = [401] + (statuses ?? []).filter { $0 != 401 }
    }

    var scheme: String { "ntlm" }
    var statusRule: StatusRule { .known }
    var signer: (any RequestSigner)? { NTLMSigner(settings: settings) }
    var bindsConnections: Bool { true }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let password = try await environment.secret("password")
        guard password.isText else {
            throw .secretUnusable(name: "password", reason: "not UTF-8, or with a control character")
        }
        guard let key = NTLMKey(of: password, settings) else {
            throw .configuration(reason: "the system's library has no HMAC-MD5, which NTLM is made of")
        }
        return AccessGrant(
            token: Secret(Hexadecimal.octets(of: key.octets)), tokenType: "", lifetime: AccessGrant.longestLifetime,
            sentAt: await environment.now())
    }

    /// Not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "Authorization", value: token) }

    var explanation: [String] {
        [
            "authenticates each connection by NTLM version 2, as \(settings.word.written): two messages, the second one with the answer",
            "its connections serve no other identity; on one that is authenticated a request goes out bare",
        ]
    }

    // MARK: - Challenges

    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        let challenges = AuthChallenge.list(answer.values(of: "WWW-Authenticate"))
        let own = challenges.filter { $0.scheme.matches(settings.word.rawValue) }
        guard let text = own.lazy.compactMap(\.token68).first else {
            if !own.isEmpty { return .unusable(reason: "offers \(settings.word.written) and does not go on with it") }
            let other = NTLMWord.allCases.first { word in challenges.contains { $0.scheme.matches(word.rawValue) } }
            return other.map {
                .unusable(reason: "offers \($0.written) and not \(settings.word.written), which 'scheme' names")
            } ?? .none
        }
        guard text.count <= NTLMChallenge.longestText, let message = Base64.decode(text) else {
            return .unusable(reason: "its message is too long, or not base64")
        }
        do throws(NTLMFault) {
            return .nonce(NTLMNonce(try NTLMChallenge(message)), Challenge(resource: answer.requestURL))
        } catch {
            return .unusable(reason: "its message is none of NTLM's second: \(error.rawValue)")
        }
    }
}
