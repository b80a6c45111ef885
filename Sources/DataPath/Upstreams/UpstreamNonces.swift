internal import Handshakes

/// The last nonce that each upstream gave this loop (RFC 9449 §9), by origin. Loops learn them apart: reading another's memory would cost
/// more than the one request that each of them has to send again.
struct UpstreamNonces {
    private var nonces: [String: String] = [:]
    /// Nonces that are answered and counted; a connection that has none yet begins with its origin's.
    private var answered: [String: KnownNonce] = [:]

    /// Origins whose servers have ended a connection without a word under the request that answers their 401.
    private var silences: [String: Silence] = [:]

    private struct Silence {
        /// Nonces are answered on new connections.
        var isBelieved = false
        /// A nonce was refused on a new connection, and none has been taken since.
        var wasDoubted = false
    }

    private static let most = 256

    subscript(origin: String) -> String? { nonces[origin] }

    /// - Returns: whether it is a nonce.
    mutating func keep(_ value: UnsafeRawBufferPointer, from origin: String) -> Bool {
        guard let nonce = proofNonce(value) else { return false }
        // Most answers repeat the one that is known.
        guard nonces[origin] != nonce else { return true }
        if nonces.count >= Self.most, nonces[origin] == nil { nonces.removeAll(keepingCapacity: true) }
        nonces[origin] = nonce
        return true
    }

    func lastAnswered(at origin: String) -> KnownNonce? { answered[origin] }

    mutating func noteAnswered(_ known: KnownNonce, at origin: String) {
        if answered.count >= Self.most, answered[origin] == nil { answered.removeAll(keepingCapacity: true) }
        answered[origin] = known
        silences[origin]?.wasDoubted = false
    }

    /// A connection was lost under the request that answered the nonce which had come on it.
    mutating func noteSilentEnd(at origin: String) {
        if silences.count >= Self.most, silences[origin] == nil { silences.removeAll(keepingCapacity: true) }
        silences[origin, default: Silence()].isBelieved = true
    }

    /// A nonce was refused on a new connection. The loss that led there may have been a mishap of a server that knows its nonces by
    /// connection; so the next one is answered on its own again.
    /// - Parameter isRepeatable: the request goes out once more if that connection is lost, and is judged then.
    /// - Returns: whether the refusal says nothing of the credential. Of requests that are lost with their connections, the second in a row
    ///   does: a wrong credential must not be tried for ever.
    mutating func doubtSilence(at origin: String, isRepeatable: Bool) -> Bool {
        guard let silence = silences[origin], silence.isBelieved else { return false }
        let isDoubted = isRepeatable || !silence.wasDoubted
        silences[origin] = Silence(isBelieved: false, wasDoubted: isDoubted)
        return isDoubted
    }

    /// Whether a nonce is better answered on a new connection.
    func endSilently(at origin: String) -> Bool { silences[origin]?.isBelieved == true }

    /// No request answers it any more.
    mutating func forget(_ nonce: ServerNonce, at origin: String) {
        if answered[origin]?.nonce === nonce { answered[origin] = nil }
    }
}
