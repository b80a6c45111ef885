internal import COpenSSL

/// Certificates of authorities that have been read: each of them is trusted, also one that is not self-signed.
public struct AuthorityBundle: Sendable, Hashable {
    /// Where they come from; named in errors.
    public let name: String
    private let pem: [UInt8]
    /// How long they are good, one for each subject.
    public private(set) var validities: [CertificateValidity] = []

    /// - Parameter pem: one or more certificates; what else stands there is passed over.
    /// - Throws: `.configuration` when there is no certificate, or one that cannot be read.
    public init(pem: [UInt8], name: String) throws(TLSFault) {
        self.pem = pem
        self.name = name
        var found: [CertificateValidity] = []
        let count = try forEach { certificate in
            if let validity = CertificateValidity(of: certificate) { found.append(validity) }
            return true
        }
        guard count > 0 else {
            throw TLSFault(.configuration, "certificate authorities in \(name): no PEM certificate found")
        }
        validities = CertificateValidity.lastOfEach(found)
    }
}

extension AuthorityBundle {
    func trust(in context: OpaquePointer) throws(TLSFault) {
        let store = SSL_CTX_get_cert_store(context)
        // A certificate that stands there twice is added once.
        _ = try forEach { X509_STORE_add_cert(store, $0) == 1 }
    }

    /// - Parameter use: false when OpenSSL refused it.
    /// - Returns: how many there are.
    private func forEach(_ use: (OpaquePointer) -> Bool) throws(TLSFault) -> Int {
        ErrorQueue.clear()
        let count: Int? = reading(pem) { input in
            var count = 0
            // Also those that say of themselves what they may vouch for ("TRUSTED CERTIFICATE").
            while let certificate = PEM_read_bio_X509_AUX(input, nil, nil, nil) {
                defer { X509_free(certificate) }
                guard use(certificate) else { return nil }
                count += 1
            }
            return count
        }
        guard let count else { throw fault() }
        // The end of the text is told like an error. Any other means that something behind it was not read.
        if let error = ErrorQueue.take(), error.library != ERR_LIB_PEM || error.reason != PEM_R_NO_START_LINE {
            throw TLSFault(
                .configuration, "certificate authorities in \(name): certificate \(count + 1): \(error.text)")
        }
        return count
    }

    private func fault() -> TLSFault { ErrorQueue.configurationFault("certificate authorities in \(name)") }
}
