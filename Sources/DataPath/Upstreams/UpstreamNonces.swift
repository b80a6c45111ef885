internal import Handshakes

/// The last nonce that each upstream gave this loop (RFC 9449 §9), by origin. Loops learn them apart: reading another's memory would cost
/// more than the one request that each of them has to send again.
struct UpstreamNonces {
    private var nonces: [String: String] = [:]
    /// Nonces that are answered and counted; a connection that has none yet begins with its origin's.
    private var answered: [String: KnownNonce] = [:]

    /// Origins whose servers end connections without a word, and mostly under the request that answers their 401.
    private var silent: Set<String> = []

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
    }

    /// A connection was lost under the request that answered the nonce which had come on it.
    mutating func noteSilentEnd(at origin: String) {
        if silent.count >= Self.most { silent.removeAll(keepingCapacity: true) }
        silent.insert(origin)
    }

    /// Whether a nonce is better answered on a new connection.
    func endSilently(at origin: String) -> Bool { silent.contains(origin) }

    /// No request answers it any more.
    mutating func forget(_ nonce: ServerNonce, at origin: String) {
        if answered[origin]?.nonce === nonce { answered[origin] = nil }
    }
}
