public import Tokens

/// The circuit breaker of an issuer, or of an upstream that is probed for challenges.
public struct IssuerStatus: Sendable {
    /// Its origin, as URLs write it.
    public var issuer: String
    /// `open`: the issuer is not called now.
    public var breaker: Breaker.State
    /// Times that the breaker has opened.
    public var pauses: UInt64
}
