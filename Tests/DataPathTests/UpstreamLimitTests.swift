import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// `limits` of a route: how many connections the upstream gets, and who waits for one.
@Suite struct UpstreamLimitTests {
    private func scene(_ limits: String, _ rest: String = "") throws -> Scene {
        try Scene(Plans.open("limits: {\(limits)}\(rest)"))
    }

    private func answer(_ scene: Scene, _ index: Int, _ fields: String = "") {
        scene.upstreams[index].send(Wire.ok("x", fields))
        scene.settle()
    }

    @Test func oneWaitsAndGoesOnWithTheConnectionThatIsFree() throws {
        let scene = try scene("connections: 1, waiters: 1")
        let callers = (0..<3).map { _ in scene.call(Wire.get()) }
        #expect(scene.upstreams.count == 1)
        #expect(callers[2].status == 503, "no place to wait")
        let cells = scene.plan.metrics.upstreams[0]
        #expect(scene.count(cells.open) == 1 && scene.count(cells.waiting) == 1 && scene.count(cells.idle) == 0)
        answer(scene, 0)
        #expect(callers[0].status == 200 && callers[1].status == nil)
        answer(scene, 0)
        #expect(callers[1].status == 200 && scene.upstreams.count == 1)
        #expect(scene.count(cells.open) == 0 && scene.count(cells.waiting) == 0 && scene.count(cells.idle) == 1)
        scene.end()
    }

    @Test func aConnectionThatEndsMakesRoomForAnother() throws {
        let scene = try scene("connections: 1")
        let callers = (0..<2).map { _ in scene.call(Wire.get()) }
        answer(scene, 0, "Connection: close\r\n")
        #expect(scene.upstreams.count == 2)
        answer(scene, 1)
        #expect(callers.map(\.status) == [200, 200])
        scene.end()
    }

    @Test func whoWaitsTooLongIsToldToComeBack() throws {
        let scene = try scene("connections: 1", ", timeouts: {connect: 1s}")
        let callers = (0..<2).map { _ in scene.call(Wire.get()) }
        scene.pass(seconds: 1.1)
        #expect(callers[1].status == 503 && callers[1].receivedText.contains("Retry-After: 1"))
        answer(scene, 0)
        #expect(callers[0].status == 200)
        scene.end()
    }

    @Test func aCallerThatLeavesWaitsNoMore() throws {
        let scene = try scene("connections: 1, waiters: 1")
        let first = scene.call(Wire.get())
        let second = scene.call(Wire.get())
        second.reset()
        scene.settle()
        let third = scene.call(Wire.get())
        answer(scene, 0)
        answer(scene, 0)
        #expect(first.status == 200 && third.status == 200 && scene.upstreams.count == 1)
        scene.end()
    }

    /// Two addresses and room for one connection: an idle one at the other address gives way.
    @Test func anIdleConnectionGivesWay() throws {
        let scene = try scene("connections: 1", ", addresses: [\"127.0.0.1:9001\", \"127.0.0.2:9001\"]")
        for index in 0..<3 {
            let caller = scene.call(Wire.get())
            #expect(scene.upstreams.count == index + 1)
            answer(scene, index)
            #expect(caller.status == 200)
        }
        #expect(scene.idleUpstreams == 1)
        scene.end()
    }
}
