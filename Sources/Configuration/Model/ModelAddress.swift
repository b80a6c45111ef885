/// An IP address. IPv4-mapped IPv6 addresses are IPv4 addresses here.
public struct IPAddress: Sendable, Hashable {
    /// An IPv4-mapped IPv6 address is `v4`.
    public enum Family: Sendable { case v4, v6 }

    /// Decides what `high` and `low` hold.
    public var family: Family
    /// The first 8 bytes of an IPv6 address, 0 for IPv4; in host order.
    public var high: UInt64
    /// The last 8 bytes of an IPv6 address, or the 4 of an IPv4 address; in host order.
    public var low: UInt64

    /// - Parameter address: in host order.
    public init(v4 address: UInt32) {
        family = .v4
        high = 0
        low = UInt64(address)
    }

    /// - Parameter high: the first eight bytes, in host order.
    public init(v6 high: UInt64, _ low: UInt64) {
        let isMapped = high == 0 && low >> 32 == 0xffff
        family = isMapped ? .v4 : .v6
        self.high = high
        self.low = isMapped ? low & 0xffff_ffff : low
    }

    /// 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        switch family {
        case .v4: low >> 24 == 127
        case .v6: high == 0 && low == 1
        }
    }

    /// 0.0.0.0 or ::
    public var isUnspecified: Bool { high == 0 && low == 0 }
}

/// The address that a listener binds.
public enum ListenAddress: Sendable, Hashable {
    case tcp(IPAddress, port: UInt16)
    /// An absolute path of at most 107 bytes.
    case unix(path: String)

    /// Whether only this machine can connect.
    public var isLocal: Bool {
        switch self {
        case .tcp(let address, _): address.isLoopback
        case .unix: true
        }
    }
}

/// The address that we connect to.
public enum Endpoint: Sendable, Hashable {
    /// Lower case, without brackets.
    case host(String, port: UInt16)
    case address(IPAddress, port: UInt16)
    case unix(path: String)

    /// A connection to it leaves the machine for certain not.
    public var isLocal: Bool {
        switch self {
        case .unix: true
        case .address(let address, _): address.isLoopback
        case .host(let host, _): host == "localhost" || host.hasSuffix(".localhost")
        }
    }
}

/// Scheme, host and port.
public struct Origin: Sendable, Hashable {
    /// The words stand in the keys of tokens, sessions and accounts, and therefore in stores.
    public enum Scheme: String, Sendable {
        case http = "http"
        case https = "https"
        case redis = "redis"
        case rediss = "rediss"
    }

    /// Decides whether TLS is spoken.
    public var scheme: Scheme
    /// Lower case, without brackets.
    public var host: String
    /// The scheme's default is written out.
    public var port: UInt16

    /// Memberwise; the host is lower case already.
    public init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Whether bytes are readable on the way.
    public var isCleartext: Bool { scheme == .http || scheme == .redis }

    /// Whether the host is `localhost`, a name under it, or a loopback literal.
    public var isLoopback: Bool {
        if let address = IPAddress(host) { return address.isLoopback }
        return host == "localhost" || host.hasSuffix(".localhost")
    }

    /// The `Host` field: brackets around IPv6, the port only where it is not the scheme's own.
    public var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == scheme.defaultPort ? name : "\(name):\(port)"
    }
}

/// An issuer's address out of the file.
public struct ServiceURL: Sendable, Hashable {
    /// Scheme, host and port.
    public var origin: Origin
    /// Starts with `/`, as it was written.
    public var path: String
    /// Without its `?`; nil: none.
    public var query: String?

    /// Path and query, as a request line takes them.
    public var target: String { query.map { "\(path)?\($0)" } ?? path }
}

// MARK: - Text

extension Origin.Scheme {
    /// The port of a URL that names none.
    public var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        case .redis, .rediss: 6379
        }
    }
}

extension Origin: CustomStringConvertible {
    /// `scheme://authority`.
    public var description: String { "\(scheme.rawValue)://\(authority)" }
}

extension ServiceURL: CustomStringConvertible {
    /// Without the query, which may hold anything.
    public var description: String { "\(origin)\(path)" }
}

extension ListenAddress: CustomStringConvertible {
    /// The address as the configuration has it; IPv6 in brackets.
    public var description: String {
        switch self {
        case .tcp(let address, let port): address.family == .v6 ? "[\(address)]:\(port)" : "\(address):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

extension Endpoint: CustomStringConvertible {
    /// The address as the configuration has it; IPv6 in brackets.
    public var description: String {
        switch self {
        case .host(let name, let port): "\(name):\(port)"
        case .address(let address, let port): ListenAddress.tcp(address, port: port).description
        case .unix(let path): "unix:\(path)"
        }
    }
}
