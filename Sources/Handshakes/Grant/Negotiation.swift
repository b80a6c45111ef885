/// The exchange of tokens by which one connection is authenticated (RFC 4559 §5): it has begun with the credential that it came with.
///
/// Used by one request at a time.
public protocol Negotiation: AnyObject, Sendable {
    /// The authentication scheme whose challenges carry the server's tokens, in lower case.
    var scheme: String { get }

    /// The server has to prove with its answer who it is.
    var wantsProof: Bool { get }

    /// Nanoseconds that a connection may be used after it was authenticated; nil: as long as it lasts.
    var lifetime: UInt64? { get }

    /// Takes the server's token in.
    ///
    /// - Parameters:
    ///   - token: decoded from base64, at most 48 KiB.
    ///   - isLast: the server has answered the request, so that nothing can be sent after this.
    /// - Returns: the credential to send next; nil where there is none to send, and the server has proven who it is, if it has to.
    /// - Throws: `.issuerAnswerInvalid` for a token that is none, or that proves nothing; `.credentialRejected` where it is a refusal.
    func answer(_ token: [UInt8], isLast: Bool) async throws(GrantFailure) -> Secret?
}
