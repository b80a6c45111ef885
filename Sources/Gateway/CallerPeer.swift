internal import Reactor

/// What is known of a caller from its connection, before it has sent a request.
struct CallerPeer: Sendable {
    /// A unix socket, loopback, or an address of this network namespace. Never because of a claim in a PROXY header.
    var isLocal: Bool
    /// Where it comes from: the socket's other end, or who a trusted PROXY header says that is. Nil for unix sockets, and where the
    /// header names nobody who counts.
    var address: SocketAddress?
    /// On a unix socket.
    var user: UInt32?
    /// The connection is TLS.
    var isSecure = false
    /// The listener's certificate that it was shown, and the names in the caller's own.
    var tls: CallerTLS?
    /// Under which address the connection is counted for `limits.connections_per_address`.
    var countedAs: SocketAddress?
}

/// What the handshake with a caller found.
final class CallerTLS: Sendable {
    /// DNS names in lower case, URIs and mail addresses of the caller's certificate, which an authority of the listener's issued; empty
    /// where none was asked for.
    let names: [[UInt8]]
    /// The host that was asked for, in lower case.
    let serverName: String?

    init(names: [[UInt8]], serverName: String?) {
        self.names = names
        self.serverName = serverName
    }
}
