internal import HTTP1
internal import Octets
internal import TLS

/// A nonce of a `Digest` challenge.
final class DigestNonce: ServerNonce, @unchecked Sendable {
    let challenge: DigestChallenge
    /// With which a session's key was made, by its first answer (RFC 7616 §3.4.2); it lasts when the server names the next nonce.
    private(set) var session: (nonce: [UInt8], clientNonce: [UInt8])?

    init(_ challenge: DigestChallenge, session: (nonce: [UInt8], clientNonce: [UInt8])? = nil) {
        self.challenge = challenge
        self.session = session
        super.init(isStale: challenge.isStale)
    }

    func session(beginningWith clientNonce: [UInt8]) -> (nonce: [UInt8], clientNonce: [UInt8])? {
        guard challenge.algorithm.isSession else { return nil }
        if session == nil { session = (challenge.nonce, clientNonce) }
        return session
    }
}

/// Answers the nonce of an upstream in each request (RFC 7616 §3.4).
struct DigestSigner: RequestSigner {
    let settings: DigestSettings

    var fieldNames: [String] { ["Authorization"] }
    var nonceRule: NonceRule { .ofConnection }
    /// A challenge may ask for it, and comes after the first body.
    var readsBody: Bool { settings.protections.contains(.authInt) }

    func bodyHash(answering nonce: ServerNonce?) -> HashFunction? {
        guard let nonce = nonce as? DigestNonce, settings.protection(for: nonce.challenge) == .authInt else {
            return nil
        }
        return nonce.challenge.algorithm.function.hash
    }

    func sign(
        _ request: RequestToSign, with password: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let nonce = request.serverNonce as? DigestNonce,
            let answer = try DigestAnswer(
                to: nonce, under: settings, method: request.method, target: request.originForm,
                bodyDigest: request.bodyDigest, password: password, entropy: entropy)
        else { return RequestSignature([]) }
        return RequestSignature(
            [InjectedField(name: "Authorization", value: answer.value)],
            secrets: request.namesSecrets ? [Secret(answer.response)] : [], answering: answer.answer)
    }

    func review(_ answer: UpstreamAnswer, to answered: NonceAnswer) -> NonceReview {
        guard let nonce = answered.nonce as? DigestNonce else { return .nothing }
        return nonce.review(answer.values(of: "Authentication-Info"), to: answered)
    }
}

extension DigestNonce {
    /// Looks at what came with an answer that does not refuse the credential (RFC 7616 §3.5).
    /// - Parameter values: of each `Authentication-Info`, or `Proxy-Authentication-Info`.
    func review(_ values: [[UInt8]], to answered: NonceAnswer) -> NonceReview {
        // The field is a list of parameters alone (RFC 7615 §3); the parser of challenges reads them behind a scheme.
        let lines = values.map { Array("Digest ".utf8) + $0 }
        guard let told = AuthChallenge.list(lines).first, told.fault == nil else { return .nothing }
        if case .one(let proof) = told["rspauth"], let expected = answered.proof {
            let isOurs = proof.map(\.asciiLowercased).withUnsafeBytes { proof in
                expected.withUnsafeBytes { $0.isEqualInConstantTime(to: proof) }
            }
            guard isOurs else { return .forged }
        }
        guard case .one(let next) = told["nextnonce"], !next.isEmpty, next.count <= DigestChallenge.longestNonce,
            next != challenge.nonce, !next.contains(where: \.isControl)
        else { return .nothing }
        var following = challenge
        following.nonce = next
        following.isStale = false
        return .next(DigestNonce(following, session: session))
    }
}
