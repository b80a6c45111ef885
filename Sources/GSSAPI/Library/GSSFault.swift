/// The reason for which GSSAPI gave no security context, no token, or no credential.
///
/// `message` is safe to log and to show an operator: the library's own texts (`gss_display_status`, RFC 2744 section 5.11), names of
/// principals, hosts and configured files. Never a key, a ticket or a token.
public struct GSSFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind, for code that decides by it.
    public let kind: Kind
    /// The text for people: at most 512 bytes of UTF-8 without control characters.
    public let message: String

    /// The kinds of faults that callers tell apart.
    public enum Kind: Sendable, Equatable, CaseIterable {
        /// The shared library is not installed, or lacks a function; only another machine or image helps.
        case libraryMissing
        /// No ticket to begin with: no cache, an empty one, or no key of the wanted principal.
        case credentialMissing
        /// The tickets have expired, and no key is at hand to get new ones.
        case credentialExpired
        /// The keytab cannot be opened or has another format.
        case keytabUnreadable
        /// No KDC of the realm answered, or none is known.
        case kdcUnreachable
        /// The caller's deadline passed before the library returned.
        case tooLate
        /// The client's principal is not in the Kerberos database (KDC_ERR_C_PRINCIPAL_UNKNOWN, RFC 4120 section 7.5.9).
        case clientUnknown
        /// The server's principal is not in the Kerberos database (KDC_ERR_S_PRINCIPAL_UNKNOWN, RFC 4120 section 7.5.9).
        case serverUnknown
        /// The KDC refuses the keys (KDC_ERR_PREAUTH_FAILED): the password has changed since the keytab was made. Each further try
        /// may count towards a lock-out.
        case keysWrong
        /// The KDC refuses the client whatever its keys are: locked, disabled, expired (KDC_ERR_CLIENT_REVOKED and kin).
        case clientRevoked
        /// The KDC refuses this request by its rules, and not the keys (KDC_ERR_POLICY, KDC_ERR_BADOPTION): tickets in a user's name that
        /// it gives to nobody, not to us, or not for this server.
        case requestRefused
        /// The clocks of this machine and of the KDC or server differ by more than the allowed skew, five minutes by default.
        case clockSkew
        /// The server did not prove who it is although that was asked for.
        case mutualAuthenticationFailed
        /// The server refused the negotiation, or takes no mechanism that is offered (negState "reject", RFC 4178 section 4.2.2).
        case mechanismRefused
        /// The received token is none, is not for this context, or has been changed.
        case tokenDefective
        /// The channel bindings (RFC 5056) do not fit.
        case badBindings
        /// A token, received or made, is longer than `GSSInitiator.maximumToken`.
        case tokenTooLong
        /// A name, a path or a call that cannot be right, before anything was asked of the library.
        case invalidArgument
        /// Everything else; the message tells.
        case other
    }

    /// - Parameter message: safe to log as described above; cut to 512 bytes, control characters replaced by spaces.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = Self.bounded(message)
    }

    /// The message.
    public var description: String { message }

    /// The longest message in bytes of UTF-8.
    public static let maximumMessage = 512

    /// Whole characters only, so that the cut never leaves half a scalar.
    private static func bounded(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            let written: Unicode.Scalar = isControl ? " " : scalar
            count += UTF8.width(written)
            guard count <= maximumMessage else { break }
            kept.append(written)
        }
        return String(kept)
    }
}
