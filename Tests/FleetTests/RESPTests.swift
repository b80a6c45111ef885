import Numbers
import Testing

@testable import Fleet

/// What a hostile server may write instead of a reply.
@Suite struct RESPTests {
    private func read(_ text: String) throws(RESPFault) -> RESPValue? { try RESPReader.read(Array(text.utf8))?.value }

    @Test func everyKindOfReplyIsRead() throws {
        #expect(try read("+OK\r\n") == .text(Array("OK".utf8)))
        #expect(try read(":-12\r\n") == .number(ReceivedNumber(-12)))
        #expect(try read("$3\r\na\r\n\r\n") == .text([97, 13, 10]))
        #expect(try read("$-1\r\n") == .null)
        #expect(try read("_\r\n") == .null)
        #expect(try read("#t\r\n") == .number(ReceivedNumber(1)))
        #expect(try read("-READONLY no\r\n") == .error("READONLY no"))
        #expect(try read("!5\r\nERR x\r\n") == .error("ERR x"))
        #expect(try read("*2\r\n:1\r\n$1\r\nx\r\n") == .list([.number(ReceivedNumber(1)), .text([120])]))
        #expect(try read("%1\r\n+a\r\n:1\r\n") == .list([.text([97]), .number(ReceivedNumber(1))]))
        #expect(try read(">1\r\n+a\r\n") == .push([.text([97])]))
    }

    @Test func aPartOfAReplyIsNone() throws {
        let whole = "*3\r\n:1\r\n$4\r\nabcd\r\n*1\r\n+x\r\n"
        for length in 0..<whole.utf8.count {
            #expect(try RESPReader.read(Array(whole.utf8.prefix(length))) == nil)
        }
        let (_, length) = try #require(try RESPReader.read(Array((whole + "+next\r\n").utf8)))
        #expect(length == whole.utf8.count)
    }

    @Test(arguments: [
        "$524289\r\n", "$9223372036854775807\r\n", "*4097\r\n", "%4097\r\n", ">99999999\r\n",
    ])
    func aLengthOverItsBoundIsRefusedBeforeTheBytesCome(_ text: String) {
        #expect(throws: RESPFault.tooLarge) { try RESPReader.read(Array(text.utf8)) }
    }

    @Test(arguments: [
        "$-2\r\n", "$x\r\n", "$\r\n", ":\r\n", ":1.5\r\n", "*-5\r\n", "?1\r\n", "\r\n", "+a\rb\r\n", "$1\r\nabc\r\n",
        ":99999999999999999999999\r\n",
    ])
    func whatIsNoReplyIsRefused(_ text: String) {
        #expect(throws: RESPFault.malformed) { try RESPReader.read(Array(text.utf8)) }
    }

    @Test func depthAndLineHaveBounds() {
        #expect(throws: RESPFault.tooDeep) {
            try RESPReader.read(Array(String(repeating: "*1\r\n", count: 100_000).utf8))
        }
        #expect(throws: RESPFault.tooLarge) { try RESPReader.read([UInt8](repeating: UInt8(ascii: "+"), count: 2000)) }
    }

    @Test func manyStringsTogetherHaveABound() {
        var bytes = Array("*4096\r\n".utf8)
        while bytes.count < RESPReader.longestReply {
            bytes += Array("$1000\r\n".utf8) + [UInt8](repeating: 7, count: 1000) + [13, 10]
        }
        #expect(throws: RESPFault.tooLarge) { try RESPReader.read(bytes) }
    }

    @Test func manyItemsTogetherHaveABound() {
        let list = "*4000\r\n" + String(repeating: ":1\r\n", count: 4000)
        #expect(throws: RESPFault.tooLarge) { try RESPReader.read(Array(("*3\r\n" + list + list + list).utf8)) }
    }

    @Test func anErrorIsSafeToLog() throws {
        #expect(try read("-ERR \u{1B}[2J\u{7}\r\n") == .error("ERR ?[2J?"))
    }

    @Test func newsThatAreNoneAreIgnored() {
        let name = String(repeating: "a1", count: 32)
        #expect(FleetNews(Array("released \(name)".utf8)) != nil)
        #expect(FleetNews(Array("forgotten".utf8)) == .forgotten)
        for text in [
            "", "forgotten x", "released", "released x", "released \(name) y", "published \(name)", "deleted \(name)",
            "released \(name.uppercased())",
        ] {
            #expect(FleetNews(Array(text.utf8)) == nil)
        }
    }
}
