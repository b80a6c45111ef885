import Testing

@testable import HTTP1

/// Fields of a request that are written under another name or with another value.
@Suite struct EditedFieldsTests {
    /// received lines, written lines
    @Test(arguments: [
        ("Authorization: a\r\n", "X-Caller: a\r\n"), ("AUTHORIZATION:  a b \r\nA: 1\r\n", "X-Caller: a b\r\nA: 1\r\n"),
        ("A: 1\r\nAuthorization: a\r\nB: 2\r\nauthorization: b\r\n", "A: 1\r\nX-Caller: a\r\nB: 2\r\nX-Caller: b\r\n"),
        ("X-Caller: forged\r\nX_Caller: forged\r\nauthorization:\r\n", "X-Caller: \r\n"),
        ("Connection: authorization\r\nAuthorization: a\r\n", ""), ("A: 1\r\n", "A: 1\r\n"),
    ])
    func aFieldIsForwardedUnderAnotherName(received: String, written: String) throws {
        var edits = RequestEdits()
        edits.drop = names("authorization", "x-caller")
        edits.renamed = octets("authorization")
        edits.renamedTo = octets("X-Caller")
        let result = try forwarded(
            "GET / HTTP/1.1\r\nHost: h\r\n\(received)\r\n", edits: edits, credential: "Authorization: ours\r\n")
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\n\(written)Authorization: ours\r\n\r\n")
    }

    /// The exact name is meant: a look-alike of it goes with the names that are deleted.
    @Test func aLookAlikeIsNotForwardedUnderAnotherName() throws {
        var edits = RequestEdits()
        edits.drop = names("x-old")
        edits.renamed = octets("x-old")
        edits.renamedTo = octets("x-new")
        let result = try forwarded("GET / HTTP/1.1\r\nHost: h\r\nX_Old: a\r\nX-Old: b\r\n\r\n", edits: edits)
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\nx-new: b\r\n\r\n")
    }

    /// method, received lines, written lines (RFC 9110 section 7.6.2)
    @Test(arguments: [
        ("OPTIONS", "Max-Forwards: 10\r\n", "Max-Forwards: 9\r\n"),
        ("TRACE", "max-forwards:1\r\n", "Max-Forwards: 0\r\n"),
        ("TRACE", "Max-Forwards: 0\r\n", "Max-Forwards: 0\r\n"),
        ("TRACE", "Max-Forwards: x\r\n", "Max-Forwards: x\r\n"),
        ("TRACE", "Max-Forwards:\r\n", "Max-Forwards: \r\n"), ("TRACE", "Max_Forwards: 3\r\n", ""),
        ("TRACE", "Connection: max-forwards\r\nMax-Forwards: 3\r\n", ""),
        ("GET", "Max_Forwards: 3\r\n", "Max_Forwards: 3\r\n"),
        ("GET", "Max-Forwards: 10\r\n", "Max-Forwards: 10\r\n"),
        ("OPTIONS", "A: 1\r\nMax-Forwards: 2\r\nB: 2\r\n", "A: 1\r\nMax-Forwards: 1\r\nB: 2\r\n"),
    ])
    func hopsAreCountedDown(method: String, received: String, written: String) throws {
        let result = try forwarded("\(method) / HTTP/1.1\r\nHost: h\r\n\(received)\r\n")
        #expect(result == "\(method) / HTTP/1.1\r\nHost: h\r\n\(written)\r\n")
    }

    @Test(arguments: ["TRACE", "OPTIONS"])
    func hopsThatAreDeletedAreNotCounted(method: String) throws {
        var edits = RequestEdits()
        edits.drop = names("max-forwards")
        let result = try forwarded("\(method) / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n", edits: edits)
        #expect(result == "\(method) / HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    /// An expectation is void in HTTP/1.0 (RFC 9110 section 10.1.1), and another one than `100-continue` is the upstream's.
    @Test(arguments: [
        ("1.1", "Expect: 100-continue\r\n", ""), ("1.1", "Expect: 100-Continue\r\n", ""), ("1.0", "Expect: x\r\n", ""),
        ("1.0", "Expect: 100-continue\r\n", ""), ("1.1", "Expect: x\r\n", "Expect: x\r\n"),
        ("1.1", "Expect: 100-continue\r\nExpect: x\r\n", "Expect: x\r\n"),
    ])
    func anExpectationIsForwardedWhereItMeansSomething(version: String, received: String, written: String) throws {
        let result = try forwarded("PUT / HTTP/\(version)\r\nHost: h\r\n\(received)\r\n")
        #expect(result == "PUT / HTTP/1.1\r\nHost: h\r\n\(written)\r\n")
    }

    /// A value that a route deletes is no part of one that it writes.
    @Test func aDeletedValueIsEditedAsAnEmptyOne() throws {
        var edits = RequestEdits()
        edits.drop = names("user-agent", "cookie")
        edits.userAgentMode = .prepend
        edits.userAgent = octets("P ")
        edits.place = .cookie
        edits.placeName = octets("sid")
        let result = try forwarded(
            "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n", edits: edits,
            credential: "sid=t")
        #expect(result == "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: P\r\nCookie: sid=t\r\n\r\n")
    }

    /// received path, prefix, octets that do not reach the upstream
    @Test(arguments: [
        ("/v1/a", "/v1", 3), ("/v1", "/v1", 3), ("/%761/a", "/v1", 5), ("/v10/a", "/v1", 0), ("/v1/a", "", 0),
        ("/v1/a", "/v1/", 4), ("/v1?q", "/v1", 3), ("/a", "/v1", 0),
    ])
    func theStrippedPartIsMeasured(path: String, prefix: String, length: Int) {
        var edits = RequestEdits()
        edits.stripPrefix = octets(prefix)
        let stripped = edits.strippedLength(of: octets(path).span)
        #expect(stripped == length)
    }

    @Test(arguments: [
        ("X-Request-Id: a", true), ("traceparent: a", true), ("TraceState: a", false), ("X_Request_Id: a", false),
    ])
    func identifiersAreLookedForAtOnce(line: String, carries: Bool) throws {
        let head = try parsedRequest(octets("GET / HTTP/1.1\r\nHost: h\r\n\(line)\r\n\r\n"))
        #expect(head.carriesIdentifiers == carries)
    }
}
