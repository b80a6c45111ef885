import Testing

@testable import GSSAPI

@Suite struct LibraryTests {
    @Test func aMissingLibraryIsNamed() {
        guard case .failure(let fault) = GSSLibrary.open(soname: "libgssapi_made_up.so.9") else {
            Issue.record("opened a library that does not exist")
            return
        }
        #expect(fault.kind == .libraryMissing)
        #expect(fault.message.contains("libgssapi_made_up.so.9"))
    }

    @Test func aMissingFunctionIsNamed() {
        guard case .failure(let fault) = GSSLibrary.open(soname: "libc.so.6") else {
            Issue.record("found GSSAPI in the C library")
            return
        }
        #expect(fault.kind == .libraryMissing)
        #expect(fault.message.contains("gss_import_name"))
    }

    @Test func messagesAreBoundedAndHaveNoControls() {
        let fault = GSSFault(.other, "a\u{0}b\nc\u{9B}" + String(repeating: "é", count: 600))
        #expect(fault.message.hasPrefix("a b c é"))
        #expect(fault.message.utf8.count <= GSSFault.maximumMessage)
        #expect(fault.message.utf8.count >= GSSFault.maximumMessage - 3)
    }

    @Test(arguments: [
        (UInt32(0x96C7_3A06), GSSFault.Kind.clientUnknown), (0x96C7_3A07, .serverUnknown),
        (0x96C7_3A12, .clientRevoked),
        (0x96C7_3A18, .keysWrong), (0x96C7_3A25, .clockSkew), (0x96C7_3A9C, .kdcUnreachable),
        (0x96C7_3A20, .credentialExpired),
        (0x96C7_3A2E, .mutualAuthenticationFailed), (0x96C7_3AC3, .credentialMissing), (0x96C7_3AEB, .keytabUnreadable),
        (39_756_033, .credentialMissing), (0x96C7_3A0C, .requestRefused), (0x96C7_3A0D, .requestRefused),
    ])
    func codesOfKerberosHaveKinds(minor: UInt32, kind: GSSFault.Kind) {
        #expect(GSSClassification.kind(routineError: 13, minor: minor, detail: "") == kind)
    }

    @Test(arguments: [
        ("Server HTTP/x@TEST not found in Kerberos database", GSSFault.Kind.serverUnknown),
        ("Client 'x@TEST' not found in Kerberos database", .clientUnknown),
        ("Cannot contact any KDC for realm 'TEST'", .kdcUnreachable), ("Clock skew too great", .clockSkew),
        ("KDC can't fulfill requested option", .requestRefused), ("KDC policy rejects request", .requestRefused),
        ("made up", .other),
    ])
    func textsDecideWhereANumberWasReplaced(text: String, kind: GSSFault.Kind) {
        #expect(GSSClassification.kind(routineError: 13, minor: 100_001, detail: text) == kind)
    }

    @Test(arguments: [
        (UInt32(1), GSSFault.Kind.mechanismRefused), (2, .invalidArgument), (4, .badBindings), (6, .tokenDefective),
        (7, .credentialMissing), (9, .tokenDefective), (11, .credentialExpired), (12, .credentialExpired), (13, .other),
    ])
    func routineErrorsHaveKinds(error: UInt32, kind: GSSFault.Kind) {
        #expect(GSSClassification.kind(routineError: error, minor: 0, detail: "") == kind)
    }
}
