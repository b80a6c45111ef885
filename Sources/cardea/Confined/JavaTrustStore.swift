import TLS

/// Certificates in Java's own key store form, "JKS": every Java reads it, the oldest too. Those that read PKCS #12 as well want attributes
/// there that say what a certificate is trusted for.
enum JavaTrustStore {
    /// The one that everybody has: nothing in the store is secret.
    static let password = "changeit"

    /// - Parameter certificates: in DER.
    static func octets(of certificates: [[UInt8]]) -> [UInt8] {
        var store: [UInt8] = []
        store += number(0xFEED_FEED) + number(2) + number(certificates.count)
        for (index, certificate) in certificates.enumerated() {
            // A trusted certificate, its name, and when it was added, in milliseconds.
            store += number(2) + text("authority-\(index)") + number(0) + number(0)
            store += text("X.509") + number(certificate.count) + certificate
        }
        // The form's own seal.
        let salted = password.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] } + Array("Mighty Aphrodite".utf8)
        return store + sha1(salted + store)
    }

    private static func number(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    private static func text(_ value: String) -> [UInt8] {
        number(value.utf8.count).suffix(2) + Array(value.utf8)
    }
}
