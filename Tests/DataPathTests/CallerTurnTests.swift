import Glibc
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// Callers and upstreams that bring bytes without end: the loop's others have their turns meanwhile, and nothing is
/// lost.
@Suite struct CallerTurnTests {
    /// Bytes that one connection may bring in the turn in which they come: as many reads of a block as there are
    /// rounds,
    /// once for the event and once more at the turn's end.
    private static let turn = 2 * CallerConnection.rounds * 16 * 1024

    /// Requests that we answer ourselves wait for nobody, so that a caller may bring them without end.
    @Test func anEndlessPipelineIsServedInTurns() throws {
        let scene = try Scene(Plans.open("match: {path: /here/}"))
        let caller = scene.call()
        scene.settle()
        let request = Wire.get("/", "X-Fill: \(String(repeating: "f", count: 4000))\r\n")
        let count = Self.turn / request.utf8.count + 100
        for _ in 0..<count { caller.send(request) }
        scene.loop.turnOnce()
        #expect(caller.unread >= count * request.utf8.count - Self.turn && caller.receivedCount > 0)
        scene.settle()
        #expect(caller.unread == 0 && !caller.sawEnd)
        #expect(caller.takeText().split(separator: "404 Not Found").count == count + 1)
        scene.end()
    }

    /// An upload whose answer came early is read on, so that no reset overtakes the answer; others go before it.
    @Test func theRestOfAnUploadIsDrainedInTurns() throws {
        let scene = try Scene(Plans.open("match: {path: /here/}"))
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
        #expect(caller.status == 404 && caller.sawEnd && !caller.isClosed)
        caller.send([UInt8](repeating: 0x78, count: Self.turn + 5))
        scene.loop.turnOnce()
        #expect(caller.unread == 5 && !caller.isClosed)
        scene.settle()
        #expect(caller.unread == 0 && !caller.isClosed)
        scene.pass(seconds: 2)
        #expect(caller.isClosed)
        scene.end()
    }

    /// The two ends of a tunnel could keep a loop busy for as long as it stands.
    @Test func aTunnelsFloodPassesInTurns() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.pipesLeft = 0
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        scene.settle()
        #expect(caller.status == 101)
        caller.discard()
        let flood = (0..<Self.turn).map { UInt8(truncatingIfNeeded: $0 / 251) }
        upstream.send(flood)
        scene.loop.turnOnce()
        // A piece takes two rounds: one that reads it and one that writes it.
        #expect(caller.receivedCount == Self.turn / 2 && upstream.unread == Self.turn / 2)
        scene.settle()
        #expect(caller.take() == flood && upstream.unread == 0)
        caller.finish()
        upstream.finish()
        scene.settle()
        #expect(caller.isClosed && upstream.isClosed)
        scene.end()
    }

    // MARK: - Interim answers that wait

    /// Interim answers of several sizes gather for a caller that reads nothing meanwhile, and leave in order.
    @Test func interimAnswersGatherForASlowCaller() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        caller.window = 0
        func hint(_ count: Int) -> String {
            "HTTP/1.1 103 Early Hints\r\nX: \(String(repeating: "x", count: count))\r\n\r\n"
        }
        // The second one finds room beside the first, the third one does not.
        let all = hint(1000) + hint(1000) + hint(20_000) + hint(10) + Wire.ok("end")
        upstream.send(all)
        scene.settle()
        #expect(caller.receivedCount == 0 && !caller.isClosed)
        caller.window = .max
        scene.settle()
        #expect(caller.takeText() == all && !caller.sawEnd)
        scene.end()
    }

    // MARK: - Callers that are gone

    @Test func aCallerWhoseSocketBreaksAmidItsAnswerIsClosed() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        caller.window = 10
        upstream.send(Wire.ok(String(repeating: "x", count: 50_000)))
        scene.settle()
        #expect(caller.receivedCount == 10 && !caller.isClosed)
        caller.failWrites([EPIPE])
        caller.window = .max
        scene.settle()
        #expect(caller.isClosed && upstream.isClosed && caller.receivedCount == 10)
        scene.end()
    }

    @Test func aTLSCallerWhoseSocketBreaksIsClosed() throws {
        let scene = try Scene(ArrivalTests.secure())
        let caller = try SecureCaller(scene, scene.call())
        #expect(caller.shake() == .done && caller.send(Wire.get()))
        let upstream = try #require(scene.upstreams.first)
        caller.peer.failWrites(Array(repeating: EPIPE, count: 4))
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 50_000))
        scene.settle()
        #expect(caller.peer.isClosed && upstream.isClosed)
        scene.end()
    }

    /// An answer that begins before the request's end has the time of both from then on.
    @Test func anAnswerGoesOnWhenItsRequestIsWhole() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 3s, response: 1s}"))
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc")
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nuvw")
        scene.settle()
        scene.pass(seconds: 2)
        caller.send("def")
        scene.settle()
        #expect(upstream.receivedText.hasSuffix("\r\n\r\nabcdef"))
        scene.pass(seconds: 2)
        upstream.send("xyz")
        scene.settle()
        #expect(caller.receivedText.hasSuffix("\r\n\r\nuvwxyz") && scene.idleUpstreams == 1)
        // When the answer began, nobody knew whether the rest of the request would come before the next one.
        #expect(caller.receivedText.contains("\r\nConnection: close\r\n") && caller.sawEnd)
        scene.end()
    }

    /// Whoever has closed its side and still gets an answer is there: an answer that takes longer than the caller's
    /// time is not cut.
    @Test func aHalfClosedCallerGetsALongAnswer() throws {
        let scene = try Scene(Plans.open("timeouts: {half_closed: 1s}"))
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        caller.finish()
        scene.settle()
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
        scene.settle()
        for _ in 0..<5 { scene.pass(seconds: 1) }
        #expect(!caller.isClosed && !upstream.isClosed)
        upstream.send("def")
        scene.settle()
        #expect(caller.takeText().hasSuffix("\r\n\r\nabcdef"))
        scene.end()
    }

    // MARK: - Upgrades that are none

    /// A 101 has to name the protocol that was asked for (RFC 9110 §15.2.2).
    @Test(arguments: ["", "Upgrade: other\r\n"]) func aSwitchToNoProtocolIsGarbage(field: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\(field)\r\n")
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-garbage"))
        #expect(upstream.isClosed)
        scene.end()
    }

    /// Without the caller's key there is no proof that its WebSocket was understood (RFC 6455 §4.2.2).
    @Test func aWebSocketWithoutItsKeyIsNotAnsweredAsOne() throws {
        let scene = try Scene(Plans.open("http: 2"))
        let caller = scene.call(
            Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Frames.frame(4, 0, 0, [0, 8, 0, 0, 0, 1]))
        scene.settle()
        upstream.send(Frames.frame(1, 4, 1, [0x88]))
        scene.settle()
        #expect(caller.status == 400 && caller.receivedText.contains("problems/malformed-request"))
        // To the upstream its stream is cancelled, and the connection goes on.
        let reset = Frames.read(upstream.received).last
        #expect(reset?.type == 3 && reset?.stream == 1 && reset?.payload == [0, 0, 0, 8] && !upstream.isClosed)
        upstream.finish()
        scene.settle()
        scene.end()
    }

    // MARK: - Token requests that are answered here

    private static let stub = """
        routes: [{listen: "127.0.0.1:8080", token_stub: {lifetime: 1h, grants: [password]}, callers: local}]
        limits: {head_timeout: 4s}

        """
    private static let post =
        "POST /t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"

    /// A form is no load that may take its time.
    @Test func aFormThatDripsIsRefused() throws {
        let scene = try Scene(Self.stub)
        let caller = scene.call(Self.post + "Content-Length: 100\r\n\r\ngrant_")
        for _ in 0..<3 {
            scene.pass(seconds: 1)
            caller.send("x")
            scene.settle()
        }
        #expect(caller.status == nil)
        scene.pass(seconds: 1.5)
        #expect(caller.status == 408 && caller.sawEnd && caller.receivedText.contains("problems/slow-body"))
        scene.end()
    }

    @Test func aFormMayComeInPieces() throws {
        let scene = try Scene(Self.stub)
        let form = "grant_type=password&username=u&password=p"
        let caller = scene.call(Self.post + "Content-Length: \(form.utf8.count)\r\n\r\n")
        for octet in form.utf8 {
            #expect(caller.status == nil)
            caller.send([octet])
            scene.settle()
        }
        #expect(caller.status == 200 && caller.receivedText.contains("access_token") && !caller.sawEnd)
        scene.end()
    }
}
