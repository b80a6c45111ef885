internal import Octets

/// A set of scopes: sorted, each once. Equal sets are equal whatever the order they were written in.
public struct ScopeSet: Hashable, Sendable, CustomStringConvertible, ExpressibleByArrayLiteral {
    /// In ascending order of their bytes, each once.
    public let scopes: [ByteString]

    /// Any order and repetitions are allowed.
    public init(_ scopes: some Sequence<ByteString>) { self.scopes = Set(scopes).sorted() }
    /// Any order and repetitions are allowed.
    public init(arrayLiteral scopes: ByteString...) { self.init(scopes) }

    /// A `scope` member: tokens parted by spaces (RFC 6749 §3.3).
    public init(spaceSeparated text: some Sequence<UInt8>) {
        self.init(Array(text).split(separator: 0x20, omittingEmptySubsequences: true).map { ByteString($0) })
    }

    /// True where there is no scope.
    public var isEmpty: Bool { scopes.isEmpty }

    /// True, too, where both sets are equal.
    public func isSuperset(of other: ScopeSet) -> Bool { Set(scopes).isSuperset(of: other.scopes) }
    /// The scopes of either set.
    public func union(_ other: ScopeSet) -> ScopeSet { ScopeSet(scopes + other.scopes) }

    /// Parted by spaces, with the escapes of `ByteString.description`.
    public var description: String { scopes.map(\.description).joined(separator: " ") }
}

/// The scheme, host and port a token may be sent to. Host in lower case; the default port is written out.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// In lower case, without the colon.
    public let scheme: ByteString
    /// In lower case.
    public let host: ByteString
    /// The scheme's default is written out, too.
    public let port: UInt16

    /// Letters of scheme and host become lower case; nothing else is checked.
    public init(scheme: ByteString, host: ByteString, port: UInt16) {
        self.scheme = ByteString(Self.lowercased(scheme))
        self.host = ByteString(Self.lowercased(host))
        self.port = port
    }

    /// For logs: `scheme://host:port`.
    public var description: String { "\(scheme)://\(host):\(port)" }

    private static func lowercased(_ text: ByteString) -> [UInt8] {
        text.bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}

/// The protection space a challenge names, as the handshake reads it (for OAM the WebGate's name). Empty if there is none.
public struct Realm: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// Bytes of the network, as they came.
    public let name: ByteString

    /// Takes any bytes; they are not checked.
    public init(_ name: ByteString) { self.name = name }
    /// The UTF-8 of the literal.
    public init(stringLiteral text: String) { name = ByteString(text) }
    /// For logs, with the escapes of `ByteString.description`.
    public var description: String { name.description }
}

/// SHA-256 over everything that makes an identity what it is, secret values left out.
public struct IdentityDigest: Hashable, Sendable, CustomStringConvertible {
    /// Bytes of a digest.
    public static let length = 32

    /// `length` of them.
    public let bytes: [UInt8]

    /// - Returns: nil unless there are 32 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.length else { return nil }
        self.bytes = Array(bytes)
    }

    /// The first eight bytes, in hexadecimal.
    public var description: String { Hexadecimal.encode(bytes.prefix(8)) }
}

/// Registration, device id, key pair. Leaves out the identity's name, so a renamed identity keeps its device.
public struct DurableKey: Hashable, Sendable {
    /// The identity whose registration, device or key pair it is.
    public var digest: IdentityDigest
    /// Where the registration was made.
    public var issuer: Origin
    /// Which of the identity's durable things.
    public var part: ByteString

    /// Memberwise.
    public init(digest: IdentityDigest, issuer: Origin, part: ByteString) {
        self.digest = digest
        self.issuer = issuer
        self.part = part
    }
}

/// Refresh token, user token, login.
public struct SessionKey: Hashable, Sendable {
    /// The identity that the session belongs to.
    public var digest: IdentityDigest
    /// Where the session was begun.
    public var issuer: Origin
    /// The end user or service account; nil for a client of its own.
    public var subject: ByteString?

    /// Memberwise.
    public init(digest: IdentityDigest, issuer: Origin, subject: ByteString?) {
        self.digest = digest
        self.issuer = issuer
        self.subject = subject
    }

    /// The lock of all sessions of this issuer and subject.
    public var lock: SessionLockKey { SessionLockKey(issuer: issuer, subject: subject) }
}

/// The key by which session flights are serialised, across identities and scopes: an account is locked by whoever tries.
public struct SessionLockKey: Hashable, Sendable {
    /// Where the subject logs in.
    public var issuer: Origin
    /// The end user or service account; nil for a client of its own.
    public var subject: ByteString?

    /// Memberwise.
    public init(issuer: Origin, subject: ByteString?) {
        self.issuer = issuer
        self.subject = subject
    }
}

/// The purpose that an access token was obtained for. Compared whole, never by a hash alone.
public struct AccessKey: Hashable, Sendable {
    /// The identity that the token was obtained with.
    public var digest: IdentityDigest
    /// The only place the token may go.
    public var origin: Origin
    /// The realm of the challenge that the token answers; empty where there is none.
    public var realm: Realm
    /// The scopes asked for; empty where none are.
    public var scopes: ScopeSet
    /// The audience asked for; nil where none is.
    var audience: ByteString?
    /// The resource indicator (RFC 8707); nil where there is none.
    var resource: ByteString?
    /// The end user for whom the token is; nil for the client itself.
    public var subject: ByteString?

    /// Memberwise; what has a default is absent without it.
    public init(
        digest: IdentityDigest, origin: Origin, realm: Realm = "", scopes: ScopeSet = [],
        audience: ByteString? = nil, resource: ByteString? = nil, subject: ByteString? = nil
    ) {
        self.digest = digest
        self.origin = origin
        self.realm = realm
        self.scopes = scopes
        self.audience = audience
        self.resource = resource
        self.subject = subject
    }

    /// Whether a token of this key, granted `granted`, may serve a request for `wanted`: equal in every member but scope.
    public func serves(_ wanted: AccessKey, granted: ScopeSet) -> Bool {
        var narrowed = self
        narrowed.scopes = wanted.scopes
        return narrowed == wanted && granted.isSuperset(of: wanted.scopes)
    }
}
