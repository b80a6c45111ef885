import Testing

@testable import HTTP1

@Suite struct ResponseWriterTests {
    @Test func passesUntouchedBytesThrough() throws {
        let response =
            "HTTP/1.1 299 Odd \u{E9}\r\nsErVeR:x\r\nX-A:  \u{FF} \r\nSet-Cookie: a=1, b\r\nSet-Cookie: b=2\r\nE:\r\n"
        #expect(
            try answered("\(response)Content-Length: 3\r\n\r\n") == "\(response)Content-Length: 3\r\n\r\n")
    }

    @Test func dropsWhatEndsAtThisHop() throws {
        let result = try answered(
            """
            HTTP/1.0 200 OK\r\nA: 1\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nUpgrade: x\r\n\
            Proxy-Authenticate: Basic\r\nTrailer: X\r\nContent_Length: 9\r\n\
            Content-Length: 2\r\nContent-Length: 2\r\n\r\n
            """)
        #expect(result == "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 2\r\n\r\n")
    }

    @Test func repairsFoldsAndSpacedColons() throws {
        let result = try answered(
            "HTTP/1.1 200 OK\r\nA: 1\r\nB : 2 \r\nC: d \t\r\n  e\r\n\tf\r\nG:\r\n h\r\n \r\nI: 1\r\nJ: k\r\n l \t\r\n"
                + "Content-Length: 0\r\n\r\n"
        )
        #expect(
            result
                == "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: d e f\r\nG: h\r\nI: 1\r\nJ: k l\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func dropsCookiesByPrefix() throws {
        var edits = ResponseEdits()
        edits.dropCookies = PrefixSet(["OAMAuthnCookie", "ObSSOCookie", "OAMRequestContext"].map(octets))
        let result = try answered(
            """
            HTTP/1.1 200 OK\r\nSet-Cookie: OAMAuthnCookie_h:80_1=x; Path=/\r\nset-cookie: ObSSOCookie=y\r\n\
            Set-Cookie: OAMRequestContext_a =z\r\nSet-Cookie: JSESSIONID=ObSSOCookie\r\nSet-Cookie: obssocookie=1\r\n\
            Set-Cookie:\r\nContent-Length: 0\r\n\r\n
            """, edits: edits)
        #expect(
            result
                == """
                HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=ObSSOCookie\r\nSet-Cookie: obssocookie=1\r\nSet-Cookie:\r\n\
                Content-Length: 0\r\n\r\n
                """)
    }

    /// A prefix is compared with the name alone, which ends at `=` or `;` and has no blanks around it.
    @Test(arguments: [
        ("a=b", "a=", false), ("a=b", "a", true), ("a;b", "a;", false), ("a;b", "a", true), ("a =b", "a ", false),
        (" ab=c", "ab", true), ("ab=c", "abc", false), ("ab", "ab", true), ("=b", "b", false), (";b", "b", false),
    ])
    func aPrefixIsOneOfTheName(cookie: String, prefix: String, isDropped: Bool) throws {
        var edits = ResponseEdits()
        edits.dropCookies = PrefixSet([[], octets("other"), octets(prefix)])
        let lines = "A: 1\r\nSet-Cookie: \(cookie)\r\n"
        let result = try answered("HTTP/1.1 204 OK\r\n\(lines)\r\n", edits: edits)
        #expect(result == "HTTP/1.1 204 OK\r\n\(isDropped ? "A: 1\r\n" : lines)\r\n")
    }

    @Test func saysPrivateWhereItIsTold() throws {
        let bytes = octets("HTTP/1.1 200 OK\r\nA: b\r\nTrailer: X\r\n\r\n")
        let head = try parsedResponse(bytes)
        var edits = ResponseEdits()
        edits.keepsTrailer = true
        let lines = octets("C: d\r\n")
        for (isPrivate, line) in [(true, "Cache-Control: private\r\n"), (false, "")] {
            let result = written { output in
                writeResponse(
                    head, bytes: bytes.span, edits: edits, isPrivate: isPrivate, lines: lines.span, framing: .none,
                    callerMinorVersion: 1, close: false, into: &output)
            }
            #expect(text(result ?? []) == "HTTP/1.1 200 OK\r\nA: b\r\nTrailer: X\r\n\(line)C: d\r\n\r\n")
        }
    }

    /// response, minor version of the caller, close, end of the head
    static let ends: [(String, UInt8, Bool, String)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 1, false, "OK\r\nContent-Length: 1\r\n\r\n"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 1, true,
            "OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 0, false,
            "OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n"
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, false, "OK\r\nConnection: close\r\n\r\n"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n", 1, false,
            "OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        ),
        ("HTTP/1.0 200 OK\r\n\r\n", 1, false, "OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HTTP/1.1 204 OK\r\nContent-Length: 7\r\n\r\n", 1, false, "OK\r\n\r\n"),
        ("HTTP/1.1 199 OK\r\nA: b\r\n\r\n", 0, false, "OK\r\nA: b\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, true, "OK\r\nConnection: close\r\n\r\n"),
    ]

    @Test(arguments: ends)
    func framesForTheCaller(response: String, minor: UInt8, close: Bool, end: String) throws {
        let result = try answered(response, minorVersion: minor, close: close)
        #expect(result.hasSuffix(" \(end)"))
    }

    @Test func dropsFieldsByName() throws {
        var edits = ResponseEdits()
        edits.via = octets("gate")
        for name in ["cache-control", "Cache_Control"] {
            edits.drop = names(name)
            let result = try answered("HTTP/1.1 204 OK\r\nCACHE_CONTROL: x\r\nCache-control: a\r\n\r\n", edits: edits)
            #expect(result == "HTTP/1.1 204 OK\r\nVia: 1.1 gate\r\n\r\n")
        }
        edits.drop = names("cache-control")
        let result = try answered(
            "HTTP/1.0 200 OK\r\nCache_Control: x\r\ncache-control: public\r\nContent-Length: 0\r\n\r\n", edits: edits)
        #expect(result == "HTTP/1.1 200 OK\r\nVia: 1.0 gate\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func passesASwitchWhenTold() throws {
        let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nA: b\r\n\r\n"
        #expect(
            try answered(response, upgrade: true)
                == "HTTP/1.1 101 Switching Protocols\r\nA: b\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    }
}
