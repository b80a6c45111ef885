import Glibc
import HTTP2
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Connections to an upstream that the machine has no place for, and upstreams that end them at odd moments.
@Suite struct UpstreamShortageTests {
    /// A scene whose caller is there and has sent nothing yet.
    private func waiting(_ yaml: String) throws -> (scene: Scene, caller: Peer) {
        let scene = try Scene(yaml)
        let caller = scene.call()
        scene.settle()
        return (scene, caller)
    }

    private static let modern = Plans.open("http: 2")

    // MARK: - No place in the loop

    /// Each step in which a connection comes to another owner wants a place in the loop: the attempt, the connection,
    /// the shared one.
    @Test(arguments: [(Plans.open(), 0), (Plans.open(), 1), (modern, 2)])
    func aConnectionThatCannotBeWatchedIsNone(yaml: String, step: Int) throws {
        let (scene, caller) = try waiting(yaml)
        scene.kernel.watchErrors = Array(repeating: 0, count: step) + [ENOSPC]
        caller.send(Wire.get())
        scene.settle()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/out-of-buffers"))
        #expect(scene.upstreams.map(\.isClosed) == [true] && scene.upstreams[0].receivedCount == 0)
        // The next one is served.
        let next = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.last)
        if step == 2 {
            upstream.send(Frames.settings + Frames.ok(1))
        } else {
            upstream.send(Wire.ok("x"))
        }
        scene.settle()
        #expect(next.status == 200)
        upstream.finish()
        scene.settle()
        scene.end()
    }

    /// A request that waited gets the connection of the one before it, in a place of its own.
    @Test func aConnectionThatCannotBePassedOnIsNone() throws {
        let (scene, second) = try waiting(Plans.open("limits: {connections: 1, waiters: 1}"))
        let first = scene.call(Wire.get("/1"))
        second.send(Wire.get("/2"))
        scene.settle()
        #expect(scene.upstreams.count == 1)
        scene.kernel.watchErrors = [ENOSPC]
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(first.status == 200 && second.status == 503 && scene.upstreams[0].isClosed)
        let third = scene.call(Wire.get("/3"))
        try #require(scene.upstreams.count == 2)
        scene.upstreams[1].send(Wire.ok("y"))
        scene.settle()
        #expect(third.status == 200)
        scene.end()
    }

    // MARK: - Proxies

    /// A proxy that takes the beginning of a CONNECT and no more.
    @Test func aProxyThatIsGoneAmidTheRequestIsLost() throws {
        let scene = try Scene(
            Plans.open("proxy: {url: \"http://127.0.0.9:3128\"}").replacing("http://127.0.0.1", "https://good.test"))
        var peers: [Peer] = []
        scene.kernel.connected = { peer in
            peer.window = 10
            peers.append(peer)
        }
        let caller = scene.call(Wire.get())
        #expect(peers.count == 1 && peers[0].takeText() == "CONNECT go")
        peers[0].failWrites([EPIPE])
        peers[0].window = .max
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-closed"))
        #expect(peers.map(\.isClosed) == [true])
        scene.end()
    }

    // MARK: - HTTP/2

    private static let oneStream = Frames.frame(4, 0, 0, [0, 3, 0, 0, 0, 1])
    private static let upgrade =
        "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
        + "Sec-WebSocket-Version: 13\r\n"

    /// A request that no new connection takes goes out where there is room by now.
    @Test func aSharedConnectionRescuesWhoCannotConnect() throws {
        let scene = try Scene(Self.modern)
        let first = scene.call(Wire.get("/1"))
        scene.upstreams[0].send(Self.oneStream)
        scene.settle()
        scene.kernel.connectPlan = { _ in .silent }
        let second = scene.call(Wire.get("/2"))
        #expect(scene.upstreams.count == 2)
        scene.upstreams[0].send(Frames.ok(1))
        scene.settle()
        #expect(first.status == 200)
        scene.upstreams[1].reset(ECONNREFUSED)
        scene.settle()
        let seen = Frames.read(scene.upstreams[0].received).filter { $0.type == 1 }.map(\.stream)
        #expect(seen == [1, 3] && second.status == nil)
        scene.upstreams[0].send(Frames.ok(3))
        scene.settle()
        #expect(second.status == 200)
        scene.upstreams[0].finish()
        scene.settle()
        scene.end()
    }

    /// RFC 8441: a WebSocket goes over HTTP/2 where its server offers that, and nowhere else on a route of HTTP/2
    /// alone.
    @Test func aServerWithoutExtendedConnectTakesNoWebSocket() throws {
        let scene = try Scene(Self.modern)
        let caller = scene.call(Wire.get("/", Self.upgrade))
        let upstream = try #require(scene.upstreams.first)
        #expect(caller.status == nil)
        upstream.send(Frames.settings)
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-offers-no-upgrade"))
        #expect(Frames.read(upstream.received).allSatisfy { $0.type != 1 })
        // Who comes later hears it at once, and other requests are served.
        #expect(scene.call(Wire.get("/", Self.upgrade)).status == 502)
        let plain = scene.call(Wire.get("/a"))
        upstream.send(Frames.ok(1))
        scene.settle()
        #expect(plain.status == 200 && scene.upstreams.count == 1)
        upstream.finish()
        scene.settle()
        scene.end()
    }

    @Test func aServerThatLeavesBeforeItsOfferIsLost() throws {
        let scene = try Scene(Self.modern)
        let caller = scene.call(Wire.get("/", Self.upgrade))
        try #require(scene.upstreams.first).finish()
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-closed"))
        scene.end()
    }

    /// A route of HTTP/2 alone stays so, whatever a server wishes.
    @Test func aWishForHTTP1IsNotFollowedOnARouteOfHTTP2() throws {
        let scene = try Scene(Self.modern)
        let caller = scene.call(Wire.post("x"))
        scene.upstreams[0].send(Frames.settings + Frames.reset(1, 0xd))
        scene.settle()
        let other = scene.call(Wire.get("/b"))
        #expect(scene.upstreams.allSatisfy { Array($0.received.prefix(3)) == Array("PRI".utf8) })
        #expect(caller.status == 502 || caller.status == nil)
        let upstream = try #require(scene.upstreams.last { !$0.isClosed })
        for frame in Frames.read(upstream.received) where frame.type == 1 && frame.stream > 1 {
            upstream.send(Frames.ok(frame.stream))
        }
        scene.settle()
        #expect(other.status == 200)
        for peer in scene.upstreams { peer.finish() }
        scene.settle()
        scene.end()
    }

    // MARK: - Places that are closed meanwhile

    /// An address that was open when its connections were first made may be this machine's own by now.
    @Test func anAddressThatBecameOursIsNotReached() throws {
        let scene = try Scene(
            "listeners:\n  l: {address: \"127.0.0.1:8080\", mode: forward_proxy, unmatched: tunnel}\nroutes:\n"
                + "  - {listen: l, to: \"http://a.test\", use: none, match: {host: a.test}}\n")
        let request = "GET http://203.0.113.5/ HTTP/1.1\r\nHost: 203.0.113.5\r\n\r\n"
        let first = scene.call(request)
        #expect(scene.upstreams.count == 1)
        scene.data.local = LocalAddresses([try #require(SocketAddress(host: "203.0.113.5", port: 0))])
        let second = scene.call(request)
        #expect(second.status == 403 && second.receivedText.contains("problems/destination-refused"))
        #expect(scene.upstreams.count == 1)
        scene.upstreams[0].send(Wire.ok("x", "Connection: close\r\n"))
        scene.settle()
        #expect(first.status == 200)
        scene.end()
    }

    // MARK: - Owned connections

    private static let ntlm = "Authorization: NTLM TlRMTVNTUAABAAAA\r\n"
    private static let challenge =
        "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM TlRMTVNTUAACAAAA\r\nContent-Length: 0\r\n\r\n"

    /// A reload ends the owned connections of all callers.
    @Test func aRouteThatIsGoneEndsEveryOwnersConnection() throws {
        let scene = try Scene(Plans.open())
        for place in 0..<3 {
            _ = scene.call(Wire.get("/", Self.ntlm))
            scene.upstreams[place].send(Self.challenge)
            scene.settle()
        }
        #expect(scene.upstreams.allSatisfy { !$0.isClosed })
        try scene.reload(Plans.open().replacing("9000", "9001"))
        #expect(scene.upstreams.map(\.isClosed) == [true, true, true])
        scene.end()
    }

    /// At the bound, a connection in the middle of an authentication gives way after one whose owner is merely silent.
    @Test func aHandshakeGivesWayLast() throws {
        let scene = try Scene(Plans.open("limits: {connections: 2, waiters: 4}"))
        let owners = (0..<2).map { place in
            let owner = scene.call(Wire.get("/", Self.ntlm))
            // The first one is still in its handshake, the second one is done with it.
            scene.upstreams[place].send(place == 0 ? Self.challenge : Wire.ok("x"))
            scene.settle()
            return owner
        }
        #expect(owners.map(\.status) == [401, 200])
        let other = scene.call(Wire.get("/other"))
        #expect(scene.upstreams.map(\.isClosed) == [false, true, false])
        scene.upstreams[2].send(Wire.ok("y"))
        scene.settle()
        #expect(other.status == 200)
        scene.end()
    }
}

extension String {
    fileprivate func replacing(_ old: String, _ new: String) -> String {
        split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }
}
