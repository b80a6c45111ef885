import ScriptedKernel
import Testing

@testable import Scenes

/// Where two rules meet: the places that are easily missed.
@Suite struct CornerTests {
    /// A body of no bytes is complete before it is looked for.
    @Test func anEmptyBodyKeepsTheConnections() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.post(""))
        scene.upstreams[0].send(Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("a") && !caller.sawEnd && scene.idleUpstreams == 1)
        scene.end()
    }

    /// The answer ends in an event of the caller: the next request is in the block already, and no event will tell of it.
    @Test func aPipelineGoesOnAfterASlowAnswer() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/1") + Wire.get("/2"))
        let upstream = scene.upstreams[0]
        caller.window = 1_000
        upstream.discard()
        let body = String(repeating: "x", count: 40_000)
        upstream.send(Wire.ok(body))
        scene.settle()
        caller.window = .max
        scene.settle()
        #expect(caller.takeText() == Wire.ok(body))
        #expect(upstream.takeText() == Wire.forwarded("GET", "/2"))
        scene.end()
    }

    /// The answer is ours, and comes from a timer.
    @Test func aPipelineGoesOnAfterATimeout() throws {
        let scene = try Scene(Plans.open("timeouts: {response: 2s}"))
        let caller = scene.call(Wire.get("/1") + Wire.get("/2"))
        scene.pass(seconds: 2.1)
        #expect(caller.status == 504 && !caller.sawEnd)
        #expect(scene.upstreams.count == 2 && scene.upstreams.last?.takeText() == Wire.forwarded("GET", "/2"))
        scene.end()
    }

    /// A slow reader of an answer that ends its connection gets all of it.
    @Test func theLastAnswerHasTimeToLeave() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: close\r\n"))
        caller.window = 100
        let body = String(repeating: "x", count: 10_000)
        scene.upstreams[0].send(Wire.ok(body))
        scene.settle()
        scene.pass(seconds: 1.5)
        caller.window = .max
        scene.settle()
        #expect(caller.takeText() == Wire.ok(body, "Connection: close\r\n"))
        scene.end()
    }

    /// A head that fills its block, and a body behind it of which nothing is kept.
    @Test func aBodyFindsRoomBehindAHeadOfABlock() throws {
        let scene = try Scene(Plans.open())
        let plain = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: \r\n\r\n"
        let filler = String(repeating: "x", count: 16 * 1024 - plain.utf8.count)
        let caller = scene.call(plain.replacing("X: ", with: "X: \(filler)"))
        caller.send("hello")
        scene.settle()
        try #require(scene.upstreams.first).send(Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("a"))
        scene.end()
    }

    /// A refusal in the middle of a pipeline of refusals: each is given in the turn of the one before, not within it.
    @Test func aFullMailboxAnswersAPipelineWithoutDepth() throws {
        let scene = try Scene(Plans.fixed())
        scene.keeper.isFull = true
        let caller = scene.call()
        for _ in 0..<2_000 { caller.send(Wire.get()) }
        scene.settle()
        #expect(caller.takeText().split(separator: "503 Service").count == 2_001)
        scene.end()
    }
}
