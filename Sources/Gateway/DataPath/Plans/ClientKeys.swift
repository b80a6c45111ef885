internal import Configuration
internal import Octets
internal import Reactor
internal import Synchronization
internal import TLS

/// The certificates that one upstream or issuer may be shown, read from their files again whenever these change.
///
/// Written by the blocking thread, read by loops when they make a TLS configuration, not per connection and never on a cache hit: they
/// compare `version`, which is one load, and take the lock only when it has moved.
final class ClientKeys: Sendable {
    let files: [ClientKeyFiles]
    private let read: @Sendable (ClientKeyFiles) throws -> ClientCertificate
    private let entries: Mutex<[Entry]>
    private let changes = Atomic<UInt64>(1)

    /// What one set of files gave.
    struct Entry: Sendable {
        var certificate: ClientCertificate?
        /// Why the files cannot be used now; the certificate is then the one before.
        var fault: String?
    }

    init(_ files: [ClientKeyFiles], read: @escaping @Sendable (ClientKeyFiles) throws -> ClientCertificate) {
        self.files = files
        self.read = read
        entries = Mutex(files.map { _ in Entry() })
    }

    /// Rises with every change.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    var certificates: [ClientCertificate] { entries.withLock { $0.compactMap(\.certificate) } }

    /// In the order of `files`.
    var contents: [Entry] { entries.withLock { $0 } }

    /// Reads the files. What cannot be used leaves the certificate before in place: a renewal writes certificate and key one after
    /// the other, and in between they do not match. Blocks.
    /// - Returns: positions of the certificates that are new, and of those whose fault is.
    func reload() -> (changed: [Int], failed: [Int]) {
        var changed: [Int] = []
        var failed: [Int] = []
        for (index, file) in files.enumerated() {
            let result = Result { try read(file) }
            entries.withLock { entries in
                switch result {
                case .success(let certificate):
                    entries[index].fault = nil
                    guard entries[index].certificate?.thumbprint != certificate.thumbprint else { return }
                    entries[index].certificate = certificate
                    changed.append(index)
                case .failure(let error):
                    guard entries[index].fault != "\(error)" else { return }
                    entries[index].fault = "\(error)"
                    failed.append(index)
                }
            }
        }
        if !changed.isEmpty { changes.add(1, ordering: .acquiringAndReleasing) }
        return (changed, failed)
    }
}

/// Every set of client keys of a configuration; routes and identities that name the same files share one.
final class ClientKeyCatalog: Sendable {
    private let sets = Mutex(KeyedList<[ClientKeyFiles], ClientKeys>())
    private let earlier: KeyedList<[ClientKeyFiles], ClientKeys>

    /// - Parameter running: whose sets go on where the files are the same, and with them the connections that were made with them.
    init(after running: ClientKeyCatalog? = nil) { earlier = running?.sets.withLock { $0 } ?? KeyedList() }

    var all: [ClientKeys] { sets.withLock { $0.all } }

    /// Reads the files of a set that is new; blocks. A file that cannot be read is no error here: its routes answer 503 until it can.
    func keys(
        _ files: [ClientKeyFiles], environment: @escaping @Sendable (String) -> String?, policy: SecretFilePolicy
    ) -> ClientKeys? {
        guard !files.isEmpty else { return nil }
        if let known = sets.withLock({ $0[files] }) { return known }
        if let known = earlier[files] {
            sets.withLock { $0.append(known, for: files) }
            return known
        }
        let keys = ClientKeys(files) { try ClientCertificate(reading: $0, environment: environment, policy: policy) }
        _ = keys.reload()
        sets.withLock { $0.append(keys, for: files) }
        return keys
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
