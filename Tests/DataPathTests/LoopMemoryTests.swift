import ScriptedKernel
import Testing

@testable import DataPath
@testable import Reactor
@testable import Scenes

/// A loop whose memory for messages is in use: who is refused, who goes on, and that it is there again afterwards.
@Suite struct LoopMemoryTests {
    private static let plan = Plans.open() + "limits: {connections: 200, replay_memory: 1MiB}\n"

    /// Takes every block that the loop may have, as connections do that wait with full ones.
    private func exhaust(_ scene: Scene) -> [UnsafeMutableRawBufferPointer] {
        var taken: [UnsafeMutableRawBufferPointer] = []
        while let block = scene.data.buffers.take() { taken.append(block) }
        return taken
    }

    private func giveBack(_ blocks: [UnsafeMutableRawBufferPointer], to scene: Scene) {
        for block in blocks { scene.data.buffers.give(block) }
    }

    @Test func aRequestWithoutABlockIsRefused() throws {
        let scene = try Scene(Self.plan)
        let (first, second) = (scene.call(), scene.call())
        scene.settle()
        let blocks = exhaust(scene)
        #expect(blocks.count == 464)
        first.send(Wire.get())
        scene.settle()
        #expect(first.status == 503 && first.receivedText.contains("problems/out-of-buffers"))
        #expect(first.receivedText.contains("\r\nRetry-After: 1\r\n") && first.sawEnd && scene.upstreams.isEmpty)
        giveBack(blocks, to: scene)
        second.send(Wire.get())
        scene.settle()
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    /// A proxy's answer needs a block, too. A connection to the proxy that stands already has one.
    @Test func aTunnelWithoutABlockIsRefused() throws {
        let scene = try Scene(
            "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"https://good.test:9443\", use: none, "
                + "proxy: {url: \"http://127.0.0.9:3128\"}}\nlimits: {connections: 200}\n")
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Wire.get())
        let proxy = try #require(scene.upstreams.first)
        let blocks = exhaust(scene)
        scene.kernel.connectPlan = { _ in .accepted }
        proxy.accept()
        scene.settle()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/out-of-buffers"))
        #expect(caller.receivedText.contains("\r\nRetry-After: 1\r\n"))
        #expect(proxy.isClosed && scene.upstreams.count == 1)
        giveBack(blocks, to: scene)
        scene.end()
    }

    /// A connection of HTTP/2 that cannot be read is of no use to any of its streams.
    @Test func aSharedConnectionWithoutABlockEnds() throws {
        let scene = try Scene(Self.plan)
        let caller = scene.call()
        caller.send(Frames.preface)
        scene.settle()
        #expect(scene.data.http2Callers.count == 1)
        let blocks = exhaust(scene)
        caller.send(Frames.frame(6, 0, 0, Array("12345678".utf8)))
        scene.settle()
        #expect(caller.isClosed && scene.data.http2Callers.isEmpty)
        giveBack(blocks, to: scene)
        scene.end()
    }

    /// Large heads have a bound in all.
    @Test func largeHeadsAreBoundedTogether() throws {
        let scene = try Scene(Self.plan)
        let start = "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "x", count: 20_000)
        let callers = (0..<16).map { _ in scene.call(start) }
        #expect(callers.allSatisfy { $0.status == nil } && scene.data.buffers.inputBytes == 1 << 20)
        let refused = scene.call(start)
        #expect(refused.status == 503 && refused.receivedText.contains("problems/out-of-buffers"))
        callers[0].reset()
        scene.settle()
        let next = scene.call(start)
        next.send("\r\n\r\n")
        scene.settle()
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    /// Output that slow readers leave behind has a bound in all: past it a reader is cut, and the others get every
    /// byte.
    @Test func outputThatWaitsIsBoundedTogether() throws {
        let scene = try Scene(Self.plan)
        scene.kernel.pipesLeft = 0
        let body = String(repeating: "x", count: 100_000)
        let callers = (0..<150).map { _ in
            let caller = scene.call(Wire.get())
            caller.window = 0
            return caller
        }
        // Framed anew, a block of it is larger than a block.
        for upstream in scene.upstreams {
            upstream.send("HTTP/1.1 200 OK\r\n\r\n" + body)
            upstream.finish()
        }
        scene.settle()
        #expect(scene.data.buffers.outputBytes <= 1 << 20 && callers.contains(where: \.isClosed))
        let patient = callers.filter { !$0.isClosed }
        for caller in patient { caller.window = .max }
        scene.settle()
        #expect(patient.count > 32 && patient.allSatisfy { Wire.unchunked($0.receivedText)?.body == body })
        scene.end()
    }

    /// Nothing of a loop that goes is left in the reactor, whatever it meant to look at later.
    @Test func aLoopThatGoesTakesItsTimersAlong() throws {
        var scene: Scene? = try Scene(Self.plan)
        let loop = try #require(scene?.loop)
        let callers = (0..<190).compactMap { _ in scene?.call("GET / HTTP/1.1\r\nX") }
        for caller in callers { caller.reset() }
        scene?.settle()
        #expect(scene?.data.canTrim == true && scene?.data.buffers.pool.taken == 0)
        scene?.end()
        #expect(loop.owners > 0)
        scene = nil
        #expect(loop.owners == 0)
    }
}
