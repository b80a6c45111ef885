public import TLS

/// Makes the credential of one request out of the request itself: an HMAC signature, a proof of possession. Nothing of it is cached.
///
/// Runs on data loops. It may allocate, but its work is bounded: by the request's head and by what the configuration wrote.
public protocol RequestSigner: Sendable {
    /// Every field that it writes, in any case of letters; what a caller sent under these names does not pass.
    var fieldNames: [String] { get }
    /// The fate of the caller's own fields of those names, for `cardea explain`.
    var callersOwn: String { get }
    /// Fields of the caller's that it looks at as they came, in any case of letters.
    var readFields: [String] { get }
    /// Whether it needs the digest of the body, so that the body must be there before the head goes out.
    var readsBody: Bool { get }
    /// Which nonces of the upstream are handed to it.
    var nonceRule: NonceRule { get }

    /// Whether the body of a request goes on as it comes although `readsBody` holds: its signature needs no digest of the whole.
    /// - Parameter received: the caller's own fields of `readFields`, as they came.
    func passesBody(of received: [(name: String, value: String)]) -> Bool

    /// The function that makes the body's digest, once the nonce is known; nil where the digest is not needed.
    func bodyHash(answering nonce: ServerNonce?) -> HashFunction?

    /// The fields for one request.
    ///
    /// - Parameters:
    ///   - material: what `Handshake.acquire` brought as the token: keys and secrets, as the scheme encodes them.
    ///   - entropy: 16 random bytes of this request alone.
    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature

    /// Looks at an answer that does not refuse the credential.
    /// - Parameter answered: what the request had answered.
    func review(_ answer: UpstreamAnswer, to answered: NonceAnswer) -> NonceReview
}

extension RequestSigner {
    /// A signer that does not say otherwise looks at what will be sent alone.
    public var readFields: [String] { [] }
    /// A signer that does not say otherwise lets nothing of them pass.
    public var callersOwn: String { "the caller's own: dropped" }
    /// A signer that does not say otherwise has one way for all bodies.
    public func passesBody(of received: [(name: String, value: String)]) -> Bool { false }
    /// A signer that does not say otherwise takes no nonces from answers.
    public var nonceRule: NonceRule { .none }
    /// A signer that does not say otherwise takes SHA-256 where it reads the body.
    public func bodyHash(answering nonce: ServerNonce?) -> HashFunction? { readsBody ? .sha256 : nil }
    /// A signer that does not say otherwise learns nothing from answers.
    public func review(_ answer: UpstreamAnswer, to answered: NonceAnswer) -> NonceReview { .nothing }
}

/// A request as it will reach the upstream.
public struct RequestToSign: Sendable {
    /// The request method (RFC 9110 §9).
    public var method: String
    /// Absolute, as the upstream sees it; path and query byte for byte as they are sent.
    public var url: String
    /// The target as it is sent, octet for octet: of a proxy without a tunnel the whole URL.
    public var target: [UInt8]
    /// Fields that reach the upstream, the signed ones not among them.
    public var headers: [(name: String, value: String)]
    /// The caller's own fields of the signer's `readFields`, as they came.
    public var received: [(name: String, value: String)] = []
    /// A request in the place of the caller's own, to see how that would be answered; it has no body.
    public var isProbe = false
    /// Its answer will be searched for what is secret in its fields, so the signer has to name that (`RequestSignature.secrets`).
    public var namesSecrets = false
    /// The body's digest by the signer's `bodyHash`; nil where the signer does not read the body.
    public var bodyDigest: [UInt8]?
    /// The last nonce of the upstream's origin, where that is the signer's rule.
    public var nonce: String?
    /// The nonce of the connection, or of the challenge to this very request, by the signer's rule; nil as long as there was no challenge.
    public var serverNonce: ServerNonce?
    /// The hash of the server's certificate on the connection that the request goes out on (RFC 5929 §4.1), where its scheme authenticates
    /// connections; nil where there is no TLS.
    public var serverEndPoint: [UInt8]?
    /// The keys that the loop has read so far.
    public var keys: ProofKeys?

    /// Memberwise; `bodyDigest` is nil where the body is not known.
    public init(method: String, url: String, headers: [(name: String, value: String)] = [], bodyDigest: [UInt8]? = nil)
    {
        self.method = method
        self.url = url
        target = Array(url.utf8)
        self.headers = headers
        self.bodyDigest = bodyDigest
    }

    /// The upstream's host, without its port.
    var host: String? { IssuerURL(url)?.host }

    /// `url` as octets: its origin, and behind that the target as a server receives it, which need not be text.
    var urlOctets: [UInt8] {
        let text = Array(url.utf8)
        let target = originForm
        guard let scheme = text.firstRange(of: Array("://".utf8)),
            target.first == UInt8(ascii: "/") || target.first == UInt8(ascii: "?")
        else { return text }
        let end = text[scheme.upperBound...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
        return text[..<(end ?? text.endIndex)] + target
    }

    /// The target as a server receives it, also where a proxy between is told the whole URL.
    var originForm: [UInt8] {
        guard target.first != UInt8(ascii: "/"), let scheme = target.firstRange(of: Array("://".utf8)) else {
            return target
        }
        let rest = target[scheme.upperBound...]
        return Array(rest[(rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex)...])
    }
}

/// Why a request cannot be signed. Safe text, never a value.
public struct SigningFault: Error, Sendable, Equatable {
    /// A clause for a sentence.
    public var reason: String
    /// The request itself is not one that can be signed: its caller is told the reason.
    public var isCallers: Bool
    /// - Parameter reason: holds no value of the request.
    public init(_ reason: String, isCallers: Bool = false) {
        self.reason = reason
        self.isCallers = isCallers
    }
}
