/// An address that callers connect to.
public struct Listener: Sendable, Equatable {
    public enum Mode: String, Sendable, CaseIterable {
        case gateway
        case forwardProxy = "forward_proxy"
        case transparent
    }

    public enum Unmatched: String, Sendable, CaseIterable { case refuse, tunnel }

    public enum HTTPVersion: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
    }

    /// One certificate; its own names decide who gets it.
    public struct ServerTLS: Sendable, Equatable {
        public var certificate: String
        public var key: SecretReference
        public var clientCA: String?
        public var ocsp: String?
    }

    /// Hosts whose TLS is ended here, with leaves of the authority in the file `ca`.
    public struct Intercept: Sendable, Equatable {
        public var ca: String
        public var hosts: [Match.Host]
    }

    /// PROXY headers: required from `from`, and nobody else may connect.
    public struct ProxyProtocol: Sendable, Equatable {
        public var versions: [Int]
        public var from: [Callers.Network]
    }

    /// The address itself for one that stands only in a route's `listen`.
    public var name: String
    public var mark: Mark
    public var address: ListenAddress
    public var tls: [ServerTLS]
    public var mode: Mode
    public var unmatched: Unmatched
    public var intercept: Intercept?
    public var proxyProtocol: ProxyProtocol?
    /// At a time; nil: no limit of its own.
    public var connections: Int?
    /// Whose `Forwarded` and `X-Forwarded-*` are believed; empty: nobody's.
    public var forwardedFrom: [Callers.Network]
    public var http: [HTTPVersion]
    public var hosts: ServedHosts
    /// Of a unix socket.
    public var socket: SocketFile
}

/// `socket`: who may connect to a unix socket, by the rights of its file.
public struct SocketFile: Sendable, Equatable {
    /// Permission bits.
    public var mode: UInt16 = 0o660
    /// By name or number; nil: the process's.
    public var group: String?
}

/// `hosts`: what requests may call us by where their place alone admits them, beside the names that nobody else can have.
public struct ServedHosts: Sendable, Equatable {
    /// Nothing is checked.
    public var isAny = false
    public var names: [Match.Host] = []

    public var isEmpty: Bool { !isAny && names.isEmpty }
}
