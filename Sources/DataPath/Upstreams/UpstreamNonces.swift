internal import Handshakes

/// The last nonce that each upstream gave this loop (RFC 9449 §9), by origin. Loops learn them apart: reading another's memory would cost
/// more than the one request that each of them has to send again.
struct UpstreamNonces {
    private var nonces: [String: String] = [:]
    /// Those that are answered and counted; a connection that has none yet begins with it.
    private var answered: [String: ServerNonce] = [:]

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

    func lastAnswered(at origin: String) -> ServerNonce? { answered[origin] }

    mutating func noteAnswered(_ nonce: ServerNonce, at origin: String) {
        guard answered[origin] !== nonce else { return }
        if answered.count >= Self.most, answered[origin] == nil { answered.removeAll(keepingCapacity: true) }
        answered[origin] = nonce
    }

    /// No request answers it any more.
    mutating func forget(_ nonce: ServerNonce, at origin: String) {
        if answered[origin] === nonce { answered[origin] = nil }
    }
}
