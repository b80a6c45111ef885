internal import COpenSSL

/// How long a certificate or an authority is good (RFC 5280 section 4.1.2.5), under the name that its subject has.
public struct CertificateValidity: Sendable, Hashable {
    /// The subject's common name, else its organization, else empty: at most 64 characters (RFC 5280 appendix A.1).
    public let subject: String
    /// Seconds since 1970, the first at which it is good.
    public let notBefore: Int64
    /// Seconds since 1970, the last at which it is good.
    public let notAfter: Int64

    /// The most that one file tells: public lists of authorities have about 150.
    static let limit = 200

    /// Memberwise.
    public init(subject: String, notBefore: Int64, notAfter: Int64) {
        self.subject = subject
        self.notBefore = notBefore
        self.notAfter = notAfter
    }

    /// - Returns: nil where a date cannot be read.
    init?(of certificate: OpaquePointer) {
        guard let first = seconds(X509_get0_notBefore(certificate)),
            let last = seconds(X509_get0_notAfter(certificate))
        else { return nil }
        let name = X509_get_subject_name(certificate)
        self.init(
            subject: Self.text(of: name, NID_commonName) ?? Self.text(of: name, NID_organizationName) ?? "",
            notBefore: first, notAfter: last)
    }

    private static func text(of name: OpaquePointer?, _ kind: Int32) -> String? {
        var buffer = [CChar](repeating: 0, count: 257)
        let count = Int(X509_NAME_get_text_by_NID(name, kind, &buffer, Int32(buffer.count)))
        guard count > 0 else { return nil }
        let octets = buffer.prefix(count).map { UInt8(bitPattern: $0) }
        let decoded = String(decoding: octets, as: UTF8.self).unicodeScalars
        let text = decoded.filter { $0.value >= 0x20 && $0.value != 0x7f }.prefix(64)
        return text.isEmpty ? nil : String(String.UnicodeScalarView(text))
    }
}

extension CertificateValidity {
    /// The validity that ends last, for each subject: a renewed certificate stands beside the one before it for a while. At most `limit`,
    /// those that end first.
    static func lastOfEach(_ validities: [CertificateValidity]) -> [CertificateValidity] {
        let last = Dictionary(validities.map { ($0.subject, $0) }) { $0.notAfter < $1.notAfter ? $1 : $0 }
        let sorted = last.values.sorted { ($0.notAfter, $0.subject) < ($1.notAfter, $1.subject) }
        return Array(sorted.prefix(limit))
    }

    /// The validities of a PEM file's certificates; anything else in the file is passed over.
    static func all(in pem: [UInt8]) -> [CertificateValidity] {
        let certificates = ClientCertificate.certificates(in: pem, limit: 1000)
        defer { for certificate in certificates { X509_free(certificate) } }
        ErrorQueue.clear()
        return lastOfEach(certificates.compactMap(CertificateValidity.init(of:)))
    }
}
