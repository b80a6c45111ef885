import Glibc
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// Upstreams that speak TLS, on a kernel in memory.
@Suite struct SecureUpstreamTests {
    private static func plan(_ more: String = "", addresses: Int = 1) throws -> String {
        let all = (1...addresses).map { "\"127.0.0.\($0):9443\"" }.joined(separator: ", ")
        let ca = try Certificates.shared.get().path("ca.pem")
        return Plans.open("tls: {ca: \(ca)}\(more.contains("proxy") ? "" : ", addresses: [\(all)]")\(more)")
            .replacing("http://127.0.0.1:9000", with: "https://good.test:9443")
    }

    private static func forwarded(_ path: String) -> String {
        "GET \(path) HTTP/1.1\r\nHost: good.test:9443\r\nVia: 1.1 gate\r\n\r\n"
    }

    // MARK: - Bytes

    @Test(arguments: [1, 100, 1 << 20])
    func requestsPassWhateverThePieces(piece: Int) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a"))
        let peer = try #require(scene.upstreams.first)
        (peer.mostPerRead, peer.mostPerWrite) = (piece, max(piece, 50))
        let server = try SecureUpstream(scene, peer)
        #expect(server.shake() == .done && server.tls.negotiatedProtocol == "http/1.1")
        #expect(server.receiveText() == Self.forwarded("/a"))
        server.send(Wire.ok("hello"))
        #expect(caller.takeText() == Wire.ok("hello"))
        caller.send(Wire.get("/b"))
        scene.settle()
        #expect(server.receiveText() == Self.forwarded("/b"))
        server.send(Wire.ok("again"))
        #expect(caller.takeText() == Wire.ok("again") && scene.upstreams.count == 1 && scene.idleUpstreams == 1)
        scene.end()
    }

    private static func body(_ count: Int) -> String {
        var text = ""
        while text.utf8.count < count { text += "\(text.utf8.count)," }
        return String(text.prefix(count))
    }

    /// An upstream that takes a little at a time gets every byte once and in order.
    @Test(arguments: [false, true])
    func aSlowUpstreamGetsTheWholeBody(chunked: Bool) throws {
        let scene = try Scene(Self.plan())
        let body = Self.body(200_000)
        let caller = scene.call()
        caller.send(
            chunked ? Wire.chunkedPost([String(body.prefix(90_000)), String(body.dropFirst(90_000))]) : Wire.post(body))
        scene.settle()
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first))
        server.peer.window = 20_000
        server.shake()
        var seen = server.receiveText()
        for _ in 0..<200 where !seen.hasSuffix(chunked ? "0\r\n\r\n" : String(body.suffix(100))) {
            server.peer.window = 7_000
            scene.settle()
            seen += server.receiveText()
        }
        if chunked {
            #expect(Wire.unchunked(seen)?.body == body)
        } else {
            #expect(seen.hasSuffix("Content-Length: 200000\r\n\r\n" + body))
        }
        server.peer.window = .max
        server.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x") && scene.idleUpstreams == 1)
        scene.end()
    }

    /// The first message of the handshake finds room for its beginning alone.
    @Test func aHandshakeWaitsForRoom() throws {
        let scene = try Scene(Self.plan())
        var peer: Peer?
        scene.kernel.connected = { connected in
            connected.window = 10
            peer = connected
        }
        let caller = scene.call(Wire.get("/a"))
        let server = try SecureUpstream(scene, try #require(peer))
        #expect(server.peer.receivedCount == 10)
        server.peer.window = .max
        scene.settle()
        #expect(server.shake() == .done && server.receiveText() == Self.forwarded("/a"))
        server.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    // MARK: - Ends

    /// A body that ends with its connection is whole where its sender has said so under TLS, and cut otherwise.
    @Test(arguments: [true, false])
    func anEndThatNobodySaidIsACut(isSaid: Bool) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first))
        server.shake()
        server.send("HTTP/1.1 200 OK\r\n\r\nabc")
        if isSaid { server.tls.shutdown() }
        server.peer.finish()
        scene.settle()
        let text = caller.takeText()
        if isSaid {
            #expect(Wire.unchunked(text)?.body == "abc" && !caller.sawEnd)
        } else {
            #expect(text.hasSuffix("3\r\nabc\r\n") && caller.isClosed)
        }
        #expect(server.peer.isClosed)
        scene.end()
    }

    @Test func aTunnelsEndIsSaidUnderTLS() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a", "Connection: upgrade\r\nUpgrade: WebSocket\r\n"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first))
        server.shake()
        #expect(server.receiveText().contains("\r\nUpgrade: WebSocket\r\n"))
        // Protocols compare without case.
        server.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello")
        #expect(caller.status == 101 && caller.takeText().hasSuffix("\r\n\r\nhello"))
        caller.send("bye")
        caller.finish()
        scene.settle()
        let seen = server.receive()
        #expect(String(decoding: seen.octets, as: UTF8.self) == "bye" && seen.isEnded && !server.peer.isClosed)
        // The other direction is still open.
        server.send("late")
        server.tls.shutdown()
        scene.settle()
        #expect(caller.takeText() == "late" && caller.isClosed && server.peer.isClosed)
        scene.end()
    }

    @Test func aLostConnectionIsNoAnswer() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.post("x"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first))
        server.shake()
        server.peer.reset()
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-closed"))
        scene.end()
    }

    // MARK: - Certificates

    @Test func aServerThatIsAnotherIsRefused() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first), leaf: "other")
        server.shake()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-tls"))
        #expect(server.peer.isClosed && server.receiveText() == "")
        scene.end()
    }

    /// A bad certificate may be that of a single server among several.
    @Test func theNextAddressIsTriedThen() throws {
        let scene = try Scene(Self.plan(addresses: 2))
        let caller = scene.call(Wire.get("/a"))
        let bad = try SecureUpstream(scene, try #require(scene.upstreams.first), leaf: "expired")
        bad.shake()
        #expect(bad.peer.isClosed && caller.receivedCount == 0)
        try #require(scene.upstreams.count == 2)
        #expect(scene.upstreams[1].address?.host != scene.upstreams[0].address?.host)
        let good = try SecureUpstream(scene, scene.upstreams[1])
        #expect(good.shake() == .done && good.receiveText() == Self.forwarded("/a"))
        good.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x"))
        // The first is left alone for a while.
        let next = scene.call(Wire.get("/b"))
        good.send(Wire.ok("y"))
        #expect(next.takeText() == Wire.ok("y") && scene.upstreams.count == 2)
        scene.end()
    }

    /// Under TLS 1.3 a server says so only after our side of the handshake is done.
    @Test func aServerThatWantsACertificateIsUnderstood() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first), callers: "ca.pem")
        server.shake()
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-tls"))
        scene.end()
    }

    // MARK: - HTTP/2

    @Test func requestsShareAConnectionThatSpeaksHTTP2() throws {
        let scene = try Scene(Self.plan())
        let callers = [scene.call(Wire.get("/a")), scene.call(Wire.get("/b"))]
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first), alpn: ["h2", "http/1.1"])
        #expect(server.shake() == .done && server.tls.negotiatedProtocol == "h2")
        server.send(Frames.settings + Frames.ok(1) + Frames.ok(3))
        #expect(callers.map(\.status) == [200, 200] && scene.upstreams.count == 1)
        #expect(Frames.read(server.receive().octets).filter { $0.type == 1 }.map(\.stream) == [1, 3])
        server.peer.finish()
        scene.settle()
        scene.end()
    }

    /// A server that wants a request over HTTP/1.1 (RFC 9113 §7) gets this one so, and all that follow.
    @Test func aServerThatInsistsOnHTTP1GetsIt() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a"))
        let first = try SecureUpstream(scene, try #require(scene.upstreams.first), alpn: ["h2", "http/1.1"])
        first.shake()
        first.send(Frames.settings + Frames.reset(1, 0xd))
        try #require(scene.upstreams.count == 2)
        let second = try SecureUpstream(scene, scene.upstreams[1], alpn: ["h2", "http/1.1"])
        #expect(second.shake() == .done && second.tls.negotiatedProtocol == "http/1.1")
        #expect(second.receiveText() == Self.forwarded("/a"))
        let other = scene.call(Wire.get("/b"))
        try #require(scene.upstreams.count == 3)
        let third = try SecureUpstream(scene, scene.upstreams[2], alpn: ["h2", "http/1.1"])
        #expect(third.shake() == .done && third.receiveText() == Self.forwarded("/b"))
        second.send(Wire.ok("x"))
        third.send(Wire.ok("y"))
        #expect(caller.takeText() == Wire.ok("x") && other.takeText() == Wire.ok("y"))
        // Nothing more goes out on the first.
        #expect(first.peer.isClosed)
        scene.end()
    }

    // MARK: - Through a proxy

    private static let proxy = ", proxy: {url: \"http://127.0.0.9:3128\"}"
    private static let connect = "CONNECT good.test:9443 HTTP/1.1\r\nHost: good.test:9443\r\n\r\n"

    @Test func aTunnelStandsBehindInterimAnswers() throws {
        let scene = try Scene(Self.plan(Self.proxy))
        let caller = scene.call(Wire.get("/a"))
        let peer = try #require(scene.upstreams.first)
        #expect(peer.address?.host == "127.0.0.9" && peer.takeText() == Self.connect)
        for piece in ["HTTP/1.1 103 Hi", "nts\r\n\r\nHTTP/1.1 200", " OK\r\n\r\n"] {
            peer.send(piece)
            scene.settle()
        }
        let server = try SecureUpstream(scene, peer)
        #expect(server.shake() == .done && server.receiveText() == Self.forwarded("/a"))
        server.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x") && scene.idleUpstreams == 1)
        scene.end()
    }

    @Test(arguments: [
        ("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "proxy-refused"), ("SSH-2.0-x\r\n", "upstream-garbage"),
        ("HTTP/1.1 200 OK\r\n\r\nmore", "upstream-garbage"), ("", "upstream-closed"), ("HTTP/1.1 2", "upstream-closed"),
    ])
    func aProxyThatOpensNoTunnelIsToldOf(answer: String, problem: String) throws {
        let scene = try Scene(Self.plan(Self.proxy))
        let caller = scene.call(Wire.get("/a"))
        let peer = try #require(scene.upstreams.first)
        peer.send(answer)
        if problem == "upstream-closed" { peer.finish() }
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/\(problem)"))
        // Not a word of the request, nor of the handshake.
        #expect(peer.isClosed && peer.takeText() == Self.connect)
        scene.end()
    }

    @Test func aProxyThatCannotBeToldIsLost() throws {
        let scene = try Scene(Self.plan(Self.proxy))
        var peers: [Peer] = []
        scene.kernel.connected = { peer in
            peer.failWrites([EPIPE])
            peers.append(peer)
        }
        let caller = scene.call(Wire.get("/a"))
        #expect(caller.status == 502 && !peers.isEmpty && peers.allSatisfy { $0.isClosed && $0.receivedCount == 0 })
        scene.end()
    }
}
