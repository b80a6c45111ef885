/// A nonce that an upstream gave with a challenge, to be answered by each request, and how often that was done. Of one data loop alone.
///
/// A scheme keeps beside it what it has to know of the challenge.
public class ServerNonce: @unchecked Sendable {
    /// The server said with it that the nonce before was too old, and nothing of the credential.
    public let isStale: Bool
    /// How often it has been answered.
    public private(set) final var uses: UInt32 = 0

    init(isStale: Bool) { self.isStale = isStale }

    /// Counts one more use.
    /// - Returns: its number, from 1; nil where the protocol has no higher one.
    final func use() -> UInt32? {
        guard uses < .max else { return nil }
        uses += 1
        return uses
    }
}

/// A nonce as one request has answered it.
public struct NonceAnswer: Sendable {
    /// The nonce that was answered.
    public let nonce: ServerNonce
    /// Which of its uses this was, from 1.
    public let count: UInt32
    /// The octets with which the server shows that it knows the credential, too; nil where nothing can be foretold.
    public let proof: [UInt8]?
}

/// The meaning of an answer's fields for the nonce that its request had answered.
public enum NonceReview: Sendable {
    case nothing
    /// The nonce to be answered from now on.
    case next(ServerNonce)
    /// The answer is not of a server that knows the credential.
    case forged
}

/// How nonces of an upstream go into what a signer writes.
public enum NonceRule: Sendable {
    case none
    /// The last one of the origin stands in each request (RFC 9449 §9).
    case ofOrigin
    /// A nonce belongs to the connection that it came on, and each use of it has a number. Without one nothing is written: the upstream's
    /// challenge brings it (RFC 7616 §3.3).
    case ofConnection
    /// A challenge asks for another credential of the request that it refuses, and of no other (RFC 9421 §5). Without one a credential is
    /// written all the same. The request is sent once more with it; asked again, its caller gets the refusal.
    case ofRequest
}

/// The fields of a signed request, and what signs its body.
public struct RequestSignature {
    /// None where the signer waits for the upstream's nonce.
    public var fields: [InjectedField]
    /// The nonce that they answer, where the rule is `.ofConnection` or `.ofRequest`.
    public var answer: NonceAnswer?
    /// The signer of the body, where it is signed while it passes; of this sending of the request alone.
    public var body: (any BodySigner)?
    /// The texts in the fields that only the upstream may see, each as it stands there or as it can be read out of what stands there;
    /// everything else in the fields is no secret. Empty where `RequestToSign.namesSecrets` does not ask for them; nil from a signer that
    /// tells no difference, so that each value counts as one.
    public var secrets: [Secret]?

    init(
        _ fields: [InjectedField], secrets: [Secret]? = nil, answering answer: NonceAnswer? = nil,
        body: (any BodySigner)? = nil
    ) {
        self.fields = fields
        self.secrets = secrets
        self.answer = answer
        self.body = body
    }
}

extension ServerNonce: Equatable {
    /// Two are equal where they are one.
    public static func == (left: ServerNonce, right: ServerNonce) -> Bool { left === right }
}
