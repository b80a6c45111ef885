import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Large bodies that the kernel moves: byte for byte, with the same back-pressure, bounds and ends as copied ones.
@Suite struct SpliceTests {
    private static let large = body(1 << 20)
    private static let tail = 16 * 1024

    /// No two places of it look alike.
    private static func body(_ count: Int) -> String {
        var text = ""
        text.reserveCapacity(count + 8)
        while text.utf8.count < count { text += "\(text.utf8.count)," }
        return String(text.prefix(count))
    }

    private static func post(_ count: Int) -> String {
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(count)\r\n\r\n"
    }

    private static func cut(_ answer: String, at count: Int = 12_000) -> (head: String, rest: String) {
        (String(answer.prefix(count)), String(answer.dropFirst(count)))
    }

    @Test(arguments: [Int.max, 1_000, 100_000])
    func anAnswerPasses(mostPerRead: Int) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.mostPerRead = mostPerRead
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.large))
        // The last part may have been too small.
        #expect(scene.kernel.spliced > UInt64(Self.large.utf8.count - 2 * Int(Channel.spliceThreshold)))
        #expect(scene.idleUpstreams == 1)
        scene.end()
    }

    @Test func anUploadPasses() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.post(Self.large.utf8.count) + Self.large + Wire.get("/next"))
        let upstream = try #require(scene.upstreams.first)
        #expect(scene.kernel.spliced > 900_000)
        #expect(
            upstream.takeText()
                == Wire.forwarded("POST", framing: "Content-Length: \(Self.large.utf8.count)\r\n", body: Self.large))
        upstream.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        // What stood behind the body is the next request.
        #expect(upstream.takeText() == Wire.forwarded("GET", "/next"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// Without an announced length the flood itself is the sign, and the connection's end that of the body.
    @Test func aBodyThatEndsWithItsConnectionPasses() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\n\r\n" + Self.large)
        scene.settle()
        #expect(scene.kernel.spliced > 900_000)
        upstream.finish()
        scene.settle()
        #expect(caller.takeText().hasSuffix("\r\n\r\n" + Self.large))
        #expect(caller.sawEnd)
        scene.end()
    }

    @Test func aTunnelPassesBothWaysAndEndsByHalves() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n"))
        let upstream = try #require(scene.upstreams.first)
        _ = upstream.take()
        upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        scene.settle()
        _ = caller.take()
        upstream.window = 100_000
        caller.send(Self.large)
        caller.finish()
        scene.settle()
        // The end waits for what is in the pipe.
        #expect(!upstream.sawEnd && scene.data.buffers.pipes?.taken == 1)
        upstream.window = .max
        scene.settle()
        #expect(upstream.takeText() == Self.large)
        #expect(upstream.sawEnd && !caller.sawEnd)
        upstream.send(Self.large)
        scene.settle()
        #expect(caller.takeText() == Self.large)
        #expect(scene.kernel.spliced > 1_900_000)
        upstream.finish()
        scene.settle()
        #expect(caller.isClosed)
        scene.end()
    }

    @Test func aSlowReaderCostsOnePipe() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        caller.window = 50_000
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(upstream.unread >= Self.large.utf8.count - 50_000 - PipePool.wantedCapacity - 2 * Self.tail)
        var taken = ""
        var rounds = 0
        while taken.utf8.count < Self.large.utf8.count, rounds < 400 {
            taken += caller.takeText()
            caller.window = 10_000
            scene.settle()
            rounds += 1
        }
        #expect(taken == Wire.ok(Self.large) && rounds > 90)
        #expect(scene.kernel.spliced > 900_000)
        scene.end()
    }

    /// A body of which too little is left is copied, whatever passed on its connections before.
    @Test func smallBodiesAreCopied() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.large))
        let before = scene.kernel.spliced
        for count in [1, 16_000, Int(Channel.spliceThreshold) - 1] {
            caller.send(Wire.get())
            scene.settle()
            let body = Self.body(count)
            let (head, rest) = Self.cut(Wire.ok(body), at: 40)
            upstream.send(head)
            scene.settle()
            upstream.send(rest)
            scene.settle()
            #expect(caller.takeText() == Wire.ok(body))
        }
        #expect(scene.kernel.spliced == before)
        scene.end()
    }

    /// Readers that stop hold a pipe each, up to the bound; whoever comes then is served by copying.
    @Test func pastTheBoundIsCopied() throws {
        let scene = try Scene(Plans.open())
        var callers: [Peer] = []
        for _ in 0..<(PipePool.bound + 3) {
            let caller = scene.call(Wire.get())
            caller.window = 70_000
            try #require(scene.upstreams.last).send(Wire.ok(Self.large))
            scene.settle()
            callers.append(caller)
        }
        #expect(scene.data.buffers.pipes?.taken == PipePool.bound)
        let last = scene.call(Wire.get())
        try #require(scene.upstreams.last).send(Wire.ok(Self.large))
        let before = scene.kernel.spliced
        scene.settle()
        #expect(last.takeText() == Wire.ok(Self.large))
        #expect(scene.kernel.spliced == before)
        for caller in callers { caller.window = .max }
        scene.settle()
        for caller in callers { #expect(caller.takeText() == Wire.ok(Self.large)) }
        // As many as a burst leaves are closed.
        #expect(scene.data.buffers.pipes?.taken == 0 && scene.kernel.openPipeEnds < 2 * PipePool.bound)
        scene.end()
        // Without callers nothing is kept, once it is clear that none are coming.
        scene.pass(seconds: 3)
        #expect(scene.kernel.openPipeEnds == 0)
    }

    /// What nobody fetched is in no later answer.
    @Test func aPipeThatWasNotDrainedIsNotUsedAgain() throws {
        let scene = try Scene(Plans.open())
        let first = scene.call(Wire.get())
        first.window = 70_000
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(scene.data.buffers.pipes?.taken == 1)
        first.reset()
        scene.settle()
        #expect(scene.kernel.openPipeEnds == 0 && upstream.isClosed)
        let second = scene.call(Wire.get())
        let other = String(Self.large.reversed())
        try #require(scene.upstreams.last).send(Wire.ok(other))
        scene.settle()
        #expect(second.takeText() == Wire.ok(other))
        scene.end()
    }

    @Test(arguments: [false, true])
    func aBodyThatBreaksOffIsCut(byReset: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send(String(Wire.ok(Self.large).dropLast(300_000)))
        if byReset { upstream.reset() } else { upstream.finish() }
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount < Self.large.utf8.count)
        scene.end()
    }

    @Test func anUploadThatBreaksOffIsCut() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.post(Self.large.utf8.count) + Self.large.dropLast(300_000))
        let upstream = try #require(scene.upstreams.first)
        caller.finish()
        scene.settle()
        #expect(upstream.isClosed && upstream.receivedCount < Self.large.utf8.count)
        #expect(caller.receivedText.hasPrefix("HTTP/1.1 400 "))
        scene.end()
    }

    /// Why it did not take the body may be read from an upstream that closed its side.
    @Test func anUpstreamThatTakesNoMoreIsHeard() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.post(Self.large.utf8.count) + Self.large.prefix(20_000))
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok("no"))
        upstream.failWrites([EPIPE])
        caller.send(String(Self.large.dropFirst(20_000)))
        scene.settle()
        #expect(caller.receivedText.contains("200 OK") && caller.receivedText.hasSuffix("no"))
        scene.end()
    }

    @Test(arguments: [ENOSYS, EINVAL, 0])
    func withoutPipesAllIsCopied(error: Int32) throws {
        let scene = try Scene(Plans.open())
        if error == 0 { scene.kernel.pipesLeft = 0 } else { scene.kernel.spliceErrors = [error] }
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.large))
        #expect(scene.kernel.spliced == 0)
        // An answer of the kernel's about such sockets is one about all of them.
        #expect(scene.data.buffers.pipes?.isRefused == (error != 0))
        scene.end()
    }

    @Test func stormsOfNotNow() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.pipeCapacity = 70_000
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.failReads([0, EAGAIN, EINTR, EAGAIN, 0, EAGAIN])
        caller.failWrites([0, EAGAIN, EINTR, 0, EAGAIN, EAGAIN])
        caller.mostPerWrite = 5_000
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.large))
        scene.end()
    }

    /// Who takes nothing is cut at the end of a window, wherever the bytes wait.
    @Test func theLeastRateHolds() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 20s}") + "limits: {min_rate: 1KiB}\n")
        let caller = scene.call(Wire.get())
        caller.window = 70_000
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok(Self.large))
        scene.settle()
        #expect(scene.data.buffers.pipes?.taken == 1)
        scene.pass(seconds: 21)
        scene.pass(seconds: 21)
        #expect(caller.isClosed && upstream.isClosed)
        scene.end()
    }

    /// The answer is complete for its upstream while its end still lies in a pipe: the caller's next request waits for it.
    @Test func theNextRequestWaitsForThePipe() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        caller.window = Self.large.utf8.count - 100_000
        upstream.send(Wire.ok(Self.large))
        caller.send(Wire.get("/next"))
        scene.settle()
        _ = upstream.take()
        #expect(scene.upstreams.count == 1)
        caller.window = .max
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.large))
        #expect(upstream.takeText() == Wire.forwarded("GET", "/next"))
        scene.end()
    }
}
