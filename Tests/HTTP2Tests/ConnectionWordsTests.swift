import Testing

@testable import HTTP2

/// A connection's words: its own, those that it takes from its peer, and the one to its host that something waits.
@Suite struct ConnectionWordsTests {
    // MARK: - First words

    @Test func `a server says how much a caller may send and open`() throws {
        let peer = try RawPeer(.server, isGreeted: false)
        #expect(
            peer.frames() == [
                RawFrame(
                    type: 4, payload: Array(RawFrame.settings([(4, 65_536), (6, 65_536), (3, 128)]).dropFirst(9))),
                RawFrame(type: 8, payload: RawFrame.word(256 * 1024 - 65_535)),
            ])
    }

    /// A client serves no pushed streams, and has all of its connection's window at once.
    @Test func `a client says how much an upstream may send, and wants nothing pushed`() throws {
        let peer = try RawPeer(.client, isGreeted: false)
        #expect(
            peer.frames() == [
                RawFrame(type: 4, payload: Array(RawFrame.settings([(4, 65_536), (6, 65_536), (2, 0)]).dropFirst(9))),
                RawFrame(type: 8, payload: RawFrame.word(1024 * 1024 - 65_535)),
            ])
        let again = try RawPeer(.client, isGreeted: false)
        #expect(again.sent().starts(with: RawFrame.preface))
    }

    @Test(arguments: [HTTP2Connection.Role.server, .client])
    func `bounds are those that were asked for`(role: HTTP2Connection.Role) throws {
        var limits = HTTP2Limits()
        limits.streams = 7
        limits.headerSize = 5000
        limits.firstStreamWindow = 3000
        limits.streamWindow = 2000
        limits.firstConnectionWindow = 70_000
        limits.connectionWindow = 80_000
        let frames = try RawPeer(role, limits: limits, isGreeted: false).frames()
        let last: (UInt16, UInt32) = role == .server ? (3, 7) : (2, 0)
        // A window does not begin larger than it may become.
        #expect(frames[0].octets == RawFrame.settings([(4, 2000), (6, 5000), last]))
        #expect(frames[1].octets == RawFrame.windowUpdate(0, (role == .server ? 70_000 : 80_000) - 65_535))
    }

    @Test func `windows may become four times as large as they begin`() {
        let limits = HTTP2Limits()
        #expect(limits.streamWindow == 256 * 1024 && limits.firstStreamWindow == 64 * 1024)
        #expect(limits.connectionWindow == 1024 * 1024 && limits.firstConnectionWindow == 256 * 1024)
    }

    // MARK: - Room

    /// - Returns: requests that a client has room for.
    private static func room(_ peer: RawPeer) throws -> Int {
        var count = 0
        while peer.connection.hasRoom, count < 1000 {
            _ = try peer.open()
            count += 1
        }
        #expect(peer.connection.openStreams == count)
        return count
    }

    /// RFC 9113 §6.5.2 advises a server to offer no less than 100.
    @Test func `a client opens 100 streams before it knows what is offered`() throws {
        let peer = try RawPeer(.client, isGreeted: false)
        #expect(try Self.room(peer) == 100)
    }

    @Test(arguments: [(128, 3, 3), (3, 128, 3), (200, 1000, 200), (200, 0, 0)])
    func `a client opens as many streams as are offered and it may have`(own: Int, offered: Int, count: Int) throws {
        var limits = HTTP2Limits()
        limits.streams = own
        let peer = try RawPeer(.client, limits: limits, isGreeted: false)
        #expect(peer.receive(RawFrame.settings([(3, UInt32(offered))])))
        #expect(try Self.room(peer) == count)
    }

    @Test func `a peer is known by its settings, and by nothing else`() throws {
        let peer = try RawPeer(.client, isGreeted: false)
        #expect(!peer.connection.knowsPeer)
        #expect(peer.receive(Array(RawFrame.settings().dropLast())) && !peer.connection.knowsPeer)
        #expect(peer.receive([0]) && peer.connection.knowsPeer)
        #expect(peer.receive(RawFrame.settingsAck) && peer.connection.knowsPeer)
    }

    @Test func `a peer that goes away is given no more requests`() throws {
        let peer = try RawPeer(.client)
        #expect(peer.connection.hasRoom && !peer.connection.isGoingAway)
        let open = try peer.open()
        _ = peer.sent()
        #expect(peer.receive(RawFrame.goAway(0x7fff_ffff)))
        #expect(peer.connection.isGoingAway && !peer.connection.hasRoom && !open.hasInput)
        // The peer serves what it has said it will still serve.
        #expect(peer.receive(RawFrame.answer(1, ended: true)) && open.readAll() == "HTTP/1.1 200 OK\r\n\r\n")
    }

    // MARK: - The connection's window

    @Test func `a window is shut while it has no octet`() throws {
        var limits = HTTP2Limits()
        limits.streams = 10
        let peer = try RawPeer(.client, limits: limits, isGreeted: false)
        #expect(peer.receive(RawFrame.settings([(4, 1 << 20)])))
        let stream = try peer.open(ended: false)
        _ = peer.sent()
        for (count, isShut) in [(65_534, false), (1, true), (1, true)] {
            #expect(stream.write(String(repeating: "x", count: count)))
            _ = peer.sent()
            #expect(peer.connection.isWindowShut == isShut)
        }
        #expect(stream.pendingCount == 1)
        #expect(peer.receive(RawFrame.windowUpdate(0, 2)) && !peer.connection.isWindowShut)
        _ = peer.sent()
        #expect(stream.pendingCount == 0 && !peer.connection.isWindowShut)
    }

    /// The time of the last body octets, by which a peer that takes nothing is known.
    @Test func `the time is noted when octets of a body go out`() throws {
        let peer = try RawPeer(.server)
        let stream = try peer.asked()
        peer.now = 10
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        _ = peer.sent()
        #expect(peer.connection.sentDataAt == 0)
        #expect(stream.write("a"))
        #expect(peer.connection.sentDataAt == 0)
        peer.now = 11
        _ = peer.sent()
        #expect(peer.connection.sentDataAt == 11)
        // A `send` that is told no time goes by that of the last `receive`.
        peer.now = 12
        #expect(peer.receive(RawFrame.ping) && stream.write("b"))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        #expect(peer.connection.send(into: buffer) > 0 && peer.connection.sentDataAt == 12)
        peer.now = 13
        _ = peer.sent()
        #expect(peer.receive(RawFrame.ping) && !peer.sent().isEmpty && peer.connection.sentDataAt == 12)
    }

    // MARK: - The host

    private final class Host: HTTP2ConnectionHost {
        var told = 0
        func connectionHasOutput() { told += 1 }
    }

    private typealias Act = (name: String, role: HTTP2Connection.Role, act: @Sendable (RawPeer, HTTP2Stream) -> Bool)

    private static let acts: [Act] = [
        (
            "ping", .server,
            { peer, _ in
                peer.connection.ping(); return true
            }
        ),
        (
            "goAway", .server,
            { peer, _ in
                peer.connection.goAway(); return true
            }
        ),
        (
            "terminate", .server,
            { peer, _ in
                peer.connection.terminate(.internalError); return true
            }
        ),
        ("a PING came", .server, { peer, _ in peer.receive(RawFrame.ping) }),
        ("an unexplained octet came", .client, { peer, _ in peer.receive([0]) }),
        ("a fault came", .server, { peer, _ in peer.receive(RawFrame.data(0, ended: false, [1])) }),
        ("an answer", .server, { _, stream in stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true) }),
        (
            "an interim answer", .server,
            { _, stream in
                var head = Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8)
                return head.withUnsafeMutableBytes { stream.send(interim: $0) }
            }
        ),
        (
            "cancel", .server,
            { _, stream in
                stream.cancel(); return true
            }
        ),
        (
            "cancel", .client,
            { _, stream in
                stream.cancel(); return true
            }
        ),
        (
            "cut", .client,
            { _, stream in
                stream.cut(.internalError); return true
            }
        ),
        ("write", .client, { _, stream in stream.write("a") }), ("end", .client, { _, stream in stream.end() }),
        ("open", .client, { peer, _ in (try? peer.open()) != nil }),
    ]

    @Test(arguments: acts.indices)
    func `a host is told once that something waits, until it is taken`(_ index: Int) throws {
        let (name, role, act) = Self.acts[index]
        let peer = try RawPeer(role)
        let stream = try role == .server ? peer.asked() : peer.open(ended: false)
        let host = Host()
        peer.connection.host = host
        _ = peer.sent()
        host.told = 0
        #expect(act(peer, stream))
        #expect(host.told == 1, "\(name)")
        peer.connection.ping()
        #expect(host.told == 1, "\(name)")
        if name != "an unexplained octet came" { #expect(!peer.sent().isEmpty, "\(name)") } else { _ = peer.sent() }
        peer.connection.ping()
        #expect(host.told == 2, "\(name)")
        peer.connection.host = nil
    }

    @Test func `a host is told that credit waits for what was read`() throws {
        for role in [HTTP2Connection.Role.server, .client] {
            let peer = try RawPeer(role)
            let stream = try role == .server ? peer.asked() : peer.open()
            _ = peer.sent()
            if role == .client { #expect(peer.receive(RawFrame.answer(1, ended: false))) }
            for _ in 0..<4 {
                #expect(peer.receive(RawFrame.data(1, ended: false, [UInt8](repeating: 1, count: 16_000))))
            }
            let host = Host()
            peer.connection.host = host
            _ = peer.sent()
            host.told = 0
            #expect(!stream.readAll().isEmpty && host.told == 1)
            let updates = peer.frames().filter { $0.type == 8 && $0.stream == 1 }
            #expect(updates.count == 1)
            peer.connection.host = nil
        }
    }

    // MARK: - News

    @Test func `there is news until every opened stream is taken and every user told`() throws {
        let peer = try RawPeer(.server)
        #expect(!peer.connection.hasNews && peer.connection.nextOpened() == nil)
        #expect(peer.receive(RawFrame.head(1, ended: true) + RawFrame.head(3, ended: true)))
        #expect(peer.connection.hasNews)
        peer.connection.tellUsers()
        #expect(peer.connection.hasNews && peer.connection.nextOpened()?.id == 1)
        #expect(peer.connection.hasNews)
        // The third comes before the second is taken.
        #expect(peer.receive(RawFrame.head(5, ended: true)))
        #expect(peer.connection.nextOpened()?.id == 3 && peer.connection.nextOpened()?.id == 5)
        #expect(peer.connection.nextOpened() == nil && peer.connection.hasNews)
        peer.connection.tellUsers()
        #expect(!peer.connection.hasNews)
        #expect(peer.receive(RawFrame.head(7, ended: true)) && peer.connection.nextOpened()?.id == 7)
    }

    @Test func `a stream is served from the end of its head`() throws {
        let peer = try RawPeer(.server)
        let head = RawFrame.parsed(RawFrame.head(1, ended: false))[0].payload
        #expect(peer.receive(RawFrame(type: 1, flags: 0, stream: 1, payload: head).octets))
        #expect(peer.connection.openStreams == 1 && peer.connection.servedStreams == 0)
        #expect(peer.connection.unfinishedSection != nil)
        #expect(peer.receive(RawFrame(type: 9, flags: 4, stream: 1).octets))
        #expect(peer.connection.openStreams == 1 && peer.connection.servedStreams == 1)
        #expect(peer.connection.unfinishedSection == nil)
        // Trailers that have begun belong to one that is served.
        #expect(peer.receive(RawFrame(type: 1, flags: 1, stream: 1, payload: RawFrame.field("a", "b")).octets))
        #expect(peer.connection.servedStreams == 1 && peer.connection.unfinishedSection != nil)
    }

    @Test func `an answer whose head is not whole is open all the same`() throws {
        let peer = try RawPeer(.client)
        _ = try peer.open()
        _ = peer.sent()
        #expect(peer.receive(RawFrame(type: 1, flags: 0, stream: 1, payload: [0x88]).octets))
        #expect(peer.connection.openStreams == 1 && peer.connection.servedStreams == 1)
    }

    @Test(arguments: [(0x86, 80), (0x87, 443)] as [(UInt8, UInt16)])
    func `a request has the port of its scheme`(scheme: UInt8, port: UInt16) throws {
        let peer = try RawPeer(.server)
        #expect(peer.receive(RawFrame.head(1, ended: true, scheme: scheme)))
        #expect(peer.connection.nextOpened()?.schemePort == port)
    }
}
