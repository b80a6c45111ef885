internal import HTTP1
internal import Octets
internal import TLS

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
