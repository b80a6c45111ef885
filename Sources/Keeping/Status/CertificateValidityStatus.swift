package import DataPath
package import TLS

/// How long a certificate or an authority is good, and what it is for.
public struct CertificateValidityStatus: Sendable, Hashable {
    /// The use of a certificate or an authority.
    public enum Use: String, Sendable, CaseIterable {
        /// Shown to callers, by a listener.
        case listener
        /// Vouches for callers.
        case callers
        /// Signs what is shown for intercepted hosts.
        case interception
        /// Shown to upstreams and issuers.
        case client
        /// Vouches for upstreams, issuers, proxies or the shared store.
        case authority
    }

    /// The use of the file.
    public var use: Use
    /// The path of its file.
    public var file: String
    /// The name in it.
    public var subject: String
    /// Seconds since 1970, the first at which it is good.
    public var notBefore: Int64
    /// Seconds since 1970, the last at which it is good.
    public var notAfter: Int64

    package init(_ use: Use, file: String, _ validity: CertificateValidity) {
        self.use = use
        self.file = file
        subject = validity.subject
        notBefore = validity.notBefore
        notAfter = validity.notAfter
    }

    package static func all(of anchors: TrustAnchors) -> [CertificateValidityStatus] {
        anchors.validities.map { CertificateValidityStatus(.authority, file: $0.file, $0.validity) }
    }
}
