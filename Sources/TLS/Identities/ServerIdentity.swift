internal import COpenSSL
internal import Glibc

/// A certificate of a listener with all that a handshake for its names needs. Immutable; shared by all loops.
public final class ServerIdentity: Sendable {
    /// The configuration that connections are made with.
    public let configuration: TLSServerConfiguration
    /// The names of the leaf certificate, by which a connection's identity is chosen.
    public let names: AlternativeNames
    /// Seconds since 1970.
    public let notBefore: Int64
    /// Seconds since 1970.
    public let notAfter: Int64
    /// How long the certificate and its chain are good, one for each subject.
    public let validities: [CertificateValidity]
    /// How long the authorities are good whose certificates callers must show.
    public let callerAuthorityValidities: [CertificateValidity]
    /// Callers that were asked by identities of equal values were asked for the same authorities; nil: callers are not asked.
    public let authorities: [UInt8]?
    /// Why the OCSP answer that was given is not used; the certificate serves without it.
    public let stapleFault: TLSFault?
    /// Seconds since 1970; nil where none is stapled.
    public let stapledUntil: Int64?

    /// Everything that an identity is made of, as it was read: files are the caller's business.
    public struct Material: Sendable {
        /// PEM, the leaf first, then its issuers.
        var certificate: [UInt8]
        /// PEM, not encrypted.
        public var key: [UInt8]
        /// PEM of the authorities whose certificates callers must show; nil: callers are not asked.
        public var callerAuthorities: [UInt8]?
        /// DER of the OCSP answer to send along.
        public var staple: [UInt8]?

        /// Memberwise; see the properties.
        public init(
            certificate: [UInt8], key: [UInt8], callerAuthorities: [UInt8]? = nil, staple: [UInt8]? = nil
        ) {
            self.certificate = certificate
            self.key = key
            self.callerAuthorities = callerAuthorities
            self.staple = staple
        }

        /// Equal for equal material, and tells nothing of the key.
        public var fingerprint: [UInt8] {
            let parts = [certificate, key, callerAuthorities ?? [], staple ?? []].map { sha256($0) }
            return sha256(Array(parts.joined()) + [callerAuthorities == nil ? 0 : 1, staple == nil ? 0 : 1])
        }
    }

    /// - Parameters:
    ///   - protocols: for ALPN, in order of our preference.
    ///   - context: tells sessions of one identity from those of another.
    ///   - tickets: what seals sessions. Callers that are asked for a certificate resume none: theirs is looked at with every connection, so
    ///     that an authority taken out of the file admits nobody any more.
    ///   - now: seconds since 1970.
    /// - Throws: `.configuration` when something of it cannot be used.
    public init(
        _ material: Material, protocols: [String], context: String, tickets: TicketKeys, now: Int64
    ) throws(TLSFault) {
        let pair = try ClientCertificate(
            certificatePEM: material.certificate, keyPEM: material.key, password: [], called: "certificate")
        var staple: StapledAnswer?
        var stapleFault: TLSFault?
        if let bytes = material.staple {
            do throws(TLSFault) { staple = try StapledAnswer(bytes, for: pair, now: now) } catch { stapleFault = error }
        }
        self.stapleFault = stapleFault
        stapledUntil = staple?.validUntil
        authorities = material.callerAuthorities.map { sha256($0) }
        configuration = try TLSServerConfiguration(
            pair: pair, alpn: protocols, callerAuthorities: material.callerAuthorities,
            sessionContext: sha256(Array(context.utf8)),
            tickets: material.callerAuthorities == nil ? tickets : nil, staple: staple)
        names = AlternativeNames(of: pair.leaf)
        validities = pair.validities
        callerAuthorityValidities = CertificateValidity.all(in: material.callerAuthorities ?? [])
        guard let first = seconds(X509_get0_notBefore(pair.leaf)), let last = seconds(X509_get0_notAfter(pair.leaf))
        else { throw TLSFault(.configuration, "certificate: its dates cannot be read") }
        notBefore = first
        notAfter = last
    }

}
