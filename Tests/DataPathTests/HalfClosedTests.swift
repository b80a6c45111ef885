import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A caller that closes its side before the answer has gone, or waits: after a while it counts as gone.
@Suite struct HalfClosedTests {
    @Test(arguments: [false, true]) func whoHasGoneIsNoticed(inOneSegment: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Wire.get())
        if !inOneSegment { scene.settle() }
        caller.finish()
        scene.settle()
        scene.pass(seconds: 0.9)
        #expect(!scene.upstreams[0].isClosed && !caller.isClosed)
        scene.pass(seconds: 0.2)
        #expect(scene.upstreams[0].isClosed && caller.isClosed)
        scene.end()
    }

    @Test func whoWaitsIsServedInTime() throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: 5s}"))
        let caller = scene.call(Wire.get())
        caller.finish()
        scene.settle()
        scene.pass(seconds: 4.5)
        scene.upstreams[0].send(Wire.ok("late"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("late") && caller.isClosed)
        scene.end()
    }

    @Test func itCanBeSaidThatSuchACallerIsGoneAtOnce() throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: 0s}"))
        let caller = scene.call(Wire.get())
        caller.finish()
        scene.settle()
        scene.pass(seconds: 0.01)
        #expect(scene.upstreams[0].isClosed && caller.isClosed)
        scene.end()
    }

    /// From the head on the kernel says who is gone.
    @Test func anAnswerThatHasBegunGoesOn() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12")
        scene.settle()
        caller.finish()
        scene.settle()
        scene.pass(seconds: 10)
        scene.upstreams[0].send("34")
        scene.settle()
        #expect(caller.receivedText.hasSuffix("\r\n\r\n1234"))
        scene.end()
    }

    @Test func whoHasGoneWaitsForNoToken() throws {
        let scene = try Scene(Plans.oauth())
        let caller = scene.call(Wire.get())
        #expect(scene.data.desk.waiters == 1)
        caller.finish()
        scene.settle()
        scene.pass(seconds: 1.1)
        #expect(scene.data.desk.waiters == 0 && caller.isClosed && scene.upstreams.isEmpty)
        scene.end()
    }

    /// Each of several requests has its own time.
    @Test func aPipelineIsServedToItsEnd() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        for number in 1...4 { caller.send(Wire.get("/\(number)")) }
        caller.finish()
        scene.settle()
        for number in 1...4 {
            #expect(!caller.isClosed && scene.upstreams[0].takeText().contains("GET /\(number) "))
            scene.pass(seconds: 0.7)
            if number < 4 {
                scene.upstreams[0].send(Wire.ok("\(number)"))
                scene.settle()
            }
        }
        #expect(caller.receivedText.split(separator: "200 OK").count == 4)
        scene.pass(seconds: 0.4)
        #expect(caller.isClosed && scene.upstreams[0].isClosed)
        scene.end()
    }

    /// A body that its upstream has not taken yet is on its way, whoever sent it.
    @Test(arguments: ["1s", "0s"]) func aBodyOnItsWayIsNotCutShort(time: String) throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: \(time)}"))
        let body = String(repeating: "b", count: 300_000)
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
        scene.upstreams[0].window = 1000
        caller.send(body)
        caller.finish()
        scene.settle()
        scene.pass(seconds: 3)
        #expect(!scene.upstreams[0].isClosed)
        // Not looked at in every turn of the loop meanwhile.
        #expect(scene.data.callers.members.contains { ($0.exchange.halfClosed.goneAt ?? 0) > scene.loop.now })
        scene.upstreams[0].window = Int.max
        scene.settle()
        scene.upstreams[0].send(Wire.ok("taken"))
        scene.settle()
        #expect(caller.receivedText.hasSuffix("taken"))
        scene.end()
    }

    /// All of it has been read, and the upstream takes the rest slowly; from then on the caller has its whole time.
    @Test func octetsThatWaitForTheUpstreamAreNotCut() throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: 2s}"))
        let body = String(repeating: "b", count: 10_000)
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n")
        scene.upstreams[0].window = 1000
        caller.send(body)
        caller.finish()
        scene.settle()
        #expect(caller.unread == 0)
        for _ in 0..<39 { scene.pass(seconds: 0.1) }
        #expect(!scene.upstreams[0].isClosed && !caller.isClosed)
        scene.upstreams[0].window = Int.max
        scene.settle()
        #expect(scene.upstreams[0].receivedText.hasSuffix(body))
        for _ in 0..<19 { scene.pass(seconds: 0.1) }
        #expect(!caller.isClosed)
        scene.upstreams[0].send(Wire.ok("taken"))
        scene.settle()
        #expect(caller.receivedText.hasSuffix("taken"))
        scene.end()
    }

    /// A body that is read late ends late.
    @Test func theGraceBeginsWithTheEndOfTheBody() throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: 2s}"))
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
        scene.upstreams[0].window = 1000
        caller.send(String(repeating: "b", count: 300_000))
        caller.finish()
        scene.settle()
        for _ in 0..<39 { scene.pass(seconds: 0.1) }
        scene.upstreams[0].window = Int.max
        scene.settle()
        for _ in 0..<19 { scene.pass(seconds: 0.1) }
        #expect(!caller.isClosed && !scene.upstreams[0].isClosed)
        // Nobody waits for ever.
        for _ in 0..<25 { scene.pass(seconds: 0.1) }
        #expect(caller.isClosed && scene.upstreams[0].isClosed)
        scene.end()
    }
}
