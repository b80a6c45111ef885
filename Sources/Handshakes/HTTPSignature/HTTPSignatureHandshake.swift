internal import Octets
internal import TLS

/// `http_signature`, as the keeper sees it: the key is the token, and no issuer is asked.
struct HTTPSignatureHandshake: Handshake {
    let settings: HTTPSignatureSettings
    let inspectedStatuses: [Int]
    /// A 401 that asks for no other signature refuses this one.
    private let isRefusedBy401: Bool

    /// - Parameter statuses: of a route that names its own; a 401 may always ask for another signature.
    init(_ settings: HTTPSignatureSettings, statuses: [Int]? = nil) {
        self.settings = settings
        isRefusedBy401 = statuses?.contains(401) ?? true
        inspectedStatuses = [401] + (statuses ?? []).filter { $0 != 401 }
    }

    var scheme: String { "http_signature" }
    var statusRule: StatusRule { .known }
    var signer: (any RequestSigner)? { HTTPSignatureSigner(settings: settings) }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let key =
            settings.isShared ? try await sharedKey(environment) : try await privateKey(environment)
        let token = key.encoded
        guard token.count <= TokenAlphabet.longest else {
            throw .secretUnusable(
                name: settings.isShared ? HTTPSignatureKey.sharedName : HTTPSignatureKey.keyName,
                reason: "longer than \(TokenAlphabet.longest) bytes")
        }
        return AccessGrant(
            token: token, tokenType: "", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }

    private func sharedKey(_ environment: any GrantEnvironment) async throws(GrantFailure) -> HTTPSignatureKey {
        let secret = try await environment.secret(HTTPSignatureKey.sharedName)
        guard settings.sharedKeyForm == .base64 else { return try HTTPSignatureKey(shared: secret) }
        guard var octets = secret.withBytes({ Base64.decode(Array($0)) }) else {
            throw .secretUnusable(name: HTTPSignatureKey.sharedName, reason: "not base 64 (RFC 4648 section 4)")
        }
        return try HTTPSignatureKey(shared: Secret(taking: &octets))
    }

    private func privateKey(_ environment: any GrantEnvironment) async throws(GrantFailure) -> HTTPSignatureKey {
        let file = try await environment.secret(HTTPSignatureKey.keyName)
        let password =
            settings.hasPassword ? try await environment.secret(HTTPSignatureKey.passwordName) : nil
        let keys = try NamedSigningKey.read(
            file, password: password, name: HTTPSignatureKey.keyName, of: SigningKey.Kind.ofHTTP)
        return try HTTPSignatureKey(keys[0], signingBy: settings.algorithm)
    }

    /// The key behind a name: it is not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: HTTPSignatureSigner.names[0], value: token)
    }

    // MARK: - Challenges

    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        guard inspectedStatuses.contains(answer.status) else { return .none }
        let refused = Challenge(resource: answer.requestURL)
        guard answer.status == 401 else { return .challenged(refused) }
        return switch settings.asked(answer.values(of: "Accept-Signature")) {
        case .nothing: isRefusedBy401 ? .challenged(refused) : .none
        case .wish(let wish): .nonce(HTTPSignatureRequest(wish), refused)
        case .unusable(let reason): .unusable(reason: reason)
        }
    }

    // MARK: - Words

    var explanation: [String] {
        func list(_ components: [HTTPSignatureComponent]) -> String {
            components.map(\.name).joined(separator: ", ")
        }
        let algorithm = settings.isShared ? "hmac-sha256" : settings.algorithm?.rawValue ?? "by the kind of the key"
        let further = settings.cover.isEmpty ? "" : "; where they are there, \(list(settings.cover))"
        let beside = settings.components.isEmpty ? "" : " or further components (\(list(settings.components)))"
        return [
            "signs \(list(HTTPSignatureComponent.minimum)) and, with a body, content-digest\(further) (RFC 9421, \(algorithm)), under the label '\(settings.label)'",
            "a 401 with Accept-Signature that asks for a nonce, another label\(beside) is answered once, with a new signature of the same request",
        ]
    }
}
