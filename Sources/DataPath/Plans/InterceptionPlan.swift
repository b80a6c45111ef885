internal import Synchronization
package import TLS

/// The hosts whose TLS a listener ends itself, and the leaves that it shows for them.
package final class InterceptionPlan: Sendable {
    /// Path of the authority's file.
    package let file: String
    private let mint: CertificateMint
    private let hosts: [RouteMatch.Host]
    private let protocols: [String]
    private let tickets: TicketKeys
    /// A lock, and not on the path of a request: an intercepted connection takes it at its handshake.
    private let leaves = Mutex<[String: Leaf]>([:])

    private struct Leaf {
        let identity: ServerIdentity
        /// Seconds since 1970 at which the upstream was last seen to be who it claims.
        var verifiedAt: Int64
    }

    /// Leaves that are kept at most.
    static let leafLimit = 1024
    /// How long an upstream's proof is good for, in seconds; and what a leaf must have left to be shown.
    static let proofLife: Int64 = 600
    static let lifeLeft: Int64 = 3600

    /// - Parameter protocols: for ALPN.
    package init(
        file: String, mint: CertificateMint, hosts: [RouteMatch.Host], protocols: [String], tickets: TicketKeys
    ) {
        self.file = file
        self.mint = mint
        self.hosts = hosts
        self.protocols = protocols
        self.tickets = tickets
    }

    /// How long the authority is good that signs the leaves.
    package var authorityValidity: CertificateValidity { mint.validity }

    func covers(_ host: String) -> Bool {
        let bytes = Array(host.utf8)
        return bytes.withUnsafeBytes { name in hosts.contains { names(name, $0) } }
    }

    /// The leaf for a host whose upstream has proven itself a short while ago; nil: it has to prove itself first.
    /// - Parameter now: seconds since 1970.
    func leaf(for host: String, now: Int64) -> ServerIdentity? {
        leaves.withLock { leaves in
            guard let leaf = leaves[host], now - leaf.verifiedAt < Self.proofLife, now >= leaf.verifiedAt,
                leaf.identity.notAfter - now > Self.lifeLeft
                    || leaf.identity.notAfter >= mint.notAfter && leaf.identity.notAfter > now
            else { return nil }
            return leaf.identity
        }
    }

    /// Mints a leaf: its upstream has just proven itself. One signature; it happens once in a while for a host.
    func verified(_ host: String, now: Int64) throws(TLSFault) -> ServerIdentity {
        let known = leaves.withLock { $0[host]?.identity }
        let identity: ServerIdentity
        if let known, known.notAfter - now > Self.lifeLeft {
            identity = known
        } else {
            identity = try ServerIdentity(
                mint.leaf(for: host, now: now), protocols: protocols, context: "intercept/\(host)", tickets: tickets,
                now: now)
        }
        leaves.withLock { leaves in
            // Hosts come from the configuration, but a pattern stands for any number.
            if leaves.count >= Self.leafLimit, leaves[host] == nil { leaves.removeAll() }
            leaves[host] = Leaf(identity: identity, verifiedAt: now)
        }
        return identity
    }
}

/// Whether a host of a request is one that a pattern means.
/// - Parameter name: without a port.
func names(_ name: UnsafeRawBufferPointer, _ pattern: RouteMatch.Host) -> Bool {
    switch pattern {
    case .any: return true
    case .exact(let host): return equalsIgnoringCase(name, host)
    case .oneLabel(let suffix):
        return name.count > suffix.count
            && equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name[(name.count - suffix.count)...]), suffix)
            && !name[..<(name.count - suffix.count)].contains(UInt8(ascii: "."))
    }
}
