import Testing

@testable import HTTP1

/// A head that is new, or was reset, says nothing of any message.
@Suite struct FreshHeadTests {
    private static func saysNothing(_ head: borrowing RequestHead) -> Bool {
        let hasParts = !head.method.isEmpty || !head.target.isEmpty || !head.path.isEmpty
        let isBegun = head.length > 0 || head.fieldCount > 0 || head.section.position > 0 || head.contains(.host)
        let isDefault =
            head.knownMethod == .other && head.targetForm == .origin && head.minorVersion == 1 && head.framing == .none
        return isDefault && !hasParts && !isBegun && head.authority == nil && head.host == nil && head.keepAlive
            && !head.expectsContinue && !head.upgrade
    }

    private static func saysNothing(_ head: borrowing ResponseHead) -> Bool {
        let isBegun = head.length > 0 || head.fieldCount > 0 || head.section.position > 0 || head.contains(.setCookie)
        return head.status == 0 && head.reason.isEmpty && head.minorVersion == 1 && head.declaredLength == nil
            && head.keepAlive && !isBegun && head.framing(forMethodHEAD: false, connect: false) == .none
    }

    /// A request is read to its end, to a fault or to its middle, and leaves nothing behind for the next one of the connection.
    @Test(arguments: [
        "POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nConnection: upgrade, x\r\nUpgrade: u\r\nX: y\r\n\r\n",
        "CONNECT b:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b/c HTTP/1.1\r\nHost: a\r\nX: y", "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /a#b",
        "GET /a HTTP/1.1\r\nA b: c\r\n\r\n", "\r\n", "",
    ])
    func aRequestHeadIsAsNewAfterAReset(earlier: String) throws {
        var head = RequestHead(maxFields: 8)
        let isNew = Self.saysNothing(head)
        _ = try? head.parse(octets(earlier).span, limits: HeadLimits())
        head.reset()
        let isReset = Self.saysNothing(head)
        #expect(isNew && isReset)
        let next = octets("brew /pot HTTP/1.1\r\nHost: c\r\nX: y\r\n\r\n")
        #expect(try head.parse(next.span, limits: HeadLimits()) == next.count)
        #expect(text(next, head.method) == "brew" && text(next, head.path) == "/pot" && text(next, head.host) == "c")
        #expect(
            head.knownMethod == .other && head.targetForm == .origin && head.authority == nil && head.fieldCount == 2)
        #expect(head.framing == .none && head.keepAlive && !head.expectsContinue && !head.upgrade)
        #expect(head.minorVersion == 1 && head[1].marks.isEmpty && !head.contains(.contentLength))
    }

    @Test(arguments: [
        "HTTP/1.0 404 Gone\r\nContent-Length: 5\r\nConnection: close\r\nSet-Cookie: a\r\n\r\n",
        "HTTP/1.1 404 Gone\r\nX: y",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.0 200 OK\r\nA b: c\r\n\r\n",
    ])
    func aResponseHeadIsAsNewAfterAReset(earlier: String) {
        var head = ResponseHead(maxFields: 8)
        let isNew = Self.saysNothing(head)
        _ = try? head.parse(octets(earlier).span, limits: HeadLimits())
        head.reset()
        let isReset = Self.saysNothing(head)
        #expect(isNew && isReset)
    }

    @Test(arguments: [0, -1, 1])
    func aTableHasRoomForOneFieldAtLeast(maxFields: Int) throws {
        let (asked, answered) = (octets("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), octets("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"))
        var request = RequestHead(maxFields: maxFields)
        var response = ResponseHead(maxFields: maxFields)
        #expect(try request.parse(asked.span, limits: HeadLimits()) == asked.count)
        #expect(try response.parse(answered.span, limits: HeadLimits()) == answered.count)
    }

    @Test func anIndexOfNoHeadSaysNothing() {
        let index = HeadIndex()
        let (isKnown, form, count, seen) = (index.isKnown, index.form, index.count, index.seen)
        #expect(!isKnown && form == .none && count == 0 && seen == 0)
        let (method, target, status, reason) = (
            index.methodCount, index.targetCount, index.status, index.reasonCount
        )
        #expect([method, target, status, reason] == [0, 0, 0, 0])
    }

    @Test func anOutgoingHeadIsEmptyBeforeItsFirstUse() {
        let head = OutgoingHead()
        let (status, size, count) = (head.status, head.size, head.withFields { $0.count })
        let (hasOverflowed, own) = (head.overflowed, head.own.count)
        #expect(status == 0 && size == 0 && count == 0 && !hasOverflowed && own == 0)
        let parts = [head.method.range, head.target.range, head.host.range]
        #expect(parts.allSatisfy { $0.isEmpty })
    }

    /// Edits without a word of the operator's change nothing, and a hop without one believes nobody and tells no address.
    @Test func nothingIsOnUnlessItIsSaid() throws {
        let edits = RequestEdits()
        #expect(edits.userAgentMode == .keep && edits.place == .header && !edits.dropsPlaceholders)
        let lines = "X: \(PlaceholderTests.token)\r\nCookie: a=\(PlaceholderTests.token)\r\n"
        let request = "GET /?t=\(PlaceholderTests.token) HTTP/1.1\r\nHost: h\r\n\(lines)\r\n"
        #expect(try forwarded(request) == request)
        var hop = ForwardedHop()
        hop.fields = .standard
        let written = try ForwardedTests.lines("Forwarded: for=a;proto=https\r\nX-Forwarded-For: b\r\n", hop)
        #expect(written == "Forwarded: for=_0;host=\"h\";proto=http\r\n")
        #expect(AddressMapTests.location("https://localhost:8080/a", AddressMapTests.map()) == nil)
        var map = AddressMapTests.map(inner: "/base")
        map.isOn = false
        #expect(AddressMapTests.location("https://hr.example.com/base/a", map) == nil)
        #expect(AddressMapTests.cookie("a=b; Domain=hr.example.com; Path=/base; Secure", map) == nil)
    }

    @Test func boundsOfAChunkedBodyHaveTheirDefaultsAndEnds() {
        let limits = ChunkLimits()
        #expect((limits.chunkExtension, limits.overhead, limits.trailers) == (256, 16_384, 8192))
        #expect(!limits.allowsPadding)
        let least = ChunkLimits(chunkExtension: -1, overhead: -1, trailers: -1)
        #expect((least.chunkExtension, least.overhead, least.trailers) == (0, 0, 2))
    }
}
