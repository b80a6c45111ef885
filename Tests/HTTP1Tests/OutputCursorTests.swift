import Testing

@testable import HTTP1

/// Output goes into memory up to its last octet, and nothing goes in behind a piece that did not fit.
@Suite struct OutputCursorTests {
    struct Piece: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var write: @Sendable (inout OutputCursor) -> Void
        var text: String

        init(_ name: String, _ text: String, _ write: @escaping @Sendable (inout OutputCursor) -> Void) {
            (testDescription, self.text, self.write) = (name, text, write)
        }
    }

    static let pieces = [
        Piece("an octet", "x") { $0.append(byte: UInt8(ascii: "x")) },
        Piece("octets", "abcde") { $0.append(octets("abcde").span) },
        Piece("a range", "bcd") { $0.append(octets("abcde").span, ByteRange(1..<4)) },
        Piece("a text", "text") { $0.append("text") },
        Piece("the end of a text", "xt") { $0.append("text", from: 2) },
        Piece("no digit but zero", "0") { $0.append(decimal: 0) },
        Piece("nine", "9") { $0.append(decimal: 9) }, Piece("ten", "10") { $0.append(decimal: 10) },
        Piece("the greatest number", "18446744073709551615") { $0.append(decimal: .max) },
        Piece("all hexadecimal digits", "0123456789abcdef") { $0.append(allHexadecimal: 0x0123_4567_89AB_CDEF) },
        Piece("the end of a head", "\r\n") { $0.endHead() },
        Piece("an identifier's line", "traceparent: 00-\(String(repeating: "0", count: 31))1-0000000000000002-01\r\n") {
            TraceParent.writeLine(traceHigh: 0, traceLow: 1, span: 2, isSampled: true, into: &$0)
        },
    ]

    /// The text that was written, and whether something did not fit.
    static func outcome(capacity: Int, _ body: (inout OutputCursor) -> Void) -> (text: String, overflowed: Bool) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0x2A)
        var output = OutputCursor(UnsafeMutableRawBufferPointer(rebasing: memory[..<capacity]))
        body(&output)
        // The octets behind its end are as they were.
        #expect(memory[capacity...].allSatisfy { $0 == 0x2A })
        return (text(Array(memory[..<output.count])), output.overflowed)
    }

    @Test(arguments: pieces)
    func aPieceThatJustFitsIsWritten(piece: Piece) {
        let count = piece.text.utf8.count
        for before in ["", "abc"] {
            let fitting = Self.outcome(capacity: before.utf8.count + count) { output in
                output.append(octets(before).span)
                piece.write(&output)
            }
            #expect(fitting == (before + piece.text, false))
            let tooLong = Self.outcome(capacity: before.utf8.count + count - 1) { output in
                output.append(octets(before).span)
                piece.write(&output)
                // An overflow stays one, whatever would fit behind it or is taken back.
                piece.write(&output)
                output.append(byte: 0x21)
                output.append("")
                output.rewind(to: output.count)
            }
            #expect(tooLong.overflowed && tooLong.text.utf8.count < fitting.text.utf8.count)
            #expect(fitting.text.hasPrefix(tooLong.text) && tooLong.text.hasPrefix(before))
        }
    }

    @Test(arguments: pieces)
    func nothingIsWrittenBehindAnOverflow(piece: Piece) {
        let outcome = Self.outcome(capacity: 200) { output in
            output.append("HTTP/1.1 200 OK\r\n\r\n")
            output.append([UInt8](repeating: 0, count: 200).span)
            piece.write(&output)
            output.addFields(octets("A: b\r\n").span)
            output.reopenHead()
        }
        #expect(outcome == ("HTTP/1.1 200 OK\r\n\r\n", true))
    }

    @Test(arguments: [
        (UInt64(0), "0"), (1, "1"), (9, "9"), (10, "a"), (15, "f"), (16, "10"), (0xABC, "abc"), (0x1000, "1000"),
        (0x0FFF_FFFF_FFFF_FFFF, "fffffffffffffff"), (.max, "ffffffffffffffff"),
    ])
    func hexadecimalDigitsHaveNoLeadingZeros(number: UInt64, digits: String) {
        let outcome = Self.outcome(capacity: digits.utf8.count) { $0.append(hexadecimal: number) }
        #expect(outcome == (digits, false))
        #expect(Self.outcome(capacity: digits.utf8.count - 1) { $0.append(hexadecimal: number) }.overflowed)
    }

    @Test func noMemoryTakesNothing() {
        var output = OutputCursor(UnsafeMutableRawBufferPointer(start: nil, count: 0))
        output.append("")
        output.append(octets("a").span, .empty)
        #expect(!output.overflowed && output.count == 0)
        output.append(byte: 0)
        #expect(output.overflowed && output.count == 0)
    }

    @Test func octetsAreTakenBack() {
        let outcome = Self.outcome(capacity: 8) { output in
            output.append("abcdef")
            output.rewind(to: 2)
            output.append("xy")
            #expect(output.count == 4 && output[1] == UInt8(ascii: "b") && output[3] == UInt8(ascii: "y"))
        }
        #expect(outcome == ("abxy", false))
    }
}
