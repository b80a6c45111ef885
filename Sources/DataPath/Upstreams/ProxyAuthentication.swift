internal import HTTP1
internal import Handshakes
internal import Octets

/// How a group authenticates itself at its proxy: with the same line each time (Basic), or with answers to the proxy's nonces (Digest).
struct ProxyAuthentication {
    /// Of the credential as it was read last.
    private(set) var version: UInt64 = 0
    private var digest: ProxyDigest?
    /// Of Digest the password, of Basic the line.
    private var secret: [UInt8]?
    /// The last nonce an answer to which the proxy has taken.
    private var nonce: ServerNonce?

    var isReadable: Bool { secret != nil }

    /// There is something to answer.
    var hasNonce: Bool { nonce != nil }

    mutating func read(_ credential: ProxyCredential) {
        version = credential.version
        digest = credential.digest
        secret = credential.current.secret
        // An answer with another password is to be one to its own challenge, which alone is judged.
        nonce = nil
    }

    /// The line for a request that the proxy reads, with its CRLF; empty where there is no credential, or nothing yet to answer.
    ///
    /// - Parameter target: the request target, octet for octet as the proxy receives it.
    /// - Throws: where no answer can be computed. Safe text.
    func line(
        for attempt: inout ProxyAttempt, method: @autoclosure () -> String, target: @autoclosure () -> [UInt8]
    ) throws(SigningFault) -> [UInt8] {
        guard let secret else { return [] }
        guard let digest else { return secret }
        guard let nonce = attempt.own ?? nonce else { return [] }
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
    /// - Parameter challenges: the value of each `Proxy-Authenticate`.
    /// - Returns: the end of a sentence that says why it is not given one; nil where the request is to be sent again.
    mutating func challenged(_ challenges: [[UInt8]], _ attempt: inout ProxyAttempt) -> String? {
        guard let digest else { return "" }
        // An older nonce may have been too old, which many servers do not say; the one of the challenge was not.
        if let answered = attempt.answered, answered.nonce === nonce { nonce = nil }
        guard attempt.own == nil else { return "; it refuses the answer to its challenge" }
        switch digest.choice(of: challenges) {
        case .unusable(let reason): return "; \(reason)"
        case .nonce(let nonce):
            attempt.own = nonce
            return nil
        }
    }

    /// The proxy has let a request pass.
    ///
    /// - Parameter told: the value of each `Proxy-Authentication-Info`.
    /// - Returns: false where the proxy has shown that it does not know the password.
    mutating func passed(_ attempt: inout ProxyAttempt, _ told: [[UInt8]]) -> Bool {
        defer { attempt = ProxyAttempt() }
        guard let digest, let answered = attempt.answered else { return true }
        switch digest.review(told, to: answered) {
        case .forged: return false
        case .next(let following): nonce = following
        case .nothing: nonce = answered.nonce
        }
        return true
    }
}

/// The way of one request, or of one tunnel, past a proxy that asks for answers.
struct ProxyAttempt {
    /// The nonce of the challenge to it. Nobody else answers it before the proxy has taken the answer.
    fileprivate(set) var own: ServerNonce?
    /// The answer that went out last.
    fileprivate(set) var answered: NonceAnswer?

    var isAnswering: Bool { answered != nil }
    /// A challenge has come that is not answered yet.
    var isAsked: Bool { own?.uses == 0 }
}

extension UpstreamGroup {
    /// The proxy can only refuse the next request, since it has given no nonce yet.
    var awaitsProxyChallenge: Bool { plan.proxy?.credential?.digest != nil && !tls.proxy.hasNonce }
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
