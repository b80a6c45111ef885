import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Slow readers, short writes, spurious wake-ups: bytes wait where they are, and none is lost.
@Suite struct PressureTests {
    /// What one stream may hold of another's bytes: an input block and what a write left of it.
    private static let bound = 3 * 16 * 1024

    private static func body(_ count: Int) -> String {
        var text = ""
        text.reserveCapacity(count + 8)
        while text.utf8.count < count { text += "\(text.utf8.count)," }
        return String(text.prefix(count))
    }

    @Test func aSlowUpstreamSlowsItsCaller() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.pipesLeft = 0
        let body = Self.body(1 << 20)
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        upstream.window = 0
        caller.send(body)
        scene.settle()
        #expect(caller.unread >= body.utf8.count - Self.bound, "read \(body.utf8.count - caller.unread)")
        var taken = Wire.forwarded("POST", framing: "Content-Length: \(body.utf8.count)\r\n")
        #expect(upstream.takeText() == taken)
        var rounds = 0
        taken = ""
        while taken.utf8.count < body.utf8.count, rounds < 400 {
            let before = caller.unread
            upstream.window = 10_000
            scene.settle()
            #expect(before - caller.unread <= Self.bound)
            taken += upstream.takeText()
            rounds += 1
        }
        #expect(taken == body && rounds > 100)
        upstream.window = .max
        upstream.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    @Test func aSlowCallerSlowsItsUpstream() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.pipesLeft = 0
        let body = Self.body(1 << 20)
        let caller = scene.call(Wire.get())
        caller.window = 0
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(body))
        scene.settle()
        #expect(upstream.unread >= body.utf8.count - Self.bound)
        var taken = ""
        var rounds = 0
        while taken.utf8.count < body.utf8.count, rounds < 400 {
            let before = upstream.unread
            caller.window = 10_000
            scene.settle()
            #expect(before - upstream.unread <= Self.bound)
            taken += caller.takeText()
            rounds += 1
        }
        #expect(taken == Wire.ok(body) && rounds > 100)
        caller.window = .max
        scene.end()
    }

    /// One byte a write and one a read, both ways, with the end of every body in place.
    @Test(arguments: [false, true])
    func oneByteAtATime(chunked: Bool) throws {
        let scene = try Scene(Plans.open())
        let body = Self.body(700)
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(chunked ? Wire.chunkedPost([body, "x"]) : Wire.post(body + "x"))
        let upstream = try #require(scene.upstreams.first)
        for peer in [caller, upstream] {
            peer.mostPerWrite = 1
            peer.mostPerRead = 1
        }
        upstream.accept()
        scene.settle()
        if chunked {
            #expect(Wire.unchunked(upstream.takeText())?.body == body + "x")
            upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2bc\r\n\(body)\r\n0\r\n\r\n")
        } else {
            #expect(
                upstream.takeText()
                    == Wire.forwarded("POST", framing: "Content-Length: 701\r\n", body: body + "x"))
            upstream.send(Wire.ok(body))
        }
        scene.settle()
        if chunked {
            #expect(Wire.unchunked(caller.takeText())?.body == body)
        } else {
            #expect(caller.takeText() == Wire.ok(body))
        }
        #expect(scene.idleUpstreams == 1)
        scene.end()
    }

    /// "Not now" and "interrupted" where there was something: an edge follows, and nothing is missed.
    @Test func stormsOfNotNow() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.failReads([EAGAIN, EINTR, EAGAIN, 0, EAGAIN, EINTR, EINTR])
        caller.failWrites([EAGAIN, EAGAIN, EAGAIN])
        caller.mostPerRead = 20
        scene.kernel.connectPlan = { _ in .silent }
        caller.send(Wire.post("hello"))
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        upstream.failWrites([EAGAIN, 0, EAGAIN, EAGAIN])
        upstream.failReads([EAGAIN, EINTR, EAGAIN])
        upstream.mostPerWrite = 7
        upstream.accept()
        scene.settle()
        #expect(
            upstream.takeText() == Wire.forwarded("POST", framing: "Content-Length: 5\r\n", body: "hello"))
        upstream.mostPerRead = 3
        upstream.send(Wire.ok("world"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("world"))
        scene.end()
    }

    /// A caller that sends requests and reads no answers gets no more work done.
    @Test func aPipelineWaitsForItsReader() throws {
        let scene = try Scene(Plans.open("match: {path: /here/}"))
        let caller = scene.call()
        caller.window = 1_000
        for _ in 0..<2_000 { caller.send(Wire.get()) }
        scene.settle()
        #expect(caller.unread > 2_000 * Wire.get().utf8.count - Self.bound)
        var answers = ""
        for _ in 0..<2_000 where !caller.sawEnd {
            answers += caller.takeText()
            caller.window = 1_000
            scene.settle()
        }
        answers += caller.takeText()
        #expect(answers.split(separator: "404 Not Found").count == 2_001)
        scene.end()
    }

    /// A large head takes a large block and gives it back.
    @Test func aLargeHeadPasses() throws {
        let scene = try Scene(Plans.open())
        let fields = (0..<50).map { "X-\($0): \(Self.body(900))\r\n" }.joined()
        let caller = scene.call(Wire.get("/", fields) + Wire.get("/2"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText() == Wire.forwarded("GET", "/", fields))
        upstream.send(Wire.ok("x", fields))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x", fields))
        #expect(upstream.takeText() == Wire.forwarded("GET", "/2"))
        upstream.send(Wire.ok())
        scene.settle()
        #expect(scene.data.buffers.inputBytes == 0)
        scene.end()
    }

    @Test func tooManyConnectionsAreToldSo() throws {
        let scene = try Scene(Plans.open() + "limits: {connections: 2}\n")
        let first = scene.call()
        let second = scene.call()
        let third = scene.call()
        scene.settle()
        #expect(third.status == 503 && third.isClosed && !first.isClosed && !second.isClosed)
        first.finish()
        scene.settle()
        #expect(scene.call(Wire.get("/")).isClosed == false)
        scene.end()
    }

    // MARK: - Accepting

    @Test func acceptsWhatItCan() throws {
        let scene = try Scene(Plans.open())
        let listener = scene.kernel.listen()
        #expect(scene.data.listen(scene.plan.listeners[0], descriptors: [listener], isShared: false))
        scene.kernel.failAccepts(listener, [EINTR, ECONNABORTED, 0, EMFILE])
        let first = try #require(scene.kernel.call(listener))
        let second = try #require(scene.kernel.call(listener))
        scene.settle()
        #expect(scene.data.callers.count == 1, "out of descriptors: the second waits in the kernel")
        scene.pass(seconds: 0.2)
        #expect(scene.data.callers.count == 2)
        for caller in [first, second] {
            caller.send(Wire.get())
            scene.settle()
            scene.upstreams[0].send(Wire.ok("a"))
            scene.settle()
            #expect(caller.receivedText == Wire.ok("a"))
            caller.reset()
        }
        scene.settle()
        #expect(scene.data.callers.isEmpty && scene.kernel.misuse == [])
    }

    @Test func aFloodOfCallersIsAcceptedInBatches() throws {
        let scene = try Scene(Plans.open())
        let listener = scene.kernel.listen()
        #expect(scene.data.listen(scene.plan.listeners[0], descriptors: [listener], isShared: false))
        let callers = (0..<600).compactMap { _ in scene.kernel.call(listener) }
        scene.loop.turnOnce()
        #expect((256...512).contains(scene.data.callers.count))
        scene.settle()
        #expect(scene.data.callers.count == 600)
        for caller in callers { caller.reset() }
        scene.settle()
        #expect(scene.data.callers.isEmpty)
    }
}
