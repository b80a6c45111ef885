import Testing

@testable import HTTP1

/// Credentials that authenticate a connection (RFC 4559 section 6) are seen wherever an upstream would get them.
@Suite struct BoundCredentialTests {
    private static func edits(drops: String?, renamed: String, to renamedTo: String) -> RequestEdits {
        var edits = RequestEdits()
        if let drops { edits.drop = names(drops) }
        edits.renamed = octets(renamed)
        edits.renamedTo = octets(renamedTo)
        return edits
    }

    private static func binds(_ lines: String, _ edits: RequestEdits = RequestEdits()) throws -> Bool {
        let bytes = octets("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\nAccept: Negotiate\r\n\r\n")
        let head = try parsedRequest(bytes)
        return head.bindsConnection(in: bytes.span, edits)
    }

    @Test(arguments: [
        ("Authorization: Negotiate YII=", true), ("authorization: NTLM TlRM", true), ("AUTHORIZATION: nTLM", true),
        ("Authorization: negotiate", true), ("Authorization: Basic a\r\nAuthorization: NTLM b", true),
        // Some reader may take the first token for the scheme, wherever it stands.
        ("Authorization: \"Negotiate\" a", true), ("Authorization: ,NTLM,", true), ("Authorization: NTLM=", true),
        ("Authorization: Basic NTLM", false), ("Authorization: NTLMx a", false), ("Authorization: NTL", false),
        ("Authorization: xNegotiate a", false), ("Authorization:", false), ("Authorization: \"\"", false),
        ("Proxy-Authorization: NTLM a", false), ("X-Authorization: NTLM a", false), ("X: y", false),
    ])
    func aSchemeCountsByItsName(line: String, binds: Bool) throws {
        #expect(try Self.binds(line) == binds)
    }

    /// A credential counts under the name that reaches the upstream as `Authorization`.
    @Test(
        arguments: [
            ("Authorization: NTLM a", "authorization", "", "", false), ("Authorization: NTLM a", "x", "", "", true),
            ("Authorization: NTLM a", nil, "x-old", "authorization", true),
            ("X-Old: NTLM a", "authorization", "x-old", "Authorization", true),
            ("x-OLD: Basic a\r\nX-Old: NTLM a", "authorization", "x-old", "AUTHORIZATION", true),
            ("X-Old: NTLM a", "authorization", "x-old", "x-new", false),
            ("X-Old: NTLM a", nil, "x-old", "x-new", false),
            ("X_Old: NTLM a", "authorization", "x-old", "authorization", false),
            ("X-Old: Basic a", "authorization", "x-old", "authorization", false),
            ("Authorization: NTLM a", "authorization", "x-old", "authorization", false),
            ("Authorization: NTLM a", "authorization", "authorization", "x-new", false),
        ] as [(String, String?, String, String, Bool)])
    func aCredentialCountsWhereItPasses(line: String, drops: String?, renamed: String, to: String, binds: Bool) throws {
        #expect(try Self.binds(line, Self.edits(drops: drops, renamed: renamed, to: to)) == binds)
    }

    @Test(
        arguments: [
            (nil, "", "", true), ("authorization", "", "", false), ("x-other", "", "", true),
            ("authorization", "x-old", "Authorization", true), ("authorization", "x-old", "x-new", false),
            (nil, "authorization", "x-new", true),
        ] as [(String?, String, String, Bool)])
    func theCallersCredentialPasses(drops: String?, renamed: String, to: String, passes: Bool) {
        #expect(Self.edits(drops: drops, renamed: renamed, to: to).passesAuthorization == passes)
    }

    @Test(arguments: [
        ("WWW-Authenticate: Basic", true), ("Proxy-Authenticate: Basic", true), ("Authorization: Basic", false),
        ("Authentication-Info: a", false),
    ])
    func challengesAreSeenInBothFields(line: String, hasChallenges: Bool) throws {
        let head = try parsedResponse(octets("HTTP/1.1 401 No\r\n\(line)\r\n\r\n"))
        #expect(head.hasChallenges == hasChallenges)
    }

    /// A list of as many challenges as are read may have had more.
    @Test(arguments: [(63, false), (64, true), (65, true)])
    func aLongListMayHoldOne(count: Int, isBound: Bool) throws {
        let list = Array(repeating: "Basic", count: count).joined(separator: ", ")
        let bytes = octets("HTTP/1.1 401 No\r\nWWW-Authenticate: \(list)\r\n\r\n")
        #expect(try parsedResponse(bytes).bindsConnection(in: bytes.span) == isBound)
    }
}
