/// The kind of a failed status.
///
/// The minor status of Kerberos is libkrb5's code: -1765328384 plus the protocol's error number (RFC 4120 section 7.5.9) below 128, and
/// plus numbers of the library above. The code is not enough: when the same code fails in two mechanisms, as it does
/// inside SPNEGO, MIT gives the second pair a number of its own (100001 and up, in order of appearance). Then the texts decide, which are
/// English unless the process called `setlocale`, and this one does not.
enum GSSClassification {
    static func kind(routineError: UInt32, minor: UInt32, detail: String) -> GSSFault.Kind {
        if let kind = kind(ofKerberos: minor) ?? kind(ofText: detail) { return kind }
        return switch routineError {
        case 1: .mechanismRefused  // BAD_MECH
        case 2, 3: .invalidArgument  // BAD_NAME, BAD_NAMETYPE
        case 4: .badBindings
        case 6, 9, 10: .tokenDefective  // BAD_SIG, DEFECTIVE_TOKEN, DEFECTIVE_CREDENTIAL
        case 7: .credentialMissing  // NO_CRED
        case GSSStatus.credentialsExpired, 12: .credentialExpired  // and CONTEXT_EXPIRED
        default: .other
        }
    }

    /// libkrb5's table of errors and GSSAPI's own for Kerberos.
    private static func kind(ofKerberos minor: UInt32) -> GSSFault.Kind? {
        switch minor &- kerberosBase {
        case 1, 18, 21, 23: .clientRevoked
        case 6: .clientUnknown
        case 7, 155: .serverUnknown
        case 12, 13: .requestRefused
        case 14, 24, 31, 210: .keysWrong
        case 29, 154, 156, 220: .kdcUnreachable
        case 32: .credentialExpired
        case 37, 148: .clockSkew
        case 46, 158: .mutualAuthenticationFailed
        case 139...141, 181, 193...195, 199, 212: .credentialMissing
        case 179, 180, 213, 229, 235: .keytabUnreadable
        default:
            switch minor &- mechanismBase {
            case 0, 1, 2, 12: .credentialMissing
            default: nil
            }
        }
    }

    private static func kind(ofText detail: String) -> GSSFault.Kind? {
        // The name stands inside these two sentences when it is known.
        if detail.contains("not found in Kerberos database") {
            return detail.hasPrefix("Client") ? .clientUnknown : .serverUnknown
        }
        return texts.first { detail.contains($0.0) }?.1
    }

    /// ERROR_TABLE_BASE_krb5, -1765328384.
    private static let kerberosBase: UInt32 = 0x96C7_3A00
    /// ERROR_TABLE_BASE_k5g.
    private static let mechanismBase: UInt32 = 39_756_032

    /// The texts of libkrb5's table, as far as a negotiation can end with them.
    private static let texts: [(String, GSSFault.Kind)] = [
        ("Cannot contact any KDC", .kdcUnreachable),
        ("Cannot find KDC", .kdcUnreachable),
        ("Cannot resolve", .kdcUnreachable),
        ("Preauthentication failed", .keysWrong),
        ("Decrypt integrity check failed", .keysWrong),
        ("credentials have been revoked", .clientRevoked),
        ("Client's entry in database has expired", .clientRevoked),
        ("Password has expired", .clientRevoked),
        ("KDC policy rejects request", .requestRefused),
        ("KDC can't fulfill requested option", .requestRefused),
        ("Clock skew too great", .clockSkew),
        ("Ticket expired", .credentialExpired),
        ("Mutual authentication failed", .mutualAuthenticationFailed),
        ("Channel bindings do not match", .badBindings),
    ]
}
