internal import TLS

/// Where one certificate of a listener comes from.
struct CertificateSource: Sendable {
    /// The listener's name, and the certificate's place in its list.
    let listener: String
    let index: Int
    /// Path of the certificate's file.
    let certificate: String
    /// For ALPN.
    let protocols: [String]
    /// Folders to watch.
    let folders: Set<String>
    /// Reads the files; blocks.
    let read: @Sendable () throws(GatewayFault) -> ServerIdentity.Material

    func identity(
        of material: ServerIdentity.Material, tickets: TicketKeys, now: Int64
    ) throws(GatewayFault) -> ServerIdentity {
        var material = material
        defer { material.key.wipe() }
        do {
            return try ServerIdentity(
                material, protocols: protocols, context: "\(listener)/\(index)", tickets: tickets, now: now)
        } catch { throw GatewayFault("listener \(listener): tls: \(certificate): \(error)") }
    }
}
