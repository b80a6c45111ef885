internal import Octets

/// The client sends an HTTP call to an issuer. The keeper implements it over the gateway's own HTTP engine: TLS verified, no redirect followed,
/// answer bounded to 64 KiB, time bounded.
public protocol IssuerClient: Sendable {
    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer
}

extension IssuerClient {
    /// Sends a call for which a fault is the end of the grant.
    func answer(to call: IssuerCall) async throws(GrantFailure) -> IssuerAnswer {
        do throws(IssuerFault) { return try await send(call) } catch { throw GrantFailure(error, step: call.step) }
    }
}

/// A request to an issuer, complete but for `Host` and framing.
public struct IssuerCall: Sendable {
    /// `register`, `authenticate`, `access` or `token`: for logs, traces and deadlines.
    public var step: String
    /// The request method (RFC 9110 §9).
    public var method: String
    /// Where the call goes.
    public var url: IssuerURL
    /// In the order in which they are sent; the transport adds those of the framing.
    public var headers: [(name: String, value: String)]
    /// Empty for a call without a body.
    public var body: [UInt8]
    /// Holds a password, or something else that must not arrive twice (a refresh token that its use replaces): never to be sent a
    /// second time by the transport, whatever happened to the first.
    public var carriesPassword: Bool
    /// Its answer may bring what takes the place of a refresh token that it has sent, and is lost with it: it is waited for longer than others.
    public var replacesRefreshToken = false

    /// Memberwise.
    public init(
        step: String, method: String, url: IssuerURL, headers: [(name: String, value: String)], body: [UInt8],
        carriesPassword: Bool
    ) {
        self.step = step
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.carriesPassword = carriesPassword
    }

    /// A question without a body, which may be asked twice.
    init(asking url: IssuerURL, step: String, headers: [(name: String, value: String)] = [acceptsJSON]) {
        self.init(step: step, method: "GET", url: url, headers: headers, body: [], carriesPassword: false)
    }

    /// Fields that no configuration adds to a call, in lower case.
    static let ownFields: Set = [
        "authorization", "content-type", "content-length", "host", "transfer-encoding", "connection",
    ]
    static let acceptsJSON = (name: "Accept", value: "application/json")
    static let jsonHeaders = [(name: "Content-Type", value: "application/json"), acceptsJSON]
    static let formHeaders = [(name: "Content-Type", value: "application/x-www-form-urlencoded"), acceptsJSON]
}

/// An answer of an issuer, received whole.
public struct IssuerAnswer: Sendable {
    /// The status code (RFC 9110 §15).
    public var status: Int
    /// All field lines in order, as received.
    public var headers: [(name: String, value: String)]
    /// At most 64 KiB.
    public var body: [UInt8]
    /// Nanoseconds of CLOCK_BOOTTIME, before the request was sent.
    public var sentAt: UInt64
    /// The answer came over TLS, so its `Date` is believed.
    public var overTLS: Bool

    /// Memberwise.
    public init(
        status: Int, headers: [(name: String, value: String)], body: [UInt8], sentAt: UInt64, overTLS: Bool
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.sentAt = sentAt
        self.overTLS = overTLS
    }

    /// The first value of a field; names compare without case.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.utf8.elementsEqual(name.utf8, by: { $0.asciiLowercased == $1.asciiLowercased }) }?.value
    }
}

/// Why there is no answer.
public struct IssuerFault: Error, Sendable, Equatable {
    /// The kind of the fault.
    public var kind: Kind
    /// No byte of the request can have reached the issuer.
    public var provablyUnsent: Bool

    /// Memberwise.
    public init(_ kind: Kind, provablyUnsent: Bool) {
        self.kind = kind
        self.provablyUnsent = provablyUnsent
    }

    /// The kinds of faults that handshakes and logs tell apart.
    public enum Kind: Sendable, Equatable {
        case unresolvable, refused, timedOut, closed, brokenAnswer, answerTooLarge
        /// We had no room: connections, descriptors, memory.
        case overloaded
        /// Not asked: it has failed whatever it was asked, and is given this many seconds.
        case suspended(seconds: Int)
        /// The flight was given up: shutdown, reload.
        case cancelled
        case tls(String)
        /// The proxy on the way has refused; the issuer was not asked.
        case proxy(String)
    }
}

extension IssuerFault.Kind: CustomStringConvertible {
    /// A clause for a sentence.
    public var description: String {
        switch self {
        case .unresolvable: "the name does not resolve"
        case .refused: "connection refused"
        case .timedOut: "timed out"
        case .closed: "connection closed before an answer"
        case .brokenAnswer: "the answer is not HTTP"
        case .answerTooLarge: "the answer is larger than 64 KiB"
        case .overloaded: "the gateway has no room for another call (connections, descriptors or memory)"
        case .suspended(let seconds): "not asked for \(seconds) s, it keeps failing"
        case .cancelled: "given up"
        case .tls(let detail): "TLS: \(detail)"
        case .proxy(let detail): "the proxy on the way: \(detail)"
        }
    }
}

// MARK: - Silence

extension IssuerCall: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Step, method and origin: neither path nor body, which may hold secrets.
    public var description: String { "\(step): \(method) \(url.origin)" }
    /// The text of `description`.
    public var debugDescription: String { description }
    /// The step alone.
    public var customMirror: Mirror { Mirror(self, children: ["step": step]) }
}

extension IssuerAnswer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Status and size alone.
    public var description: String { "status \(status), \(body.count) bytes" }
    /// The text of `description`.
    public var debugDescription: String { description }
    /// The status alone.
    public var customMirror: Mirror { Mirror(self, children: ["status": status]) }
}
