import Testing

@testable import HTTP1

@Suite struct HeadLimitsTests {
    static let limits = HeadLimits(headSize: 200, fields: 3, target: 20, method: 8, connectionOptions: 3)

    static let refused: [(String, HeadFault)] = [
        ("GET /\(String(repeating: "a", count: 20)) HTTP/1.1\r\nHost: a\r\n\r\n", .targetTooLong),
        ("GET /\(String(repeating: "a", count: 400))", .targetTooLong),
        ("BREWBREW /\(String(repeating: "a", count: 400))", .targetTooLong),
        ("BREWBREWB /\(String(repeating: "a", count: 400))", .methodTooLong),
        ("BREWBREWB / HTTP/1.1\r\nHost: a\r\n\r\n", .methodTooLong),
        (String(repeating: "A", count: 60), .methodTooLong),
        // An empty line before the head is no part of the method.
        ("\r\nBREWBREW /\(String(repeating: "a", count: 400))", .targetTooLong),
        ("\r\nBREWBREWB /\(String(repeating: "a", count: 400))", .methodTooLong),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", .tooManyFields),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "b", count: 200))", .headTooLarge),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "b", count: 200))\r\n\r\n", .headTooLarge),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: a, b, c, d\r\n\r\n", .tooManyConnectionOptions),
    ]

    @Test(arguments: refused)
    func refuses(request: String, fault: HeadFault) {
        #expect(requestFault(request, limits: HeadLimitsTests.limits) == fault)
    }

    @Test func takesWhatJustFits() {
        let target = "/" + String(repeating: "a", count: 19)
        #expect(requestFault("BREWBREW \(target) HTTP/1.1\r\nHost: a\r\n\r\n", limits: HeadLimitsTests.limits) == nil)
        let start = "GET / HTTP/1.1\r\nHost: a\r\nA: "
        let filling = String(repeating: "b", count: 200 - start.utf8.count - 4)
        #expect(requestFault("\(start)\(filling)\r\n\r\n", limits: HeadLimitsTests.limits) == nil)
        #expect(requestFault("\(start)\(filling)b\r\n\r\n", limits: HeadLimitsTests.limits) == .headTooLarge)
    }

    /// Method, target, two blanks, the version and CRLF have 8 + 20 + 12 octets here: a line that goes on behind them is too long.
    @Test func aLineWithoutEndIsAwaitedAsLongAsItMayFit() {
        let start = "GET /" + String(repeating: "a", count: 34)
        #expect(requestFault(start, limits: HeadLimitsTests.limits) == nil)
        #expect(requestFault(start + "a", limits: HeadLimitsTests.limits) == .targetTooLong)
    }

    /// The whole head has a bound, too, which may be less than that of the request line or of the method.
    @Test(arguments: [
        ("AAAAAAAAAAAAAAAA", HeadFault.methodTooLong), ("GET /AAAAAAAAAAA", .targetTooLong), ("AAAAAAAAAAAAAAA", nil),
        ("GET /AAAAAAAAAA", nil),
    ])
    func aLineThatFillsTheHeadIsToldByItsPart(line: String, fault: HeadFault?) {
        #expect(requestFault(line, limits: HeadLimits(headSize: 16)) == fault)
    }

    @Test func bytesAfterTheHeadDoNotCount() throws {
        let bytes = octets(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n" + String(repeating: "b", count: 999))
        let head = try parsedRequest(bytes, limits: HeadLimitsTests.limits)
        #expect(head.length == bytes.count - 999)
    }

    @Test(arguments: [(19, nil), (20, HeadFault.headTooLarge), (21, .headTooLarge)] as [(Int, HeadFault?)])
    func aStatusLineIsAwaitedAsLongAsItMayFit(count: Int, fault: HeadFault?) {
        let line = "HTTP/1.1 200 " + String(repeating: "r", count: count - 13)
        #expect(responseFault(line, limits: HeadLimits(headSize: 20)) == fault)
    }

    @Test func theTableIsABoundToo() {
        var head = RequestHead(maxFields: 1)
        let bytes = octets("GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n")
        #expect(throws: HeadFault.tooManyFields) { try head.parse(bytes.span, limits: HeadLimits()) }
    }

    @Test func responsesAreBoundedToo() {
        let long = String(repeating: "b", count: 200)
        #expect(responseFault("HTTP/1.1 200 \(long)", limits: HeadLimitsTests.limits) == .headTooLarge)
        #expect(responseFault("HTTP/1.1 200 OK\r\nA: \(long)", limits: HeadLimitsTests.limits) == .headTooLarge)
        #expect(
            responseFault("HTTP/1.1 200 OK\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n\r\n", limits: HeadLimitsTests.limits)
                == .tooManyFields)
    }

    @Test(arguments: HeadFault.allCases)
    func everyFaultHasAnAnswer(fault: HeadFault) {
        #expect([400, 414, 431, 501, 505].contains(fault.status))
        #expect(fault.reason.utf8.count > 0 && fault.isOfSize == (fault.status == 431))
    }

    @Test(arguments: [
        (HeadFault.targetTooLong, 414), (.headTooLarge, 431), (.tooManyFields, 431), (.transferCodingUnknown, 501),
        (.methodTooLong, 501), (.versionUnsupported, 505), (.hostMissing, 400), (.bareLineFeed, 400),
    ])
    func faultsMapToStatus(fault: HeadFault, status: Int) {
        #expect(fault.status == status)
    }
}
