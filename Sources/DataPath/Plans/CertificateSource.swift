internal import Octets
package import TLS

/// Where one certificate of a listener comes from.
package struct CertificateSource: Sendable {
    /// The listener's name, and the certificate's place in its list.
    package let listener: String
    package let index: Int
    /// Path of the certificate's file.
    package let certificate: String
    /// Path of the file with the authorities whose certificates callers must show; nil: they are not asked.
    package let callerAuthorities: String?
    /// For ALPN.
    let protocols: [String]
    /// Folders to watch.
    package let folders: Set<String>
    /// Reads the files; blocks.
    package let read: @Sendable () throws(GatewayFault) -> ServerIdentity.Material

    package init(
        listener: String, index: Int, certificate: String, callerAuthorities: String? = nil, protocols: [String],
        folders: Set<String>,
        read: @escaping @Sendable () throws(GatewayFault) -> ServerIdentity.Material
    ) {
        self.listener = listener
        self.index = index
        self.certificate = certificate
        self.callerAuthorities = callerAuthorities
        self.protocols = protocols
        self.folders = folders
        self.read = read
    }

    package func identity(
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
