internal import HTTP1
internal import Handshakes
internal import Octets

/// How a group authenticates itself at its proxy: with the same line each time (Basic), or with answers to the proxy's nonces (Digest).
struct ProxyAuthentication {
    /// The version of the credential that was read last.
    private(set) var version: UInt64 = 0
    private var digest: ProxyDigest?
    /// The password of Digest, or the line of Basic.
    private var secret: [UInt8]?
    /// The last nonce an answer to which the proxy has taken.
    private var nonce: ServerNonce?

    var isReadable: Bool { secret != nil }

    mutating func read(_ credential: ProxyCredential) {
        version = credential.version
        digest = credential.digest
        secret = credential.current.secret
        // An answer with another password is to be one to its own challenge, which alone is judged.
        nonce = nil
    }

    /// The line for a request that the proxy reads, with its CRLF; empty where there is no credential, or nothing yet to answer.
    ///
    /// - Parameters:
    ///   - address: of the proxy that reads it; of several, only the one that gave a nonce knows it.
    ///   - target: the request target, octet for octet as the proxy receives it.
    /// - Throws: where no answer can be computed. Safe text.
    func line(
        for attempt: inout ProxyAttempt, at address: UpstreamAddress?, method: @autoclosure () -> String,
        target: @autoclosure () -> [UInt8]
    ) throws(SigningFault) -> [UInt8] {
        guard let secret else { return [] }
        guard let digest else { return secret }
        attempt.answered = nil
        attempt.version = version
        let known = attempt.own == nil ? nonce : attempt.home === address ? attempt.own : nil
        guard let nonce = known else { return [] }
        let (method, target) = (method(), target())
        let made = secret.withUnsafeBytes { password in
            Result { () throws(SigningFault) in
                try digest.line(answering: nonce, method: method, target: target, password: password)
            }
        }
        guard let made = try made.get() else { return [] }
        attempt.answered = made.answer
        return made.line
    }

    /// The proxy asks for a credential.
    ///
    /// - Parameters:
    ///   - challenges: the value of each `Proxy-Authenticate`.
    ///   - address: the proxy's.
    /// - Returns: the end of a sentence that says why it is not given one; nil where the request is to be sent again.
    mutating func challenged(
        _ challenges: [[UInt8]], by address: UpstreamAddress?, _ attempt: inout ProxyAttempt
    ) -> String? {
        guard let digest else { return "" }
        attempt.challenges += 1
        // An older nonce may have been too old, which many servers do not say; the one of the challenge was not.
        if let answered = attempt.answered, answered.nonce === nonce { nonce = nil }
        let isJudged = attempt.answered.map { $0.nonce === attempt.own } ?? false
        guard !isJudged, attempt.challenges <= ProxyAttempt.mostChallenges else {
            return "; it refuses the answer to its challenge"
        }
        switch digest.choice(of: challenges) {
        case .unusable(let reason): return "; \(reason)"
        case .nonce(let nonce):
            attempt.own = nonce
            attempt.home = address
            return nil
        }
    }

    /// The request cannot be sent again; the next one answers its challenge.
    mutating func leave(_ attempt: inout ProxyAttempt) {
        nonce = attempt.own
        attempt = ProxyAttempt()
    }

    /// The proxy has let a request pass.
    ///
    /// - Parameter told: the value of each `Proxy-Authentication-Info`.
    /// - Returns: false where the proxy has shown that it does not know the password.
    mutating func passed(_ attempt: inout ProxyAttempt, _ told: [[UInt8]]) -> Bool {
        defer { attempt = ProxyAttempt() }
        guard let digest, let answered = attempt.answered else { return true }
        let review = digest.review(told, to: answered)
        if case .forged = review { return false }
        // An answer that was computed with the password of before says nothing of the one of now.
        guard attempt.version == version else { return true }
        if case .next(let following) = review { nonce = following } else { nonce = answered.nonce }
        return true
    }
}

/// The way of one request, or of one tunnel, past a proxy that asks for answers.
struct ProxyAttempt {
    /// The nonce of the challenge to it. Nobody else answers it before the proxy has taken the answer.
    fileprivate(set) var own: ServerNonce?
    /// The address of the proxy that gave it.
    fileprivate(set) var home: UpstreamAddress?
    /// The answer that the request that is out has, and which version of the credential it was computed with.
    fileprivate(set) var answered: NonceAnswer?
    fileprivate var version: UInt64 = 0
    fileprivate var challenges = 0

    /// Challenges that one attempt may meet: to an older nonce, to its own, and to one that came to another proxy of the same name.
    fileprivate static let mostChallenges = 3

    var isAnswering: Bool { answered != nil }
    /// A challenge has come that is not answered yet.
    var isAsked: Bool { own?.uses == 0 }
}

extension ResponseHead {
    /// The values of all fields of a name. Allocates.
    /// - Parameter bytes: what the head was parsed from.
    func values(of name: String, in bytes: UnsafeRawBufferPointer) -> [[UInt8]] {
        let wanted = name.utf8.map(\.asciiLowercased)
        var values: [[UInt8]] = []
        for index in 0..<fieldCount where equalsIgnoringCase(bytes[self[index].name], wanted) {
            values.append(Array(bytes[self[index].value]))
        }
        return values
    }
}
