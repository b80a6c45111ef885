import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Several addresses behind one route, on a kernel in memory.
@Suite struct DialTests {
    private static let three = "addresses: [\"127.0.0.1:9001\", \"127.0.0.2:9001\", \"127.0.0.3:9001\"]"

    private func hosts(_ scene: Scene) -> [String] { scene.upstreams.map { $0.address?.host ?? "" } }

    @Test func requestsAtOnceSpreadOverTheAddresses() throws {
        let scene = try Scene(Plans.open(Self.three))
        for _ in 0..<6 { _ = scene.call(Wire.get()) }
        #expect(Set(hosts(scene).prefix(3)).count == 3)
        #expect(Dictionary(grouping: hosts(scene)) { $0 }.values.map(\.count) == [2, 2, 2])
        for upstream in scene.upstreams { upstream.send(Wire.ok("x")) }
        scene.settle()
        #expect(!scene.callers.contains { $0.status != 200 })
        #expect(scene.idleUpstreams == 6)
        scene.end()
    }

    @Test func aRefusalGoesToTheNextAddressWithinTheSameRequest() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.connectPlan = { $0.host == "127.0.0.3" ? .accepted : .failed(ECONNREFUSED) }
        let caller = scene.call(Wire.get())
        #expect(hosts(scene) == ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        scene.upstreams[2].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        // The two are ejected: the next request does not meet them.
        let second = scene.call(Wire.get())
        #expect(scene.upstreams.count == 3)
        scene.upstreams[2].send(Wire.ok("x"))
        scene.settle()
        #expect(second.status == 200)
        scene.end()
    }

    @Test func connectionsAndEjectionsAreCounted() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.connectPlan = { $0.host == "127.0.0.1" ? .failed(ECONNREFUSED) : .accepted }
        _ = scene.call(Wire.get())
        let cells = scene.plan.metrics.upstreams[0]
        #expect(scene.count(cells.connected) == 1 && scene.count(cells.failed) == 0)
        #expect(scene.count(cells.ejections) == 1)
        scene.kernel.connectPlan = { _ in .failed(ECONNREFUSED) }
        #expect(scene.call(Wire.get()).status == 502)
        #expect(scene.count(cells.connected) == 1 && scene.count(cells.failed) == 1)
        scene.end()
    }

    @Test func aSilentAddressIsOvertakenAfterAQuarterOfASecond() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.connectPlan = { $0.host == "127.0.0.1" ? .silent : .accepted }
        let caller = scene.call(Wire.get())
        #expect(scene.upstreams.count == 1)
        scene.pass(seconds: 0.26)
        #expect(hosts(scene) == ["127.0.0.1", "127.0.0.2"])
        #expect(scene.upstreams[0].isClosed)
        scene.upstreams[1].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func theConnectTimeoutBoundsAllAttempts() throws {
        let scene = try Scene(Plans.open(Self.three + ", timeouts: {connect: 1s}"))
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Wire.get())
        for _ in 0..<5 { scene.pass(seconds: 0.25) }
        #expect(caller.status == 504)
        #expect(scene.upstreams.count == 3 && !scene.upstreams.contains { !$0.isClosed })
        scene.end()
    }

    @Test func everythingRefusedIsOneAnswer() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.connectPlan = { _ in .failedAtOnce(ECONNREFUSED) }
        #expect(scene.call(Wire.get()).status == 502)
        scene.kernel.connectPlan = { _ in .failed(ECONNREFUSED) }
        #expect(scene.call(Wire.get()).status == 502)
        #expect(scene.upstreams.count == 3)
        scene.end()
    }

    @Test func aCallerThatLeavesClosesEveryAttempt() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Wire.get())
        scene.pass(seconds: 0.26)
        scene.pass(seconds: 0.26)
        #expect(scene.upstreams.count == 3)
        caller.reset()
        scene.settle()
        #expect(!scene.upstreams.contains { !$0.isClosed })
        scene.end()
    }

    @Test func aShortageOfDescriptorsIsHeldAgainstNoAddress() throws {
        let scene = try Scene(Plans.open(Self.three))
        scene.kernel.socketErrors = [EMFILE, EMFILE, EMFILE]
        #expect(scene.call(Wire.get()).status == 503)
        let caller = scene.call(Wire.get())
        #expect(scene.upstreams.count == 1)
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func aRequestThatIsLostWithoutAWordGoesElsewhereOnce() throws {
        let scene = try Scene(Plans.open(Self.three))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].reset()
        scene.settle()
        #expect(hosts(scene) == ["127.0.0.1", "127.0.0.2"])
        scene.upstreams[1].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        let second = scene.call(Wire.get())
        let third = scene.call(Wire.get())
        // The idle connection is taken for one of them at most: find the fresh one and its successor.
        let before = scene.upstreams.count
        scene.upstreams[before - 1].reset()
        scene.settle()
        #expect(scene.upstreams.count == before + 1)
        scene.upstreams[before].reset()
        scene.settle()
        #expect(scene.upstreams.count == before + 1, "one retry in all")
        #expect([second, third].count { $0.status == 502 } == 1)
        scene.end()
    }

    @Test func whatIsNotIdempotentIsSentOnce() throws {
        let scene = try Scene(Plans.open(Self.three))
        let caller = scene.call(Wire.post("x"))
        scene.upstreams[0].reset()
        scene.settle()
        #expect(caller.status == 502 && scene.upstreams.count == 1)
        scene.end()
    }

    @Test func anAddressThatResetsIsLeftAloneAndComesBack() throws {
        let scene = try Scene(Plans.open(Self.three))
        func round(_ count: Int) -> [String] {
            (0..<count).map { _ in
                let before = scene.upstreams.count
                // A GET would go elsewhere after the reset.
                _ = scene.call(Wire.post("x"))
                guard scene.upstreams.count > before, let upstream = scene.upstreams.last else { return "pooled" }
                if upstream.address?.host == "127.0.0.2" {
                    upstream.reset()
                } else {
                    // One answer a connection, so that every request chooses anew.
                    upstream.send(Wire.ok("x", "Connection: close\r\n"))
                }
                scene.settle()
                return upstream.address?.host ?? ""
            }
        }
        #expect(round(9).count { $0 == "127.0.0.2" } == 3)
        #expect(round(9).count { $0 == "127.0.0.2" } == 0)
        scene.pass(seconds: 1.1)
        // On trial: three resets in a row again.
        #expect(round(12).count { $0 == "127.0.0.2" } == 3)
        scene.end()
    }
}
