import Glibc
import Reactor
import ScriptedKernel
import ScriptedWorld
import TLS
import Telemetry
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// Checks of addresses over TLS and HTTP/2, and upstreams that come and go between two checks.
@Suite struct HealthProtocolTests {
    private static let events = Result { () throws(LogFault) in try EventLog() }

    /// A watch on a scene's loop, whose servers the test plays.
    private final class Play {
        let scene: Scene
        let names = ChangingNames()
        private(set) var watch: HealthWatch! = nil

        init(_ yaml: String) throws {
            scene = try Scene(yaml)
            watch = HealthWatch(
                loop: scene.loop, resolver: names, random: SeededRandom(), events: try events.get()
            ) { _, _ in true }
        }

        /// Until the next check has begun.
        func check() throws -> Peer {
            let before = scene.upstreams.count
            for _ in 0..<20 where scene.upstreams.count == before { scene.pass(seconds: 0.25) }
            return try #require(scene.upstreams.last)
        }

        var lastFailure: String? { watch.status[0].addresses[0].lastFailure }

        func end() {
            watch.take([])
            scene.settle()
            scene.end()
        }
    }

    private static let health = "health: {path: /up, interval: 1s, timeout: 500ms, healthy: 1, unhealthy: 1}"

    /// A check is a stream of a connection that nothing else uses.
    @Test func anHTTP2UpstreamIsCheckedOverHTTP2() throws {
        let play = try Play(Plans.open("http: 2, \(Self.health)"))
        play.watch.take(play.scene.plan.upstreams)
        let first = try play.check()
        #expect(Frames.read(first.received).contains { $0.type == 1 && $0.stream == 1 && $0.flags & 1 == 1 })
        first.send(Frames.settings + Frames.frame(1, 5, 1, [0x8d]))
        play.scene.settle()
        // 404, by the static table (RFC 7541, appendix A).
        #expect(play.lastFailure == "status 404" && first.isClosed)
        let second = try play.check()
        second.send(Frames.settings + Frames.ok(1))
        play.scene.settle()
        #expect(play.lastFailure == nil && second.isClosed)
        let third = try play.check()
        third.send(Frames.settings + Frames.reset(1, 2))
        play.scene.settle()
        #expect(play.lastFailure == "closed without an answer" && third.isClosed)
        let fourth = try play.check()
        play.scene.pass(seconds: 0.6)
        #expect(play.lastFailure == "no answer in time" && fourth.isClosed)
        play.end()
    }

    @Test func aTLSUpstreamIsCheckedUnderTLS() throws {
        let ca = try Certificates.shared.get().path("ca.pem")
        let play = try Play(
            "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"https://good.test:9443\", use: none, "
                + "addresses: [\"127.0.0.1:9443\"], tls: {ca: \(ca)}, \(Self.health)}\n")
        play.watch.take(play.scene.plan.upstreams)
        let good = try SecureUpstream(play.scene, try play.check())
        #expect(good.shake() == .done && good.receiveText().hasPrefix("GET /up HTTP/1.1\r\nHost: good.test:9443\r\n"))
        good.send(Wire.ok())
        #expect(play.lastFailure == nil && good.peer.isClosed)
        let other = try SecureUpstream(play.scene, try play.check(), leaf: "other")
        other.shake()
        #expect(try #require(play.lastFailure).contains("certificate") && other.peer.isClosed)
        play.end()
    }

    /// A gateway without descriptors would lose every address of every upstream at once.
    @Test func aCheckForWhichTheGatewayHasNoDescriptorCountsForNothing() throws {
        let play = try Play(Plans.open(Self.health))
        play.scene.kernel.socketErrors = [EMFILE]
        play.watch.take(play.scene.plan.upstreams)
        for _ in 0..<5 { play.scene.pass(seconds: 0.25) }
        let address = play.watch.status[0].addresses[0]
        #expect(address.lastFailure == nil && address.checks == 0 && play.scene.upstreams.isEmpty)
        let second = try play.check()
        #expect(second.takeText().hasPrefix("GET "))
        play.end()
    }

    // MARK: - Upstreams that come and go

    /// An upstream that is gone before its first check is not asked, nor are addresses that its name brings later.
    @Test func anUpstreamThatIsGoneIsNotChecked() throws {
        let play = try Play(Plans.open(Self.health))
        play.watch.take(play.scene.plan.upstreams)
        play.watch.take([])
        for _ in 0..<8 { play.scene.pass(seconds: 0.25) }
        #expect(play.scene.upstreams.isEmpty && play.watch.status.isEmpty)
        let named = try Play(Plans.open(Self.health).replacing("127.0.0.1:9000", "a.test:9000"))
        named.names.set("a.test", ["127.0.0.1:9000"])
        named.watch.take(named.scene.plan.upstreams)
        // The answer is on its way by mail.
        named.watch.take([])
        for _ in 0..<8 { named.scene.pass(seconds: 0.25) }
        #expect(named.scene.upstreams.isEmpty && named.watch.status.isEmpty)
        play.end()
        named.end()
    }

    @Test func aNameThatIsKnownIsChecked() throws {
        let play = try Play(Plans.open(Self.health).replacing("127.0.0.1:9000", "a.test:9000"))
        play.names.set("a.test", ["127.0.0.1:9000"])
        play.watch.take(play.scene.plan.upstreams)
        let peer = try play.check()
        #expect(peer.address == SocketAddress(parsing: "127.0.0.1:9000"))
        peer.send(Wire.ok())
        play.scene.settle()
        #expect(play.lastFailure == nil && peer.isClosed)
        play.end()
    }
}

extension String {
    fileprivate func replacing(_ old: String, _ new: String) -> String {
        split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }
}
