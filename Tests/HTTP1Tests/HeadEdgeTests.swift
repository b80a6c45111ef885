import Testing

@testable import HTTP1

/// First and last things: of a buffer, a table, an alphabet, a bound.
@Suite struct HeadEdgeTests {
    private static func set(_ characters: String) -> Set<UInt8> { Set(octets(characters)) }
    private static let digits = set("0123456789")
    private static let letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

    @Test func alphabetsAreThoseOfTheirRFCs() {
        let wanted: [(OctetClass, Set<UInt8>)] = [
            (.token, Self.digits.union(Self.letters).union(Self.set("!#$%&'*+-.^_`|~"))),
            (.unreserved, Self.digits.union(Self.letters).union(Self.set("-._~"))),
            (.cookie, Set(0x21...0x7E as ClosedRange<UInt8>).subtracting(Self.set("\",;\\"))),
            (.addressLiteral, Self.digits.union(Self.set("abcdefABCDEF:."))),
        ]
        for (octetClass, wanted) in wanted {
            #expect(Set((0...255 as ClosedRange<UInt8>).filter { octetClass.contains($0) }) == wanted)
        }
    }

    @Test(arguments: ["[::1", "[", "[]", "[::1]x", "[::1]:", "h:", "", ":1", "h", "[::1]", "h:80", "[::1]:8"])
    func anAuthorityMayEndTheBuffer(text: String) {
        let bytes = octets(text)
        let port = authorityPort(ByteRange(0..<bytes.count), in: bytes.span)
        let isOne = ["h", "[::1]", "h:80", "[::1]:8", "h:", "[::1]:"].contains(text)
        #expect((port != nil) == isOne, "\(text)")
        let last = text.utf8.lastIndex(of: UInt8(ascii: ":")).map { String(text[text.index(after: $0)...]) }
        if isOne, let port { #expect(HTTP1Tests.text(bytes, port) == (text.hasSuffix("]") || text == "h" ? "" : last)) }
    }

    @Test func limitsHaveTheirDefaultsAndEnds() {
        let limits = HeadLimits()
        #expect((limits.headSize, limits.fields, limits.target) == (65_536, 128, 8192))
        #expect((limits.method, limits.connectionOptions) == (64, 32))
        #expect(HeadLimits(headSize: .max).headSize == Int(Int32.max) / 2 && HeadLimits(headSize: 15).headSize == 16)
        let least = HeadLimits(fields: 0, target: 0, method: 0, connectionOptions: 0)
        #expect((least.fields, least.target, least.method, least.connectionOptions) == (1, 1, 1, 1))
        #expect(ChunkLimits(trailers: .max).trailers == Int(Int32.max) / 2 && ChunkLimits(trailers: 1).trailers == 2)
    }

    @Test func theFirstFieldIsFound() throws {
        let bytes = octets("HTTP/1.1 200 OK\r\nDate: d\r\nLocation: l\r\n\r\n")
        let head = try parsedResponse(bytes)
        #expect(text(bytes, head.first(.date)) == "d" && text(bytes, head.first(.location)) == "l")
        #expect(head.first(.setCookie) == nil)
    }

    @Test(arguments: [
        ("Location: /", true), ("Content-Location: /", true), ("Set-Cookie: a=b", true), ("Link: </>", false),
        ("Date: d", false),
    ])
    func addressesAreLookedForAtOnce(line: String, namesAddresses: Bool) throws {
        let head = try parsedResponse(octets("HTTP/1.1 200 OK\r\nServer: s\r\n\(line)\r\n\r\n"))
        #expect(head.namesAddresses == namesAddresses)
    }

    @Test func aFoldedLineReachesToItsEnd() throws {
        let bytes = octets("HTTP/1.1 200 OK\r\nX: a\r\n  b\r\n\tc\r\nDate: d\r\n\r\n")
        let head = try parsedResponse(bytes)
        #expect(text(bytes, head.section.table[0].line) == "X: a\r\n  b\r\n\tc\r\n")
        #expect(text(bytes, head.section.table[1].line) == "Date: d\r\n")
    }

    @Test func anIndexKnowsItsFirstLine() {
        var index = HeadIndex()
        index.begin(status: 404, reason: octets("Not Found").span)
        index.end()
        #expect(index.firstLineCount == "HTTP/1.1 404 Not Found\r\n".utf8.count)
        index.begin(method: octets("DELETE").span, target: octets("/a/b").span)
        index.end()
        #expect(index.firstLineCount == "DELETE /a/b HTTP/1.1\r\n".utf8.count)
    }

    @Test func theLongestNameOfAnIndexIs65535() {
        for (count, isKnown) in [(65_535, true), (65_536, false)] {
            var index = HeadIndex()
            index.begin(status: 200, reason: octets("OK").span)
            let name = [UInt8](repeating: UInt8(ascii: "n"), count: count)
            index.add(name: name.span, known: .other, value: octets("v").span)
            index.end()
            #expect(index.isKnown == isKnown)
        }
    }

    @Test func linesAreAddedToAHeadThatIsWritten() {
        let result = written { output in
            output.append("HTTP/1.1 200 OK\r\nA: b\r\n\r\n")
            output.addFields(octets("C: d\r\nE: f\r\n").span)
        }
        #expect(text(result ?? []) == "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\nE: f\r\n\r\n")
    }

    /// Short pieces are copied by their two ends.
    @Test func piecesOfAnyLengthAreCopiedWhole() {
        for count in 0...70 {
            let piece = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
            let result = written { output in
                output.append("<")
                output.append(piece.span)
                output.append(">")
            }
            #expect(result == octets("<") + piece + octets(">"))
        }
    }

    @Test func nothingIsMappedUnlessItIsSaid() {
        var map = AddressMapTests.map()
        let none = AddressMap()
        #expect(!none.isOn && !none.isSecure && !none.knowsCallersHost && none.port == 0 && none.aliasPort == 0)
        map.knowsCallersHost = true
        // The authority is as long as the whole origin of the caller.
        #expect(AddressMapTests.location("https://abcdefgh/x", map, origin: "http://a") == nil)
    }

    @Test(arguments: [("TRACE", UInt64(7)), ("OPTIONS", 7), ("GET", nil), ("POST", nil)] as [(String, UInt64?)])
    func forwardsAreCountedForTwoMethods(method: String, count: UInt64?) throws {
        let bytes = octets("\(method) / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 7\r\n\r\n")
        let told = try parsedRequest(bytes).maxForwards(in: bytes.span)
        let without = octets("\(method) / HTTP/1.1\r\nHost: a\r\n\r\n")
        let untold = try parsedRequest(without).maxForwards(in: without.span)
        #expect(told == count && untold == nil)
    }

    @Test(
        arguments: [
            ("Keep-Alive: timeout=5\r\n", UInt64(5)), ("Keep-Alive: max=3, timeout=9\r\nKeep-Alive: timeout=7\r\n", 7),
            ("Keep-Alive: max=3\r\n", nil), ("", nil), ("Keep-Alive: TIMEOUT = 5 \r\n", 5),
            ("Keep-Alive: timeout\r\n", nil),
            ("Keep-Alive: xtimeout=5\r\n", nil), ("Keep-Alive: timeout=\r\n", nil), ("Keep-Alive: timeout=5s\r\n", nil),
            ("Keep-Alive: timeout=x, timeout=8, timeout=9\r\n", 8), ("X: y\r\nKeep-Alive: timeout=0\r\n", 0),
            ("Keep_Alive: timeout=5\r\n", nil),
        ] as [(String, UInt64?)])
    func theLeastAnnouncedTimeCounts(lines: String, seconds: UInt64?) throws {
        let bytes = octets("HTTP/1.1 200 OK\r\n\(lines)Date: d\r\n\r\n")
        let least = try parsedResponse(bytes).keepAliveTimeout(in: bytes.span)
        #expect(least == seconds)
    }

    @Test(arguments: [
        ("1.1 us", true), ("1.1 (x (y) us z) a", false), ("1.1 (x (y) z) us", true), ("1.1 US (a (b) c)", true),
        ("1.1 a (b (c) us), 1.0 d", false), ("1.0 a (us), 1.1 us", true),
        ("1.0 a (\\) us), 1.1 b", false), ("1.1 usa", false), ("HTTP/1.1 us", true), ("1.1 a (x) , 1.1 us (y)", true),
    ])
    func aRecipientIsTheSecondWordOutsideOfComments(via: String, isNamed: Bool) throws {
        let bytes = octets("GET / HTTP/1.1\r\nHost: a\r\nVia: \(via)\r\n\r\n")
        let head = try parsedRequest(bytes)
        let names = head.viaNames(octets("us").span, in: bytes.span)
        let namesNobody = head.viaNames([UInt8]().span, in: bytes.span)
        #expect(names == isNamed && !namesNobody)
    }

    @Test func aHeadIsReopenedAndEnded() {
        let result = written { output in
            output.append("HTTP/1.1 200 OK\r\n\r\n")
            output.reopenHead()
            output.append("A: b\r\n")
            output.endHead()
        }
        #expect(text(result ?? []) == "HTTP/1.1 200 OK\r\nA: b\r\n\r\n")
        #expect(written(capacity: 2) { $0.append(decimal: 100) } == nil)
        let tooMuch = written(capacity: 4) { output in
            output.append("ab")
            output.append(decimal: 100)
        }
        let noEnd = written(capacity: 3) { output in
            output.append("ab")
            output.endHead()
        }
        #expect(tooMuch == nil && noEnd == nil)
        #expect(written(capacity: 3) { $0.append(decimal: 100) } == octets("100"))
    }

    @Test func linesThatEndAValueAreSeenAtItsFirstOctet() {
        for (value, isOne) in [("a", true), ("", true), ("\r", false), ("\na", false), ("a\0", false), ("a\n", false)] {
            let found = isFieldValue(octets(value).span)
            #expect(found == isOne)
        }
        #expect(ChunkedEncoder.lastChunkLength == "0\r\n".utf8.count)
    }

    /// All octets that are allowed have come, and the head has no end yet.
    @Test func aHeadThatFillsItsBoundWithoutAnEndIsTooLarge() {
        let start = "HTTP/1.1 200 OK\r\nA: "
        for (count, fault) in [(99, nil), (100, HeadFault.headTooLarge), (101, .headTooLarge)] as [(Int, HeadFault?)] {
            let bytes = start + String(repeating: "b", count: count - start.utf8.count)
            #expect(responseFault(bytes, limits: HeadLimits(headSize: 100)) == fault)
        }
    }

    @Test func anIndexIsKnownWhenItHasAnEnd() {
        var index = HeadIndex()
        let before = index.isKnown
        index.begin(status: 200, reason: octets("OK").span)
        let begun = index.isKnown
        index.end()
        let (ended, length) = (index.isKnown, index.length)
        #expect(!before && !begun && ended && length == "HTTP/1.1 200 OK\r\n\r\n".utf8.count)
    }

    @Test func upgradesAreAskedForWhereItIsSaid() throws {
        let bytes = octets("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        let head = try parsedRequest(bytes)
        let result = written { output in
            writeRequest(
                head, bytes: bytes.span, edits: RequestEdits(), credential: nil, framing: .none, into: &output)
        }
        #expect(!text(result ?? []).contains("pgrade"))
    }

    /// Three names are allowed here, and a fourth is not.
    @Test func connectionOptionsAreCounted() {
        let limits = HeadLimits(connectionOptions: 3)
        for (options, fault) in [
            ("a, b, c", nil), ("a, b, c, d", HeadFault.tooManyConnectionOptions), (",a,, b, ,c,", nil),
            ("a\r\nConnection: b, c, d", .tooManyConnectionOptions), ("close, close\r\nConnection: keep-alive", nil),
        ] {
            #expect(
                requestFault("GET / HTTP/1.1\r\nHost: h\r\nConnection: \(options)\r\n\r\n", limits: limits) == fault)
        }
    }

    /// The trusted peer's field stands before all others, and may be named by `Connection`, which takes it away.
    @Test func aTrustedPeersFirstFieldIsTakenUp() throws {
        func lines(_ received: String) throws -> String {
            let bytes = octets("GET / HTTP/1.1\r\n\(received)Host: h\r\n\r\n")
            let head = try parsedRequest(bytes)
            let hop = ForwardedTests.hop(trusted: true, .legacy)
            return text(
                written { output in
                    writeRequest(
                        head, bytes: bytes.span, edits: RequestEdits(), credential: nil, hop: hop, framing: .none,
                        into: &output)
                } ?? [])
        }
        #expect(try lines("X-Forwarded-For: a\r\n").contains("X-Forwarded-For: a, 192.0.2.7\r\n"))
        #expect(try lines("X-Forwarded-Proto: https\r\n").contains("X-Forwarded-Proto: https\r\n"))
        let nominated = "X-Forwarded-Proto: https\r\nConnection: x-forwarded-proto\r\n"
        #expect(try lines(nominated).contains("X-Forwarded-Proto: http\r\n"))
        #expect(try !lines(nominated).contains("https"))
    }

    /// A fold at the line's very end, and one that is none.
    @Test(arguments: [
        ("A realm=\"x\",\r\n b=c", true), ("A realm=\"x\"\r\n ", true), ("A realm=\"x\"\r\n", false),
        ("A realm=\"x\"\r", false), ("A realm=\"x\"\r\r\n ", false),
    ])
    func aFoldedChallengeIsOneLine(line: String, isOne: Bool) {
        let challenges = AuthChallenge.list([octets(line)])
        #expect((challenges.count == 1 && challenges[0].fault == nil) == isOne, "\(challenges)")
    }
}
