import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Listening sockets in one loop: who is accepted when, and who is turned away.
@Suite struct AcceptorTests {
    /// A scene whose listener has a socket.
    private func listening(
        _ yaml: String = Plans.open(), isShared: Bool = false, logsAccess: Bool = false
    ) throws -> (scene: Scene, listener: Int32) {
        let scene = try Scene(yaml, logsAccess: logsAccess)
        let listener = scene.kernel.listen()
        #expect(scene.data.listen(scene.plan.listeners[0], descriptors: [listener], isShared: isShared))
        scene.settle()
        return (scene, listener)
    }

    private func served(_ caller: Peer, in scene: Scene) -> Bool {
        caller.send(Wire.get())
        scene.settle()
        scene.upstreams.last?.send(Wire.ok("x"))
        scene.settle()
        return caller.takeText() == Wire.ok("x")
    }

    /// Ends the callers, and the listener with them.
    private func end(_ scene: Scene, _ callers: [Peer]) {
        scene.data.leave(Set(scene.data.listeningSockets.map(\.address)))
        for caller in callers { caller.reset() }
        scene.end()
    }

    // MARK: - Out of descriptors

    /// A socket that all loops share is told of again and again: left watched, it would wake a loop without end that
    /// cannot accept.
    @Test func aSharedSocketRestsWhileNothingCanBeAccepted() throws {
        let (scene, listener) = try listening(isShared: true)
        scene.kernel.failAccepts(listener, [EMFILE])
        let caller = try #require(scene.kernel.call(listener))
        scene.settle()
        #expect(scene.data.callers.isEmpty && scene.glitches(.acceptFailed) == 1)
        // A shortage is looked at once in a tenth of a second.
        scene.pass(seconds: 0.05)
        #expect(scene.data.callers.isEmpty)
        scene.pass(seconds: 0.1)
        #expect(scene.data.callers.count == 1 && served(caller, in: scene))
        // The socket is watched again.
        let next = try #require(scene.kernel.call(listener))
        scene.settle()
        #expect(scene.data.callers.count == 2 && served(next, in: scene))
        end(scene, [caller, next])
    }

    @Test func callersThatComeDuringAShortageWait() throws {
        let (scene, listener) = try listening()
        scene.kernel.failAccepts(listener, [ENFILE])
        let first = try #require(scene.kernel.call(listener))
        scene.settle()
        let second = try #require(scene.kernel.call(listener))
        scene.settle()
        #expect(scene.data.callers.isEmpty && scene.glitches(.acceptFailed) == 1)
        scene.pass(seconds: 0.15)
        #expect(scene.data.callers.count == 2 && served(first, in: scene) && served(second, in: scene))
        end(scene, [first, second])
    }

    // MARK: - Ends

    /// Callers in the queue are connected, as far as they know.
    @Test func theQueueIsServedBeforeItsSocketCloses() throws {
        let (scene, listener) = try listening()
        let callers = (0..<600).compactMap { _ in scene.kernel.call(listener) }
        scene.data.drain {}
        #expect(scene.data.callers.count == 600 && scene.data.listeningSockets.isEmpty)
        #expect(scene.kernel.call(listener) == nil)
        #expect(served(callers[599], in: scene) == false, "its answer says that the connection ends")
        #expect(callers[599].sawEnd)
        for caller in callers { caller.reset() }
        scene.end()
    }

    /// Another process has the same socket and takes whoever waits there.
    @Test func theQueueIsLeftToTheNextProcess() throws {
        let (scene, listener) = try listening()
        let address = scene.plan.listeners[0].address
        let sockets = scene.data.listeningSockets
        #expect(sockets.count == 1 && sockets[0].address == address && sockets[0].descriptor == listener)
        #expect(!sockets[0].isShared)
        let waiting = try #require(scene.kernel.call(listener))
        scene.data.leave([try #require(SocketAddress(parsing: "127.0.0.1:9"))])
        #expect(scene.data.listeningSockets.count == 1)
        scene.data.leave([address])
        scene.settle()
        #expect(scene.data.callers.isEmpty && scene.data.listeningSockets.isEmpty && !waiting.isClosed)
        scene.end()
    }

    /// A flood is accepted in parts, and the socket may close between two of them.
    @Test func aSocketThatClosesAmidAFloodIsReadNoFurther() throws {
        let (scene, listener) = try listening()
        let callers = (0..<600).compactMap { _ in scene.kernel.call(listener) }
        let address = scene.plan.listeners[0].address
        nonisolated(unsafe) let data = scene.data
        // Mail comes behind readiness, and before what is put off to the end of the turn.
        #expect(scene.loop.post { data.leave([address]) })
        scene.loop.turnOnce()
        scene.settle()
        #expect(scene.data.callers.count == 256 && scene.kernel.misuse == [])
        for caller in callers.prefix(256) { caller.reset() }
        scene.end()
    }

    // MARK: - Watching

    @Test func aSocketThatCannotBeWatchedIsNoListener() throws {
        let scene = try Scene(Plans.open())
        let listener = scene.kernel.listen()
        scene.kernel.watchErrors = [ENOSPC]
        #expect(!scene.data.listen(scene.plan.listeners[0], descriptors: [listener], isShared: false))
        #expect(scene.data.listeningSockets.isEmpty)
    }

    /// A reload goes on where one of its listeners has no place in the loop: the others serve.
    @Test func aNewListenerThatCannotBeWatchedLeavesTheOthers() throws {
        let (scene, listener) = try listening()
        let address = scene.plan.listeners[0].address
        let second = scene.kernel.listen()
        scene.kernel.watchErrors = [ENOSPC]
        scene.data.take(
            NextPlan(plan: scene.plan, metrics: [scene.data.metrics], census: nil),
            sockets: [address: ([second], false)])
        #expect(scene.data.listeningSockets.map(\.descriptor) == [listener])
        let caller = try #require(scene.kernel.call(listener))
        scene.settle()
        #expect(served(caller, in: scene))
        scene.kernel.close(second)
        end(scene, [caller])
    }

    /// A connection that the loop cannot watch is closed, and counts nowhere any more.
    @Test(arguments: ["", ", proxy_protocol: {from: [127.0.0.0/8]}"])
    func aConnectionThatCannotBeWatchedLeavesNothing(listener: String) throws {
        let scene = try Scene(
            "listeners: {in: {address: \"127.0.0.1:8080\", connections: 1\(listener)}}\n"
                + "routes: [{listen: in, to: \"http://127.0.0.1:9000\", use: none, callers: local}]\n")
        scene.kernel.watchErrors = [ENOSPC]
        let lost = scene.call()
        scene.settle()
        #expect(lost.isClosed && lost.receivedCount == 0 && scene.count(scene.plan.metrics.callers) == 0)
        // The listener has its one place again.
        let next = scene.call()
        scene.settle()
        #expect(!next.isClosed && scene.count(scene.plan.metrics.callers) == 1)
        #expect(scene.call().isClosed)
        scene.end()
    }

    // MARK: - Addresses

    /// A caller whose address the kernel does not say is nobody that could be admitted by its place.
    @Test func aCallerWithoutAnAddressIsNotLocal() throws {
        let scene = try Scene(Plans.open(), logsAccess: true)
        let (descriptor, caller) = scene.kernel.pair()
        scene.data.admit(descriptor, from: nil, listener: scene.plan.listeners[0])
        caller.send(Wire.get())
        scene.settle()
        #expect(caller.status == 403 && scene.upstreams.isEmpty)
        caller.reset()
        scene.end()
    }

    /// A scene that counts its callers by address.
    private func counting(_ yaml: String, limit: Int) throws -> Scene {
        let scene = try Scene(yaml)
        scene.data.take(
            NextPlan(plan: scene.plan, metrics: [scene.data.metrics], census: AddressCensus(limit: limit)),
            sockets: [:])
        return scene
    }

    @Test func oneAddressCannotTakeAllConnections() throws {
        let scene = try counting(Plans.open(), limit: 2)
        let callers = [scene.call(), scene.call()]
        let third = scene.call()
        #expect(third.isClosed && third.status == 503 && third.receivedText.contains("Retry-After: 1\r\n"))
        #expect(third.receivedText.contains("problems/too-many-connections"))
        #expect(scene.glitches(.connectionLimit) == 1)
        let other = scene.call(from: "127.0.0.2")
        scene.settle()
        #expect(!other.isClosed)
        // A caller that leaves makes room for the next one.
        callers[0].finish()
        scene.settle()
        let fourth = scene.call()
        scene.settle()
        #expect(callers[0].isClosed && !fourth.isClosed && scene.call().isClosed)
        scene.end()
    }

    /// A proxy's callers are counted one by one, each when its header has come.
    @Test func callersBehindAProxyAreCountedForThemselves() throws {
        let scene = try counting(
            "listeners: {in: {address: \"127.0.0.1:8080\", proxy_protocol: {from: [10.0.0.0/8]}}}\n"
                + "routes: [{listen: in, to: \"http://127.0.0.1:9000\", use: none, callers: {unsafe_open: true}}]\n",
            limit: 1)
        func call(_ address: String) -> Peer {
            let caller = scene.call(from: "10.1.2.3")
            caller.send("PROXY TCP4 \(address) 10.0.0.1 12345 80\r\n")
            scene.settle()
            return caller
        }
        let first = call("192.0.2.7")
        let second = call("192.0.2.7")
        let other = call("192.0.2.8")
        #expect(!first.isClosed && !other.isClosed && !other.sawEnd)
        #expect(second.status == 503 && second.sawEnd && second.receivedText.contains("Retry-After: 1\r\n"))
        scene.pass(seconds: 2)
        #expect(second.isClosed)
        first.reset()
        scene.settle()
        #expect(!call("192.0.2.7").sawEnd)
        scene.end()
    }

    /// Before its handshake a TLS caller could not read why.
    @Test func aTLSCallerBehindAProxyIsTurnedAwayWithoutAWord() throws {
        let scene = try counting(
            ArrivalTests.secure("proxy_protocol: {from: [10.0.0.0/8]}", callers: "{unsafe_open: true}"), limit: 1)
        let callers = (0..<2).map { _ in scene.call(from: "10.1.2.3") }
        for caller in callers { caller.send("PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n") }
        scene.settle()
        #expect(callers.map(\.isClosed) == [false, true] && callers[1].receivedCount == 0)
        scene.end()
    }
}
