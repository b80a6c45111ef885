import Testing

@testable import HTTP1

@Suite struct PlaceholderTests {
    static let token = "\(Placeholder.text)"

    private func edits(_ place: CredentialPlace = .header, named name: String = "") -> RequestEdits {
        var edits = RequestEdits()
        edits.dropsPlaceholders = true
        edits.place = place
        edits.placeName = octets(name)
        if place == .header { edits.drop = names("authorization") }
        return edits
    }

    /// It has to pass for a token68, and for itself in a query and a cookie.
    @Test func itsTextBeginsWithItsMark() {
        #expect(Self.token.hasPrefix("\(Placeholder.mark)"))
        #expect(Self.token.utf8.allSatisfy { $0 >= 0x61 && $0 <= 0x7a || $0 == 0x2d })
    }

    @Test(arguments: [
        ("cardea-placeholder", true), ("x cardea-placeholder-of-a-later-version y", true),
        ("%63ardea%2dplaceholde%72", true), ("ccardea-placeholder", true), ("cardea-placeholde", false),
        ("Cardea-Placeholder", false), ("cardea-cardea-placeholde%7", false), ("", false),
    ])
    func isKnownWhereverItStands(text: String, holds: Bool) {
        let bytes = octets("--" + text + "--")
        #expect(bytes.span.holdsPlaceholder(ByteRange(2..<(bytes.count - 2))) == holds)
        #expect(bytes.span.holdsPlaceholder(ByteRange(0..<bytes.count)) == holds)
    }

    @Test func fieldsParametersAndCookiesGo() throws {
        let result = try forwarded(
            "GET /p?a=1&t=\(Self.token);u=\(Self.token)&b HTTP/1.1\r\nHost: h\r\nX: \(Self.token)\r\nY: 1\r\n"
                + "Cookie: a=1; t=\(Self.token); b=2\r\nCookie: t=\(Self.token)\r\n\r\n",
            edits: edits(), credential: "Authorization: Bearer real\r\n")
        #expect(
            result
                == "GET /p?a=1&b HTTP/1.1\r\nHost: h\r\nY: 1\r\nCookie: a=1; b=2\r\nAuthorization: Bearer real\r\n\r\n")
    }

    @Test func theCredentialStaysInItsPlace() throws {
        let request = "GET /p?k=x&t=\(Self.token) HTTP/1.1\r\nHost: h\r\nCookie: k=x; t=\(Self.token)\r\n\r\n"
        let query = try forwarded(request, edits: edits(.query, named: "k"), credential: "k=real")
        #expect(query == "GET /p?k=real HTTP/1.1\r\nHost: h\r\nCookie: k=x\r\n\r\n")
        let cookie = try forwarded(request, edits: edits(.cookie, named: "k"), credential: "k=real")
        #expect(cookie == "GET /p?k=x HTTP/1.1\r\nHost: h\r\nCookie: k=real\r\n\r\n")
    }

    /// The prefix that a WebGate looks for is not lost with the caller's value, and `keep_as` keeps no placeholder.
    @Test func editedFieldsAreWrittenWithoutIt() throws {
        var edits = edits()
        edits.userAgentMode = .prepend
        edits.userAgent = octets("OIC/1.0 ")
        edits.renamed = octets("authorization")
        edits.renamedTo = octets("X-Caller")
        let result = try forwarded(
            "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: \(Self.token)\r\nAuthorization: Bearer \(Self.token)\r\n\r\n",
            edits: edits)
        #expect(!result.contains("placeholder") && !result.contains("X-Caller"))
        #expect(result.contains("User-Agent: OIC/1.0"))
    }

    /// Every other byte is left as it came, where placeholders are looked for too.
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET /? HTTP/1.1\r\nHost: h\r\nCookie: =a;;  [=b ,c\r\n\r\n",
        "GET /?&&a;=;b=%zz HTTP/1.1\r\nHost: h\r\nCookie:\r\nX:\tcardea-placehold \r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
    ])
    func otherBytesPass(request: String) throws { #expect(try forwarded(request, edits: edits()) == request) }
}
