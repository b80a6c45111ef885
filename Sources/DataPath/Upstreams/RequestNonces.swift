internal import Handshakes

/// The nonces of an upstream, and of the proxy before it, as one request meets them, where each request answers one (RFC 7616).
///
/// An object, so that exchanges without nonces, which are nearly all, set and clear one word for it.
final class RequestNonces {
    /// The nonce of the challenge to this very request. Nobody else answers it before the server has taken the answer.
    private(set) var own: ServerNonce?
    /// The address of the server that gave it; what another one refuses says nothing. Addresses are objects of their pool's.
    private var home: ObjectIdentifier?
    /// The nonce that the request that is out has answered, and how.
    private(set) var answered: NonceAnswer?
    private var isAtHome = false
    /// The request that is out carries no credential, since there was nothing to answer.
    private(set) var isBare = false
    /// A refusal on a new connection was taken for the nonce's alone, which happens once.
    var hasReturned = false
    /// A refusal that stands is the caller's, whatever its route says of refusals: the server has asked for more than the credential.
    var passesRefusal = false
    /// The request before a proxy that reads it.
    var proxy = ProxyAttempt()

    /// A refusal judges the credential: it answered what this request was challenged with, where it was challenged. A refusal of anything
    /// else may be of the nonce alone, which many servers do not say (docs/design/challenges.md#nonces).
    var isJudged: Bool { isAtHome && answered.map { $0.nonce === own } ?? false }

    /// The request goes out.
    /// - Parameter address: where to; nil where nobody knows.
    func sent(answering answer: NonceAnswer?, at address: ObjectIdentifier?) {
        answered = answer
        isBare = answer == nil
        isAtHome = home == nil || address == nil || home == address
    }

    /// The request was refused, with a nonce to answer.
    func refused(with nonce: ServerNonce, at address: ObjectIdentifier?) {
        own = nonce
        home = address
        answered = nil
    }

    /// The server has taken the answer, whose nonce is everybody's now.
    func taken() { own = nil }

    /// The connection was lost, and nobody knows whether the server counts the answer, so that a strict one would refuse the next number.
    func lost() {
        own = nil
        answered = nil
        proxy = ProxyAttempt()
    }
}
