internal import CGSSAPI

/// A mechanism of GSSAPI that a context is made with.
public enum GSSMechanism: Sendable, Equatable, CaseIterable {
    /// 1.3.6.1.5.5.2, RFC 4178: the one that HTTP's Negotiate asks for (RFC 4559 section 4). Only Kerberos is ever offered inside.
    case spnego
    /// 1.2.840.113554.1.2.2, RFC 4121: Kerberos without negotiation. Some servers accept it as Negotiate, too.
    case kerberos

    /// The mechanism's number in the C half.
    var code: Int32 {
        switch self {
        case .spnego: Int32(CGSS_SPNEGO)
        case .kerberos: Int32(CGSS_KRB5)
        }
    }
}
