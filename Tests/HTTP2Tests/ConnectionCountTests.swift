import Testing

@testable import HTTP2

/// A connection counts the octets of its peer that nothing was told of, and knows how many of which kind are too many.
@Suite struct ConnectionCountTests {
    // MARK: - Octets that are explained

    /// Frames behind a request on stream 1 whose body has not ended.
    private static let frames: [(name: String, octets: [UInt8])] = [
        ("PING", RawFrame.ping), ("SETTINGS", RawFrame.settings([(4, 70_000)])), ("an ACK", RawFrame.settingsAck),
        ("WINDOW_UPDATE", RawFrame.windowUpdate(1, 5)), ("a body", RawFrame.data(1, ended: false, [1, 2, 3])),
        ("its end", RawFrame.data(1, ended: true, [1, 2, 3])), ("an empty end", RawFrame.data(1, ended: true)),
        ("padding", RawFrame(type: 0, flags: 8, stream: 1, payload: [3, 9, 0, 0, 0]).octets),
        ("a head", RawFrame.head(3, ended: false)), ("a whole request", RawFrame.head(3, ended: true)),
        ("trailers", RawFrame(type: 1, flags: 5, stream: 1, payload: RawFrame.field("a", "b")).octets),
        ("an unknown frame", RawFrame(type: 0x42, payload: [UInt8](repeating: 7, count: 300)).octets),
        ("one without a payload", RawFrame(type: 0xff, flags: 0xff, stream: 1).octets),
        ("ALTSVC", RawFrame(type: 10, payload: [0, 0]).octets), ("ORIGIN", RawFrame(type: 12).octets),
        ("PRIORITY_UPDATE", RawFrame(type: 16, payload: [0, 0, 0, 1]).octets),
        ("PRIORITY", RawFrame(type: 2, stream: 1, payload: [0, 0, 0, 0, 7]).octets),
    ]

    @Test(arguments: frames.indices, [Int.max, 1, 2])
    func `a frame that is told of leaves nothing unexplained`(_ index: Int, size: Int) throws {
        let peer = try RawPeer(.server)
        _ = try peer.asked()
        // The preface is no frame.
        #expect(peer.connection.unexplained == 24)
        let (name, octets) = Self.frames[index]
        let step = min(size, octets.count)
        for at in stride(from: 0, to: octets.count, by: step) {
            #expect(peer.connection.unexplained == 24 + at)
            #expect(peer.receive(Array(octets[at..<min(octets.count, at + step)])))
        }
        #expect(peer.connection.unexplained == 24, "\(name)")
    }

    /// Padding brings nothing, so that a frame of it alone is as empty as one of nothing.
    @Test func `the octets of a body are counted until its frame has ended`() throws {
        let peer = try RawPeer(.server)
        _ = try peer.asked()
        _ = try peer.asked(3)
        let body = RawFrame.data(1, ended: false, [1, 2, 3])
        #expect(peer.receive(Array(body.dropLast())) && peer.connection.bytesOfFrame == 2)
        #expect(peer.receive([3]) && peer.connection.bytesOfFrame == 0)
        #expect(peer.receive(RawFrame(type: 0, flags: 8, stream: 1, payload: [1, 9, 0]).octets))
        #expect(peer.connection.bytesOfFrame == 0)
        #expect(peer.receive(Array(RawFrame.data(1, ended: true, [1]).dropLast())) && peer.connection.bytesOfFrame == 0)
        #expect(peer.receive([1]) && peer.connection.bytesOfFrame == 0)
        #expect(
            peer.receive(Array(RawFrame.data(3, ended: false, [1, 2]).dropLast())) && peer.connection.bytesOfFrame == 1)
    }

    // MARK: - Octets that may be on their way

    /// A peer that has not heard of the end may have sent a window's worth.
    @Test(arguments: [1000, 65_536, 1 << 26, (1 << 26) + 24, (1 << 26) + 25, 1 << 28])
    func `a stream that we close excuses a window of octets, up to 64 MiB`(window: Int) throws {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = window
        limits.streamWindow = window
        let peer = try RawPeer(.server, limits: limits)
        let stream = try peer.asked()
        #expect(peer.connection.unexplained == 24)
        stream.cancel(.internalError)
        #expect(peer.connection.unexplained == 24, "not before the peer is told")
        _ = peer.sent()
        #expect(peer.connection.openStreams == 0)
        #expect(peer.connection.unexplained == max(24 - window, -(1 << 26)))
    }

    @Test func `a request that is whole excuses nothing`() throws {
        let peer = try RawPeer(.server)
        try peer.asked(ended: true).cancel(.internalError)
        _ = peer.sent()
        #expect(peer.connection.openStreams == 0 && peer.connection.unexplained == 24)
    }

    // MARK: - Too many

    /// Octets that are passed over are paid for by 256 KiB, of which a peer has seven at once; the first are free until they are over.
    @Test(arguments: [0, 1]) func `two MiB are passed over, and not an octet more`(beyond: Int) throws {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 64 << 20
        limits.connectionWindow = 64 << 20
        let peer = try RawPeer(.server, limits: limits)
        try peer.asked(ended: true).cancel(.internalError)
        _ = peer.sent()
        var left = 8 * 256 * 1024 - peer.connection.unexplained + beyond
        let frame = RawFrame.data(1, ended: false, [UInt8](repeating: 0x78, count: 16_000))
        var isTaken = true
        while left > 0, isTaken {
            isTaken = peer.receive(Array(frame.prefix(left)))
            left -= min(left, frame.count)
        }
        #expect(left == 0 && isTaken == (beyond == 0))
        #expect(peer.frames().contains { $0.type == 7 && $0.payload.suffix(4) == [0, 0, 0, 11] } == (beyond == 1))
        #expect(peer.connection.isOver == (beyond == 1))
    }

    /// The peer is told why.
    @Test func `a peer takes back 200 streams, and with the next one it is cut`() throws {
        let peer = try RawPeer(.server)
        for number in 0..<100 as Range<UInt8> {
            #expect(peer.receive(RawFrame.head(2 * number + 1, ended: true) + RawFrame.reset(2 * number + 1, 8)))
            _ = peer.connection.takeOpened()
            _ = peer.sent()
        }
        for number in 100..<200 as Range<UInt32> { #expect(peer.receive(Self.taken(back: number))) }
        #expect(peer.connection.openStreams == 0 && !peer.connection.isOver)
        #expect(!peer.receive(Self.taken(back: 200)))
        #expect(!peer.receive(RawFrame.ping))
        #expect(peer.frames().last?.payload.suffix(4) == [0, 0, 0, 11] && peer.connection.isOver)
    }

    private static func taken(back number: UInt32) -> [UInt8] {
        var head = RawFrame.parsed(RawFrame.head(1, ended: true))[0]
        head.stream = 2 * number + 1
        return head.octets + RawFrame(type: 3, stream: 2 * number + 1, payload: RawFrame.word(8)).octets
    }

    /// The peer took back neither a stream whose answer has gone nor one that we gave up.
    @Test func `ends that are not the peer's doing are not counted`() throws {
        let peer = try RawPeer(.server)
        for number in 0..<500 as Range<UInt32> {
            var head = RawFrame.parsed(RawFrame.head(1, ended: false))[0]
            head.stream = 2 * number + 1
            #expect(peer.receive(head.octets))
            let stream = try #require(peer.connection.takeOpened().first)
            if number.isMultiple(of: 2) {
                #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true))
                _ = peer.sent()
                #expect(peer.receive(RawFrame(type: 3, stream: head.stream, payload: RawFrame.word(8)).octets))
            } else {
                stream.cancel(.internalError)
                _ = peer.sent()
            }
            #expect(peer.connection.openStreams == 0)
        }
        #expect(!peer.connection.isOver)
    }

    /// Acknowledgements wait where the peer does not take them.
    @Test func `a peer has a thousand acknowledgements waiting and no more`() throws {
        let peer = try RawPeer(.server)
        _ = peer.sent()
        for _ in 0..<1000 { #expect(peer.receive(RawFrame.ping)) }
        #expect(!peer.receive(RawFrame.ping) && !peer.receive(RawFrame.windowUpdate(0, 1)))
    }

    // MARK: - Resets that wait

    /// A length that the body does not have contradicts it (RFC 9113 §8.1.1).
    private static let contradiction =
        RawFrame.answer(1, ended: false, RawFrame.field("content-length", "5"))
        + RawFrame.data(1, ended: true, [1, 2, 3])

    @Test func `a client owes a reset where an answer contradicts itself, until that has left`() throws {
        let peer = try RawPeer(.client)
        #expect(!peer.connection.owesReset)
        let stream = try peer.open()
        _ = peer.sent()
        #expect(peer.receive(Self.contradiction) && peer.connection.owesReset && stream.resetCode == nil)
        #expect(peer.frames() == [RawFrame(type: 3, stream: 1, payload: [0, 0, 0, 1])])
        #expect(stream.isRefused && peer.receive(RawFrame.ping) && !peer.connection.owesReset)
    }

    @Test func `a client owes no reset where nothing waits or all was told of`() throws {
        let peer = try RawPeer(.client)
        _ = try peer.open()
        _ = peer.sent()
        #expect(peer.receive(RawFrame.answer(1, ended: false)) && !peer.connection.owesReset)
        // A part of a frame is unexplained, and nothing waits.
        #expect(peer.receive([0, 0, 3]) && !peer.connection.owesReset)
        #expect(peer.receive([0, 1, 0, 0, 0, 1, 1, 2, 3]) && !peer.connection.owesReset)
        // An acknowledgement waits, and all that came is explained.
        #expect(peer.receive(RawFrame.ping) && !peer.connection.owesReset)
        #expect(peer.receive([0]) && peer.connection.owesReset, "it cannot be told apart from a reset here")
    }

    @Test func `a server owes nobody a reset`() throws {
        let peer = try RawPeer(.server)
        _ = peer.sent()
        let head = RawFrame.head(1, ended: false, RawFrame.field("content-length", "5"))
        #expect(peer.receive(head + RawFrame.data(1, ended: true, [1, 2, 3])) && !peer.connection.owesReset)
        #expect(peer.frames().map(\.type) == [3])
    }
}
