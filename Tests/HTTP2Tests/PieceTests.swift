import Testing

@testable import HTTP2

/// A short message that is there with its end is not copied out of the memory in which it came.
@Suite struct PieceTests {
    private static let head = "POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: "

    /// - Returns: the server's stream of a request with this body.
    private static func asked(_ pair: Pair, body: String, announced: Bool = true, ended: Bool = true) throws
        -> HTTP2Stream
    {
        let head = announced ? head + "\(body.utf8.count)\r\n\r\n" : "POST /a HTTP/1.1\r\nhost: h\r\n\r\n"
        let stream = try #require(pair.open(head, ended: false))
        var bytes = Array(body.utf8)
        #expect(bytes.withUnsafeMutableBytes { stream.write(UnsafeRawBufferPointer($0)) })
        if ended { #expect(stream.end()) }
        pair.exchange()
        return try #require(pair.server.takeOpened().first)
    }

    @Test(arguments: [0, 1, 100, 200, 900])
    func aWholeMessage(size: Int) throws {
        let pair = Pair()
        let body = String(repeating: "b", count: size)
        let stream = try Self.asked(pair, body: body)
        let (piece, count) = try #require(stream.takePiece())
        #expect(piece.count <= HTTP2Memory.largestPiece)
        let text = String(decoding: piece[..<count], as: UTF8.self)
        #expect(text == "POST /a HTTP/1.1\r\ncontent-length: \(size)\r\nhost: h\r\n\r\n" + body)
        #expect(!stream.hasBytes && stream.isDrained)
        #expect(stream.takePiece() == nil)
        var rest = [UInt8](repeating: 0, count: 10)
        #expect(rest.withUnsafeMutableBytes { stream.read(into: $0) } == .ended)
        #expect(pair.blocks.taken == 0)
        // What it held is wiped before anybody else gets the place, but for the word that leads to the next.
        pair.server.memory.give(piece: piece)
        let taken = pair.server.memory.freeLists.pointee.take(piece: piece.count)
        let again = try #require(taken)
        #expect(again.baseAddress == piece.baseAddress)
        #expect(again[8..<count].allSatisfy { $0 == 0 })
        pair.server.memory.give(piece: again)
    }

    @Test func whatIsNotWholeIsRead() throws {
        let open = try Self.asked(Pair(), body: "body", ended: false)
        #expect(open.takePiece() == nil)
        let long = try Self.asked(Pair(), body: String(repeating: "b", count: 3000))
        #expect(long.takePiece() == nil)
        #expect(long.readAll().hasSuffix("\r\n\r\n" + String(repeating: "b", count: 3000)))
        let begun = try Self.asked(Pair(), body: "body")
        var some = [UInt8](repeating: 0, count: 10)
        #expect(some.withUnsafeMutableBytes { begun.read(into: $0) } == .bytes(10))
        #expect(begun.takePiece() == nil)
        #expect(begun.readAll().hasSuffix("body"))
    }

    /// The credit of a body that was taken whole goes back as if it had been read.
    @Test func creditGoesBack() throws {
        let pair = Pair()
        for _ in 0..<2000 {
            let stream = try Self.asked(pair, body: String(repeating: "b", count: 700))
            let (piece, _) = try #require(stream.takePiece())
            pair.server.memory.give(piece: piece)
            stream.cancel()
            pair.exchange()
        }
    }
}
