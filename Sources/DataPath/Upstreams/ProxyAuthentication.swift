internal import HTTP1
internal import Handshakes
internal import Octets
internal import Reactor

/// How a group authenticates itself at its proxy: with the same line each time (Basic), with answers to the proxy's nonces (Digest), or by
/// messages that authenticate each connection (`ProxyHandshake`).
struct ProxyAuthentication {
    /// The version of the credential that was read last.
    private(set) var version: UInt64 = 0
    private var digest: ProxyDigest?
    private var handshake: (any ProxyHandshake)?
    /// The proxy forgets who it has authenticated with each request, so that every one has a connection and a message of its own.
    private(set) var forgets = false
    /// Connections that wait for the next message to the proxy, by numbers that are given once.
    private var waiting: [UInt64: UpstreamConnection] = [:]
    private var lastNumber: UInt64 = 0
    private var sweepsAt = 64
    /// The password, the keys of Kerberos, or the line of Basic.
    private(set) var secret: [UInt8]?
    /// The last nonce an answer to which the proxy has taken.
    private var nonce: ServerNonce?

    var isReadable: Bool { secret != nil }

    mutating func read(_ credential: ProxyCredential) {
        version = credential.version
        digest = credential.digest
        handshake = credential.handshake
        secret = credential.current.secret
        // An answer with another password is to be one to its own challenge, which alone is judged.
        nonce = nil
    }

    /// The line for a request that the proxy reads, with its CRLF; empty where there is no credential, or nothing yet to answer.
    ///
    /// - Parameters:
    ///   - connection: to the proxy that reads it; of several, only the one that gave a nonce knows it.
    ///   - target: the request target, octet for octet as the proxy receives it.
    /// - Throws: where no answer can be computed. Safe text.
    func line(
        for attempt: inout ProxyAttempt, on connection: UpstreamConnection?, method: @autoclosure () -> String,
        target: @autoclosure () -> [UInt8]
    ) throws(SigningFault) -> [UInt8] {
        guard let secret else { return [] }
        guard let digest else { return handshake == nil ? secret : message(for: &attempt, on: connection) }
        attempt.answered = nil
        attempt.version = version
        let known = attempt.own == nil ? nonce : attempt.home === connection?.address ? attempt.own : nil
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

    /// The message that goes with the first request on its connection; later ones go out bare.
    private func message(for attempt: inout ProxyAttempt, on connection: UpstreamConnection?) -> [UInt8] {
        attempt.wantsAnew = false
        guard let connection, let box = connection.tunnel else { return [] }
        connection.tunnel = nil
        attempt.carriesMessage = !box.line.isEmpty
        if forgets { connection.requests = connection.group.plan.requestsPerConnection }
        return box.line
    }

    /// The proxy asks for a credential.
    ///
    /// - Parameters:
    ///   - challenges: the value of each `Proxy-Authenticate`.
    ///   - connection: to the proxy.
    /// - Returns: the end of a sentence that says why it is not given one; nil where the request is to be sent again.
    mutating func challenged(
        _ challenges: [[UInt8]], by connection: UpstreamConnection, _ attempt: inout ProxyAttempt
    ) -> String? {
        guard digest != nil || handshake != nil else { return "" }
        attempt.challenges += 1
        if let handshake { return refused(handshake, by: connection, &attempt) }
        guard let digest else { return "" }
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
            attempt.home = connection.address
            return nil
        }
    }

    private mutating func refused(
        _ handshake: any ProxyHandshake, by connection: UpstreamConnection, _ attempt: inout ProxyAttempt
    ) -> String? {
        guard !attempt.carriesMessage else {
            connection.group.plan.proxy?.credential?.noteRefusal(of: version, at: connection.loop.now)
            return "; it refuses the credential"
        }
        guard attempt.challenges == 1 else {
            return "; it asks for a credential here, and did not when it was asked by HEAD /"
        }
        // The request before this one has authenticated the connection.
        if handshake.mayBeOfEachRequest, connection.requests == 2 { forgets = true }
        attempt.wantsAnew = true
        return nil
    }

    // MARK: - Messages that are being made

    /// - Returns: the number under which the connection is taken back.
    mutating func wait(_ connection: UpstreamConnection) -> UInt64 {
        if waiting.count >= sweepsAt {
            // A letter that met a full mailbox has left a connection here, which its deadline has closed since.
            waiting = waiting.filter { $0.value.state == .tunnelling }
            sweepsAt = max(64, 2 * waiting.count)
        }
        lastNumber &+= 1
        waiting[lastNumber] = connection
        return lastNumber
    }

    mutating func takeBack(_ number: UInt64) -> UpstreamConnection? { waiting.removeValue(forKey: number) }

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
    /// The request that is out carries the message that authenticates its connection.
    fileprivate var carriesMessage = false
    /// The proxy does not know its connection any more: the request goes out again on a new one.
    fileprivate(set) var wantsAnew = false

    /// Challenges that one attempt may meet: to an older nonce, to its own, and to one that came to another proxy of the same name.
    fileprivate static let mostChallenges = 3

    var isAnswering: Bool { answered != nil || carriesMessage }
    /// A challenge has come that is not answered yet, and may be on its own connection.
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
