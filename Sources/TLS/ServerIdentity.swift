internal import COpenSSL
internal import Glibc

/// One certificate of a listener with all that a handshake for its names needs. Immutable; shared by all loops.
public final class ServerIdentity: Sendable {
    /// What connections are made of.
    public let configuration: TLSServerConfiguration
    public let names: AlternativeNames
    /// Seconds since 1970.
    public let notBefore: Int64
    public let notAfter: Int64
    /// Whether callers have to show a certificate.
    public let asksCallers: Bool

    /// Everything that an identity is made of, as it was read: files are the caller's business.
    public struct Material: Sendable, Equatable {
        /// PEM, the leaf first, then its issuers.
        public var certificate: [UInt8]
        /// PEM, not encrypted.
        public var key: [UInt8]
        /// PEM of the authorities whose certificates callers must show; nil: callers are not asked.
        public var callerAuthorities: [UInt8]?

        public init(certificate: [UInt8], key: [UInt8], callerAuthorities: [UInt8]? = nil) {
            self.certificate = certificate
            self.key = key
            self.callerAuthorities = callerAuthorities
        }
    }

    /// - Parameters:
    ///   - protocols: for ALPN, in order of our preference.
    ///   - context: tells sessions of one identity from those of another. A session that was made with one authority of callers must not
    ///     be resumed where another one is asked for.
    /// - Throws: `.configuration` when something of it cannot be used.
    public init(_ material: Material, protocols: [String], context: String) throws(TLSFault) {
        let pair = try ClientCertificate(
            certificatePEM: material.certificate, keyPEM: material.key, password: [], called: "certificate")
        var session = Array(context.utf8)
        if let authorities = material.callerAuthorities { session += [0] + authorities }
        configuration = try TLSServerConfiguration(
            pair: pair, alpn: protocols, callerAuthorities: material.callerAuthorities, sessionContext: sha256(session))
        names = AlternativeNames(of: pair.leaf)
        notBefore = try Self.seconds(X509_get0_notBefore(pair.leaf))
        notAfter = try Self.seconds(X509_get0_notAfter(pair.leaf))
        asksCallers = material.callerAuthorities != nil
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) throws(TLSFault) -> Int64 {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else {
            throw TLSFault(.configuration, "certificate: its dates cannot be read")
        }
        return Int64(timegm(&parts))
    }
}
