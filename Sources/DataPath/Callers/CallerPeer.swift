internal import Reactor

/// A caller as it is known from its connection, before it has sent a request.
struct CallerPeer: Sendable {
    /// Where it comes from: the socket's other end, or who a trusted PROXY header says that is. Nil for unix sockets, and where the
    /// header names nobody who counts.
    var address: SocketAddress?
    /// The port to which an intercepted connection was going. Here, where two octets are free behind the address.
    var authorityPort: UInt16 = 0
    /// On a unix socket.
    var user: UInt32?
    /// A unix socket, loopback, or an address of this network namespace. Never because of a claim in a PROXY header.
    var isLocal: Bool
    /// The connection is TLS.
    var isSecure = false
    /// The caller is counted under its address for `limits.connections_per_address`.
    var isCounted = false
    /// The listener's certificate that it was shown, and the names in the caller's own.
    var tls: CallerTLS?
    /// Host, in lower case, of an intercepted connection: every request in it is for that host.
    var authority: [UInt8]?
    /// The quota that it counts against, where its listener has one.
    var quota: ConnectionQuota?

    /// Where the kernel took a redirected connection from.
    var destination: SocketAddress? {
        get { redirection?.destination }
        set { redirection = newValue.map(Redirection.init) }
    }
    // Behind a reference: few are redirected, and every connection has this structure.
    private var redirection: Redirection?

    init(isLocal: Bool) { self.isLocal = isLocal }

    private final class Redirection: Sendable {
        let destination: SocketAddress
        init(_ destination: SocketAddress) { self.destination = destination }
    }
}
