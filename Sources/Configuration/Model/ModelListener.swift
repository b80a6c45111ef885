/// An address that callers connect to.
public struct Listener: Sendable, Equatable {
    /// The kind of server that callers take the listener for.
    public enum Mode: String, Sendable, CaseIterable {
        case gateway
        case forwardProxy = "forward_proxy"
        case transparent
    }

    /// The fate of a request whose host has no route.
    public enum Unmatched: String, Sendable, CaseIterable { case refuse, tunnel }

    /// The versions that callers may speak.
    public enum HTTPVersion: String, Sendable, CaseIterable {
        case http1 = "1.1"
        case http2 = "2"
    }

    /// A certificate; its own names decide who gets it.
    public struct ServerTLS: Sendable, Equatable {
        /// Path of the PEM file with the certificate and its chain.
        public var certificate: String
        /// Where the private key is read.
        public var key: SecretReference
        /// Path of the authorities whose certificates callers must show; nil: callers are not asked.
        public var clientCA: String?
        /// Path of the OCSP answer to send along; nil: none is sent.
        public var ocsp: String?
    }

    /// Hosts whose TLS is ended here, with leaves of the authority in the file `ca`.
    public struct Intercept: Sendable, Equatable {
        /// Path of the authority that signs the leaves.
        public var ca: String
        /// Connections to other hosts stay a tunnel.
        public var hosts: [Match.Host]
    }

    /// PROXY headers: required from `from`, and nobody else may connect.
    public struct ProxyProtocol: Sendable, Equatable {
        /// 1 and 2, one of them or both.
        public var versions: [Int]
        /// Networks of the load balancers.
        public var from: [Callers.Network]
    }

    /// The address itself for one that stands only in a route's `listen`.
    public var name: String
    /// Where the listener stands in the file.
    public var mark: Mark
    /// The address or socket that is bound.
    public var address: ListenAddress
    /// Empty: clear text.
    public var tls: [ServerTLS] = []
    /// `mode`.
    public var mode = Mode.gateway
    /// `unmatched`.
    public var unmatched = Unmatched.refuse
    /// Nil: no TLS is ended but that of `tls`.
    public var intercept: Intercept?
    /// Nil: connections begin without a PROXY header.
    public var proxyProtocol: ProxyProtocol?
    /// At a time; nil: no limit of its own.
    public var connections: Int?
    /// The peers whose `Forwarded` and `X-Forwarded-*` are believed; empty: nobody's.
    public var forwardedFrom: [Callers.Network] = []
    /// `http`, never empty.
    public var http = HTTPVersion.allCases
    /// `hosts`: names that callers may have in `Host` where their address alone admits them.
    public var hosts = ServedHosts()
    /// The file of a unix socket.
    public var socket = SocketFile()
}

/// `socket`: who may connect to a unix socket, by the rights of its file.
public struct SocketFile: Sendable, Equatable {
    /// Permission bits.
    public var mode: UInt16 = 0o660
    /// By name or number; nil: the process's.
    public var group: String?
}

/// `hosts`: what requests may call us by where their address alone admits them, beside the names that nobody else can have.
public struct ServedHosts: Sendable, Equatable {
    /// Nothing is checked.
    public var isAny = false
    /// Beside those that are served anyway.
    public var names: [Match.Host] = []

    /// No host was written: the check has nothing to go by.
    public var isEmpty: Bool { !isAny && names.isEmpty }
}
