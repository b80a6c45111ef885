import Testing

@testable import HTTP2

/// How heads, bodies and credit pass, and what a connection says when it is to end.
@Suite struct ConnectionFlowTests {
    // MARK: - Ends of the connection

    private static func goAway(_ last: UInt32, _ code: UInt32 = 0) -> RawFrame {
        RawFrame(type: 7, payload: RawFrame.word(last) + RawFrame.word(code))
    }

    /// Requests that are on their way are still served after the first word (RFC 9113 §6.8).
    @Test func `a server goes away in two steps`() throws {
        let peer = try RawPeer(.server)
        _ = peer.sent()
        peer.connection.goAway()
        #expect(peer.connection.isGoingAway && peer.frames() == [Self.goAway(0x7fff_ffff)])
        _ = try peer.asked(1)
        _ = try peer.asked(3)
        peer.connection.goAway()
        #expect(peer.frames() == [Self.goAway(3)])
        #expect(peer.receive(RawFrame.head(5, ended: true)) && peer.connection.takeOpened().isEmpty)
        #expect(!peer.connection.isOver, "two are served")
    }

    @Test func `a client that goes away opens nothing, and says so when asked again`() throws {
        let peer = try RawPeer(.client)
        _ = peer.sent()
        #expect(peer.connection.hasRoom)
        peer.connection.goAway()
        #expect(peer.connection.isGoingAway && !peer.connection.hasRoom && peer.sent().isEmpty)
        peer.connection.goAway()
        #expect(peer.frames() == [Self.goAway(0)])
    }

    @Test func `a connection that is ended says why`() throws {
        let peer = try RawPeer(.server)
        _ = try peer.asked()
        _ = peer.sent()
        peer.connection.terminate(.inadequateSecurity)
        #expect(!peer.connection.isOver, "not before it is said")
        #expect(peer.frames() == [Self.goAway(1, 12)] && peer.connection.isOver)
    }

    @Test func `a ping is one frame`() throws {
        let peer = try RawPeer(.client)
        _ = peer.sent()
        peer.connection.ping()
        #expect(peer.sent() == RawFrame.ping && peer.sent().isEmpty && !peer.connection.isOver)
    }

    @Test func `a connection that was flooded has no room`() throws {
        let peer = try RawPeer(.client)
        _ = peer.sent()
        while peer.receive(RawFrame.windowUpdate(0, 1)) {}
        #expect(!peer.connection.hasRoom)
        #expect(peer.frames() == [Self.goAway(0, 11)])
    }

    // MARK: - Ends of streams

    @Test func `a message that ends with its head takes no body`() throws {
        let client = try RawPeer(.client)
        let asked = try client.open(ended: true)
        #expect(!asked.write("a") && !asked.end() && asked.pendingCount == 0 && !asked.isFlushed)
        #expect(client.frames().last?.flags == 5 && asked.isFlushed && asked.isSent)
        let server = try RawPeer(.server)
        let stream = try server.asked()
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true) && !stream.isFlushed)
        #expect(!stream.write("a") && !stream.end() && stream.pendingCount == 0)
        #expect(server.frames().last?.flags == 5 && stream.isFlushed && stream.isSent)
    }

    /// The answer is still on its way when its reader has gone; the connection holds it only until the connection has ended.
    @Test func `an ended connection holds no stream`() throws {
        let peer = try RawPeer(.server)
        weak var held: HTTP2Stream?
        do {
            let stream = try peer.asked()
            held = stream
            #expect(peer.receive(RawFrame.settings([(4, 0)])))
            #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("body") && stream.end())
            stream.cancel(.none)
            _ = peer.sent()
        }
        peer.connection.tellUsers()
        #expect(held != nil && peer.connection.openStreams == 1)
        peer.connection.abandon(.cancel)
        peer.connection.tellUsers()
        #expect(held == nil)
    }

    @Test func `a user is not told before all that waits has gone`() throws {
        final class Listener: HTTP2StreamUser {
            var told = 0
            func streamReady(_ stream: HTTP2Stream) { told += 1 }
        }
        let peer = try RawPeer(.server)
        #expect(peer.receive(RawFrame.settings([(4, 3)])))
        let stream = try peer.asked()
        peer.connection.tellUsers()
        let listener = Listener()
        stream.user = listener
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("body"))
        _ = peer.sent()
        peer.connection.tellUsers()
        #expect(stream.pendingCount == 1 && listener.told == 0)
        #expect(peer.receive(RawFrame.windowUpdate(1, 1)))
        _ = peer.sent()
        peer.connection.tellUsers()
        #expect(stream.pendingCount == 0 && listener.told == 1)
        stream.user = nil
    }

    @Test func `a user is told of an interim answer`() throws {
        let peer = try RawPeer(.client)
        let asked = try peer.open()
        _ = peer.sent()
        peer.connection.tellUsers()
        #expect(!peer.connection.hasNews)
        let interim = RawFrame(type: 1, flags: 4, stream: 1, payload: RawFrame.field(":status", "103"))
        #expect(peer.receive(interim.octets) && peer.connection.hasNews && !asked.hasHead)
    }

    // MARK: - Heads

    /// An upstream has no status with which the gateway could tell it that its head is too large.
    @Test func `an answer whose head is too large is refused, and its neighbour is not`() throws {
        var limits = HTTP2Limits()
        limits.headerSize = 1000
        let peer = try RawPeer(.client, limits: limits)
        let (asked, next) = (try peer.open(), try peer.open())
        _ = peer.sent()
        let fields = (0..<10).flatMap { RawFrame.field("x-\($0)", String(repeating: "y", count: 100)) }
        #expect(peer.receive(RawFrame.answer(1, ended: false, fields)))
        #expect(peer.frames() == [RawFrame(type: 3, stream: 1, payload: [0, 0, 0, 1])])
        #expect(asked.isRefused && !asked.hasHead && !asked.hasBytes && asked.refusal == nil)
        #expect(peer.receive(RawFrame.answer(3, ended: true)) && next.readAll() == "HTTP/1.1 200 OK\r\n\r\n")
    }

    /// Heads have no window, so that those that nobody reads are bounded by themselves.
    @Test(arguments: [false, true]) func `interim answers that nobody reads are as long as one head and the next`(
        isRead: Bool
    ) throws {
        var limits = HTTP2Limits()
        limits.headerSize = 1000
        let peer = try RawPeer(.client, limits: limits)
        let asked = try peer.open()
        _ = peer.sent()
        // A hundred octets in HTTP/1.1's form.
        let block = RawFrame.field(":status", "103") + RawFrame.field("link", String(repeating: "l", count: 64))
        let interim = RawFrame(type: 1, flags: 4, stream: 1, payload: block).octets
        for number in 1...20 {
            #expect(peer.receive(interim))
            let frames = peer.frames()
            if isRead {
                #expect(asked.readAll().utf8.count == 100 && frames.isEmpty && !asked.hasHead)
            } else {
                #expect(asked.headBytes == 100 * min(number, 11))
                #expect(frames == (number == 12 ? [RawFrame(type: 3, stream: 1, payload: [0, 0, 0, 11])] : []))
                if number == 12 { break }
            }
        }
        #expect(asked.isRefused == !isRead)
    }

    /// The head's piece has room for as much of a body as is announced, so that a short message is never copied.
    @Test(arguments: [false, true]) func `a body lies behind its head where its length is known`(isKnown: Bool) throws {
        let peer = try RawPeer(.server)
        #expect(peer.receive(RawFrame.head(1, ended: false, isKnown ? RawFrame.field("content-length", "50") : [])))
        let stream = try #require(peer.connection.nextOpened())
        #expect(stream.contentLength == (isKnown ? 50 : nil))
        let before = stream.input.front.baseAddress
        #expect(peer.receive(RawFrame.data(1, ended: true, [UInt8](repeating: 0x61, count: 50))))
        #expect((stream.input.front.baseAddress == before) == isKnown)
        #expect(stream.readAll().hasSuffix("\r\n\r\n" + String(repeating: "a", count: 50)))
    }

    @Test func `an answer that has a length and no body takes no room for one`() throws {
        let peer = try RawPeer(.client)
        var head = Array("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        let stream = head.withUnsafeMutableBytes {
            peer.connection.open(
                request: $0, scheme: "https", secretName: [], secretTarget: false, acceptsTrailers: false, ended: true)
        }
        let asked = try #require(stream)
        _ = peer.sent()
        #expect(peer.receive(RawFrame.answer(1, ended: true, RawFrame.field("content-length", "900"))))
        #expect(asked.contentLength == 900 && asked.inputEnded)
        let (piece, count) = try #require(asked.takePiece())
        #expect(piece.count == 64 && count == 40)
        peer.connection.memory.give(piece: piece)
    }

    // MARK: - Credit

    /// - Returns: credit that waits to be sent for this stream, 0 for the connection.
    private func credit(_ peer: RawPeer, _ stream: UInt32) -> Int {
        peer.frames().filter { $0.type == 8 && $0.stream == stream }
            .reduce(0) { $0 + $1.payload.reduce(0) { $0 << 8 | Int($1) } }
    }

    /// Credit for less than half of a window waits for more, so that parts would not all be heard of.
    private func readAtOnce(_ stream: HTTP2Stream) -> Int {
        var target = [UInt8](repeating: 0, count: 70_000)
        guard case .bytes(let count) = target.withUnsafeMutableBytes({ stream.read(into: $0) }) else { return 0 }
        return count
    }

    @Test(arguments: [HTTP2Connection.Role.server, .client])
    func `a stream's window that was read comes back twice as large, up to its bound`(role: HTTP2Connection.Role) throws
    {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 20_000
        limits.streamWindow = 50_000
        let peer = try RawPeer(role, limits: limits)
        // The first window is agreed upon when the peer has acknowledged it (RFC 9113 §6.5.3).
        _ = peer.sent()
        #expect(peer.receive(RawFrame.settingsAck))
        let stream = try role == .server ? peer.asked() : peer.open()
        _ = peer.sent()
        if role == .client { #expect(peer.receive(RawFrame.answer(1, ended: false))) }
        for (window, next) in [(20_000, 40_000), (40_000, 50_000), (50_000, 50_000)] {
            var left = window
            while left > 0 {
                #expect(
                    peer.receive(RawFrame.data(1, ended: false, [UInt8](repeating: 0x61, count: min(left, 10_000)))))
                left -= min(left, 10_000)
            }
            #expect(credit(peer, 1) == 0, "nothing comes back unread")
            #expect(readAtOnce(stream) >= window)
            #expect(stream.window.size == next && credit(peer, 1) == next)
        }
    }

    /// Callers share their connections with nobody, upstreams' connections are shared by callers.
    @Test func `a connection's window comes back when a caller's body is read, and at once from an upstream's`() throws
    {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 65_535
        limits.connectionWindow = 65_535
        let body = RawFrame.data(1, ended: false, [UInt8](repeating: 0x61, count: 15_000))
        let server = try RawPeer(.server, limits: limits)
        let stream = try server.asked()
        _ = server.sent()
        for _ in 0..<4 { #expect(server.receive(body)) }
        #expect(credit(server, 0) == 0)
        #expect(readAtOnce(stream) > 60_000 && credit(server, 0) == 60_000)
        let client = try RawPeer(.client, limits: limits)
        let asked = try client.open()
        _ = client.sent()
        #expect(client.receive(RawFrame.answer(1, ended: false)))
        for _ in 0..<4 { #expect(client.receive(body)) }
        #expect(credit(client, 0) >= 45_000)
        #expect(!asked.readAll().isEmpty && credit(client, 0) == 0)
    }

    /// A head has no window: credit for its octets would let the peer send more than the window has.
    @Test(arguments: [(7, 32_770), (36, 32_796), (37, 32_771), (5000, 33_300), (nil, 33_300)] as [(Int?, Int)])
    func `credit is for the octets of bodies and not for those of heads`(size: Int?, sent: Int) throws {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 65_535
        limits.connectionWindow = 65_535
        let peer = try RawPeer(.server, limits: limits)
        _ = peer.sent()
        for number in 0..<37 as Range<UInt8> {
            // Credit goes out with the read by which half of the window was read, of the last body; a head of 36 octets is before each.
            #expect(credit(peer, 0) == 0)
            let stream = try peer.asked(2 * number + 1)
            #expect(peer.receive(RawFrame.data(2 * number + 1, ended: true, [UInt8](repeating: 0x61, count: 900))))
            if let size {
                var target = [UInt8](repeating: 0, count: size)
                while case .bytes = target.withUnsafeMutableBytes({ stream.read(into: $0) }) {}
            } else {
                let (piece, count) = try #require(stream.takePiece())
                #expect(count == 936)
                peer.connection.memory.give(piece: piece)
            }
        }
        #expect(credit(peer, 0) == sent)
    }

    // MARK: - Bodies pay for frames

    /// - Returns: pings that a peer's connection takes in all, some of them before this.
    private func pings(_ peer: RawPeer, between act: () -> Void = {}) -> Int {
        var count = 0
        while count < 3000, peer.receive(RawFrame.ping) {
            count += 1
            if count.isMultiple(of: 500) { _ = peer.sent() }
            if count == 1000 { act() }
        }
        return count
    }

    @Test func `a body that moves in either direction lets a peer send more frames`() throws {
        let idle = try RawPeer(.server)
        _ = try idle.asked()
        let least = pings(idle)
        #expect((1990...2000).contains(least))
        // The peer may send one frame more for each frame of a body, and one for each 256 octets of it.
        let upload = try RawPeer(.server)
        _ = try upload.asked()
        let some = pings(upload) {
            #expect(upload.receive(RawFrame.data(1, ended: false, [UInt8](repeating: 1, count: 2560))))
        }
        #expect(some == least + 11)
        let download = try RawPeer(.server)
        let stream = try download.asked()
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        _ = download.sent()
        let more = pings(download) {
            #expect(stream.write(String(repeating: "b", count: 5120)))
            _ = download.sent()
        }
        #expect(more == least + 21)
    }
}
