/// Makes the credential of one request out of the request itself: an HMAC signature, a proof of possession. Nothing of it is cached.
///
/// Runs on data loops. It may allocate, but its work is bounded: by the request's head and by what the configuration wrote.
public protocol RequestSigner: Sendable {
    /// Every field that it writes, in any case of letters; what a caller sent under these names does not pass.
    var fieldNames: [String] { get }
    /// Whether it needs the digest of the body, so that the body must be there before the head goes out.
    var readsBody: Bool { get }
    /// Whether the upstream's nonces go into what it writes (RFC 9449 §9): then the last one is handed to it with each request.
    var usesNonces: Bool { get }

    /// The fields for one request.
    ///
    /// - Parameters:
    ///   - material: what `Handshake.acquire` brought as the token: keys and secrets, as the scheme encodes them.
    ///   - entropy: 16 random bytes of this request alone.
    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> [InjectedField]
}

extension RequestSigner {
    /// A signer that does not say otherwise takes no nonces from answers.
    public var usesNonces: Bool { false }
}

/// A request as it will reach the upstream.
public struct RequestToSign: Sendable {
    /// The request method (RFC 9110 §9).
    public var method: String
    /// Absolute, as the upstream sees it; path and query byte for byte as they are sent.
    public var url: String
    /// Fields that reach the upstream, the signed ones not among them.
    public var headers: [(name: String, value: String)]
    /// SHA-256 of the body; nil where the signer does not read it.
    public var bodySHA256: [UInt8]?
    /// The last nonce of the upstream, where the signer `usesNonces`.
    public var nonce: String?
    /// The keys that the loop has read so far.
    public var keys: ProofKeys?

    /// Memberwise; `bodySHA256` is nil where the body is not known.
    public init(method: String, url: String, headers: [(name: String, value: String)] = [], bodySHA256: [UInt8]? = nil)
    {
        self.method = method
        self.url = url
        self.headers = headers
        self.bodySHA256 = bodySHA256
    }
}

/// Why a request cannot be signed. Safe text, never a value.
public struct SigningFault: Error, Sendable, Equatable {
    /// A clause for a sentence.
    public var reason: String
    /// - Parameter reason: holds no value of the request.
    public init(_ reason: String) { self.reason = reason }
}
