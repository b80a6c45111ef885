internal import Configuration
internal import DataPath
internal import Octets
internal import TLS

/// How what stands in files is read, as the configuration names it.

extension CertificateSource {
    init(
        listener: String, index: Int, files: Listener.ServerTLS, protocols: [String],
        environment: @escaping @Sendable (String) -> String?, secretFiles: SecretFilePolicy
    ) {
        var paths = [files.certificate, files.clientCA, files.ocsp].compactMap(\.self)
        if let path = files.key.path(environment) { paths.append(path) }
        self.init(
            listener: listener, index: index, certificate: files.certificate, callerAuthorities: files.clientCA,
            protocols: protocols, folders: Set(paths.map { folder(of: $0) ?? "." })
        ) { () throws(GatewayFault) in
            func fault(_ reason: String, isOfThisUser: Bool) -> GatewayFault {
                GatewayFault("listener \(listener): tls: \(reason)", isOfThisUser: isOfThisUser)
            }
            func read(_ path: String) throws(GatewayFault) -> [UInt8] {
                do throws(PublicFile.Fault) { return try PublicFile.read(path) } catch {
                    throw fault("\(path): \(error.reason)", isOfThisUser: error.isForbidden)
                }
            }
            let key: SecretBytes
            do throws(SecretFault) {
                key = try readSecret(files.key, environment: environment, policy: secretFiles)
            } catch {
                throw fault("key: \(error)", isOfThisUser: error.isOfThisUser)
            }
            var material = ServerIdentity.Material(
                certificate: try read(files.certificate), key: key.withBytes { Array($0) })
            if let path = files.clientCA { material.callerAuthorities = try read(path) }
            // The answer comes from a job that may be late; the certificate does not wait for it.
            if let path = files.ocsp { material.staple = (try? read(path)) ?? [] }
            return material
        }
    }
}

extension ClientCertificate {
    /// Reads and matches certificate and key. PEM is told from PKCS#12 by its first line.
    convenience init(
        reading files: ClientKeyFiles, environment: (String) -> String?, policy: SecretFilePolicy
    ) throws {
        let certificate = try readKeyFile(files.certificate).withBytes { Array($0) }
        var password: [UInt8] = []
        if let reference = files.password {
            password = try readSecret(reference, environment: environment, policy: policy).withBytes { Array($0) }
        }
        defer { password.wipe() }
        do {
            guard certificate.firstRange(of: Array("-----BEGIN ".utf8)) != nil else {
                try self.init(pkcs12: certificate, password: password)
                return
            }
            var key = certificate
            if let reference = files.key {
                key = try readSecret(reference, environment: environment, policy: policy).withBytes { Array($0) }
            }
            defer { key.wipe() }
            try self.init(certificatePEM: certificate, keyPEM: key, password: password)
        } catch let fault as TLSFault {
            throw GatewayFault("\(files.certificate): \(fault)")
        }
    }
}

extension SecretReference {
    /// The file that it names, directly or as a credential of systemd.
    func path(_ environment: (String) -> String?) -> String? {
        switch self {
        case .file(let path): path
        case .credential(let name): environment("CREDENTIALS_DIRECTORY").map { "\($0)/\(name)" }
        default: nil
        }
    }
}

extension Configuration {
    /// Folders of all certificates, authorities and all `file:` and `credential:` secrets, sorted.
    func secretFolders(environment: (String) -> String?) -> [String] {
        var paths = clientKeys.map(\.files.certificate)
        for authority in authorities {
            switch authority {
            case .file(let path): paths.append(path)
            case .system: if let path = environment("SSL_CERT_FILE") { paths.append(path) }
            }
        }
        paths += secrets.compactMap { $0.reference.path(environment) }
        return Set(paths.compactMap { folder(of: $0) }).sorted()
    }
}

/// Nil for a path without a slash.
private func folder(of path: String) -> String? {
    guard let end = path.lastIndex(of: "/") else { return nil }
    return end == path.startIndex ? "/" : String(path[..<end])
}
