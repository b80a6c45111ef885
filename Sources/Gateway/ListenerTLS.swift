internal import Synchronization
internal import TLS

/// The certificates of one listener, for all loops: chosen by the name that a caller asks for, replaced as a whole when files change.
final class ListenerTLS: Sendable {
    /// A lock, and not on the path of a request: a handshake takes it once, for the time of a copied reference.
    private let current: Mutex<[ServerIdentity]>

    /// - Parameter identities: at least one; the first answers names that none of them has.
    init(_ identities: [ServerIdentity]) {
        precondition(!identities.isEmpty, "a TLS listener has a certificate")
        current = Mutex(identities)
    }

    var identities: [ServerIdentity] { current.withLock { $0 } }

    /// Connections that are there keep what they were made of.
    func replace(by identities: [ServerIdentity]) {
        guard !identities.isEmpty else { return }
        current.withLock { $0 = identities }
    }

    /// An exact name wins over a wildcard, and an earlier certificate over a later one.
    func identity(for host: String?) -> ServerIdentity {
        let identities = identities
        guard let host else { return identities[0] }
        var best = (identity: identities[0], fit: AlternativeNames.Fit.none)
        for identity in identities {
            let fit = identity.names.fit(host)
            if fit > best.fit { best = (identity, fit) }
        }
        return best.identity
    }
}
