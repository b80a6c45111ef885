public import Configuration
internal import Octets
public import World

/// Answers the Digest challenges of a proxy on the way (RFC 7616 §3.8), in a field of its own and about the target as the proxy is told it.
public struct ProxyDigest: Sendable {
    private let settings: DigestSettings
    private let random: any RandomSource

    /// - Parameter functions: that may be answered with; at least one.
    public init(username: String, functions: [DigestFunction], random: any RandomSource) {
        settings = DigestSettings(username: username, algorithms: functions)
        self.random = random
    }

    /// The meaning of a refusal's challenges.
    public enum Choice: Sendable {
        case nonce(ServerNonce)
        /// A clause of safe text, that quotes nothing of them.
        case unusable(reason: String)
    }

    /// - Parameter lines: the value of each `Proxy-Authenticate`.
    public func choice(of lines: [[UInt8]]) -> Choice {
        switch settings.choice(of: lines) {
        case .challenge(let challenge): .nonce(DigestNonce(challenge))
        case .unusable(let reason): .unusable(reason: reason)
        case .none: .unusable(reason: "it does not offer Digest")
        }
    }

    /// Looks at an answer that the proxy has let pass, or given itself.
    /// - Parameter values: of each `Proxy-Authentication-Info`.
    public func review(_ values: [[UInt8]], to answered: NonceAnswer) -> NonceReview {
        (answered.nonce as? DigestNonce)?.review(values, to: answered) ?? .nothing
    }

    /// The line that answers a nonce in one request, with its CRLF, and how it was answered.
    ///
    /// - Parameters:
    ///   - nonce: of a `choice`; each answer has its next number.
    ///   - target: the request target, octet for octet as the proxy receives it.
    /// - Returns: nil where the nonce has no number left.
    /// - Throws: where the system lacks the hash function, or the line would be longer than any token.
    public func line(
        answering nonce: ServerNonce, method: String, target: [UInt8], password: UnsafeRawBufferPointer
    ) throws(SigningFault) -> (line: [UInt8], answer: NonceAnswer)? {
        guard let nonce = nonce as? DigestNonce,
            let answer = try DigestAnswer(
                to: nonce, under: settings, method: method, target: target, bodyDigest: nil, password: password,
                entropy: random.bytes(16))
        else { return nil }
        return (Array("Proxy-Authorization: ".utf8) + answer.value + [13, 10], answer.answer)
    }
}
