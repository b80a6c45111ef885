internal import Handshakes

/// A nonce that a server has taken an answer to, and whose answer that was: with another secret, or as another user, the first answer is to be
/// one that judges the credential.
final class KnownNonce {
    let nonce: ServerNonce
    private let identity: IdentityPlan
    /// The generation of the credential in its slot of the cache.
    private let generation: UInt64

    init(_ nonce: ServerNonce, of identity: IdentityPlan, generation: UInt64) {
        self.nonce = nonce
        self.identity = identity
        self.generation = generation
    }

    func serves(_ identity: IdentityPlan) -> Bool { self.identity === identity }
    func serves(_ identity: IdentityPlan, generation: UInt64) -> Bool {
        self.identity === identity && self.generation == generation
    }
}
