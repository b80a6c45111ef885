import Testing

@testable import HTTP1

private struct Decoded: Equatable {
    var body = ""
    var trailers = ""
    var rest = ""
    var isDone = false
    var fault: ChunkFault?
}

/// Decodes as a relay does: what is consumed leaves the buffer, `step` bytes more come in.
private func decode(_ input: String, limits: ChunkLimits = ChunkLimits(), step: Int) -> Decoded {
    let bytes = octets(input)
    var decoder = ChunkedDecoder(limits: limits)
    var result = Decoded()
    var dropped = 0
    var available = 0
    while available < bytes.count {
        available = min(available + step, bytes.count)
        let buffer = Array(bytes[dropped..<available])
        var cursor = 0
        do {
            reading: while true {
                switch try decoder.next(buffer.span, from: cursor) {
                case .data(let range):
                    result.body += text(buffer, range) ?? ""
                    cursor = Int(range.end)
                case .needsMore(let consumed):
                    cursor = consumed
                    break reading
                case .end(let consumed, let trailers):
                    result.trailers = text(buffer, trailers) ?? ""
                    result.rest = text(Array(bytes[(dropped + consumed)...]))
                    result.isDone = decoder.isDone
                    return result
                }
            }
        } catch {
            result.fault = error
            return result
        }
        dropped += cursor
    }
    return result
}

@Suite struct ChunkedTests {
    /// input, body, trailers, rest
    static let accepted: [(String, String, String, String)] = [
        ("5\r\nhello\r\n0\r\n\r\n", "hello", "", ""),
        ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nNEXT", "hello world", "", "NEXT"),
        ("0\r\n\r\n", "", "", ""),
        ("000\r\n\r\n", "", "", ""),
        // A size of 64 bits has as many digits.
        ("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", "hello", "", ""),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", "", ""),
        ("5;name=value\r\nhello\r\n0;x\r\n\r\n", "hello", "", ""),
        ("5 ;q=\"a;b\"\r\nhello\r\n0\r\n\r\n", "hello", "", ""),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "", ""),
        ("1\r\na\r\n0\r\nX-A: 1\r\nx-b:\r\n\r\nrest", "a", "X-A: 1\r\nx-b:\r\n", "rest"),
    ]

    @Test(arguments: accepted)
    func decodes(input: String, body: String, trailers: String, rest: String) {
        for step in [1, 2, 3, 7, 1000] {
            let result = decode(input, step: step)
            #expect(result == Decoded(body: body, trailers: trailers, rest: rest, isDone: true, fault: nil))
        }
    }

    static let refused: [(String, ChunkFault)] = [
        ("\r\n", .sizeInvalid),
        ("x\r\n", .sizeInvalid),
        ("+5\r\nhello\r\n", .sizeInvalid),
        ("-1\r\n", .sizeInvalid),
        ("0x5\r\nhello\r\n", .sizeInvalid),
        (" 5\r\nhello\r\n", .sizeInvalid),
        ("5 \r\nhello\r\n", .sizeInvalid),
        ("5 5\r\nhello\r\n", .sizeInvalid),
        ("5_0\r\n", .sizeInvalid),
        (";x\r\n", .sizeInvalid),
        ("8000000000000000\r\n", .sizeTooLarge),
        ("ffffffffffffffff\r\n", .sizeTooLarge),
        ("10000000000000000\r\n", .sizeTooLarge),
        ("00000000000000005\r\nhello\r\n", .sizeTooLarge),
        ("5\nhello\r\n", .lineEndInvalid),
        ("5\rhello\r\n", .lineEndInvalid),
        ("5;a\nhello\r\n", .lineEndInvalid),
        ("5;a\rb\r\nhello\r\n", .lineEndInvalid),
        ("5;a\0\r\nhello\r\n", .extensionInvalid),
        ("5\r\nhello0\r\n\r\n", .dataEndInvalid),
        ("5\r\nhello\n0\r\n\r\n", .dataEndInvalid),
        ("5\r\nhello\r0\r\n\r\n", .dataEndInvalid),
        ("5\r\nhelloX\r\n", .dataEndInvalid),
        ("0\r\nX: a\n\r\n", .trailerInvalid),
        ("0\r\nX: a\rb\r\n\r\n", .trailerInvalid),
        ("0\r\nX : a\r\n\r\n", .trailerInvalid),
        ("0\r\nX: a\r\n b\r\n\r\n", .trailerInvalid),
        ("0\r\n: a\r\n\r\n", .trailerInvalid),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", .trailerInvalid),
        ("0\r\nX: \0\r\n\r\n", .trailerInvalid),
        ("1;\(String(repeating: "a", count: 300))\r\n", .extensionTooLong),
        ("0\r\nX: \(String(repeating: "a", count: 9000))", .trailersTooLarge),
        ("0\r\n\(String(repeating: "X: aaaaaaaa\r\n", count: 900))\r\n", .trailersTooLarge),
        (String(repeating: "1;\(String(repeating: "a", count: 200))\r\na\r\n", count: 200), .overheadTooLarge),
    ]

    @Test(arguments: refused)
    func refuses(input: String, fault: ChunkFault) {
        for step in [1, 1000, 100_000] { #expect(decode(input, step: step).fault == fault) }
    }

    @Test(arguments: [
        "", "5", "5\r\nhel", "7fffffffffffffff\r\nhel", "7FFFFFFFFFFFFFFF;x\r\nhel", "5\r\nhello\r\n",
        "5\r\nhello\r\n0\r\n", "0\r\n\r", "0\r\nX: a\r\n",
    ])
    func anUnfinishedBodyIsNotDone(input: String) {
        let result = decode(input, step: 4)
        #expect(!result.isDone && result.fault == nil)
    }

    /// The semicolon counts, and blanks before it.
    @Test(arguments: [("5;ab", 3), ("5 ;ab", 4), ("5;", 1), ("5 \t;", 3)])
    func anExtensionIsCountedWhole(line: String, count: Int) {
        let input = line + "\r\nhello\r\n0\r\n\r\n"
        #expect(decode(input, limits: ChunkLimits(chunkExtension: count), step: 1).isDone)
        #expect(decode(input, limits: ChunkLimits(chunkExtension: count - 1), step: 1).fault == .extensionTooLong)
    }

    /// A size line may take 16 octets, and twice as much again as the body that it carries.
    @Test(arguments: [1, 5, 10])
    func aSizeLineIsExcusedByItsBody(body: Int) {
        let limits = ChunkLimits(overhead: 0)
        func input(_ octets: Int) -> String {
            let size = String(body, radix: 16)
            let line = size + ";" + String(repeating: "x", count: octets - size.utf8.count - 1)
            return line + "\r\n" + String(repeating: "a", count: body) + "\r\n0\r\n\r\n"
        }
        #expect(decode(input(2 * body + 16), limits: limits, step: 7).isDone)
        #expect(decode(input(2 * body + 17), limits: limits, step: 7).fault == .overheadTooLarge)
        #expect(decode(input(2 * body + 20), limits: ChunkLimits(overhead: 4), step: 7).isDone)
        #expect(decode(input(2 * body + 21), limits: ChunkLimits(overhead: 4), step: 7).fault == .overheadTooLarge)
    }

    /// A chunk's body excuses no other chunk's line, and the octets that no body excused are remembered.
    @Test func overheadIsCountedOverTheWholeMessage() {
        let big = "64\r\n" + String(repeating: "a", count: 100) + "\r\n"
        // The line has one octet more than its body excuses.
        let over = "1;" + String(repeating: "x", count: 17) + "\r\na\r\n"
        for (chunks, isDone) in [(big + over, true), (big + over + over, false), (over + big, true)] {
            let result = decode(chunks + "0\r\n\r\n", limits: ChunkLimits(overhead: 1), step: 5)
            #expect(result.isDone == isDone && result.fault == (isDone ? nil : .overheadTooLarge))
        }
    }

    /// The bound counts the lines and the empty one behind them.
    @Test(arguments: [(20, nil), (19, ChunkFault.trailersTooLarge), (21, nil)] as [(Int, ChunkFault?)])
    func trailersAreTakenUpToTheirBound(bound: Int, fault: ChunkFault?) {
        for lines in ["X: aaaaaaaaaaaaa\r\n", "A: aaaa\r\nB: bbbb\r\n"] {
            for step in [1, 3, 1000] {
                let result = decode("0\r\n\(lines)\r\nrest", limits: ChunkLimits(trailers: bound), step: step)
                #expect(result.fault == fault && result.trailers == (fault == nil ? lines : ""))
            }
        }
    }

    /// The octets before the trailers are not theirs, though they stand in the same buffer.
    @Test(arguments: [(19, nil), (20, ChunkFault.trailersTooLarge)] as [(Int, ChunkFault?)])
    func trailersAreAwaitedAsLongAsTheyMayFit(count: Int, fault: ChunkFault?) {
        let line = "X: " + String(repeating: "a", count: count - 3)
        for step in [1, 1000] {
            let result = decode("5\r\nhello\r\n0\r\n" + line, limits: ChunkLimits(trailers: 20), step: step)
            #expect(result.fault == fault && result.body == "hello" && !result.isDone)
        }
    }

    @Test func smallChunksAloneAreNoOverhead() {
        let input = String(repeating: "1\r\na\r\n", count: 20_000) + "0\r\n\r\n"
        #expect(decode(input, step: 4096).isDone)
    }

    @Test func takesPaddingOnlyWhenTold() {
        let limits = ChunkLimits(allowsPadding: true)
        #expect(decode("5  \r\nhello\r\n0\t\r\n\r\n", limits: limits, step: 1).body == "hello")
        #expect(decode("5 x\r\nhello\r\n", limits: limits, step: 1).fault == .sizeInvalid)
    }

    @Test func aFaultStays() {
        var decoder = ChunkedDecoder()
        let bad = octets("x")
        let good = octets("0\r\n\r\n")
        #expect(throws: ChunkFault.sizeInvalid) { try decoder.next(bad.span) }
        #expect(throws: ChunkFault.sizeInvalid) { try decoder.next(good.span) }
    }

    @Test(arguments: [
        (1, "1\r\n"), (15, "f\r\n"), (16, "10\r\n"), (65536, "10000\r\n"), (Int.max, "7fffffffffffffff\r\n"),
    ])
    func writesPrefixes(count: Int, expected: String) {
        #expect(written { ChunkedEncoder.appendPrefix(count, into: &$0) }.map { text($0) } == expected)
    }

    @Test func forwardsOnlyTrailersThatMayBe() {
        let lines = octets(
            """
            X-Sum: 1\r\nContent-Length: 5\r\nAuthorization: x\r\nX_User: evil\r\nHost: h\r\n\
            Transfer_Encoding: chunked\r\n\
            Set-Cookie: a=b\r\nGrpc-Status: 0\r\n
            """)
        let result = written { output in
            ChunkedEncoder.appendEnd(
                lines.span, trailers: ByteRange(0..<lines.count), drop: names("x-user"), into: &output)
        }
        #expect(result.map { text($0) } == "0\r\nX-Sum: 1\r\nGrpc-Status: 0\r\n\r\n")
    }
}
