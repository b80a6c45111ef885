internal import HTTP1
internal import Reactor
internal import TLS

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

/// The results of the handshake with a caller.
package final class CallerTLS: Sendable {
    /// DNS names in lower case, URIs and mail addresses of the caller's certificate, which an authority of the listener's issued; empty
    /// where none was asked for.
    let names: [[UInt8]]
    /// The host that was asked for, in lower case.
    let serverName: String?
    /// Hosts of the certificate that was shown, `*.` for one label.
    private let hosts: [[UInt8]]
    /// Every certificate of the listener trusts the same authorities, so that it does not matter for `names` which was shown.
    private let isAlone: Bool

    init(_ connection: TLSConnection, identity: ServerIdentity, of listener: ListenerTLS, serverName: String?) {
        names = (connection.peerNames ?? []).map { Array($0.utf8) }
        self.serverName = serverName
        isAlone = listener.identities.allSatisfy { $0.authorities == identity.authorities }
        hosts = identity.names.hosts.map { Array($0.utf8) }
    }

    /// Whether requests for this host may rely on `names`.
    func answers(for host: UnsafeRawBufferPointer) -> Bool { isAlone || isShown(for: host) }

    /// Whether the certificate that was shown stands for this host.
    func isShown(for host: UnsafeRawBufferPointer) -> Bool {
        hosts.contains { own in
            guard own.starts(with: [0x2a, 0x2e]) else { return equalsIgnoringCase(host, own) }
            guard let dot = host.firstIndex(of: 0x2e), dot > 0, host.count - dot == own.count - 1 else { return false }
            return zip(host[dot...], own[1...]).allSatisfy {
                $0 == $1 || ($0 ^ 0x20 == $1 && (0x61...0x7a).contains($1))
            }
        }
    }
}
