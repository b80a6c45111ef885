import Testing

@testable import HTTP2

/// A stream that leaves its connection leaves behind no memory, no credit, and no word that nobody waits for.
@Suite struct StreamLeavingTests {
    /// An upload and its answer, both of which wait in blocks.
    private func busy(_ peer: RawPeer) throws -> HTTP2Stream {
        #expect(peer.receive(RawFrame.settings([(4, 10)])))
        let stream = try peer.asked()
        #expect(peer.receive(RawFrame.data(1, ended: false, [UInt8](repeating: 0x61, count: 5000))))
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        #expect(stream.write(String(repeating: "b", count: 5000)))
        _ = peer.sent()
        #expect(stream.pendingCount == 4990 && peer.blocks.taken == 2)
        return stream
    }

    /// The stream's holder may still read what came, and holds nothing of what was to go.
    @Test func `what was to be sent goes with the stream, and what came stays for its reader`() throws {
        let peer = try RawPeer(.server)
        let stream = try busy(peer)
        #expect(peer.receive(RawFrame.reset(1, 8)))
        #expect(stream.pendingCount == 0 && peer.blocks.taken == 1 && stream.isReset && stream.resetBy == .peer)
        #expect(stream.readAll().hasSuffix(String(repeating: "a", count: 5000)) && peer.blocks.taken == 0)
    }

    @Test func `what was to be sent goes with the connection`() throws {
        let peer = try RawPeer(.server)
        let stream = try busy(peer)
        peer.connection.abandon(.cancel)
        #expect(stream.pendingCount == 0 && peer.blocks.taken == 1 && peer.connection.openStreams == 0)
        stream.cancel()
        #expect(peer.blocks.taken == 0)
    }

    @Test func `what came of a stream that is given up is read by nobody`() throws {
        let peer = try RawPeer(.server)
        let stream = try busy(peer)
        stream.cancel()
        #expect(!stream.hasBytes && peer.blocks.taken == 1)
        // Octets that come before the peer has heard of it are dropped.
        #expect(peer.receive(RawFrame.data(1, ended: false, [1, 2, 3])) && !stream.hasBytes)
        _ = peer.sent()
        #expect(peer.blocks.taken == 0 && peer.connection.openStreams == 0)
    }

    /// The reset waits for the next `send`, and until then its body may come.
    @Test func `a body behind a head that was refused is nobody's`() throws {
        let peer = try RawPeer(.server)
        let malformed = RawFrame.head(1, ended: false, RawFrame.field("host", "elsewhere"))
        #expect(peer.receive(malformed + RawFrame.data(1, ended: false, [UInt8](repeating: 0x61, count: 5000))))
        #expect(peer.connection.openStreams == 1 && peer.connection.takeOpened().isEmpty)
        #expect(peer.frames().contains(RawFrame(type: 3, stream: 1, payload: [0, 0, 0, 1])))
        #expect(peer.connection.openStreams == 0 && peer.blocks.taken == 0)
    }

    /// All of it comes back: unread octets of a stream cost the connection nothing, however the stream ends.
    @Test func `credit for what nobody has read comes back`() throws {
        var limits = HTTP2Limits()
        limits.firstConnectionWindow = 65_535
        limits.connectionWindow = 65_535
        limits.headerSize = 1000
        let peer = try RawPeer(.server, limits: limits)
        let body = [UInt8](repeating: 0x61, count: 10_000)
        var (sent, credit) = (0, 0)
        func take() {
            for frame in peer.frames() where frame.type == 8 && frame.stream == 0 {
                credit += frame.payload.reduce(0) { $0 << 8 | Int($1) }
            }
        }
        for number in 0..<40 as Range<UInt8> {
            let id = 2 * number + 1
            // The stream is reset by the peer, given up by us, over on both sides, refused, or given up before its body comes.
            switch number % 5 {
            case 0:
                let stream = try peer.asked(id)
                #expect(peer.receive(RawFrame.data(id, ended: false, body) + RawFrame.reset(id, 8)))
                #expect(stream.isReset && stream.hasBytes)
            case 1:
                let stream = try peer.asked(id)
                #expect(peer.receive(RawFrame.data(id, ended: false, body)))
                stream.cancel()
            case 2:
                let stream = try peer.asked(id)
                #expect(peer.receive(RawFrame.data(id, ended: true, body)))
                #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true))
            case 3:
                let malformed = RawFrame.head(id, ended: false, RawFrame.field("host", "elsewhere"))
                #expect(peer.receive(malformed + RawFrame.data(id, ended: false, body)))
            default:
                let stream = try peer.asked(id)
                stream.cancel()
                #expect(peer.receive(RawFrame.data(id, ended: false, body)))
            }
            sent += body.count
            take()
            #expect(peer.connection.openStreams == 0 && !peer.connection.isOver)
        }
        // Credit goes out when half of a window has gathered.
        #expect(credit <= sent && sent - credit < 32_768)
    }

    // MARK: - Credentials

    /// The head must not go without its credential, and no later head makes sense without this one (RFC 7541 §2.2).
    @Test func `a head that cannot take its credential ends the connection`() throws {
        let peer = try RawPeer(.client)
        _ = peer.sent()
        let stream = try peer.open()
        // The last field of this head has a value, in whose place none can be written.
        #expect([UInt8]("secret".utf8).withUnsafeBytes { stream.credential.hold($0) })
        #expect(!peer.connection.isOver && peer.connection.hasRoom)
        #expect(peer.sent().isEmpty)
        #expect(peer.connection.isOver && !peer.connection.hasRoom)
        peer.connection.ping()
        #expect(peer.sent().isEmpty, "nothing that follows makes sense")
    }

    // MARK: - Ends that are told

    private final class Listener: HTTP2StreamUser {
        var told = 0
        func streamReady(_ stream: HTTP2Stream) { told += 1 }
    }

    @Test func `a user is told of what came, of what went, and of nothing twice`() throws {
        let peer = try RawPeer(.server)
        let stream = try peer.asked()
        let listener = Listener()
        func told() -> Int {
            listener.told = 0
            peer.connection.tellUsers()
            return listener.told
        }
        _ = told()
        stream.user = listener
        #expect(told() == 0)
        #expect(peer.receive(RawFrame.data(1, ended: false, [1]) + RawFrame.data(1, ended: false, [2])))
        #expect(told() == 1 && told() == 0)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        _ = peer.sent()
        #expect(told() == 0, "a head that has gone is no news")
        #expect(stream.write("body"))
        _ = peer.sent()
        #expect(told() == 1)
        #expect(peer.receive(RawFrame.data(1, ended: true)) && told() == 1 && stream.inputEnded)
        #expect(stream.end())
        _ = peer.sent()
        #expect(stream.isSent && told() == 1 && told() == 0 && peer.connection.openStreams == 0)
        stream.user = nil
    }

    enum Fault: CaseIterable { case none, protocolError, flood }

    /// A fault is told before the connection ends; of a flood nothing more is read at once.
    @Test(arguments: Fault.allCases) func `a peer that broke the protocol has not just gone`(fault: Fault) throws {
        let peer = try RawPeer(.client)
        let stream = try peer.open()
        _ = peer.sent()
        switch fault {
        case .none: break
        case .protocolError:
            #expect(peer.receive(RawFrame.data(0, ended: false, [1])))
            #expect(peer.frames().map(\.type) == [7])
        case .flood: while peer.receive(RawFrame.windowUpdate(0, 1)) {}
        }
        peer.connection.abandon(.connectError)
        #expect(stream.resetCode == 10 && stream.resetBy == (fault == .none ? .connection : .us))
        #expect(stream.isRefused == (fault != .none) && peer.connection.isGoingAway)
        #expect(!peer.receive(RawFrame.ping))
    }

    /// The end of a connection is none of the business of a stream that is over on both sides.
    @Test func `a stream that was over is not reset by the end of its connection`() throws {
        let peer = try RawPeer(.server)
        let stream = try peer.asked(ended: true)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true))
        _ = peer.sent()
        peer.connection.abandon(.cancel)
        #expect(stream.resetCode == nil && !stream.isReset && stream.isSent)
    }
}
