internal import COpenSSL
internal import Glibc

/// Why a TLS connection, or what it needs, failed.
///
/// `message` is safe to log and to show an operator: OpenSSL's own texts, the name that was asked for, and names of configured
/// files. Never key material, passwords, or bytes that were received.
public struct TLSFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind, for code that decides by it.
    public let kind: Kind
    /// The text for people, within the limits that the type's comment sets.
    public let message: String
    /// True when the server speaks or presents something that only a legacy configuration accepts (weak key, old renegotiation).
    let legacyMightHelp: Bool

    /// The kinds of faults that callers tell apart.
    public enum Kind: Sendable, Equatable {
        /// The server's certificate was not accepted.
        case certificate(CertificateReason)
        /// The bytes received are not TLS as we speak it: no common version or cipher, a bad record, or no TLS at all.
        case protocolError
        /// The server ended the connection with this alert (RFC 8446 section 6).
        case alert(UInt8)
        /// The connection ended before the handshake was complete.
        case closed
        /// The socket failed; the value is `errno`.
        case system(Int32)
        /// A file, a key or a value given by the operator cannot be used.
        case configuration
    }

    /// The fault of a certificate, as far as an operator would act differently.
    public enum CertificateReason: Sendable, Equatable {
        case unknownAuthority, expired, notYetValid, nameMismatch, revoked, tooWeak
        /// An X509_V_ERR code of OpenSSL.
        case other(Int32)
    }

    /// - Parameter message: safe to log, as described above.
    public init(_ kind: Kind, _ message: String, legacyMightHelp: Bool = false) {
        self.kind = kind
        self.message = message
        self.legacyMightHelp = legacyMightHelp
    }

    /// The message.
    public var description: String { message }
}

// MARK: - OpenSSL's error queue

/// The queue is one per thread and outlives calls: an error left by one connection would be read as that of the next. So it is
/// emptied before each call whose result is judged, and by whoever reads it.
enum ErrorQueue {
    /// Most often there is nothing to clear, and that is cheaper asked than done: OpenSSL goes through all sixteen entries.
    static func clear() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// The newest error; empties the queue.
    static func take() -> (library: Int32, reason: Int32, text: String)? {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        return (cardea_error_library(code), cardea_error_reason(code), text)
    }

    /// A fault of kind `.configuration` that names what could not be used and OpenSSL's reason.
    static func configurationFault(_ what: String) -> TLSFault {
        TLSFault(.configuration, take().map { "\(what): \($0.text)" } ?? what)
    }
}

extension TLSFault {
    static func system(_ number: Int32) -> TLSFault {
        TLSFault(.system(number), strerror(number).map { String(cString: $0) } ?? "error \(number)")
    }

    /// The fault of a failed protocol step: an alert keeps its number, everything else is a protocol error with OpenSSL's words.
    static func protocolFailure(_ error: (library: Int32, reason: Int32, text: String)?, with server: String)
        -> TLSFault
    {
        guard let error else { return TLSFault(.protocolError, "TLS with \(server) failed") }
        // Reasons from SSL_AD_REASON_OFFSET on are alerts that the other side sent.
        if error.library == ERR_LIB_SSL, (SSL_AD_REASON_OFFSET..<SSL_AD_REASON_OFFSET + 256).contains(error.reason) {
            return TLSFault(
                .alert(UInt8(error.reason - SSL_AD_REASON_OFFSET)),
                "\(server) refused the TLS connection: \(error.text)")
        }
        let weak: Set<Int32> = [
            SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED, SSL_R_DH_KEY_TOO_SMALL, SSL_R_EE_KEY_TOO_SMALL,
            SSL_R_CA_KEY_TOO_SMALL, SSL_R_CA_MD_TOO_WEAK, SSL_R_WRONG_SIGNATURE_TYPE,
        ]
        let strange: Set<Int32> = [
            SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_UNKNOWN_PROTOCOL,
        ]
        if error.library == ERR_LIB_SSL, strange.contains(error.reason) {
            return TLSFault(
                .protocolError,
                "\(server) does not speak TLS on this port (\(error.text)): is the port right, or http: meant?")
        }
        return TLSFault(
            .protocolError, "TLS with \(server) failed: \(error.text)",
            legacyMightHelp: error.library == ERR_LIB_SSL && weak.contains(error.reason))
    }

    /// - Parameter authority: the name of an authority in the chain that is the reason, and not the server's own certificate.
    static func certificateRefused(_ code: Int, of server: String, authority: String? = nil) -> TLSFault {
        let text = X509_verify_cert_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        let reason = CertificateReason(verifyResult: Int32(truncatingIfNeeded: code))
        if let authority {
            let named = authority.isEmpty ? "" : " '\(authority)'"
            let state = reason == .expired ? "has expired" : "is not valid yet"
            return TLSFault(
                .certificate(reason),
                "the authority\(named) that vouches for \(server) \(state): its certificate, in tls.ca or sent by the server, is to be renewed"
            )
        }
        return TLSFault(
            .certificate(reason), "certificate of \(server) refused: \(text)", legacyMightHelp: reason == .tooWeak)
    }
}

extension TLSFault.CertificateReason {
    init(verifyResult: Int32) {
        switch verifyResult {
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: self = .nameMismatch
        case X509_V_ERR_CERT_REVOKED: self = .revoked
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK: self = .tooWeak
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_CERT_UNTRUSTED:
            self = .unknownAuthority
        default: self = .other(verifyResult)
        }
    }
}
