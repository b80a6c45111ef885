public import TLS

/// Where the shared Redis (or Valkey) is and who we are to it.
public struct RedisSettings: Sendable {
    /// A host and port, or a unix socket.
    public enum Place: Sendable, Equatable {
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    /// The one server.
    public var place: Place
    /// Nil: clear text.
    public var authorities: [CertificateAuthority]?
    /// For `AUTH`; nil: the server's default user.
    public var username: String?
    /// Read anew for each connection; may block. Nil: no password.
    public var password: (@Sendable () throws -> [UInt8])?
    /// The number for `SELECT`.
    public var database: Int

    /// Memberwise.
    public init(
        place: Place, authorities: [CertificateAuthority]? = nil, username: String? = nil,
        password: (@Sendable () throws -> [UInt8])? = nil, database: Int = 0
    ) {
        self.place = place
        self.authorities = authorities
        self.username = username
        self.password = password
        self.database = database
    }
}

/// Why the shared server did not do something. `message` is safe to log.
public struct RedisFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults that callers tell apart.
    public enum Kind: Sendable, Equatable {
        /// Not connected, or no longer.
        case unavailable
        /// No answer in time.
        case slow
        /// It answered with an error.
        case refused
        /// What it sent is no answer to what was asked.
        case invalid
        /// Too much waits for it.
        case queueFull
    }

    /// The kind, for code that decides by it.
    public let kind: Kind
    /// The text for people.
    public let message: String

    /// - Parameter message: safe to log.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
