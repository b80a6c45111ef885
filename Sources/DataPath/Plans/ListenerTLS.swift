internal import Synchronization
package import TLS

/// The certificates of one listener, for all loops: chosen by the name that a caller asks for, each replaced when its files change.
package final class ListenerTLS: Sendable {
    /// Where the certificates come from, in the order of the configuration.
    package let sources: [CertificateSource]
    package let tickets: TicketKeys
    /// A lock, and not on the path of a request: a handshake takes it once, for the time of a copied reference.
    private let current: Mutex<[Held]>

    /// A certificate in use.
    struct Held: Sendable {
        let identity: ServerIdentity
        /// The fingerprint of the material that the identity was made of.
        let fingerprint: [UInt8]
    }

    /// Reads every certificate; the first answers names that none of them has. Blocks.
    /// - Parameter now: seconds since 1970.
    package init(_ sources: [CertificateSource], tickets: TicketKeys, now: Int64) throws(GatewayFault) {
        precondition(!sources.isEmpty, "a TLS listener has a certificate")
        var held: [Held] = []
        for source in sources {
            let material = try source.read()
            held.append(
                Held(
                    identity: try source.identity(of: material, tickets: tickets, now: now),
                    fingerprint: material.fingerprint))
        }
        self.sources = sources
        self.tickets = tickets
        current = Mutex(held)
    }

    package var identities: [ServerIdentity] { current.withLock { $0.map(\.identity) } }

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

    // MARK: - Change

    /// The result of a look at the files of one certificate.
    package enum Look: Sendable {
        case unchanged
        case changed(ServerIdentity)
        /// They cannot be used, and what was there before goes on. One sentence.
        case broken(String)
    }

    /// Reads the files again and takes up what has changed and is sound. Connections that are there keep what they were made of. Blocks;
    /// one caller at a time.
    package func lookAgain(now: Int64) -> [Look] {
        var looks: [Look] = []
        for (index, source) in sources.enumerated() {
            do throws(GatewayFault) {
                let material = try source.read()
                let fingerprint = material.fingerprint
                guard current.withLock({ $0[index].fingerprint }) != fingerprint else {
                    looks.append(.unchanged)
                    continue
                }
                let identity = try source.identity(of: material, tickets: tickets, now: now)
                current.withLock { $0[index] = Held(identity: identity, fingerprint: fingerprint) }
                looks.append(.changed(identity))
            } catch {
                looks.append(.broken("\(error)"))
            }
        }
        return looks
    }
}
