internal import Handshakes

/// The authentication of one connection by the request that goes out on it (RFC 4559 §5): the tokens of both sides, and which of them is due.
///
/// An object, since few requests have one.
final class UpstreamNegotiation {
    /// The epoch of the identity's connections when the first token was asked for.
    let epoch: UInt64
    /// Nil until the first token has come.
    private(set) var exchange: (any Negotiation)?
    /// The server's token that the keeper has not seen yet.
    private(set) var received: [UInt8]?
    /// The server has answered the request with it.
    private(set) var isLast = false
    private var tokens = 0

    /// Tokens of a server that one negotiation takes in at most. NTLM has one before the answer, and SPNEGO one more when it changes the mechanism.
    static let mostTokens = 4

    /// The server has answered with a token before.
    var hasReceived: Bool { tokens > 0 }

    init(epoch: UInt64) { self.epoch = epoch }

    func begin(_ exchange: any Negotiation) { self.exchange = exchange }

    /// - Returns: false where it has been too many.
    func receive(_ token: [UInt8], isLast: Bool) -> Bool {
        guard tokens < Self.mostTokens else { return false }
        tokens += 1
        received = token
        self.isLast = isLast
        return true
    }

    /// The keeper has the token.
    func take() -> [UInt8]? {
        defer { received = nil }
        return received
    }
}
