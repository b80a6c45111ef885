public import TLS

/// Where the shared Redis (or Valkey) is and who we are to it.
public struct RedisSettings: Sendable {
    public enum Place: Sendable, Equatable {
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    public var place: Place
    /// Nil: clear text.
    public var authorities: [CertificateAuthority]?
    public var username: String?
    /// Read anew for each connection; may block. Nil: no password.
    public var password: (@Sendable () throws -> [UInt8])?
    public var database: Int

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

    public let kind: Kind
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public var description: String { message }
}
