import HotCache
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Scenes

/// Challenges, verdicts and second tries, with the keeper played by the test.
@Suite struct ReplayTests {
    private static func authorized(
        _ token: String, _ method: String = "GET", framing: String = "", body: String = ""
    ) -> String {
        "\(method) / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nAuthorization: \(token)\r\nVia: 1.1 gate\r\n\(framing)\r\n\(body)"
    }

    private static func body(_ count: Int) -> String { String(repeating: "0123456789", count: count / 10) }

    @Test func aHitIsSentAtOnce() throws {
        let scene = try Scene(Plans.fixed())
        try scene.publish("t1", generation: 1)
        let caller = scene.call(Wire.get("/", "Authorization: mine\r\nAuthorization_: x\r\n"))
        #expect(
            scene.upstreams[0].takeText()
                == "GET / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nAuthorization_: x\r\nAuthorization: t1\r\nVia: 1.1 gate\r\n\r\n"
        )
        scene.upstreams[0].send(Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("a") && scene.keeper.reports.isEmpty)
        scene.end()
    }

    /// One mail for all who wait, one answer for all of them.
    @Test func aMissIsAskedForOnce() throws {
        let scene = try Scene(Plans.fixed())
        let callers = (0..<5).map { _ in scene.call(Wire.get()) }
        #expect(scene.keeper.needed == 1 && scene.data.desk.waiters == 5 && scene.upstreams.isEmpty)
        let slot = try scene.publish("t1", generation: 1)
        scene.data.desk.open(.settled(slot: slot, .use(slot: slot, granted: 0)))
        scene.settle()
        #expect(scene.upstreams.count == 5 && scene.data.desk.waiters == 0)
        for upstream in scene.upstreams {
            #expect(upstream.takeText() == Self.authorized("t1"))
            upstream.send(Wire.ok())
        }
        scene.settle()
        for caller in callers { #expect(caller.takeText() == Wire.ok()) }
        scene.end()
    }

    @Test func aMissThatCannotBeHadIsAFault() throws {
        let scene = try Scene(Plans.fixed())
        let callers = (0..<3).map { _ in scene.call(Wire.get()) }
        let slot = try #require(scene.plan.routes[0].slot)
        scene.data.desk.open(.settled(slot: slot, .fault(Fault(.issuerUnavailable, retryAfter: 7))))
        scene.settle()
        for caller in callers {
            #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 7\r\n"))
            #expect(!caller.sawEnd)
        }
        scene.end()
    }

    /// The token left the cache while the connection was made: it is asked for again, and nothing was sent.
    @Test func aTokenMayExpireWhileConnecting() throws {
        let scene = try Scene(Plans.fixed())
        scene.kernel.connectPlan = { _ in .silent }
        let slot = try scene.publish("t1", generation: 1, seconds: 2)
        let caller = scene.call(Wire.get())
        scene.pass(seconds: 3)
        scene.kernel.connectPlan = { _ in .accepted }
        scene.upstreams[0].accept()
        scene.settle()
        #expect(scene.upstreams[0].receivedCount == 0 && scene.keeper.needed == 1)
        try scene.publish("t2", generation: 2)
        scene.data.desk.open(.settled(slot: slot, .use(slot: slot, granted: 0)))
        scene.settle()
        #expect(scene.upstreams.last?.takeText() == Self.authorized("t2"))
        scene.upstreams.last?.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    /// The keeper renews the token while the connection is made: what is sent is the newer one, and is reported as such.
    @Test func theGenerationThatWasSentIsReported() throws {
        let scene = try Scene(Plans.fixed())
        scene.kernel.connectPlan = { _ in .silent }
        try scene.publish("t1", generation: 1)
        _ = scene.call(Wire.get())
        try scene.publish("t2", generation: 2)
        scene.upstreams[0].accept()
        scene.settle()
        #expect(scene.upstreams[0].takeText() == Self.authorized("t2"))
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        #expect(scene.keeper.challenges.first?.sent?.generation == 2)
        scene.end()
    }

    @Test func aFullMailboxIsSaidSo() throws {
        let scene = try Scene(Plans.fixed())
        scene.keeper.isFull = true
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503 && scene.data.desk.waiters == 0)
        try scene.publish("t1", generation: 1)
        let other = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        #expect(other.status == 503 && scene.data.desk.parked.isEmpty)
        scene.end()
    }

    @Test func waitersAreBounded() throws {
        let scene = try Scene(Plans.fixed() + "limits: {waiters: 2}\n")
        let callers = (0..<4).map { _ in scene.call(Wire.get()) }
        #expect(callers.map(\.status) == [nil, nil, 503, 503])
        callers[0].reset()
        scene.settle()
        #expect(scene.call(Wire.get()).receivedCount == 0, "a place is free again")
        scene.end()
    }

    // MARK: - Verdicts

    /// A request with a challenge in the hands of the keeper.
    private func parked(
        _ request: String = Wire.get(), route: String = ""
    ) throws -> (scene: Scene, caller: Peer, slot: Slot, ticket: Ticket) {
        let scene = try Scene(Plans.fixed(route))
        let slot = try scene.publish("t1", generation: 1)
        let caller = scene.call(request)
        scene.upstreams[0].discard()
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        #expect(report.sent?.generation == 1 && report.sent?.slot == slot && !report.isReplay && report.scout == nil)
        #expect(report.method == Array(request.prefix { $0 != " " }.utf8) && report.path == [0x2f])
        #expect(caller.receivedCount == 0)
        return (scene, caller, slot, try #require(report.ticket))
    }

    enum Load: String, CaseIterable, Sendable {
        case none, short, chunks, noChunks, long, longChunks

        var request: String {
            switch self {
            case .none: Wire.get()
            case .short: Wire.post("hello")
            case .chunks: Wire.chunkedPost(["hel", "lo"])
            case .noChunks: Wire.chunkedPost([], method: "PUT")
            case .long: Wire.post(body(40_000))
            case .longChunks: Wire.chunkedPost([body(30_000), body(30_000)])
            }
        }
    }

    @Test(arguments: Load.allCases)
    func aReplayIsTheRequestAgain(_ load: Load) throws {
        let request = load.request
        let (scene, caller, slot, ticket) = try parked(request)
        try scene.publish("t2", generation: 2)
        scene.answer(ticket, .use(slot: slot, granted: 1))
        #expect(scene.upstreams.count == 1, "the held answer was read to its end, so its connection carries the replay")
        let again = scene.upstreams[0].takeText()
        if let sent = Wire.unchunked(again), request.contains("chunked") {
            #expect(
                sent.head
                    == Self.authorized(
                        "t2", "P" + sent.head.dropFirst().prefix { $0 != " " },
                        framing: "Transfer-Encoding: chunked\r\n"))
            #expect(sent.body == Wire.unchunked(request)?.body)
        } else {
            let body = request.split(separator: "\r\n\r\n", maxSplits: 1).dropFirst().joined()
            #expect(
                again
                    == Self.authorized(
                        "t2", body.isEmpty ? "GET" : "POST",
                        framing: body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n", body: body))
        }
        scene.upstreams[0].send(Wire.ok("at last"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("at last") && !caller.sawEnd)
        #expect(scene.keeper.challenges.count == 1)
        scene.end()
    }

    /// The rest of the body comes while the request is parked: it waits, and goes with the replay.
    @Test func aReplayMayBeginBeforeTheBodyIsThere() throws {
        let (scene, caller, slot, ticket) = try parked(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\nfirst,")
        caller.send(String(Self.body(20_000).prefix(20_000 - 6)))
        scene.settle()
        #expect(caller.unread > 0)
        try scene.publish("t2", generation: 2)
        scene.answer(ticket, .use(slot: slot, granted: 1))
        #expect(scene.upstreams.count == 2 && scene.upstreams[0].isClosed, "the first still waits for its body")
        #expect(
            scene.upstreams[1].takeText()
                == Self.authorized(
                    "t2", "POST", framing: "Content-Length: 20000\r\n",
                    body: "first," + Self.body(20_000).prefix(20_000 - 6)))
        scene.upstreams[1].send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    @Test func aSecondRefusalIsTheLast() throws {
        let (scene, caller, slot, ticket) = try parked()
        try scene.publish("t2", generation: 2)
        scene.answer(ticket, .use(slot: slot, granted: 2))
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        // Not before the keeper has this token out of service too.
        #expect(caller.receivedCount == 0)
        let report = try #require(scene.keeper.challenges.last)
        #expect(scene.keeper.challenges.count == 2 && report.isReplay && report.justGranted && report.isFinal)
        #expect(report.sent?.generation == 2)
        scene.answer(try #require(report.ticket), .pass)
        #expect(caller.status == 502 && caller.receivedText.contains("received-status=401") && !caller.sawEnd)
        scene.end()
    }

    @Test(arguments: [false, true])
    func finalIsWhatTheRouteSays(passes: Bool) throws {
        let (scene, caller, _, ticket) = try parked(route: passes ? "on_rejected: {final: pass}" : "")
        scene.answer(ticket, .final)
        if passes {
            #expect(caller.takeText() == Wire.challenge)
        } else {
            #expect(caller.status == 502 && caller.receivedText.contains("upstream-refused-credential"))
            #expect(!caller.receivedText.contains("no!"))
        }
        #expect(!caller.sawEnd)
        scene.end()
    }

    @Test func passIsTheAnswerAsReceived() throws {
        let (scene, caller, _, ticket) = try parked()
        scene.answer(ticket, .pass)
        #expect(caller.takeText() == Wire.challenge && !caller.sawEnd && scene.idleUpstreams == 1)
        scene.end()
    }

    @Test func aFaultTakesTheAnswersPlace() throws {
        let (scene, caller, _, ticket) = try parked()
        scene.answer(ticket, .fault(Fault(.quarantined)))
        #expect(caller.status == 503 && scene.upstreams[0].isClosed && !caller.sawEnd)
        scene.end()
    }

    @Test func aVerdictThatDoesNotComeIsATimeout() throws {
        let (scene, caller, slot, ticket) = try parked()
        scene.pass(seconds: 11.1)
        #expect(caller.status == 504 && scene.keeper.left == [ticket])
        scene.answer(ticket, .use(slot: slot, granted: 1))
        #expect(scene.upstreams.count == 1, "too late")
        scene.end()
    }

    /// Other requests use the loop's scratch heads while this one is parked.
    @Test func aParkedRequestKeepsItsHead() throws {
        let (scene, caller, slot, ticket) = try parked(Wire.get("/", "X-Mine: 1\r\n"))
        let other = scene.call(Wire.post("other", "X-Other: 1\r\n"))
        scene.upstreams[1].send(Wire.ok("other", "X-Other: 2\r\n"))
        scene.settle()
        #expect(other.status == 200)
        try scene.publish("t2", generation: 2)
        scene.answer(ticket, .use(slot: slot, granted: 1))
        #expect(
            scene.upstreams.contains {
                $0.receivedText
                    == "GET / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nX-Mine: 1\r\nAuthorization: t2\r\nVia: 1.1 gate\r\n\r\n"
            })
        _ = caller
        scene.end()
    }

    // MARK: - No replay

    struct NoReplay: Sendable, CustomTestStringConvertible {
        var request: String
        var route: String
        var testDescription: String { "\(request.prefix { $0 != "/" })\(request.utf8.count) bytes, \(route)" }
    }

    /// The caller gets the challenge, and the keeper hears of it all the same.
    @Test(arguments: [
        NoReplay(request: Wire.get(), route: "on_rejected: {replay: never}"),
        NoReplay(request: Wire.post("x"), route: "on_rejected: {methods: [GET]}"),
        NoReplay(request: Wire.post(body(60_000)), route: "on_rejected: {max_body: 20KiB}"),
        NoReplay(request: Wire.chunkedPost([body(30_000), body(30_000)]), route: "on_rejected: {max_body: 20KiB}"),
    ])
    func whatCannotBeSentAgainIsAnswered(_ row: NoReplay) throws {
        let scene = try Scene(Plans.fixed(row.route))
        try scene.publish("t1", generation: 1)
        let caller = scene.call(row.request)
        let sent = scene.upstreams[0].takeText()
        if let body = Wire.unchunked(row.request)?.body, row.request.contains("chunked") {
            #expect(Wire.unchunked(sent)?.body == body)
        } else {
            #expect(
                sent.split(separator: "\r\n\r\n").last == row.request.split(separator: "\r\n\r\n").last
                    || !sent.hasPrefix("POST"))
        }
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        // Not before the keeper has the refused token out of service: the caller's next request would go out with it.
        #expect(caller.receivedCount == 0 && scene.keeper.challenges.count == 1)
        #expect(scene.keeper.challenges[0].isFinal)
        scene.answer(try #require(scene.keeper.challenges[0].ticket), .pass)
        #expect(caller.takeText() == Wire.challenge && !caller.sawEnd)
        scene.end()
    }

    @Test func aKeeperThatDoesNotHearHoldsBackNoAnswer() throws {
        let scene = try Scene(Plans.fixed("on_rejected: {replay: never}"))
        try scene.publish("t1", generation: 1)
        let caller = scene.call(Wire.get())
        scene.keeper.isFull = true
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        #expect(caller.takeText() == Wire.challenge && !caller.sawEnd)
        scene.keeper.isFull = false
        let other = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        #expect(other.receivedCount == 0)
        scene.pass(seconds: 60)
        #expect(other.takeText() == Wire.challenge && !other.sawEnd)
        scene.end()
    }

    /// With no place to wait left, what is not sent again is answered at once, and the keeper hears of the token all the same.
    @Test func aRefusalBeyondTheBoundIsReported() throws {
        let scene = try Scene(Plans.fixed("on_rejected: {replay: never}") + "limits: {waiters: 1}\n")
        try scene.publish("t1", generation: 1)
        let first = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        #expect(first.receivedCount == 0)
        let second = scene.call(Wire.get())
        scene.upstreams[1].send(Wire.challenge)
        scene.settle()
        #expect(second.takeText() == Wire.challenge && scene.keeper.challenges.count == 2)
        let report = try #require(scene.keeper.challenges.last)
        #expect(report.ticket == nil && report.sent?.generation == 1)
        scene.answer(try #require(scene.keeper.challenges[0].ticket), .pass)
        #expect(first.takeText() == Wire.challenge)
        scene.end()
    }

    // MARK: - Stale connections

    /// A second request over the connection that the first one left idle.
    private func stale(_ request: String, plan: String = Plans.open()) throws -> (Scene, Peer) {
        let scene = try Scene(plan)
        if plan != Plans.open() { try scene.publish("t1", generation: 1) }
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        caller.discard()
        scene.upstreams[0].discard()
        caller.send(request)
        scene.settle()
        #expect(scene.upstreams.count == 1 && scene.upstreams[0].receivedCount > 0)
        return (scene, caller)
    }

    @Test(arguments: [LossTests.End.reset, .finish], [Wire.get(), Wire.chunkedPost([], method: "PUT")])
    func aStaleConnectionIsTriedAgainOnce(_ end: LossTests.End, _ request: String) throws {
        let (scene, caller) = try stale(request, plan: Plans.fixed())
        let first = scene.upstreams[0].takeText()
        if end == .finish { scene.upstreams[0].finish() } else { scene.upstreams[0].reset() }
        scene.settle()
        #expect(scene.upstreams.count == 2 && scene.upstreams[1].takeText() == first)
        scene.upstreams[1].send(Wire.ok("b"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("b"))
        scene.end()
    }

    @Test func aRetryThatIsLostIsTheLast() throws {
        let (scene, caller) = try stale(Wire.get())
        scene.upstreams[0].finish()
        scene.settle()
        scene.upstreams[1].finish()
        scene.settle()
        #expect(scene.upstreams.count == 2 && caller.status == 502)
        scene.end()
    }

    @Test(arguments: [Wire.post("x"), Wire.post(""), "PATCH / HTTP/1.1\r\nHost: localhost\r\n\r\n"])
    func whatMayNotBeRepeatedIsNot(_ request: String) throws {
        let (scene, caller) = try stale(request, plan: Plans.fixed())
        scene.upstreams[0].finish()
        scene.settle()
        #expect(scene.upstreams.count == 1 && caller.status == 502)
        scene.end()
    }

    @Test func aBodyThatIsGoneIsNotRepeated() throws {
        // Without an identity nothing is kept for a replay.
        let (scene, caller) = try stale(Wire.chunkedPost(["x"], method: "PUT"))
        scene.upstreams[0].finish()
        scene.settle()
        #expect(scene.upstreams.count == 1 && caller.status == 502)
        scene.end()
    }

    /// The write itself finds the connection dead.
    @Test func aDeadConnectionIsTriedAgain() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        caller.discard()
        scene.upstreams[0].failWrites([32])
        caller.send(Wire.get())
        scene.settle()
        #expect(scene.upstreams.count == 2 && scene.upstreams[0].isClosed)
        scene.upstreams[1].send(Wire.ok("b"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("b"))
        scene.end()
    }

    @Test func anAnswerThatBrokeOffIsNotAskedForAgain() throws {
        let (scene, caller) = try stale(Wire.get())
        scene.upstreams[0].send("HTTP/1.1 200 OK\r\nContent-")
        scene.settle()
        scene.upstreams[0].finish()
        scene.settle()
        #expect(scene.upstreams.count == 1 && caller.status == 502)
        scene.end()
    }
}
