import Testing

@testable import HTTP1

@Suite struct RequestWriterTests {
    @Test func passesUntouchedBytesThrough() throws {
        let lines =
            "x-ODD:   \u{E9}\u{FF}  \r\nAccept:a\r\nACCEPT:\tb \r\nX_Under_Score: 1\r\nEmpty:\r\nEsc: \u{1B}$B\r\n"
        let result = try forwarded("brew /\u{E9}?a=%zz HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
        #expect(result == "brew /\u{E9}?a=%zz HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
    }

    @Test func dropsWhatEndsAtThisHop() throws {
        let result = try forwarded(
            """
            POST / HTTP/1.1\r\nA: 1\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nx-hop: 2\r\nKeep-Alive: 5\r\n\
            TE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nProxy-Connection: close\r\nProxy-Authorization: Basic a\r\n\
            Host: h\r\nContent-Length: 3\r\nB: 2\r\n\r\n
            """)
        #expect(result == "POST / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nContent-Length: 3\r\n\r\n")
    }

    @Test(arguments: [
        ("http://gw:8080/dav/b", "https://files.example/base/b"),
        ("HTTP://GW:8080/dav/b?q", "https://files.example/base/b?q"),
        ("https://gw:8080/dav/", "https://files.example/base/"), ("http://gw:8080/dav", "https://files.example/base/"),
        ("/dav/b", "/base/b"),
        // What names another place, or nothing below the prefix, is the upstream's to judge.
        ("http://other/dav/b", nil), ("http://gw:80801/dav/b", nil), ("http://gw/dav/b", nil),
        ("http://gw:8080/x", nil),
        ("//gw:8080/dav/b", nil), ("ftp://gw:8080/dav/b", nil), ("dav/b", nil), ("http://gw:8080", nil), ("", nil),
    ])
    func aDestinationNamesTheUpstream(value: String, expected: String?) throws {
        var edits = RequestEdits()
        edits.host = Array("files.example".utf8)
        edits.stripPrefix = Array("/dav".utf8)
        edits.targetPrefix = Array("/base".utf8)
        edits.destinationScheme = Array("https://".utf8)
        edits.destinationPrefix = Array("/base".utf8)
        let lines = "A: 1\r\nDestination: \(value)\r\nOverwrite: F\r\n"
        let result = try forwarded("MOVE /dav/a HTTP/1.1\r\nHost: gw:8080\r\n\(lines)\r\n", edits: edits)
        let written = "A: 1\r\nDestination: \(expected ?? value)\r\nOverwrite: F\r\n"
        #expect(result == "MOVE /base/a HTTP/1.1\r\nHost: files.example\r\n\(written)\r\n")
        // Another method's field of that name is nobody's address, and off is off.
        let read = try forwarded("GET /dav/a HTTP/1.1\r\nHost: gw:8080\r\n\(lines)\r\n", edits: edits)
        #expect(read.contains("Destination: \(value)\r\n"))
        edits.destinationScheme = []
        let off = try forwarded("MOVE /dav/a HTTP/1.1\r\nHost: gw:8080\r\n\(lines)\r\n", edits: edits)
        #expect(off.contains("Destination: \(value)\r\n"))
    }

    /// A route may have no prefixes, and call its upstream by the name that the caller used.
    @Test(arguments: [
        ("http://gw:8080", "https://gw:8080/"), ("https://GW:8080?q", "https://gw:8080/?q"), ("/", "/"), ("/b", "/b"),
        ("http://gw:8080/b", "https://gw:8080/b"), ("http://gw:808", nil), ("http://", nil), ("https://", nil),
        ("http://gw:8080;b", nil), ("//", nil), ("?q", nil),
    ])
    func aDestinationWithoutPrefixesNamesTheServerThatWasCalled(value: String, expected: String?) throws {
        var edits = RequestEdits()
        edits.destinationScheme = octets("https://")
        let result = try forwarded("COPY /a HTTP/1.1\r\nHost: gw:8080\r\nDestination: \(value)\r\n\r\n", edits: edits)
        #expect(result == "COPY /a HTTP/1.1\r\nHost: gw:8080\r\nDestination: \(expected ?? value)\r\n\r\n")
        // RFC 9112 section 3.2.2: of a target in absolute form the authority counts, and no `Host`.
        let absolute = try forwarded(
            "COPY http://gw:8080/a HTTP/1.1\r\nHost: x\r\nDestination: \(value)\r\n\r\n", edits: edits)
        #expect(absolute == result)
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE"])
    func methodsThatReadNameNoOtherAddress(method: String) throws {
        var edits = RequestEdits()
        edits.destinationScheme = octets("https://")
        edits.destinationPrefix = octets("/base")
        let lines = "Destination: http://h/b\r\nIf: <http://h/b> (<t:1>)\r\n"
        #expect(try forwarded("\(method) / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n", edits: edits).contains(lines))
    }

    /// RFC 4918 section 10.4: tags stand outside of lists, and what stands inside of them is the server's own.
    @Test(arguments: [
        ("<http://gw:8080/dav/b> (<urn:uuid:1>)", "<https://files.example/base/b> (<urn:uuid:1>)"),
        ("</dav/b> (Not <DAV:no-lock> [W/\"a\"])", "</base/b> (Not <DAV:no-lock> [W/\"a\"])"),
        (
            "<http://GW:8080/dav/> (<t:1>) (<t:2>)<http://other/dav/b>(<t:3>)\t<https://gw:8080/dav/c?q> ([\"x\"])",
            "<https://files.example/base/> (<t:1>) (<t:2>)<http://other/dav/b>(<t:3>)\t<https://files.example/base/c?q> ([\"x\"])"
        ),
        // Tokens and entity tags that look like ends, lists or addresses.
        (
            "<http://gw:8080/dav/b> ([\")<http://gw:8080/dav/x>\"] <http://gw:8080/dav/token>)",
            "<https://files.example/base/b> ([\")<http://gw:8080/dav/x>\"] <http://gw:8080/dav/token>)"
        ),
        ("<http://gw:8080/dav/b> (<t:)1>)", "<https://files.example/base/b> (<t:)1>)"),
        // No tag of ours.
        ("(<http://gw:8080/dav/token> [\"a\"])", nil), ("<http://gw:8080/x> (<t:1>)", nil), ("<> (<t:1>)", nil),
        ("<//gw:8080/dav/b> (<t:1>)", nil), ("", nil),
        // What cannot be read is the upstream's to refuse.
        ("<http://gw:8080/dav/b", nil), ("<http://gw:8080/dav/b> (<t:1>", nil), ("<http://gw:8080/dav/b> x", nil),
        ("<http://gw:8080/dav/b> (<t:1> [\"a)", nil), ("<http://gw:8080/dav/b> ((<t:1>))", nil),
        ("<http://gw:8080/dav/b> ((<t:1>)", nil), ("<http://gw:8080/dav/b> (<t:1>))", nil),
        ("<http://gw:8080/dav/b> (<t:1>) \"<http://gw:8080/dav/c>\"", nil),
    ])
    func theTagsOfAnIfNameTheUpstream(value: String, expected: String?) throws {
        var edits = RequestEdits()
        edits.host = Array("files.example".utf8)
        edits.stripPrefix = Array("/dav".utf8)
        edits.targetPrefix = Array("/base".utf8)
        edits.destinationScheme = Array("https://".utf8)
        edits.destinationPrefix = Array("/base".utf8)
        for method in ["PUT", "DELETE", "MOVE", "LOCK", "PATCH", "POST"] {
            let result = try forwarded(
                "\(method) /dav/a HTTP/1.1\r\nHost: gw:8080\r\nA: 1\r\nIf: \(value)\r\nB: 2\r\n\r\n", edits: edits)
            #expect(result.contains("\r\nA: 1\r\nIf: \(expected ?? value)\r\nB: 2\r\n"), "\(method)")
        }
        edits.destinationScheme = []
        let off = try forwarded(
            "PUT /dav/a HTTP/1.1\r\nHost: gw:8080\r\nIf: \(value)\r\n\r\n", edits: edits)
        #expect(off.contains("\r\nIf: \(value)\r\n"))
    }

    /// Names that an upstream may read as the injected one, and Connection naming what is injected.
    static let smuggled: [String] = [
        "Authorization: Basic stolen",
        "authorization: a\r\nAUTHORIZATION: b",
        "Authorization:stolen",
        "X-User: evil",
        "X_User: evil",
        "x_uSER: evil",
        "Connection: Authorization",
        "Connection: authorization, x-user, host, content-length\r\nAuthorization: a\r\nX-User: b",
        "Connection: close\r\nConnection: X_User\r\nX_User: 1",
    ]

    @Test(arguments: smuggled)
    func deletesBeforeItInjects(lines: String) throws {
        var edits = RequestEdits()
        edits.drop = names("authorization")
        let name = try #require(FieldName("x-user"))
        #expect(edits.set(name, spelled: octets("X-User"), value: octets("me")) == true)
        let result = try forwarded(
            "GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n\r\n", edits: edits, credential: "Authorization: Bearer t\r\n")
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\nX-User: me\r\nAuthorization: Bearer t\r\n\r\n")
    }

    @Test func deletesTheCallersCredentialEvenWithoutOurs() throws {
        var edits = RequestEdits()
        edits.drop = names("authorization")
        let result = try forwarded("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\n\r\n", edits: edits)
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    /// Look-alikes of fields that are always written anew.
    @Test(arguments: [
        "Content_Length: 9", "Transfer_Encoding: chunked", "Transfer_encoding: x", "Connection_: x\r\nKeep_Alive: 1",
    ])
    func deletesLookAlikesOfFraming(line: String) throws {
        let result = try forwarded("POST / HTTP/1.1\r\nHost: h\r\n\(line)\r\nContent-Length: 1\r\n\r\n")
        #expect(!result.contains("Content_Length") && !result.contains("ransfer_") && !result.contains("Keep_Alive"))
        #expect(result.hasSuffix("Content-Length: 1\r\n\r\n"))
    }

    @Test func writesExactlyOneHostFirst() throws {
        var edits = RequestEdits()
        edits.host = octets("api.example:8443")
        let named = try forwarded("GET http://other/p HTTP/1.1\r\nA: b\r\nHost: h\r\n\r\n", edits: edits)
        #expect(named == "GET /p HTTP/1.1\r\nHost: api.example:8443\r\nA: b\r\n\r\n")
        let callers = try forwarded("GET http://other/p HTTP/1.1\r\nHost: h\r\nConnection: Host\r\n\r\n")
        #expect(callers == "GET /p HTTP/1.1\r\nHost: other\r\n\r\n")
    }

    /// target, strip, prefix, written
    static let targets: [(String, String, String, String)] = [
        ("/a", "", "", "/a"),
        ("/a?b", "", "/base", "/base/a?b"),
        ("/v1/a", "/v1", "", "/a"),
        ("/v1/a", "/v1/", "/x", "/x/a"),
        ("/v1", "/v1", "", "/"),
        ("/v1?q", "/v1", "/x", "/x/?q"),
        ("/%761/a", "/v1", "", "/a"),
        ("/v2/a", "/v1", "", "/v2/a"),
        ("/v10/a", "/v1", "", "/v10/a"),
        ("/v10/a", "/v1/", "", "/v10/a"),
        ("http://o", "", "", "/"),
        ("http://o?q", "", "/x", "/x/?q"),
    ]

    @Test(arguments: targets)
    func writesTargets(target: String, strip: String, prefix: String, expected: String) throws {
        var edits = RequestEdits()
        edits.stripPrefix = octets(strip)
        edits.targetPrefix = octets(prefix)
        let result = try forwarded("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n", edits: edits)
        #expect(result.hasPrefix("GET \(expected) HTTP/1.1\r\n"))
    }

    @Test func writesServerWideOptions() throws {
        #expect(try forwarded("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("OPTIONS * HTTP/1.1\r\n"))
        #expect(
            try forwarded("OPTIONS http://o HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("OPTIONS * HTTP/1.1\r\nHost: o\r\n")
        )
        #expect(try forwarded("OPTIONS http://o/ HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("OPTIONS / HTTP/1.1\r\n"))
        #expect(try forwarded("OPTIONS http://o/p HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("OPTIONS /p HTTP/1.1\r\n"))
        #expect(try forwarded("OPTIONS /p HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("OPTIONS /p HTTP/1.1\r\n"))
        var edits = RequestEdits()
        edits.targetPrefix = octets("/x")
        let below = try forwarded("OPTIONS http://o HTTP/1.1\r\nHost: h\r\n\r\n", edits: edits)
        #expect(below.hasPrefix("OPTIONS /x/ HTTP/1.1\r\n"))
    }

    /// received lines, mode, configured, written lines
    static let userAgents: [(String, UserAgentMode, String, String)] = [
        ("User-Agent: curl/8\r\n", .keep, "", "User-Agent: curl/8\r\n"),
        ("user-agent:curl/8\r\n", .prepend, "OIC-Agent/1.0 ", "User-Agent: OIC-Agent/1.0 curl/8\r\n"),
        ("", .prepend, "OIC-Agent/1.0 ", "User-Agent: OIC-Agent/1.0\r\n"),
        ("User-Agent:\r\n", .prepend, "OIC-Agent/1.0 ", "User-Agent: OIC-Agent/1.0\r\n"),
        ("User-Agent: a\r\nUser-Agent: b\r\n", .prepend, "P ", "User-Agent: P a\r\n"),
        ("User_Agent: a\r\n", .prepend, "P ", "User-Agent: P\r\n"),
        ("Connection: user-agent\r\nUser-Agent: a\r\n", .prepend, "P ", "User-Agent: P\r\n"),
        ("User-Agent: a\r\n", .replace, "P", "User-Agent: P\r\n"),
    ]

    @Test(arguments: userAgents)
    func editsTheUserAgent(lines: String, mode: UserAgentMode, own: String, expected: String) throws {
        var edits = RequestEdits()
        edits.userAgentMode = mode
        edits.userAgent = octets(own)
        let result = try forwarded("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n", edits: edits)
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\n\(expected)\r\n")
    }

    /// target, credential, written target
    static let queries: [(String, String?, String)] = [
        ("/a", "token=t", "/a?token=t"),
        ("/a?b=1", "token=t", "/a?b=1&token=t"),
        ("/a?token=x&b=1&token", "token=t", "/a?b=1&token=t"),
        ("/a?%74oken=x", "token=t", "/a?token=t"),
        ("/a?b=1;token=x&c", "token=t", "/a?b=1&c&token=t"),
        ("/a?token=x;b=1;c", "token=t", "/a?b=1;c&token=t"),
        ("/a?TOKEN=x&Token", "token=t", "/a?token=t"),
        ("/a?%54%6f%6B%65%6e=x&b=%zz", "token=t", "/a?b=%zz&token=t"),
        ("/a?+token=x&%20%20token=y&token%00z=1", "token=t", "/a?token=t"),
        ("/a?token[]=x&token%5B0%5D=y&tokens[]=1", "token=t", "/a?tokens[]=1&token=t"),
        ("/a?&&b&", "token=t", "/a?&&b&&token=t"),
        ("/a?\u{E9}=1&x=?token=1", "token=t", "/a?\u{E9}=1&x=?token=1&token=t"),
        ("/a?", nil, "/a?"),
        ("/a?b", "token=t", "/a?b&token=t"),
        ("/a?b=token=1&tokens=2", "token=t", "/a?b=token=1&tokens=2&token=t"),
        ("/a?token=x", nil, "/a"),
        ("/a?", "token=t", "/a?token=t"),
    ]

    @Test(arguments: queries)
    func injectsIntoTheQuery(target: String, credential: String?, expected: String) throws {
        var edits = RequestEdits()
        edits.place = .query
        edits.placeName = octets("token")
        let result = try forwarded("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n", edits: edits, credential: credential)
        #expect(result == "GET \(expected) HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    /// received lines, credential, written lines
    static let cookies: [(String, String?, String)] = [
        ("", "sid=t", "Cookie: sid=t\r\n"),
        ("Cookie: a=1; sid=x; b=2\r\n", "sid=t", "Cookie: a=1; b=2; sid=t\r\n"),
        ("Cookie: a=1\r\ncookie: sid=x\r\n", "sid=t", "Cookie: a=1; sid=t\r\n"),
        ("Cookie: sid = x;;\r\n", nil, ""),
        ("Cookie:a=1;b=2;sid=x;c=3\r\n", "sid=t", "Cookie: a=1;b=2;c=3; sid=t\r\n"),
        ("Connection: cookie\r\nCookie: a=1\r\n", "sid=t", "Cookie: sid=t\r\n"),
        ("Cookie: SID=x; %73id=y; sid[]=z; sidx=1\r\n", "sid=t", "Cookie: sidx=1; sid=t\r\n"),
        ("Cookie: a=1,sid=x,b={\"c\":1,\"d\":2}\r\n", "sid=t", "Cookie: a=1,b={\"c\":1,\"d\":2}; sid=t\r\n"),
    ]

    @Test(arguments: cookies)
    func injectsIntoTheCookie(lines: String, credential: String?, expected: String) throws {
        var edits = RequestEdits()
        edits.place = .cookie
        edits.placeName = octets("sid")
        let result = try forwarded("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n", edits: edits, credential: credential)
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\n\(expected)\r\n")
    }

    /// value, as a parameter, as a cookie
    @Test(arguments: [
        ("abc-._~", "abc-._~", "abc-._~"), ("a+b/c==", "a%2Bb%2Fc%3D%3D", "a+b/c=="),
        ("a b;c,\"d\\", "a%20b%3Bc%2C%22d%5C", "a%20b%3Bc%2C%22d%5C"), ("a%b&c#", "a%25b%26c%23", "a%b&c#"),
        ("\u{E9}\u{1}", "%E9%01", "%E9%01"), ("", "", ""),
    ])
    func encodesForItsPlace(value: String, parameter: String, cookie: String) {
        let bytes = octets(value)
        #expect(text(written { writeParameterValue(bytes.span, into: &$0) } ?? []) == parameter)
        #expect(text(written { writeCookieValue(bytes.span, into: &$0) } ?? []) == cookie)
    }

    @Test func addsItselfToVia() throws {
        var edits = RequestEdits()
        edits.via = octets("gate")
        #expect(
            try forwarded("GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 x\r\n\r\n", edits: edits)
                == "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 x\r\nVia: 1.1 gate\r\n\r\n")
        #expect(
            try forwarded("GET / HTTP/1.0\r\nHost: h\r\n\r\n", edits: edits)
                == "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 gate\r\n\r\n")
    }

    @Test(arguments: [
        ("Via: 1.1 gate", true), ("Via: 1.0 a, HTTP/1.1 GATE (x)", true), ("Via: 1.1 a\r\nVia: 2 gate", true),
        ("Via: 1.1 gate2", false), ("Via: 1.1 a (x, 1.1 gate)", false), ("Via: 1.1 a (x\\), 1.1 gate", false),
        ("Via: 1.1 a (x (y), z), 1.1 gate", true), ("Via: 1.1 a(x),1.1 gate(y)", true), ("Via: 1.1 (x) gate", true),
        ("Via: 1.1 a (x\\)), 1.1 gate", true), ("Via: , ,1.1\tgate\t", true), ("Via: 1.1 gate:80", false),
        ("Via: 1.1 a\r\nVia: 1.0 b, 1.1 c\r\nVia: 1.1 gate", true), ("Via: gate", false), ("Via: 1.1 a (gate)", false),
        ("X: 1.1 gate", false),
    ])
    func findsItselfInVia(line: String, found: Bool) throws {
        let bytes = octets("GET / HTTP/1.1\r\nHost: h\r\n\(line)\r\n\r\n")
        let head = try parsedRequest(bytes)
        #expect(head.viaNames(octets("gate").span, in: bytes.span) == found)
    }

    @Test func handlesExpectation() throws {
        let asked = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
        #expect(try forwarded(asked) == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n")
        #expect(
            try forwarded(asked, expectContinue: true)
                == "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        let other = "POST / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n"
        #expect(try forwarded(other) == other)
    }

    @Test func passesAnUpgradeOnlyWhenTold() throws {
        let asked = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        #expect(try forwarded(asked) == "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(
            try forwarded(asked, upgrade: true)
                == "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    }

    @Test func writesTheFramingAnew() throws {
        #expect(
            try forwarded("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\nA: b\r\n\r\n")
                == "POST / HTTP/1.1\r\nHost: h\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(
            try forwarded("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 007\r\n\r\n")
                == "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\n")
    }

    @Test func refusesToSetWhatItOwns() throws {
        var edits = RequestEdits()
        for name in ["host", "Content-Length", "transfer_encoding", "connection", "upgrade"] {
            let field = try #require(FieldName(name))
            #expect(edits.set(field, value: octets("x")) == false)
        }
        let field = try #require(FieldName("x-a"))
        for value in ["a\r\nB: c", "a\nb", "a\0"] { #expect(edits.set(field, value: octets(value)) == false) }
        #expect(edits.set(field, spelled: octets("x-b"), value: octets("a")) == false)
        #expect(edits.setLines.isEmpty && edits.drop.isEmpty)
    }

    @Test func neverWritesPastTheEnd() throws {
        let bytes = octets("GET /abc HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n")
        let head = try parsedRequest(bytes)
        let edits = RequestEdits()
        for capacity in 0...bytes.count {
            let result = written(capacity: capacity) { output in
                writeRequest(head, bytes: bytes.span, edits: edits, credential: nil, framing: .none, into: &output)
            }
            #expect((result == nil) == (capacity < bytes.count))
        }
    }
}
