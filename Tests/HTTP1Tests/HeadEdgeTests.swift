import Testing

@testable import HTTP1

/// What stands at the very beginning or end: of a buffer, a table, an alphabet, a bound.
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
        #expect(!AddressMap().isOn && !AddressMap().isSecure)
        map.knowsCallersHost = true
        // The authority is as long as the whole origin of the caller.
        #expect(AddressMapTests.location("https://abcdefgh/x", map, origin: "http://a") == nil)
    }
}
