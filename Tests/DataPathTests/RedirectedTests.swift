import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// Connections that the kernel redirected here, whose callers know of no proxy, and hosts whose TLS is opened.
@Suite struct RedirectedTests {
    private static let tunnels = ", unmatched: tunnel"

    private static func play(_ listener: String = tunnels, route: String = "") throws -> InterceptedScene {
        try InterceptedScene("transparent", to: "http://good.test:9443", listener: listener, route: route)
    }

    // MARK: - Passed on

    /// TLS for a host that is not opened goes on to where the kernel says it was going, from its first octet on.
    @Test func otherTLSIsPassedOnAsItIs() throws {
        let play = try Self.play()
        let caller = play.scene.call()
        let hello = try play.hello("other.test")
        // In two pieces, neither of which tells the name alone.
        caller.send(Array(hello.prefix(20)))
        play.scene.settle()
        #expect(play.scene.upstreams.isEmpty)
        caller.send(Array(hello.dropFirst(20)))
        play.scene.settle()
        let far = try #require(play.scene.upstreams.first)
        #expect(far.address == SocketAddress(host: "192.0.2.9", port: 9443) && far.take() == hello)
        far.send([22, 3, 3, 0, 1, 0])
        play.scene.settle()
        // Nothing of ours stands before it.
        #expect(caller.take() == [22, 3, 3, 0, 1, 0])
        caller.finish()
        far.finish()
        play.scene.settle()
        #expect(caller.isClosed && far.isClosed)
        play.scene.end()
    }

    @Test func aFarSideThatRefusesClosesTheCaller() throws {
        let play = try Self.play()
        play.scene.kernel.connectPlan = { _ in .failed(111) }
        let caller = play.scene.call()
        caller.send(try play.hello("other.test"))
        play.scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0 && play.scene.upstreams.count == 1)
        play.scene.end()
    }

    /// Whom one route refuses has no right to the gateway as a way out.
    @Test func whoMayNotUseARouteIsNotPassedOn() throws {
        let play = try Self.play(route: "callers: {allow: [198.51.100.0/24]}")
        for (address, isPassed) in [("192.0.2.1", false), ("198.51.100.7", true)] {
            let caller = play.scene.call(from: address)
            caller.send(try play.hello("other.test"))
            play.scene.settle()
            #expect(caller.isClosed == !isPassed && caller.receivedCount == 0)
            #expect(play.scene.upstreams.count == (isPassed ? 1 : 0))
        }
        play.scene.end()
    }

    /// Callers choose the places, and cannot make this machine connect to as many as they like.
    @Test func placesThatCallersChooseAreBounded() throws {
        let play = try Self.play()
        let hello = try play.hello("other.test")
        for place in 0..<DataLoop.destinationLimit {
            play.scene.kernel.redirected = SocketAddress(host: "203.0.113.1", port: UInt16(1000 + place))
            play.scene.call().send(hello)
            // Where a connection was going is asked when its first octet is read.
            play.scene.settle()
        }
        #expect(play.scene.upstreams.count == DataLoop.destinationLimit)
        play.scene.kernel.redirected = SocketAddress(host: "203.0.113.2", port: 443)
        let last = play.scene.call()
        last.send(hello)
        play.scene.settle()
        #expect(last.isClosed && last.receivedCount == 0 && play.scene.upstreams.count == DataLoop.destinationLimit)
        play.scene.end()
    }

    /// Where nothing is passed on, a caller without a name is closed without a word.
    @Test func withoutAWayOutOtherTLSIsClosed() throws {
        let play = try Self.play("")
        for name in ["other.test", "192.0.2.9"] {
            let caller = play.scene.call()
            caller.send(try play.hello(name))
            play.scene.settle()
            #expect(caller.isClosed && caller.receivedCount == 0)
        }
        #expect(play.scene.glitches(.unmatchedConnection) == 2 && play.scene.upstreams.isEmpty)
        play.scene.end()
    }

    // MARK: - Requests in clear text

    /// The kernel's word decides where a request goes that no route takes, and not the name in it.
    @Test func otherRequestsGoWhereTheyWereGoing() throws {
        let play = try Self.play()
        let caller = play.scene.call("GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n")
        let far = try #require(play.scene.upstreams.first)
        #expect(far.address == SocketAddress(host: "192.0.2.9", port: 9443))
        #expect(far.takeText() == "GET /a HTTP/1.1\r\nHost: other.test\r\nVia: 1.1 gate\r\n\r\n")
        far.send(Wire.ok("x"))
        play.scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        // A kept connection to such a place is no upstream's that the scene counts.
        #expect(!far.isClosed)
        far.finish()
        play.scene.settle()
        #expect(far.isClosed)
        play.scene.end()
    }

    /// A credential that authenticates its connection cannot go through one that streams share (RFC 9113 §7).
    @Test func aStreamWithABoundCredentialIsSentBackToHTTP1() throws {
        let play = try Self.play()
        let caller = play.scene.call()
        func literal(_ name: String, _ value: String) -> [UInt8] {
            [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
        }
        let head =
            [0x82, 0x84, 0x86] + literal(":authority", "other.test")
            + literal("authorization", "NTLM TlRMTVNTUAABAAAA")
        caller.send(Frames.preface + Frames.frame(1, 5, 1, head))
        play.scene.settle()
        let reset = Frames.read(caller.received).first { $0.type == 3 && $0.stream == 1 }
        #expect(reset?.payload == [0, 0, 0, 0xd] && play.scene.upstreams.isEmpty)
        play.scene.end()
    }

    // MARK: - Opened

    /// An address is no server name (RFC 6066 §3): who means a host by its number is known by where it was going.
    @Test func aHostThatIsCalledByItsAddressIsOpened() throws {
        let play = try InterceptedScene("transparent", to: "http://good.test:9443", hosts: ["192.0.2.9"])
        let caller = try play.caller(play.scene.call(), name: "192.0.2.9")
        #expect(caller.shake() == .done)
        #expect(caller.send("GET /a HTTP/1.1\r\nHost: 192.0.2.9:9443\r\n\r\n"))
        let upstream = try #require(play.scene.upstreams.first)
        #expect(upstream.takeText() == "GET /a HTTP/1.1\r\nHost: good.test:9443\r\nVia: 1.1 gate\r\n\r\n")
        upstream.send(Wire.ok("x"))
        play.scene.settle()
        #expect(caller.receive() == Wire.ok("x"))
        play.scene.end()
    }

    /// A connection that carries requests already is a proof as good as a new one, and carries on with them.
    @Test func anIdleConnectionProvesItsHost() throws {
        let play = try InterceptedScene("forward_proxy", to: "https://good.test:9443", hosts: ["*.test"])
        func get(_ name: String) -> String { "GET /a HTTP/1.1\r\nHost: \(name):9443\r\n\r\n" }
        let first = try play.connected("a.test")
        _ = first.tls.handshake()
        play.scene.settle()
        let server = try SecureUpstream(play.scene, try #require(play.scene.upstreams.first))
        #expect(server.shake() == .done && first.shake() == .done && play.scene.idleUpstreams == 1)
        // The server's tickets came behind the proof, and the request goes out on the connection that brought it.
        #expect(first.send(get("a.test")) && server.receiveText().hasPrefix("GET /a HTTP/1.1\r\n"))
        server.send(Wire.ok("x"))
        #expect(first.receive() == Wire.ok("x"))
        // The proof of another host by the same upstream needs no new connection.
        let second = try play.connected("b.test")
        #expect(second.shake() == .done && play.scene.upstreams.count == 1)
        play.scene.end()
    }

    /// Octets that come before the proof are read after it, and none is answered before.
    @Test func moreOctetsDoNotHastenAProof() throws {
        let play = try InterceptedScene("forward_proxy", to: "https://good.test:9443")
        let caller = try play.connected()
        _ = caller.tls.handshake()
        play.scene.settle()
        caller.peer.send([20, 3, 3, 0, 1, 1])
        play.scene.settle()
        #expect(caller.peer.receivedCount == 0 && !caller.peer.isClosed && caller.peer.unread == 6)
        #expect(play.scene.upstreams.count == 1)
        let server = try SecureUpstream(play.scene, play.scene.upstreams[0])
        #expect(server.shake() == .done && caller.shake() == .done)
        play.scene.end()
    }

    // MARK: - Handshakes

    /// OpenSSL says to the caller what is wrong with a hello that nobody can read.
    @Test func anUnreadableHelloGetsAnAlert() throws {
        let scene = try Scene(ArrivalTests.secure())
        let caller = scene.call()
        // A message that is no ClientHello, in a sound record.
        caller.send([22, 3, 1, 0, 4, 2, 0, 0, 0])
        scene.settle()
        #expect(caller.received.first == 21 && caller.sawEnd && scene.glitches(.handshakeFailed) == 1)
        scene.pass(seconds: 2)
        #expect(caller.isClosed)
        scene.end()
    }
}
