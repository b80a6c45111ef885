import Glibc
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Reactor
@testable import Scenes

/// Answers that cannot be passed on, for what they are or for want of memory, and those that break off on their way.
@Suite struct AnswerEdgeTests {
    private struct Play {
        let scene: Scene
        let caller: Peer
        let upstream: Peer

        init(_ plan: String = Plans.open(), _ request: String = Wire.get()) throws {
            scene = try Scene(plan)
            caller = scene.call(request)
            upstream = try #require(scene.upstreams.first)
            upstream.discard()
        }

        func answer(_ text: String) {
            upstream.send(text)
            scene.settle()
        }

        /// The one answer that the caller gets in place of the upstream's.
        func expectProblem(_ status: Int, _ problem: String, _ sourceLocation: SourceLocation = #_sourceLocation) {
            let text = caller.receivedText
            #expect(caller.status == status, sourceLocation: sourceLocation)
            #expect(text.contains("problems/\(problem)\""), "\(text.prefix(900))", sourceLocation: sourceLocation)
            #expect(upstream.isClosed, sourceLocation: sourceLocation)
            scene.end(sourceLocation)
        }
    }

    private static func fields(_ count: Int, _ field: (Int) -> String) -> String { (0..<count).map(field).joined() }

    // MARK: - Heads

    @Test func aHeadOfTooManyFieldsOrOctetsIsTooBig() throws {
        for head in [Self.fields(129) { "X-\($0): a\r\n" }, "X: \(String(repeating: "x", count: 70_000))\r\n"] {
            let play = try Play()
            play.answer("HTTP/1.1 200 OK\r\n\(head)Content-Length: 0\r\n\r\n")
            play.expectProblem(502, "upstream-big-head")
        }
    }

    /// A head under the bound comes through, whatever blocks it takes.
    @Test func aHeadUnderTheBoundPasses() throws {
        let play = try Play()
        let answer = "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 60_000))\r\nContent-Length: 1\r\n\r\na"
        play.answer(answer)
        #expect(play.caller.takeText() == answer && play.scene.idleUpstreams == 1)
        play.scene.end()
    }

    /// Each cookie grows by the prefix that is taken off the path; the head that comes of it fits nowhere.
    @Test(arguments: ["HTTP/1.1 200 OK", "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: ws"])
    func aHeadThatGrowsTooBigByItsEditsIsNotPassedOn(status: String) throws {
        let prefix = "/" + String(repeating: "p", count: 2000)
        let play = try Play(
            Plans.open("rewrite: {strip_prefix: \(prefix)}"),
            Wire.get(prefix + "/a", "Connection: upgrade\r\nUpgrade: ws\r\n"))
        let length = status.contains("200") ? "Content-Length: 0\r\n" : ""
        play.answer("\(status)\r\n\(Self.fields(100) { "Set-Cookie: c\($0)=v; Path=/\r\n" })\(length)\r\n")
        play.expectProblem(502, "upstream-big-head")
    }

    /// Nothing of it was sent, so the caller need not see half an answer.
    @Test(arguments: ["zz\r\n", "3\r\nabcd\r\n"])
    func aBodyThatIsBrokenFromTheStartIsAnswered(body: String) throws {
        let play = try Play()
        play.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)")
        play.expectProblem(502, "upstream-garbage")
    }

    // MARK: - Memory

    /// Everything that the loop's pool of blocks still has.
    private func drainPool(_ scene: Scene) -> [UnsafeMutableRawBufferPointer] {
        var taken: [UnsafeMutableRawBufferPointer] = []
        while let block = scene.data.buffers.take() { taken.append(block) }
        return taken
    }

    /// The block that an answer comes into is taken when its request has been sent.
    @Test func anAnswerThatFindsNoBlockIsRefusedForAWhile() throws {
        let scene = try Scene(Plans.open() + "limits: {connections: 1}\n")
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        let taken = drainPool(scene)
        upstream.accept()
        upstream.send(Wire.ok("x"))
        scene.settle()
        for block in taken { scene.data.buffers.give(block) }
        #expect(caller.status == 503 && caller.receivedText.contains("problems/out-of-buffers\""))
        #expect(caller.receivedText.contains("\r\nRetry-After: 1\r\n") && upstream.isClosed)
        scene.end()
    }

    /// A block that was given up while the kernel moved the body cannot be had again.
    @Test func aBodyThatFindsNoBlockIsCut() throws {
        let play = try Play(Plans.open() + "limits: {connections: 1}\n")
        play.answer("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "a", count: 60_000))
        #expect(play.scene.kernel.spliced > 0)
        let taken = drainPool(play.scene)
        // Too short a piece to be a flood, and less to come behind it than the kernel is asked to move.
        play.answer(String(repeating: "b", count: 15_000))
        for block in taken { play.scene.data.buffers.give(block) }
        #expect(play.caller.isClosed && play.upstream.isClosed && play.caller.receivedCount < 100_000)
        play.scene.end()
    }

    @Test func aHeadThatFindsNoLargerBlockIsNotPassedOn() throws {
        let play = try Play(Plans.open() + "limits: {replay_memory: 1MiB}\n")
        let taken = try #require(play.scene.data.buffers.takeLarge(1 << 20, for: .input))
        play.answer("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 20_000))\r\nContent-Length: 0\r\n\r\n")
        #expect(play.upstream.isClosed && play.caller.status == 503)
        #expect(play.caller.receivedText.contains("\r\nRetry-After: 1\r\n"))
        play.scene.data.buffers.give(taken)
        play.scene.end()
    }

    // MARK: - Callers that are gone

    @Test func aCallerThatIsGoneInTheMiddleOfAnAnswerEndsIt() throws {
        let play = try Play()
        play.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        #expect(play.caller.takeText().hasSuffix("3\r\nabc\r\n"))
        play.caller.failWrites([EPIPE])
        play.answer("3\r\ndef\r\n0\r\n\r\n")
        #expect(play.caller.isClosed && play.caller.receivedCount == 0 && play.upstream.isClosed)
        play.scene.end()
    }

    @Test func aCallerThatTheKernelCannotWriteToEndsItsAnswer() throws {
        let play = try Play()
        play.answer("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
        play.scene.kernel.spliceErrors = [0, EPIPE]
        play.answer(String(repeating: "a", count: 100_000))
        #expect(play.caller.isClosed && play.upstream.isClosed && play.scene.idleUpstreams == 0)
        play.scene.end()
    }

    // MARK: - Upstreams that are gone

    /// Its caller must not take what it has for the whole.
    @Test func anUpstreamThatIsGoneBehindItsHeadCutsTheAnswer() throws {
        let play = try Play(Plans.open(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n")
        play.answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        #expect(play.caller.receivedText.hasSuffix("\r\n\r\nhalf"))
        play.upstream.reset()
        play.scene.settle()
        #expect(play.caller.isClosed && play.caller.receivedText.hasSuffix("\r\n\r\nhalf"))
        play.scene.end()
    }

    /// The server has begun with the request, as its caller knows.
    @Test(arguments: [true, false])
    func aRequestWhoseInterimAnswerWasPassedOnIsNotSentAgain(hasInterim: Bool) throws {
        let play = try Play()
        play.answer(Wire.ok("x"))
        play.caller.discard()
        play.caller.send(Wire.get("/next"))
        play.scene.settle()
        #expect(play.scene.upstreams.count == 1 && play.upstream.takeText().hasPrefix("GET /next "))
        if hasInterim {
            play.answer("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
            #expect(play.caller.takeText() == "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
        }
        play.upstream.finish()
        play.scene.settle()
        // A connection that was kept and ends without a word has not seen the request.
        #expect(play.scene.upstreams.count == (hasInterim ? 1 : 2))
        guard !hasInterim else { return play.expectProblem(502, "upstream-closed") }
        play.scene.upstreams[1].send(Wire.ok("y"))
        play.scene.settle()
        #expect(play.caller.takeText() == Wire.ok("y"))
        play.scene.end()
    }

    // MARK: - Switches and proxies

    @Test(arguments: [("ws", "h2c", 502), ("ws", "WS", 101), ("ws", nil, 502)])
    func anUpstreamSwitchesToWhatWasAskedForAlone(asked: String, switched: String?, status: Int) throws {
        let play = try Play(Plans.open(), Wire.get("/", "Connection: upgrade\r\nUpgrade: \(asked)\r\n"))
        let upgrade = switched.map { "Upgrade: \($0)\r\n" } ?? ""
        play.answer("HTTP/1.1 101 Go\r\nConnection: upgrade\r\n\(upgrade)\r\n")
        guard status == 502 else {
            #expect(play.caller.status == 101)
            return play.scene.end()
        }
        #expect(play.caller.receivedText.contains("it switches to another protocol than was asked for"))
        play.expectProblem(502, "upstream-garbage")
    }

    @Test func aSwitchThatNobodyAskedForIsNone() throws {
        let play = try Play()
        play.answer("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: ws\r\n\r\n")
        play.expectProblem(502, "upstream-garbage")
    }

    /// The proxy's word is to us, and its challenge would have the caller bring a credential for it.
    @Test func aProxyThatRefusesIsNoAnswer() throws {
        let play = try Play(Plans.open("proxy: {url: \"http://127.0.0.9:3128\"}, allow_cleartext: true"))
        play.answer(
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 4\r\n\r\npage")
        #expect(!play.caller.receivedText.lowercased().contains("proxy-authenticate"))
        play.expectProblem(502, "proxy-refused")
        // Without a proxy the status is the upstream's own.
        let other = try Play()
        other.answer("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        #expect(other.caller.takeText() == "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        other.scene.end()
    }
}
