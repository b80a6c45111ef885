import HTTP2
import Testing

/// Frames that are legal one by one: how many a peer may send that move nothing, and how it learns that it was too many.
@Suite final class HTTP2FloodTests {
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)

    deinit { buffer.deallocate() }

    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let length = payload.count
        return [
            UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags, 0, 0, 0, stream,
        ]
            + payload
    }

    /// A server with one request whose body has not ended.
    private func pair(_ limits: HTTP2Limits = HTTP2Limits()) throws -> Pair {
        let pair = Pair(limits: limits)
        _ = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair.exchange()
        #expect(pair.server.takeOpened().count == 1)
        return pair
    }

    /// Sends a frame so often, while the server's words are taken off its hands.
    /// - Returns: how many were taken.
    private func send(_ frame: [UInt8], _ count: Int, to server: HTTP2Connection) -> Int {
        for number in 0..<count {
            guard frame.withUnsafeBytes({ server.receive($0, now: 1) }) else { return number }
            while server.send(into: buffer) > 0 {}
        }
        return count
    }

    static let frames: [(name: String, frame: [UInt8])] = [
        ("empty DATA", frame(0, stream: 1)), ("padding alone", frame(0, flags: 8, stream: 1, [3, 0, 0, 0])),
        ("PING", frame(6, [UInt8](repeating: 0, count: 8))), ("a type that nobody knows", frame(0x42, [1, 2, 3])),
        ("PRIORITY", frame(2, stream: 1, [0, 0, 0, 0, 7])), ("SETTINGS", frame(4)),
        ("WINDOW_UPDATE", frame(8, stream: 1, [0, 0, 0, 1])),
    ]

    @Test(arguments: frames.indices) func `frames that move nothing are counted, and too many end it`(_ index: Int)
        throws
    {
        let pair = try pair()
        let taken = send(Self.frames[index].frame, 3000, to: pair.server)
        #expect((1900...2000).contains(taken), "\(Self.frames[index].name): \(taken)")
        // Nothing of it is read any more, however sound.
        #expect(!Self.frame(6, [UInt8](repeating: 0, count: 8)).withUnsafeBytes { pair.server.receive($0, now: 2) })
        pair.exchange()
        #expect(pair.server.isOver && !pair.client.hasRoom, "the peer is told")
    }

    @Test func `time gives back what frames have cost`() throws {
        let pair = try pair()
        let ping = Self.frame(6, [UInt8](repeating: 0, count: 8))
        #expect(send(ping, 1900, to: pair.server) == 1900)
        for second in 1...10 {
            let now = UInt64(second) * 1_000_000_000
            for _ in 0..<390 {
                #expect(ping.withUnsafeBytes { pair.server.receive($0, now: now) })
                while pair.server.send(into: buffer) > 0 {}
            }
        }
        #expect(!pair.server.isOver)
    }

    /// The server has told nobody that it looks no more, so a peer may go on for a while, and no longer.
    @Test func `bytes for a stream that has ended are passed over, and bounded`() throws {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 64 << 20
        limits.connectionWindow = 64 << 20
        let pair = Pair(limits: limits)
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
        pair.exchange()
        #expect(asked.inputEnded && pair.server.openStreams == 0)
        let late = Self.frame(0, stream: 1, [UInt8](repeating: 0x78, count: 16 * 1024))
        let taken = send(late, 1000, to: pair.server)
        // A MiB is no flood, and four are.
        #expect((64...256).contains(taken), "\(taken)")
        pair.exchange()
        #expect(pair.server.isOver && !pair.client.hasRoom)
    }

    // MARK: - Heads

    @Test func `a request's head beyond the limit is told to whoever answers it`() throws {
        var limits = HTTP2Limits()
        limits.headerSize = 1024
        let pair = Pair(limits: limits)
        let asked = try #require(
            pair.open("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 2000))\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.refusal == .tooLarge && stream.inputEnded && stream.readAll() == "")
        #expect(stream.respond("HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n", ended: true))
        pair.exchange()
        #expect(asked.readAll().hasPrefix("HTTP/1.1 431 ") && asked.inputEnded && pair.client.hasRoom)
    }

    @Test func `a head far beyond the limit ends the connection`() throws {
        var limits = HTTP2Limits()
        limits.headerSize = 1024
        let pair = Pair(limits: limits)
        let lines = (0..<8).map { "X-\($0): \(String(repeating: "x", count: 1000))\r\n" }.joined()
        _ = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n", ended: true))
        pair.exchange()
        #expect(pair.server.isOver && pair.server.takeOpened().isEmpty && !pair.client.hasRoom)
    }

    // MARK: - Without memory

    @Test func `a request that no memory is had for is refused as if it had not come`() throws {
        let pair = Pair(blocks: 0)
        let asked = try #require(
            pair.open("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 2000))\r\n\r\n", ended: true))
        pair.exchange()
        #expect(pair.server.takeOpened().isEmpty && pair.server.openStreams == 0)
        #expect(asked.resetCode == HTTP2ErrorCode.refusedStream.rawValue && pair.client.hasRoom)
    }

    @Test func `an answer that no memory is had for is given back alone`() throws {
        let pair = Pair(blocks: 0)
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(
            stream.respond("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 2000))\r\n\r\n", ended: false))
        pair.exchange()
        #expect(asked.isReset && !asked.inputEnded && stream.resetCode == HTTP2ErrorCode.enhanceYourCalm.rawValue)
        // Its neighbours go on.
        let next = try #require(pair.open("GET /next HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        #expect(try #require(pair.server.takeOpened().first).respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
        pair.exchange()
        #expect(next.readAll() == "HTTP/1.1 204 No Content\r\n\r\n")
    }

    @Test func `a body that no memory is had for is given back, and its credit with it`() throws {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 65_535
        limits.connectionWindow = 65_535
        let pair = Pair(blocks: 0, limits: limits)
        // More bytes in all than the connection's window has.
        for _ in 0..<100 {
            let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
            pair.exchange()
            _ = try #require(pair.server.takeOpened().first)
            for _ in 0..<4 where asked.write(String(repeating: "b", count: 900)) { pair.exchange() }
            #expect(asked.resetCode == HTTP2ErrorCode.enhanceYourCalm.rawValue)
        }
        #expect(!pair.client.isWindowShut && pair.client.hasRoom && pair.server.openStreams == 0)
    }

    @Test func `nothing is written that no memory is had for`() throws {
        let pair = Pair(blocks: 0)
        let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        #expect(!asked.write(String(repeating: "b", count: 5000)) && asked.pendingCount == 0)
        #expect(asked.write("b") && asked.write(""))
    }

    // MARK: - Ends that need no reset

    private func slow() throws -> Pair {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 3
        limits.streamWindow = 3
        return Pair(limits: limits)
    }

    @Test func `an answer whose request is whole needs no word that it may stop`() throws {
        let pair = try slow()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello") && stream.end())
        stream.cancel(.none)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhel")
        pair.exchange()
        #expect(asked.readAll() == "lo")
        pair.exchange()
        #expect(asked.inputEnded && asked.resetBy != .peer && pair.server.openStreams == 0)
        // Once it is over there is nothing that could be cancelled.
        stream.cancel(.internalError)
        pair.exchange()
        #expect(asked.resetCode == nil && pair.client.hasRoom)
    }

    @Test func `a request that ends while its answer waits for a reader is not told to stop`() throws {
        let pair = try slow()
        let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello") && stream.end())
        stream.cancel(.none)
        pair.exchange()
        #expect(asked.end())
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhel")
        pair.exchange()
        #expect(asked.readAll() == "lo")
        pair.exchange()
        #expect(asked.inputEnded && asked.resetBy != .peer && asked.resetCode == nil)
        #expect(pair.server.openStreams == 0 && pair.client.openStreams == 0)
    }
}
