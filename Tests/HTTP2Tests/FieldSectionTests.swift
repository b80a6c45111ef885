import HTTP2
import Testing

/// A server's connection and a peer that sends raw frames: what of them is a field section without an end.
@Suite struct FieldSectionTests {
    private let blocks = CountedBlocks(limit: 1000)
    private let connection: HTTP2Connection
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])

    init() throws { connection = try #require(HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: blocks)) }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xff), type, flags, 0, 0, 0, stream] + payload
    }

    /// END_STREAM is 1, END_HEADERS 4.
    private static func head(_ stream: UInt8, _ flags: UInt8, _ block: [UInt8] = whole) -> [UInt8] {
        frame(1, flags, stream, block)
    }

    private static func continuation(_ stream: UInt8, _ flags: UInt8, _ block: [UInt8] = field) -> [UInt8] {
        frame(9, flags, stream, block)
    }

    /// `GET http://localhost/`.
    private static let whole: [UInt8] = [0x82, 0x86, 0x84, 0x01, 9] + Array("localhost".utf8)
    private static let field: [UInt8] = [0x00, 1, UInt8(ascii: "a"), 1, UInt8(ascii: "b")]
    /// A name with a capital letter, which nothing makes good again (RFC 9113 §8.2.1).
    private static let malformed: [UInt8] = whole + [0x00, 1, UInt8(ascii: "A"), 1, UInt8(ascii: "b")]

    private func receive(_ octets: [UInt8], by size: Int = .max) {
        var rest = octets[...]
        while !rest.isEmpty {
            let piece = rest.prefix(size)
            rest = rest.dropFirst(size)
            #expect(piece.withUnsafeBytes { connection.receive($0, now: 1) })
        }
    }

    /// Lets what waits go out, resets among it.
    private func send() {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        while connection.send(into: buffer) > 0 {}
        connection.tellUsers()
    }

    /// Its reset waits behind other output; requests that come whole are none of its business.
    @Test(arguments: [malformed, Array(whole.dropFirst())])
    func aMalformedHeadThatIsCompleteIsNoUnfinishedOne(block: [UInt8]) {
        receive(Self.preface + Self.head(1, 5, block))
        #expect(connection.unfinishedSection == nil && connection.servedStreams == 0)
        receive(Self.head(3, 5))
        #expect(connection.unfinishedSection == nil)
        #expect(connection.takeOpened().map(\.id) == [3])
    }

    /// What a section is for that nobody serves, and how its stream came to that.
    enum Unserved: CaseIterable { case malformed, closed, finished, refused, behindGoAway, trailers }

    /// - Returns: the stream's number.
    private func prepare(_ unserved: Unserved) throws -> UInt8 {
        receive(Self.preface)
        switch unserved {
        case .malformed: return 1
        case .closed:
            receive(Self.head(1, 5) + Self.frame(3, 0, 1, [0, 0, 0, 8]))
            send()
            return 1
        case .finished:
            receive(Self.head(1, 5))
            let stream = try #require(connection.takeOpened().first)
            #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true))
            send()
            return 1
        case .refused:
            receive(Self.head(3, 5))
            return 1
        case .behindGoAway:
            receive(Self.head(1, 5))
            connection.goAway()
            connection.goAway()
            send()
            return 3
        case .trailers:
            receive(Self.head(1, 4))
            try #require(connection.takeOpened().first).cancel(.internalError)
            send()
            return 1
        }
    }

    /// It holds the connection as any other does, and no longer than until its end. (nghttp2 counts a CONTINUATION once for each piece of its
    /// frame's head and takes eight, so that the pieces are not smaller here.)
    @Test(arguments: Unserved.allCases, [Int.max, 3, 7])
    func aSectionThatIsPassedOverHasNotEndedEither(unserved: Unserved, size: Int) throws {
        let stream = try prepare(unserved)
        #expect(connection.unfinishedSection == nil)
        receive(Self.head(stream, 1, unserved == .malformed ? Self.malformed : Self.whole), by: size)
        send()
        let number = try #require(connection.unfinishedSection, "\(unserved)")
        receive(Self.continuation(stream, 0), by: size)
        send()
        #expect(connection.unfinishedSection == number)
        let last = Self.continuation(stream, 4)
        receive(Array(last.dropLast()), by: size)
        #expect(connection.unfinishedSection == number)
        receive([last[last.count - 1]])
        send()
        #expect(connection.unfinishedSection == nil)
        // Another one is another.
        receive(Self.head(9, 1), by: size)
        #expect(connection.unfinishedSection != nil && connection.unfinishedSection != number)
    }

    /// Octets of padding and of priority belong to the frame; an empty CONTINUATION ends a section as well.
    @Test(arguments: [Int.max, 3, 4])
    func everyFormOfAHeadIsFollowed(size: Int) {
        receive(Self.preface, by: size)
        receive(Self.frame(1, 0x2d, 1, [3, 0, 0, 0, 0, 16] + Self.whole + [0, 0, 0]), by: size)
        #expect(connection.unfinishedSection == nil)
        receive(Self.head(3, 1) + Self.continuation(3, 4, []), by: size)
        #expect(connection.unfinishedSection == nil)
        receive(Self.head(5, 1, []) + Self.continuation(5, 0, []) + Self.continuation(5, 4, Self.whole), by: size)
        #expect(connection.unfinishedSection == nil)
        // Frames of other types have flags of their own.
        receive(Self.frame(6, 0, 0, [0, 0, 0, 1, 5, 1, 4, 0]) + Self.frame(0xbe, 0, 0, [1, 1, 1, 1]), by: size)
        #expect(connection.unfinishedSection == nil)
        #expect(connection.takeOpened().map(\.id) == [1, 3, 5])
    }

    /// A part of a frame's payload is a part of its section.
    @Test func aFrameInParts() {
        let head = Self.head(1, 5)
        receive(Self.preface + head.prefix(9))
        #expect(connection.unfinishedSection != nil)
        receive(Array(head[9..<12]))
        #expect(connection.unfinishedSection != nil)
        receive(Array(head[12...]))
        #expect(connection.unfinishedSection == nil && connection.servedStreams == 1)
    }
}
