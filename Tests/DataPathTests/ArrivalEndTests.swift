import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLS
@testable import TLSTests

/// How arrivals end that do not become a caller at once, and those whose TLS we open for somebody else's host.
@Suite struct ArrivalEndTests {
    private static func proxied(_ listener: String = "") -> String {
        """
        listeners: {in: {address: "127.0.0.1:8080", proxy_protocol: {from: [10.0.0.0/8]}\(listener)}}
        routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: {allow: [192.0.2.0/24]}}]

        """
    }

    private static let line = "PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n"

    // MARK: - The protocol

    @Test func aListenerSpeaksWhatItIsToldTo() throws {
        let one = try Scene(Self.proxied(", http: [\"1.1\"]"))
        let caller = one.call(from: "10.1.2.3")
        caller.send(Self.line + Wire.get())
        one.settle()
        try #require(one.upstreams.last).send(Wire.ok("x"))
        one.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        let modern = one.call(from: "10.1.2.3")
        modern.send(Array(Self.line.utf8) + Frames.preface)
        one.settle()
        #expect(modern.status == 505 || modern.status == 400)
        one.end()
        let two = try Scene(Self.proxied(", http: [\"2\"]"))
        let old = two.call(from: "10.1.2.3")
        old.send(Self.line + Wire.get())
        two.settle()
        #expect(old.status == 505 && old.sawEnd && two.upstreams.isEmpty)
        two.pass(seconds: 3)
        #expect(old.isClosed)
        two.end()
    }

    /// Without ALPN there is no HTTP/2 over TLS (RFC 9113 §3.2).
    @Test func aTLSListenerOfHTTP2NeedsItsName() throws {
        let scene = try Scene(ArrivalTests.secure("http: [\"2\"]"))
        let caller = try SecureCaller(scene, scene.call(), alpn: [])
        #expect(caller.shake() == .done)
        #expect(caller.receive().hasPrefix("HTTP/1.1 505 ") && caller.peer.sawEnd && scene.upstreams.isEmpty)
        let modern = try SecureCaller(scene, scene.call(), alpn: ["h2"])
        #expect(modern.shake() == .done && modern.tls.negotiatedProtocol == "h2" && !modern.peer.sawEnd)
        scene.end()
    }

    // MARK: - Slow and unkind callers

    @Test func aHandshakeWaitsForItsReader() throws {
        let scene = try Scene(ArrivalTests.secure())
        let peer = scene.call()
        peer.window = 0
        let caller = try SecureCaller(scene, peer)
        _ = caller.tls.handshake()
        scene.settle()
        #expect(peer.receivedCount == 0 && !peer.isClosed)
        peer.window = .max
        scene.settle()
        #expect(caller.shake() == .done)
        #expect(caller.send(Wire.get()))
        try #require(scene.upstreams.last).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.receive() == Wire.ok("x"))
        scene.end()
    }

    /// A refusal gets one attempt, and what its caller goes on sending is read for a moment and not without end.
    @Test func aRefusalIsNotWaitedFor() throws {
        let scene = try Scene(ArrivalTests.secure())
        let stalled = scene.call()
        stalled.window = 10
        stalled.send(Wire.get())
        scene.settle()
        #expect(stalled.isClosed)
        let talking = scene.call(Wire.get())
        #expect(talking.status == 400 && !talking.isClosed)
        talking.send(Wire.get())
        scene.settle()
        #expect(!talking.isClosed && talking.unread == 0)
        talking.send([UInt8](repeating: 0x41, count: DataLoop.lingerBytes + 1))
        scene.settle()
        #expect(talking.isClosed)
        scene.end()
    }

    @Test func aDrainGivesAnUnusedConnectionAMoment() throws {
        let scene = try Scene(Self.proxied())
        let caller = scene.call(from: "10.1.2.3")
        caller.send(Self.line)
        scene.settle()
        nonisolated(unsafe) var isDone = false
        scene.data.drain { isDone = true }
        scene.settle()
        #expect(!caller.isClosed && !isDone)
        scene.pass(seconds: Double(DataLoop.farewell) / 1e9 + 0.1)
        #expect(caller.isClosed && isDone)
        scene.end()
    }

    @Test func theEndOfTheLoopClosesWhoeverArrives() throws {
        let scene = try Scene(ArrivalTests.secure())
        let arriving = scene.call()
        let modern = try SecureCaller(scene, scene.call(), alpn: ["h2"])
        #expect(modern.shake() == .done)
        scene.data.closeEverything()
        scene.settle()
        #expect(arriving.isClosed && modern.peer.isClosed)
        scene.end()
    }

    // MARK: - Interception

    /// A forward proxy, or a listener that connections are redirected to, which opens TLS for `good.test`.
    private struct Play {
        let scene: Scene
        let authority: [UInt8]

        init(_ mode: String, to origin: String, hosts: [String] = ["good.test"]) throws {
            let files = try Certificates.shared.get()
            // OpenSSL looks at the machine's clock.
            let now = Int64(time(nil))
            let made = try CertificateMint.makeAuthority(name: "test", hosts: hosts, days: 30, now: now)
            authority = made.certificate
            let path = files.path("mint-\(UInt64.random(in: 0 ... .max)).pem")
            let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
            _ = made.pair.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            close(descriptor)
            scene = try Scene(
                """
                listeners:
                  edge: {address: "127.0.0.1:8080", mode: \(mode), intercept: {ca: \(path), hosts: [good.test]}}
                routes:
                  - listen: edge
                    match: {host: good.test}
                    to: "\(origin)"
                    use: none
                    addresses: ["127.0.0.1:9443"]
                    \(origin.hasPrefix("https") ? "tls: {ca: \(files.path("ca.pem"))}" : "")

                """)
            scene.kernel.wallOffset = now * 1000 - Int64(scene.kernel.clock / 1_000_000)
            scene.kernel.redirected = SocketAddress(host: "192.0.2.9", port: 9443)
        }

        func caller(_ peer: Peer, name: String = "good.test") throws -> SecureCaller {
            let bundle = try AuthorityBundle(pem: authority, name: "mint")
            return try SecureCaller(
                scene, peer, name: name,
                configuration: TLSClientConfiguration(authorities: [.bundle(bundle)], alpn: ["http/1.1"]))
        }

        /// A CONNECT that was answered.
        func connected() throws -> SecureCaller {
            let peer = scene.call("CONNECT good.test:9443 HTTP/1.1\r\nHost: good.test:9443\r\n\r\n")
            #expect(peer.takeText() == "HTTP/1.1 200 Connection Established\r\n\r\n")
            return try caller(peer)
        }
    }

    @Test func aHostIsOpenedWhenItsUpstreamHasProvenItself() throws {
        let play = try Play("forward_proxy", to: "https://good.test:9443")
        let caller = try play.connected()
        _ = caller.tls.handshake()
        play.scene.settle()
        // Not a byte of a leaf before the proof.
        #expect(caller.peer.receivedCount == 0)
        let server = try SecureUpstream(play.scene, try #require(play.scene.upstreams.first))
        #expect(server.shake() == .done && caller.shake() == .done)
        #expect(caller.send("GET /a HTTP/1.1\r\nHost: good.test:9443\r\n\r\n"))
        // The connection of the proof carries the request, if it is still there.
        let peer = try #require(play.scene.upstreams.last)
        let second = peer === server.peer ? server : try SecureUpstream(play.scene, peer)
        second.shake()
        #expect(second.receiveText() == "GET /a HTTP/1.1\r\nHost: good.test:9443\r\nVia: 1.1 gate\r\n\r\n")
        second.send(Wire.ok("x"))
        #expect(caller.receive() == Wire.ok("x"))
        // For another host than the connection's nothing is asked.
        #expect(caller.send("GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n"))
        #expect(caller.receive().hasPrefix("HTTP/1.1 421 ") && second.receiveText() == "")
        // The proof is good for a while.
        let count = play.scene.upstreams.count
        let next = try play.connected()
        #expect(next.shake() == .done && play.scene.upstreams.count == count)
        play.scene.end()
    }

    @Test func aHostWhoseUpstreamIsAnotherIsNotOpened() throws {
        for leaf in ["other", "unknown", ""] {
            let play = try Play("forward_proxy", to: "https://good.test:9443")
            let caller = try play.connected()
            _ = caller.tls.handshake()
            play.scene.settle()
            let peer = try #require(play.scene.upstreams.first)
            if leaf.isEmpty { peer.reset() } else { try SecureUpstream(play.scene, peer, leaf: leaf).shake() }
            play.scene.settle()
            #expect(caller.peer.isClosed && caller.peer.receivedCount == 0, "\(leaf)")
            play.scene.end()
        }
    }

    /// A caller that leaves takes the proof along.
    @Test func aCallerThatLeavesMeanwhileLeavesNothing() throws {
        let play = try Play("forward_proxy", to: "https://good.test:9443")
        let caller = try play.connected()
        _ = caller.tls.handshake()
        play.scene.settle()
        caller.peer.reset()
        play.scene.settle()
        #expect(play.scene.upstreams.map(\.isClosed) == [true])
        play.scene.end()
    }

    /// Without TLS beyond us there is nothing to be proven.
    @Test func aHostWithoutTLSIsOpenedAtOnce() throws {
        let play = try Play("forward_proxy", to: "http://good.test:9443")
        let caller = try play.connected()
        #expect(caller.shake() == .done && play.scene.upstreams.isEmpty)
        #expect(caller.send("GET /a HTTP/1.1\r\nHost: good.test:9443\r\n\r\n"))
        try #require(play.scene.upstreams.first).send(Wire.ok("x"))
        play.scene.settle()
        #expect(caller.receive() == Wire.ok("x"))
        play.scene.end()
    }

    /// The authority may sign for other hosts alone: then no leaf is made, and no handshake.
    @Test func aHostThatTheAuthorityMayNotSignForIsNotOpened() throws {
        let play = try Play("forward_proxy", to: "http://good.test:9443", hosts: ["elsewhere.test"])
        let caller = try play.connected()
        let outcome = caller.shake()
        #expect(outcome != .done)
        play.scene.pass(seconds: 3)
        #expect(caller.peer.isClosed && play.scene.upstreams.isEmpty && play.scene.glitches(.handshakeFailed) == 1)
        play.scene.end()
    }

    @Test func aNameInsideThatIsAnotherIsNotAnswered() throws {
        let play = try Play("forward_proxy", to: "http://good.test:9443")
        let peer = play.scene.call("CONNECT good.test:9443 HTTP/1.1\r\nHost: good.test:9443\r\n\r\n")
        peer.discard()
        let caller = try play.caller(peer, name: "other.test")
        _ = caller.tls.handshake()
        play.scene.settle()
        #expect(peer.isClosed && peer.receivedCount == 0 && play.scene.glitches(.unmatchedConnection) == 1)
        play.scene.end()
    }

    // MARK: - Redirected connections

    @Test func aRedirectedConnectionIsOpenedByItsName() throws {
        let play = try Play("transparent", to: "http://good.test:9443")
        let caller = try play.caller(play.scene.call())
        #expect(caller.shake() == .done)
        #expect(caller.send("GET /a HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        try #require(play.scene.upstreams.first).send(Wire.ok("x"))
        play.scene.settle()
        #expect(caller.receive() == Wire.ok("x"))
        // Another name is none of ours, and passes nowhere where that is not wanted.
        let other = try play.caller(play.scene.call(), name: "other.test")
        _ = other.tls.handshake()
        play.scene.settle()
        #expect(other.peer.isClosed && other.peer.receivedCount == 0 && play.scene.upstreams.count == 1)
        play.scene.end()
    }

    @Test func aConnectionThatWasNotRedirectedGoesNowhere() throws {
        let play = try Play("transparent", to: "http://good.test:9443")
        for destination in [nil, SocketAddress(host: "127.0.0.1", port: 8080)] {
            play.scene.kernel.redirected = destination
            let caller = play.scene.call(Wire.get())
            #expect(caller.isClosed && caller.receivedCount == 0)
        }
        #expect(play.scene.glitches(.notRedirected) == 2 && play.scene.upstreams.isEmpty)
        play.scene.end()
    }
}
