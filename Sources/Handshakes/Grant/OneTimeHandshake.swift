/// A scheme whose credential is good for one request: each request gets its own from the keeper, and nobody else ever sees it. It is not
/// cached, not shared, not stored, and never sent a second time.
///
/// `acquire` obtains what such credentials are made from, and says by the lifetime of its grant for how long that can be done.
public protocol OneTimeHandshake: Handshake {
    /// The resource that the request wants to be authorized for; nil where it does not say so.
    /// - Parameter target: path and query of the caller's request, as received.
    func resource(of target: [UInt8], on wanted: Wanted) -> String?

    /// Facts about a session, in words for operators.
    func facts(of session: LayerMaterial) -> [IdentityFact]

    /// The issuer's answer, were it asked, to the resources that operators care for; advice only, never a reason to admit or refuse. Empty where none
    /// is configured.
    func preview(environment: any GrantEnvironment) async throws(GrantFailure) -> [IdentityFact]

    /// Whether `preview` asks anything.
    var hasPreview: Bool { get }

    /// Obtains the credential of one request. Throws `.policyDenied` where this resource is denied, and `.interactionRequired` where a
    /// person has to log in first.
    func credential(
        for need: OneTimeNeed, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> OneTimeCredential

    /// An operator has purged or reset the identity: what credentials are made from is obtained anew, as far as the scheme itself holds it.
    func forget()

    /// A server has refused a credential.
    /// - Parameter user: in whose name it was, where each end user has one.
    func noteRefusal(of user: EndUser?)
}

extension OneTimeHandshake {
    /// A scheme that does not say otherwise holds nothing itself.
    public func forget() {}
    /// A scheme that does not say otherwise learns nothing from a refusal.
    public func noteRefusal(of user: EndUser?) {}
}

/// The server and the connection that a credential for one request is wanted for.
public struct OneTimeNeed: Sendable {
    /// The name that the handshake gave it.
    public var resource: String
    /// The hash of the server's certificate on the connection that the request goes out on (`tls-server-end-point`, RFC 5929 §4); nil where there
    /// is no TLS, or the scheme does not ask for a connection.
    public var serverEndPoint: [UInt8]?
    /// In whose name, where each end user has one.
    public var user: EndUser?

    /// Memberwise.
    public init(resource: String, serverEndPoint: [UInt8]? = nil, user: EndUser? = nil) {
        self.resource = resource
        self.serverEndPoint = serverEndPoint
        self.user = user
    }
}

/// The credential of one request.
public struct OneTimeCredential: Sendable {
    /// Sent once, to one server.
    public var secret: Secret
    /// The exchange of tokens that it begins, where it authenticates its connection.
    public var negotiation: (any Negotiation)?
    /// The issuer was asked in an end user's name for what it is made of, and gave it.
    public var isNewGrant: Bool

    /// Memberwise.
    public init(_ secret: Secret, negotiation: (any Negotiation)? = nil, isNewGrant: Bool = false) {
        self.secret = secret
        self.negotiation = negotiation
        self.isNewGrant = isNewGrant
    }
}

/// Something about an identity that operators may want to know; never a secret, and nothing that tells who a person is.
public struct IdentityFact: Sendable, Equatable {
    /// A name for people.
    public var name: String
    /// Printable ASCII, bounded.
    public var value: String

    /// Neither text is checked.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// The calls that an issuer takes from one address: so many at once, then so many a second.
public struct CallQuota: Sendable, Hashable {
    /// Names whose quota it is: the issuer's origin.
    public var origin: String
    /// Calls in a second in the long run.
    public var perSecond: Int
    /// Calls that may be made at once after a pause.
    public var burst: Int
    /// Nanoseconds that a call waits for its turn at most.
    public var patience: UInt64
    /// Calls that one turn is for, at most `burst`: of what takes two none is begun that could not be ended.
    public var calls = 1

    /// Nanoseconds between two calls once the burst is spent.
    var interval: UInt64 { 1_000_000_000 / UInt64(max(1, perSecond)) }
}

/// When the next calls may leave: a token bucket, kept as the moment at which it would be full again. Pure; the time comes from outside.
public struct CallPace: Sendable {
    private var fullAt: UInt64 = 0

    /// A pace that is not used yet: a whole burst may go.
    public init() {}

    /// Takes a turn.
    /// - Parameter now: nanoseconds.
    /// - Returns: nanoseconds to wait before the call; nil where that would be longer than the quota's patience, and then no turn is taken.
    public mutating func take(_ quota: CallQuota, at now: UInt64) -> UInt64? {
        let full = max(fullAt, now)
        let slack = quota.interval * UInt64(max(quota.calls, quota.burst) - quota.calls)
        let wait = full - now > slack ? full - now - slack : 0
        guard wait <= quota.patience else { return nil }
        fullAt = full + quota.interval * UInt64(quota.calls)
        return wait
    }

    /// The issuer says that it was too much: others use the same address. Nothing leaves for one interval.
    public mutating func turnedAway(_ quota: CallQuota, at now: UInt64) {
        fullAt = max(fullAt, now + quota.interval * UInt64(max(1, quota.burst)))
    }
}
