import Testing

@testable import HTTP1

@Suite struct RequestHeadTests {
    static let refused: [(String, HeadFault)] = [
        // Lines (RFC 9112 §2.2, §5.1, §5.2)
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .emptyLineBeforeHead),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", .bareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", .bareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", .bareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n", .bareCarriageReturn),
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", .bareCarriageReturn),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n", .bareCarriageReturn),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", .nul),
        ("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", .nul),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", .blankBeforeFirstField),
        ("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", .blankBeforeFirstField),
        ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", .foldedLine),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", .foldedLine),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\t\r\n\r\n", .foldedLine),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\n", .blankBeforeColon),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", .blankBeforeColon),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", .colonMissing), ("GET / HTTP/1.1\r\nHost\r\n\r\n", .colonMissing),
        ("GET / HTTP/1.1\r\nHost: a\r\nX \r\n\r\n", .colonMissing),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", .nameInvalid),
        ("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", .nameInvalid),
        ("GET / HTTP/1.1\r\nHost: a\r\nX(Y): b\r\n\r\n", .nameInvalid),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\u{B}: chunked\r\n\r\n", .nameInvalid),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\u{E9}: b\r\n\r\n", .nameInvalid),

        // Request line (RFC 9112 §3)
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", .methodInvalid),
        ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", .methodInvalid),
        ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", .methodInvalid),
        ("GET\r\nHost: a\r\n\r\n", .methodInvalid),
        ("GET /\r\nHost: a\r\n\r\n", .requestLineMalformed),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .requestLineMalformed),
        ("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET / x HTTP/1.1\r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET http://a:65536/ HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET https:// HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", .targetInvalid),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", .targetFormMismatch),
        ("CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n", .targetFormMismatch),
        ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", .targetFormMismatch),
        ("CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", .targetFormMismatch),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET / HTTP/11\r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET / HTTP/1.10\r\nHost: a\r\n\r\n", .versionMalformed),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", .versionUnsupported),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .versionUnsupported),
        ("GET / HTTP/0.9\r\n\r\n", .versionUnsupported),

        // Host (RFC 9112 §3.2)
        ("GET / HTTP/1.1\r\n\r\n", .hostMissing),
        ("GET http://a/ HTTP/1.1\r\n\r\n", .hostMissing),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", .hostRepeated),
        ("GET / HTTP/1.0\r\nHost: a\r\nhOST: b\r\n\r\n", .hostRepeated),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: []\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", .hostInvalid),
        ("GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n", .hostInvalid),

        // Framing (RFC 9112 §6)
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            .contentLengthWithTransferEncoding
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            .contentLengthWithTransferEncoding
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\nContent-Length: 5\r\n\r\n",
            .contentLengthWithTransferEncoding
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", .contentLengthRepeated),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 6\r\n\r\n", .contentLengthRepeated),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5,\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{B2}\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n", .contentLengthInvalid),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", .transferEncodingInOldVersion),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", .transferCodingMalformed),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
            .transferCodingMalformed
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{B}chunked\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\u{C}\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", .transferCodingMalformed),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .transferCodingUnknown),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            .transferCodingUnknown
        ),
    ]

    @Test(arguments: refused)
    func refuses(request: String, fault: HeadFault) {
        #expect(requestFault(request) == fault)
    }

    @Test(arguments: refused)
    func refusesInPiecesToo(request: String, fault: HeadFault) {
        let bytes = octets(request)
        var head = RequestHead(maxFields: 128)
        var found: HeadFault?
        for end in 0...bytes.count where found == nil {
            do {
                _ = try head.parse(bytes.span.extracting(0..<end), limits: HeadLimits())
            } catch {
                found = error
            }
        }
        #expect(found == fault)
        // A fault is not forgotten when more bytes arrive.
        #expect(throws: fault) { try head.parse(bytes.span, limits: HeadLimits()) }
    }

    static let framings: [(String, RequestFraming)] = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", .none),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", .length(0)),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\t 007 \r\n\r\n", .length(7)),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n",
            .length(9_223_372_036_854_775_807)
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", .chunked),
        ("POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:CHUNKED\r\n\r\n", .chunked),
        ("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n", .length(3)),
    ]

    @Test(arguments: framings)
    func frames(request: String, framing: RequestFraming) throws {
        let head = try parsedRequest(octets(request))
        #expect(head.framing == framing)
        #expect(head.length == request.utf8.count)
    }

    static let persistence: [(String, Bool)] = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.7\r\nHost: a\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", false),
    ]

    @Test(arguments: persistence)
    func knowsPersistence(request: String, keepAlive: Bool) throws {
        let head = try parsedRequest(octets(request))
        #expect(head.keepAlive == keepAlive)
    }

    static let targets: [(String, TargetForm, String?, String, String?)] = [
        ("GET /a?b HTTP/1.1\r\nHost: h:1\r\n\r\n", .origin, nil, "/a?b", "h:1"),
        ("GET //x HTTP/1.1\r\nHost: h\r\n\r\n", .origin, nil, "//x", "h"),
        ("GET HTTP://b:2/c?d HTTP/1.1\r\nHost: h\r\n\r\n", .absolute, "b:2", "/c?d", "b:2"),
        ("GET https://b HTTP/1.1\r\nHost: h\r\n\r\n", .absolute, "b", "", "b"),
        ("GET http://b HTTP/1.1\r\nHost: h\r\n\r\n", .absolute, "b", "", "b"),
        ("GET https://[::1]:8?q HTTP/1.1\r\nHost: h\r\n\r\n", .absolute, "[::1]:8", "?q", "[::1]:8"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", .asterisk, nil, "*", "h"),
        ("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n", .authority, "b:443", "", "b:443"),
        ("GET / HTTP/1.0\r\n\r\n", .origin, nil, "/", nil),
        ("\r\nGET /late HTTP/1.1\r\nHost: h\r\n\r\n", .origin, nil, "/late", "h"),
        ("GET /\u{E9}|{} HTTP/1.1\r\nHost: h:\r\n\r\n", .origin, nil, "/\u{E9}|{}", "h:"),
    ]

    @Test(arguments: targets)
    func readsTargets(request: String, form: TargetForm, authority: String?, path: String, host: String?) throws {
        let bytes = octets(request)
        let head = try parsedRequest(bytes)
        #expect(head.targetForm == form)
        #expect(text(bytes, head.authority) == authority)
        #expect(text(bytes, head.path) == path)
        #expect(text(bytes, head.host) == host)
        #expect(head.length == bytes.count)
    }

    /// Of the place that a proxy's caller names: what is written counts, then what the target's scheme has.
    @Test(
        arguments: [
            ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 80),
            ("GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 81),
            ("GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 443),
            ("GET HTTPS://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 443),
            ("GET https://a.test:80/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 80),
            ("GET http://[::1]:82/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 82),
            ("GET http://a.test:65535/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 65_535),
            ("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 80), ("GET / HTTP/1.1\r\nHost: a.test:83\r\n\r\n", 83),
            ("GET http://a.test/ HTTP/1.1\r\nHost: a.test:84\r\n\r\n", 80),
            ("GET / HTTP/1.0\r\n\r\n", nil),
        ] as [(String, UInt16?)])
    func aPlaceHasAPort(request: String, port: UInt16?) throws {
        let bytes = octets(request)
        let head = try parsedRequest(bytes)
        #expect(head.namedPort(bytes.span) == port)
        // A scheme that is told beside the head is that of a server without a port of its own.
        let isWritten = head.host != nil && ![80, 443, nil].contains(port) || request.contains(":80/")
        #expect(head.namedPort(bytes.span, schemePort: 8) == (port == nil ? nil : isWritten ? port : 8))
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: other\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: other\r\nExpect: 100-continue\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: other\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false),
    ])
    func readsExpectation(request: String, expects: Bool) throws {
        let head = try parsedRequest(octets(request))
        #expect(head.expectsContinue == expects)
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false),
    ])
    func readsUpgrade(request: String, upgrade: Bool) throws {
        let head = try parsedRequest(octets(request))
        #expect(head.upgrade == upgrade)
    }

    @Test func givesFieldsAsReceived() throws {
        let bytes = octets(
            "BREW /pot HTTP/1.1\r\nhOsT:a\r\nX-Odd_Name:  \u{E9}\u{1} b \t\r\nEmpty:\r\nContent_Length: 3\r\n\r\nrest")
        let head = try parsedRequest(bytes)
        #expect(head.length == bytes.count - 4)
        #expect(text(bytes, head.method) == "BREW")
        #expect(head.knownMethod == .other)
        #expect(head.fieldCount == 4)
        #expect(text(bytes, head[1].name) == "X-Odd_Name")
        #expect(text(bytes, head[1].value) == "\u{E9}\u{1} b")
        #expect(text(bytes, head[1].line) == "X-Odd_Name:  \u{E9}\u{1} b \t\r\n")
        #expect(head[2].value.isEmpty)
        #expect(head[3].known == .other)
        #expect(head[3].resembles == .contentLength)
        #expect(head.framing == .none)
        #expect(head.first(.cookie) == nil)
    }

    @Test func everyCutGivesTheSameHead() throws {
        let bytes = octets(
            "\r\nPOST http://b/c HTTP/1.1\r\nHost: a\r\nConnection: x-drop\r\nX-Drop: 1\r\nContent-Length: 2\r\n\r\nok")
        let whole = try parsedRequest(bytes)
        for first in 0...bytes.count {
            var head = RequestHead(maxFields: 8)
            let early = try head.parse(bytes.span.extracting(0..<first), limits: HeadLimits())
            #expect(early == (first >= whole.length ? whole.length : nil))
            let length = try head.parse(bytes.span, limits: HeadLimits())
            #expect(length == whole.length)
            #expect(head.fieldCount == whole.fieldCount)
            #expect(head[2] == whole[2])
            #expect(head[2].marks == .nominated)
            #expect(head.framing == .length(2))
        }
    }

    @Test func servesManyMessagesAfterReset() throws {
        var head = RequestHead(maxFields: 4)
        let first = octets("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        let second = octets("GET /b HTTP/1.1\r\nHost: c\r\n\r\n")
        #expect(try head.parse(first.span, limits: HeadLimits()) == first.count)
        head.reset()
        #expect(try head.parse(second.span, limits: HeadLimits()) == second.count)
        #expect(head.framing == .none)
        #expect(head.keepAlive == true)
        #expect(head.fieldCount == 1)
        #expect(head.contains(.transferEncoding) == false)
    }
}
