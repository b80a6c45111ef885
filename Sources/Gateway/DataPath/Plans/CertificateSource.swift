internal import Configuration
internal import Glibc
internal import Octets
internal import TLS

/// The files of one certificate of a listener.
struct CertificateSource: Sendable {
    /// The listener's name, and the certificate's place in its list.
    let listener: String
    let index: Int
    let files: Listener.ServerTLS
    /// For ALPN.
    let protocols: [String]
    let environment: @Sendable (String) -> String?
    let secretFiles: SecretFilePolicy

    /// Blocks.
    func read() throws(GatewayFault) -> ServerIdentity.Material {
        let key: SecretBytes
        do { key = try readSecret(files.key, environment: environment, policy: secretFiles) } catch {
            throw fault("key: \(error)", isOfThisUser: error.isOfThisUser)
        }
        var material = ServerIdentity.Material(
            certificate: try read(files.certificate), key: key.withBytes { Array($0) })
        if let path = files.clientCA { material.callerAuthorities = try read(path) }
        // The answer comes from a job that may be late; the certificate does not wait for it.
        if let path = files.ocsp { material.staple = (try? read(path)) ?? [] }
        return material
    }

    func identity(
        of material: ServerIdentity.Material, tickets: TicketKeys, now: Int64
    ) throws(GatewayFault) -> ServerIdentity {
        var material = material
        defer { material.key.wipe() }
        do {
            return try ServerIdentity(
                material, protocols: protocols, context: "\(listener)/\(index)", tickets: tickets, now: now)
        } catch { throw fault("\(files.certificate): \(error)") }
    }

    /// Folders to watch.
    var folders: Set<String> {
        var paths = [files.certificate, files.clientCA, files.ocsp].compactMap(\.self)
        if case .file(let path) = files.key { paths.append(path) }
        if case .credential(let name) = files.key, let folder = environment("CREDENTIALS_DIRECTORY") {
            paths.append("\(folder)/\(name)")
        }
        return Set(
            paths.map { path in
                guard let end = path.lastIndex(of: "/") else { return "." }
                return end == path.startIndex ? "/" : String(path[..<end])
            })
    }

    private func fault(_ reason: String, isOfThisUser: Bool = false) -> GatewayFault {
        GatewayFault("listener \(listener): tls: \(reason)", isOfThisUser: isOfThisUser)
    }

    private func read(_ path: String) throws(GatewayFault) -> [UInt8] {
        do throws(PublicFile.Fault) { return try PublicFile.read(path) } catch {
            throw fault("\(path): \(error.reason)", isOfThisUser: error.isForbidden)
        }
    }
}
