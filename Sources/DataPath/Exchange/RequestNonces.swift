internal import Handshakes

/// The nonces of an upstream as one request meets them, where each request answers one (RFC 7616).
struct RequestNonces {
    /// It came with the challenge to this very request, and nobody else has answered it.
    private(set) var own: ServerNonce?
    /// What the request that is out has answered.
    private(set) var answered: NonceAnswer?
    /// The request that is out carries no credential, since there was nothing to answer.
    private(set) var isBare = false

    /// An answer to it judges the credential: it answered, as the first, what this request was challenged with. A refusal of anything else
    /// may be of the nonce alone, which many servers do not say (docs/design/challenges.md#nonces).
    var isJudged: Bool { answered.map { $0.count == 1 && $0.nonce === own } ?? false }

    /// The request goes out.
    mutating func sent(answering answer: NonceAnswer?) {
        answered = answer
        isBare = answer == nil
    }

    /// It was refused, with a nonce to answer.
    mutating func refused(with nonce: ServerNonce) {
        own = nonce
        answered = nil
    }
}
