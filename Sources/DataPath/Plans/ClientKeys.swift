internal import Synchronization
package import TLS

/// The certificates that one upstream or issuer may be shown, read from their files again whenever these change.
///
/// Written by the blocking thread, read by loops when they make a TLS configuration, not per connection and never on a cache hit: they
/// compare `version`, which is one load, and take the lock only when it has moved.
package final class ClientKeys: Sendable {
    package let files: [Files]
    private let entries: Mutex<[Entry]>
    private let changes = Atomic<UInt64>(1)

    /// The files of one certificate.
    package struct Files: Sendable {
        /// Path of the certificate's file.
        package let certificate: String
        /// Reads and matches certificate and key; blocks.
        let read: @Sendable () throws -> ClientCertificate

        package init(certificate: String, read: @escaping @Sendable () throws -> ClientCertificate) {
            self.certificate = certificate
            self.read = read
        }
    }

    /// The result of reading one set of files.
    package struct Entry: Sendable {
        package var certificate: ClientCertificate?
        /// Why the files cannot be used now; the certificate is then the one before.
        package var fault: String?
    }

    package init(_ files: [Files]) {
        self.files = files
        entries = Mutex(files.map { _ in Entry() })
    }

    /// Rises with every change.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    package var certificates: [ClientCertificate] { entries.withLock { $0.compactMap(\.certificate) } }

    /// In the order of `files`.
    package var contents: [Entry] { entries.withLock { $0 } }

    /// Reads the files. What cannot be used leaves the certificate before in place: a renewal writes certificate and key one after
    /// the other, and in between they do not match. Blocks.
    /// - Returns: positions of the certificates that are new, and of those whose fault is.
    package func reload() -> (changed: [Int], failed: [Int]) {
        var changed: [Int] = []
        var failed: [Int] = []
        for (index, file) in files.enumerated() {
            let result = Result { try file.read() }
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
