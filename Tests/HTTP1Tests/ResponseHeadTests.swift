import Testing

@testable import HTTP1

@Suite struct ResponseHeadTests {
    static let refused: [(String, HeadFault)] = [
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n", .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", .bareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", .bareCarriageReturn),
        ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", .nul),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .emptyLineBeforeHead),
        ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", .blankBeforeFirstField),
        ("HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", .nameInvalid),
        ("HTTP/1.1 200 OK\r\nA\r\n\r\n", .colonMissing),
        ("HTTP/1.1 20 OK\r\n\r\n", .statusLineMalformed),
        ("HTTP/1.1 099 OK\r\n\r\n", .statusLineMalformed),
        ("HTTP/1.1 200OK\r\n\r\n", .statusLineMalformed), ("HTTP/1.1 200x\r\n\r\n", .statusLineMalformed),
        ("HTTP/1.1  200 OK\r\n\r\n", .statusLineMalformed),
        ("HTTP/1.1\r\n\r\n", .statusLineMalformed),
        ("ICY 200 OK\r\n\r\n", .statusLineMalformed),
        ("HTTX/1.1 200 OK\r\n\r\n", .versionMalformed),
        ("HTTP/2.0 200 OK\r\n\r\n", .versionUnsupported),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", .contentLengthConflict),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", .contentLengthConflict),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\n", .contentLengthInvalid),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", .contentLengthInvalid),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n", .foldedFramingField),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n chunked\r\n\r\n", .foldedFramingField),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", .transferCodingMalformed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .transferCodingUnknown),
    ]

    @Test(arguments: refused)
    func refuses(response: String, fault: HeadFault) {
        #expect(responseFault(response) == fault)
    }

    /// response, to HEAD, framing, reusable
    static let framings: [(String, Bool, BodyFraming, Bool)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, .none, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 05\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, .chunked, true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", false, .chunked, false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false, .chunked, false),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n", false, .chunked, false),
        ("HTTP/1.1 200 OK\r\n\r\n", false, .untilClose, true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false, .untilClose, false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false, .length(5), false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n", false, .length(5), true),
        ("HTTP/1.1 204 No Content\r\n\r\n", false, .none, true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false, .none, true),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 1\r\n\r\n", false, .none, false),
        ("HTTP/1.1 199 Soon\r\nContent-Length: 5\r\n\r\n", false, .none, false),
        ("HTTP/1.1 103 Hints\r\nTransfer-Encoding: chunked\r\n\r\n", false, .none, false),
        ("HTTP/1.1 205 Reset\r\nContent-Length: 1\r\n\r\n", false, .length(1), true),
        ("HTTP/1.1 203 So\r\nContent-Length: 1\r\n\r\n", false, .length(1), true),
        ("HTTP/1.1 303 So\r\nContent-Length: 1\r\n\r\n", false, .length(1), true),
        ("HTTP/1.1 305 So\r\nContent-Length: 1\r\n\r\n", false, .length(1), true),
        ("HTTP/1.1 999 So\r\nContent-Length: 1\r\n\r\n", false, .length(1), true),
        ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", false, .none, false),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, .none, true),
        ("HTTP/1.1 100 Continue\r\n\r\n", false, .none, true),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, .length(0), true),
        ("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", false, .length(0), true),
    ]

    @Test(arguments: framings)
    func frames(response: String, toHEAD: Bool, framing: BodyFraming, reusable: Bool) throws {
        let head = try parsedResponse(octets(response))
        #expect(head.framing(forMethodHEAD: toHEAD, connect: false) == framing)
        #expect(head.keepAlive == reusable)
        #expect(head.length == response.utf8.count)
    }

    /// An answer is read to its end, to a fault or to its middle, and leaves nothing behind for the next one of the connection.
    @Test(arguments: [
        "HTTP/1.0 404 Gone\r\nContent-Length: 5\r\nConnection: close\r\nSet-Cookie: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 404 Gone\r\nX: y", "HTTP/1.0 99",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ])
    func isAsNewAfterAReset(earlier: String) throws {
        var head = ResponseHead(maxFields: 8)
        _ = try? head.parse(octets(earlier).span, limits: HeadLimits())
        head.reset()
        #expect(head.status == 0 && head.length == 0 && head.fieldCount == 0 && !head.contains(.setCookie))
        let next = octets("HTTP/1.1 201 Made\r\nDate: s\r\n\r\n")
        #expect(try head.parse(next.span, limits: HeadLimits()) == next.count)
        #expect(head.status == 201 && head.minorVersion == 1 && head.declaredLength == nil && head.keepAlive)
        #expect(head.framing(forMethodHEAD: false, connect: false) == .untilClose && head.fieldCount == 1)
        #expect(text(next, head.reason) == "Made" && head.contains(.date) && !head.contains(.contentLength))
    }

    @Test func aConnectedTunnelHasNoBody() throws {
        let open = try parsedResponse(octets("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"))
        #expect(open.framing(forMethodHEAD: false, connect: true) == .none)
        let refused = try parsedResponse(octets("HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n"))
        #expect(refused.framing(forMethodHEAD: false, connect: true) == .length(5))
        for (status, framing) in [(200, BodyFraming.none), (299, .none), (300, .length(5))] {
            let head = try parsedResponse(octets("HTTP/1.1 \(status) X\r\nContent-Length: 5\r\n\r\n"))
            #expect(head.framing(forMethodHEAD: false, connect: true) == framing)
            #expect(head.outgoingFraming(forMethodHEAD: false, connect: true, callerMinorVersion: 1) == framing)
        }
    }

    /// response, to HEAD, caller's minor version, framing
    static let outgoing: [(String, Bool, UInt8, BodyFraming)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 1, .length(5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, 1, .length(5)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, 1, .none),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 1, .chunked),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, 0, .untilClose),
        ("HTTP/1.1 200 OK\r\n\r\n", false, 1, .chunked),
        ("HTTP/1.1 200 OK\r\n\r\n", false, 0, .untilClose),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, 1, .length(5)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", true, 1, .none),
        ("HTTP/1.1 101 Up\r\nContent-Length: 5\r\n\r\n", true, 1, .none),
        ("HTTP/1.1 199 Up\r\nContent-Length: 5\r\n\r\n", true, 1, .none),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", false, 1, .none), ("HTTP/1.1 200 OK\r\n\r\n", true, 0, .none),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 0, .length(5)),
    ]

    @Test(arguments: outgoing)
    func choosesTheCallersFraming(response: String, toHEAD: Bool, minor: UInt8, framing: BodyFraming) throws {
        let head = try parsedResponse(octets(response))
        #expect(head.outgoingFraming(forMethodHEAD: toHEAD, connect: false, callerMinorVersion: minor) == framing)
    }

    /// The blank before an empty reason is required, and often left out.
    @Test(arguments: [("200", ""), ("200 ", ""), ("200 R", "R"), ("200  R ", " R ")])
    func aReasonMayBeEmpty(end: String, reason: String) throws {
        let bytes = octets("HTTP/1.1 \(end)\r\nContent-Length: 0\r\n\r\n")
        let head = try parsedResponse(bytes)
        #expect(text(bytes, head.reason) == reason && head.status == 200)
        #expect(try answered(text(bytes)) == "HTTP/1.1 200 \(reason)\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func readsFoldsAndSpacedColons() throws {
        let bytes = octets("HTTP/1.1 401 Authorization Required\r\nA \t: b\r\nC: d\r\n  e \r\n\tf\r\nG:\r\n h\r\n\r\n")
        let head = try parsedResponse(bytes)
        #expect(text(bytes, head.reason) == "Authorization Required")
        #expect(text(bytes, head[0].name) == "A")
        #expect(head[0].marks == .spacedColon)
        #expect(text(bytes, head[1].value) == "d\r\n  e \r\n\tf")
        #expect(head[1].marks == .folded)
        #expect(text(bytes, head[2].value) == "h")
    }

    /// The value is what the caller will get, in the memory that the received one had.
    @Test func aFoldedValueBecomesOneLine() throws {
        var bytes = octets("HTTP/1.1 200 OK\r\nA: a  b\r\nC: d\r\n  e \t\r\n\tf\r\n \r\n g \r\nG:\r\n h\r\n\r\n")
        let count = bytes.count
        var head = try parsedResponse(bytes)
        let values = ["a  b", "d e f g", "h"]
        for index in 0..<3 {
            bytes.withUnsafeMutableBytes { head.unfold(index, in: $0) }
            #expect(text(bytes, head[index].value) == values[index])
        }
        #expect(bytes.count == count)
        let again = try parsedResponse(bytes)
        #expect((0..<3).map { text(bytes, again[$0].value) } == values)
        #expect(again[1].marks == [])
    }

    @Test func everyCutGivesTheSameHead() throws {
        let bytes = octets("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nConnection: x\r\nX: y\r\nContent-Length: 2\r\n\r\nok")
        let whole = try parsedResponse(bytes)
        for first in 0...bytes.count {
            var head = ResponseHead(maxFields: 8)
            _ = try head.parse(bytes.span.extracting(0..<first), limits: HeadLimits())
            let length = try head.parse(bytes.span, limits: HeadLimits())
            #expect(length == whole.length)
            #expect(head.fieldCount == 4)
            #expect(head[0] == whole[0])
            #expect(head[2].marks == .nominated)
        }
    }
}
