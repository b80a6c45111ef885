import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Resets, ends and deadlines in every phase: what is answered, and that nothing stays behind.
@Suite struct LossTests {
    enum Phase: String, CaseIterable, Sendable {
        case idleCaller, readingHead, connecting, asking, sendingBody, readingAnswerHead, relayingBody, slowCaller
        case waiting, parked
    }

    enum End: String, CaseIterable, Sendable { case reset, finish }

    /// Brings a scene into the phase. The upstream is there from `connecting` on.
    private func scene(in phase: Phase) throws -> (Scene, Peer, Peer?) {
        let waits = phase == .waiting || phase == .parked
        let scene = try Scene(waits ? Plans.fixed() : Plans.open())
        switch phase {
        case .idleCaller: return (scene, scene.call(""), nil)
        case .readingHead: return (scene, scene.call("GET / HTTP/1.1\r\nHos"), nil)
        case .connecting:
            scene.kernel.connectPlan = { _ in .silent }
            return (scene, scene.call(Wire.get()), scene.upstreams[0])
        case .asking: return (scene, scene.call(Wire.get()), scene.upstreams[0])
        case .sendingBody:
            let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
            return (scene, caller, scene.upstreams[0])
        case .readingAnswerHead:
            let caller = scene.call(Wire.get())
            scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-")
            scene.settle()
            return (scene, caller, scene.upstreams[0])
        case .relayingBody:
            let caller = scene.call(Wire.get())
            scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            scene.settle()
            return (scene, caller, scene.upstreams[0])
        case .slowCaller:
            let caller = scene.call(Wire.get())
            caller.window = 10
            scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            scene.upstreams[0].send([UInt8](repeating: 65, count: 50_000))
            scene.settle()
            return (scene, caller, scene.upstreams[0])
        case .waiting: return (scene, scene.call(Wire.get()), nil)
        case .parked:
            try scene.publish("t1", generation: 1)
            let caller = scene.call(Wire.get())
            scene.upstreams[0].send(Wire.challenge)
            scene.settle()
            #expect(scene.keeper.challenges.count == 1)
            return (scene, caller, scene.upstreams[0])
        }
    }

    @Test(arguments: Phase.allCases)
    func aCallerMayLeaveInAnyPhase(_ phase: Phase) throws {
        let (scene, caller, upstream) = try scene(in: phase)
        caller.reset()
        scene.settle()
        #expect(caller.isClosed)
        if let upstream { #expect(upstream.isClosed, "an exchange in the middle takes its connection with it") }
        #expect(scene.keeper.left.count == (phase == .parked ? 1 : 0))
        scene.expectNothingLeft()
    }

    @Test(arguments: Phase.allCases.filter { ![.idleCaller, .readingHead, .waiting].contains($0) }, End.allCases)
    func anUpstreamMayLeaveInAnyPhase(_ phase: Phase, _ end: End) throws {
        let (scene, caller, upstream) = try scene(in: phase)
        let peer = try #require(upstream)
        switch (phase, end) {
        case (.connecting, .finish): return
        case (.connecting, .reset): peer.reset(ECONNREFUSED)
        case (_, .reset): peer.reset()
        case (_, .finish): peer.finish()
        }
        scene.settle()
        switch phase {
        case .connecting, .asking, .readingAnswerHead:
            #expect(caller.status == 502 && !caller.sawEnd, "the caller's connection is whole")
        case .sendingBody:
            #expect(caller.status == 502 && caller.sawEnd, "what the caller still sends is no request")
        case .relayingBody:
            #expect(caller.status == 200 && caller.isClosed, "a truncated answer is never ended cleanly")
        case .slowCaller:
            caller.window = .max
            scene.settle()
            #expect(caller.status == 200 && caller.isClosed && caller.receivedCount < 100_000)
        case .parked:
            #expect(caller.receivedCount == 0, "the held answer is whole: it still may be delivered")
            let ticket = try #require(scene.keeper.challenges[0].ticket)
            scene.answer(ticket, .pass)
            #expect(caller.status == 401 && !caller.sawEnd)
        default: Issue.record("no such phase")
        }
        scene.end()
    }

    /// The keeper's order and the caller's end cross each other.
    @Test(arguments: [Phase.waiting, .parked])
    func anOrderForACallerThatLeftGoesNowhere(_ phase: Phase) throws {
        let (scene, caller, _) = try scene(in: phase)
        let slot = try scene.publish("t2", generation: 2)
        caller.reset()
        scene.settle()
        if phase == .parked {
            scene.answer(try #require(scene.keeper.challenges[0].ticket), .use(slot: slot, granted: 1))
        } else {
            scene.data.desk.open(.settled(slot: slot, .use(slot: slot, granted: 0)))
        }
        scene.settle()
        #expect(scene.upstreams.count == (phase == .parked ? 1 : 0))
        scene.end()
    }

    // MARK: - Connecting

    @Test(arguments: [
        (ConnectPlan.failed(ECONNREFUSED), 502), (.failed(ETIMEDOUT), 504), (.failed(EHOSTUNREACH), 502),
        (.failedAtOnce(ENETUNREACH), 502), (.failedAtOnce(ECONNREFUSED), 502),
    ])
    func anUpstreamThatCannotBeReached(plan: ConnectPlan, status: Int) throws {
        let scene = try Scene(Plans.open())
        scene.kernel.connectPlan = { _ in plan }
        let caller = scene.call(Wire.get())
        #expect(caller.status == status && !caller.sawEnd)
        caller.discard()
        scene.kernel.connectPlan = { _ in .accepted }
        caller.send(Wire.get())
        scene.settle()
        try #require(scene.upstreams.last).send(Wire.ok("there again"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("there again"))
        scene.end()
    }

    @Test func theNextAddressIsTried() throws {
        let scene = try Scene(Plans.open("addresses: [\"127.0.0.1:9001\", \"127.0.0.1:9002\"]"))
        scene.kernel.connectPlan = { $0.port == 9002 ? .accepted : .failed(ECONNREFUSED) }
        for _ in 0..<2 {
            let caller = scene.call(Wire.get())
            let upstream = try #require(scene.upstreams.last)
            #expect(upstream.address?.port == 9002 && upstream.receivedCount > 0)
            upstream.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            scene.settle()
            #expect(caller.status == 200)
        }
        scene.end()
    }

    @Test func outOfDescriptorsIsSaidSo() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.socketErrors = [EMFILE]
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503)
        scene.end()
    }

    // MARK: - Deadlines

    @Test func aSlowHeadIsRefused() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.1\r\nHost: loc")
        for _ in 0..<9 {
            scene.pass(seconds: 1)
            caller.send("a")
        }
        scene.settle()
        #expect(caller.receivedCount == 0, "ten seconds from its first byte")
        scene.pass(seconds: 1.1)
        #expect(caller.status == 408 && caller.sawEnd)
        scene.pass(seconds: 1.1)
        #expect(caller.isClosed)
        scene.end()
    }

    @Test func anIdleCallerIsClosedWithoutAWord() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        scene.pass(seconds: 74)
        #expect(!caller.isClosed)
        scene.pass(seconds: 2)
        #expect(caller.isClosed && caller.receivedCount == 0)
        scene.expectNothingLeft()
    }

    @Test func anUpstreamThatDoesNotAnswerIsGivenUp() throws {
        let scene = try Scene(Plans.open("timeouts: {response: 7s}"))
        let caller = scene.call(Wire.get())
        scene.pass(seconds: 6.9)
        #expect(caller.receivedCount == 0)
        scene.pass(seconds: 0.2)
        #expect(caller.status == 504 && !caller.sawEnd && scene.upstreams[0].isClosed)
        caller.discard()
        caller.send(Wire.get())
        scene.settle()
        scene.upstreams[1].send(Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("a"))
        scene.end()
    }

    @Test func anUpstreamThatDoesNotAcceptIsGivenUp() throws {
        let scene = try Scene(Plans.open("timeouts: {connect: 2s}"))
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Wire.get())
        scene.pass(seconds: 1.9)
        #expect(caller.receivedCount == 0)
        scene.pass(seconds: 0.2)
        #expect(caller.status == 504 && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func anAnswerThatStallsIsCut() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 3s}"))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab")
        scene.settle()
        scene.pass(seconds: 2)
        scene.upstreams[0].send("cd")
        scene.settle()
        scene.pass(seconds: 2)
        #expect(!caller.isClosed, "every piece begins the wait anew")
        scene.pass(seconds: 2)
        #expect(caller.isClosed && scene.upstreams[0].isClosed)
        scene.expectNothingLeft()
    }

    @Test func aBodyThatStallsIsRefused() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 3s}"))
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab")
        scene.pass(seconds: 2.5)
        caller.send("cd")
        scene.settle()
        scene.pass(seconds: 2.5)
        #expect(caller.receivedCount == 0)
        scene.pass(seconds: 1)
        #expect(caller.status == 408 && caller.sawEnd && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func anIdleUpstreamIsLetGo() throws {
        let scene = try Scene(Plans.open())
        _ = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        scene.pass(seconds: 59)
        #expect(scene.idleUpstreams == 1)
        scene.pass(seconds: 2)
        #expect(scene.idleUpstreams == 0 && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func aTokenThatDoesNotComeIsGivenUp() throws {
        let scene = try Scene(Plans.fixed())
        let caller = scene.call(Wire.get())
        #expect(scene.keeper.needed == 1 && scene.data.desk.waiters == 1)
        scene.pass(seconds: 10.5)
        #expect(caller.receivedCount == 0, "the keeper's own deadline comes first, and its answer says more")
        scene.pass(seconds: 1)
        #expect(caller.status == 504 && scene.data.desk.waiters == 0)
        scene.end()
    }

    // MARK: - Odd answers

    /// The upstream refuses before it has the body: the caller hears it, and its connection ends.
    @Test func anEarlyAnswerIsDelivered() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nhalf")
        scene.upstreams[0].send("HTTP/1.1 413 Too Big\r\nContent-Length: 2\r\n\r\nno")
        scene.settle()
        #expect(caller.takeText() == "HTTP/1.1 413 Too Big\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        #expect(caller.sawEnd && !caller.isClosed, "what the caller still sends is drained for a moment")
        #expect(scene.upstreams[0].isClosed && scene.idleUpstreams == 0)
        caller.send([UInt8](repeating: 1, count: 5_000))
        scene.settle()
        #expect(!caller.isClosed && caller.unread == 0)
        scene.pass(seconds: 1.1)
        #expect(caller.isClosed)
        scene.expectNothingLeft()
    }

    @Test(arguments: [
        Wire.ok("1") + Wire.ok("2"), Wire.ok("1") + "x",
        "HTTP/1.1 204 No Content\r\n\r\n" + "stray body",
    ])
    func bytesBehindAnAnswerEndItsConnection(_ answer: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(answer)
        scene.settle()
        #expect(!caller.sawEnd && scene.upstreams[0].isClosed && scene.idleUpstreams == 0)
        caller.discard()
        caller.send(Wire.get())
        scene.settle()
        scene.upstreams[1].send(Wire.ok("mine"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("mine"), "nobody gets the answer of another")
        scene.end()
    }

    @Test(arguments: End.allCases)
    func anIdleConnectionThatEndsIsDropped(_ end: End) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        #expect(scene.idleUpstreams == 1)
        if end == .finish { scene.upstreams[0].finish() } else { scene.upstreams[0].reset() }
        scene.settle()
        #expect(scene.idleUpstreams == 0 && scene.upstreams[0].isClosed)
        caller.discard()
        caller.send(Wire.get())
        scene.settle()
        #expect(scene.upstreams.count == 2)
        scene.end()
    }

    @Test func wordsOnAnIdleConnectionEndIt() throws {
        let scene = try Scene(Plans.open())
        _ = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        scene.upstreams[0].send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(scene.idleUpstreams == 0 && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test(arguments: [
        "nonsense\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\u{0}\r\n\r\n",
    ])
    func whatIsNoAnswerIsABadGateway(_ answer: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(answer)
        scene.settle()
        #expect(caller.status == 502 && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func brokenChunksCutTheAnswer() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        scene.settle()
        scene.upstreams[0].send("zz\r\n")
        scene.settle()
        #expect(caller.isClosed && Wire.unchunked(caller.takeText()) == nil)
        scene.expectNothingLeft()
    }

    @Test func interimAnswersWithoutEndAreCut() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        for _ in 0..<100 { scene.upstreams[0].send("HTTP/1.1 102 Processing\r\n\r\n") }
        scene.settle()
        #expect(caller.receivedText.contains(" 502 ") && scene.upstreams[0].isClosed)
        scene.end()
    }

    /// A caller's body that ends early must not look whole to the upstream.
    @Test(arguments: [false, true])
    func aBodyThatEndsEarlyEndsTheUpstream(chunked: Bool) throws {
        let scene = try Scene(Plans.open())
        let framing = chunked ? "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n" : "Content-Length: 100\r\n\r\nhalf"
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\n\(framing)")
        caller.finish()
        scene.settle()
        #expect(scene.upstreams[0].isClosed && caller.status == 400 && caller.isClosed)
        #expect(!scene.upstreams[0].receivedText.contains("0\r\n\r\n") || !chunked)
        scene.end()
    }
}
