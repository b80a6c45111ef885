import HotCache
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Bodies that cannot be kept for a replay are held back until the upstream has shown that it takes the credential.
@Suite struct LargeBodyTests {
    private static let body = String(repeating: "0123456789", count: 300)
    private static let expecting = "on_rejected: {max_body: 1KiB, large_body: expect_continue}"
    private static let probing = "on_rejected: {max_body: 1KiB, large_body: probe_head}"

    private struct Play {
        let scene: Scene
        let caller: Peer
        let upstream: Peer
        let slot: Slot
    }

    private static func begin(_ route: String, request: String = Wire.post(body)) throws -> Play {
        let scene = try Scene(Plans.oauth(route))
        let slot = try scene.publish("Bearer old", generation: 1)
        let caller = scene.call(request)
        return Play(scene: scene, caller: caller, upstream: try #require(scene.upstreams.first), slot: slot)
    }

    private static func forwarded(_ token: String, framing: String = "Content-Length: 3000\r\n", expects: Bool = false)
        -> String
    {
        Wire.forwarded(
            "POST", "/", framing: framing
        ).replacing(
            "Via: 1.1 gate\r\n",
            with: "Authorization: \(token)\r\nVia: 1.1 gate\r\n" + (expects ? "Expect: 100-continue\r\n" : ""))
    }

    // MARK: - expect_continue

    @Test func theBodyFollowsTheWordToContinue() throws {
        let play = try Self.begin(Self.expecting)
        #expect(play.upstream.takeText() == Self.forwarded("Bearer old", expects: true))
        play.upstream.send("HTTP/1.1 100 Continue\r\n\r\n")
        play.scene.settle()
        #expect(play.upstream.takeText() == Self.body)
        play.upstream.send(Wire.ok("x"))
        play.scene.settle()
        // The caller had asked for no 100.
        #expect(play.caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    @Test func aServerThatSaysNothingGetsTheBodyAllTheSame() throws {
        let play = try Self.begin(Self.expecting)
        _ = play.upstream.takeText()
        play.scene.pass(seconds: 0.9)
        #expect(play.upstream.receivedCount == 0)
        play.scene.pass(seconds: 0.2)
        #expect(play.upstream.takeText() == Self.body)
        play.upstream.send(Wire.ok("x"))
        play.scene.settle()
        #expect(play.caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    @Test func aChallengeCostsNoBody() throws {
        let play = try Self.begin(Self.expecting)
        play.upstream.send(Wire.challenge)
        play.scene.settle()
        let report = try #require(play.scene.keeper.challenges.first)
        #expect(play.caller.receivedCount == 0)
        play.scene.publish("Bearer new", generation: 2, in: play.slot)
        play.scene.answer(try #require(report.ticket), .use(slot: play.slot, granted: 1))
        // Half a request was promised on the first connection.
        #expect(play.upstream.isClosed)
        let second = try #require(play.scene.upstreams.last)
        #expect(second.takeText() == Self.forwarded("Bearer new") + Self.body)
        second.send(Wire.ok("x"))
        play.scene.settle()
        #expect(play.caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    @Test func smallBodiesAreSentAtOnce() throws {
        let play = try Self.begin(Self.expecting, request: Wire.post("small"))
        #expect(play.upstream.takeText().hasSuffix("\r\n\r\nsmall"))
        play.scene.end()
    }

    @Test func aBodyWithoutLengthIsHeldBackToo() throws {
        let play = try Self.begin(Self.expecting, request: Wire.chunkedPost(["abc"]))
        #expect(
            play.upstream.takeText()
                == Self.forwarded("Bearer old", framing: "Transfer-Encoding: chunked\r\n", expects: true))
        play.upstream.send("HTTP/1.1 100 Continue\r\n\r\n")
        play.scene.settle()
        #expect(play.upstream.takeText() == "3\r\nabc\r\n0\r\n\r\n")
        play.scene.end()
    }

    // MARK: - probe_head

    @Test func aHeadGoesBeforeTheBody() throws {
        let play = try Self.begin(Self.probing)
        let head = Self.forwarded("Bearer old", framing: "").replacing("POST", with: "HEAD")
        #expect(play.upstream.takeText() == head)
        // Whatever it says, as long as it is no challenge; its length is of a body that does not come.
        play.upstream.send("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 9\r\n\r\n")
        play.scene.settle()
        #expect(play.scene.upstreams.count == 1, "the same connection")
        #expect(play.upstream.takeText() == Self.forwarded("Bearer old") + Self.body)
        play.upstream.send(Wire.ok("x"))
        play.scene.settle()
        #expect(play.caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    @Test func aChallengeToTheHeadIsAnsweredFirst() throws {
        let play = try Self.begin(Self.probing)
        _ = play.upstream.takeText()
        play.upstream.send("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 4\r\n\r\n")
        play.scene.settle()
        let report = try #require(play.scene.keeper.challenges.first)
        play.scene.publish("Bearer new", generation: 2, in: play.slot)
        play.scene.answer(try #require(report.ticket), .use(slot: play.slot, granted: 1))
        #expect(play.scene.upstreams.count == 1)
        #expect(play.upstream.takeText() == Self.forwarded("Bearer new") + Self.body)
        play.upstream.send(Wire.ok("x"))
        play.scene.settle()
        #expect(play.caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    /// A challenge of a realm too many: the caller gets the answer to its own request, not to ours.
    @Test func theAnswerToTheHeadIsNobodys() throws {
        let play = try Self.begin(Self.probing)
        _ = play.upstream.takeText()
        play.upstream.send("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 4\r\n\r\n")
        play.scene.settle()
        play.scene.answer(try #require(play.scene.keeper.challenges.first?.ticket), .pass)
        #expect(play.upstream.takeText() == Self.forwarded("Bearer old") + Self.body)
        play.upstream.send(Wire.challenge)
        play.scene.settle()
        play.scene.answer(try #require(play.scene.keeper.challenges.last?.ticket), .pass)
        #expect(play.caller.takeText() == Wire.challenge)
        play.scene.end()
    }
}
