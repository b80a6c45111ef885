import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Connections that a caller authenticates serve that caller alone.
@Suite struct OwnedConnectionTests {
    private static let firstMessage = "Authorization: NTLM TlRMTVNTUAABAAAA\r\n"
    private static let lastMessage = "Authorization: NTLM TlRMTVNTUAADAAAA\r\n"
    private static let asked =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM TlRMTVNTUAACAAAA\r\nContent-Length: 0\r\n\r\n"

    private func answer(_ scene: Scene, _ index: Int, _ text: String = Wire.ok("x")) {
        scene.upstreams[index].send(text)
        scene.settle()
    }

    /// A caller that has authenticated the connection `index`.
    private func authenticated(_ scene: Scene, at index: Int) -> Peer {
        let caller = scene.call(Wire.get("/", Self.firstMessage))
        #expect(scene.upstreams.count == index + 1)
        answer(scene, index, Self.asked)
        caller.send(Wire.get("/", Self.lastMessage))
        scene.settle()
        answer(scene, index)
        return caller
    }

    @Test func aHandshakeStaysOnItsConnectionAndNobodyElseGetsThere() throws {
        let scene = try Scene(Plans.open())
        let first = authenticated(scene, at: 0)
        let second = scene.call(Wire.get("/second"))
        #expect(scene.upstreams.count == 2 && scene.upstreams[1].receivedText.contains("GET /second "))
        answer(scene, 1)
        // Without a credential from here on, as browsers send it.
        first.send(Wire.get("/first"))
        scene.settle()
        #expect(scene.upstreams[0].receivedText.contains("GET /first "))
        answer(scene, 0)
        #expect(first.receivedText.split(separator: "200 OK").count == 3 && second.status == 200)
        scene.end()
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var request = ""
        var answer = ""
        var route = ""
        var isOwned = false
        var testDescription: String { "\(request)|\(answer)|\(route)".filter { !$0.isNewline } }
    }

    static let cases = [
        Case(request: "Authorization: NTLM abc=\r\n", isOwned: true),
        Case(request: "Authorization: ntlm\r\n", isOwned: true),
        Case(request: "authorization:Negotiate YII=\r\n", isOwned: true),
        Case(request: "Authorization: Basic YTpi\r\nAuthorization: Negotiate YII=\r\n", isOwned: true),
        Case(request: "Authorization: NTLMv2 abc=\r\n"),
        Case(request: "Authorization: Basic bnRsbQ==\r\n"),
        Case(request: "X-Authorization: NTLM abc=\r\n"),
        // No route forwards it, so it authenticates nothing.
        Case(request: "Proxy-Authorization: NTLM abc=\r\n"),
        Case(answer: "WWW-Authenticate: NTLM\r\n"),
        Case(answer: "WWW-Authenticate: Negotiate, NTLM, Basic realm=\"ntlm a\"\r\n"),
        Case(answer: "WWW-Authenticate: NTLM abc=\r\n", isOwned: true),
        Case(
            answer: "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: Basic realm=\"a\", negotiate oYG=\r\n",
            isOwned: true),
        Case(answer: "WWW-Authenticate: Negotiate realm=\"a\"\r\n", isOwned: true),
        Case(answer: "Proxy-Authenticate: NTLM abc=\r\n", isOwned: true),
        Case(answer: "X-Authenticate: NTLM abc=\r\n"),
        // More lines than are read: nobody knows what stands in the rest.
        Case(answer: String(repeating: "WWW-Authenticate: Basic realm=\"a\"\r\n", count: 16)),
        Case(answer: String(repeating: "WWW-Authenticate: Basic realm=\"a\"\r\n", count: 17), isOwned: true),
        // The caller's own credential is deleted here.
        Case(request: "Authorization: NTLM abc=\r\n", route: "headers: {remove: authorization}"),
        Case(answer: "WWW-Authenticate: NTLM abc=\r\n", route: "headers: {set: {Authorization: Basic YTpi}}"),
    ]

    @Test(arguments: cases) func whatGivesAnOwner(_ known: Case) throws {
        let scene = try Scene(Plans.open(known.route))
        let first = scene.call(Wire.get("/", known.request))
        answer(scene, 0, Wire.ok("x", known.answer))
        let second = scene.call(Wire.get())
        #expect(scene.upstreams.count == (known.isOwned ? 2 : 1))
        answer(scene, scene.upstreams.count - 1)
        #expect(first.status == 200 && second.status == 200)
        scene.end()
    }

    /// Its stream is one of many of a connection, which would be the owner of all.
    @Test(arguments: [true, false]) func nobodyOwnsWhatAStreamWasChallengedOn(hasData: Bool) throws {
        let scene = try Scene(Plans.open())
        let first = scene.call()
        first.send(HTTP2DeadlinesTests.preface + HTTP2DeadlinesTests.head(1, ends: true))
        scene.settle()
        answer(scene, 0, hasData ? Self.asked : Self.asked.replacing("NTLM TlRMTVNTUAACAAAA", with: "NTLM"))
        #expect(scene.upstreams[0].isClosed == hasData)
        first.send(HTTP2DeadlinesTests.head(3, ends: true))
        scene.settle()
        #expect(scene.upstreams.count == (hasData ? 2 : 1))
        answer(scene, scene.upstreams.count - 1)
        #expect(scene.idleUpstreams == 1)
        scene.end()
    }

    /// Beside a credential of ours in another field the caller's own one passes.
    @Test func anIdentityInAnotherFieldLeavesTheCallersCredential() throws {
        let scene = try Scene(Plans.fixed("inject: {header: X-Key}"))
        try scene.publish("k", generation: 1)
        _ = scene.call(Wire.get("/", Self.firstMessage))
        answer(scene, 0)
        _ = scene.call(Wire.get())
        #expect(scene.upstreams.count == 2)
        scene.end()
    }

    @Test func aValueThatBecomesAuthorizationCounts() throws {
        let scene = try Scene(
            Plans.fixed("inject: {header: X-Key, caller_value: {keep_as: Authorization}}"))
        try scene.publish("k", generation: 1)
        _ = scene.call(Wire.get("/", "X-Key: NTLM abc=\r\n"))
        #expect(scene.upstreams[0].receivedText.contains("Authorization: NTLM abc="))
        answer(scene, 0)
        _ = scene.call(Wire.get())
        #expect(scene.upstreams.count == 2)
        scene.end()
    }

    @Test func itEndsWithItsOwner() throws {
        let scene = try Scene(Plans.open())
        let caller = authenticated(scene, at: 0)
        #expect(!scene.upstreams[0].isClosed)
        caller.finish()
        scene.settle()
        #expect(scene.upstreams[0].isClosed)
        scene.end()
    }

    /// A place that a proxy's caller has named is no route's, and its connections are the caller's all the same.
    @Test func itEndsWithItsOwnerWhereverItLeads() throws {
        let scene = try Scene(
            "listeners:\n  l: {address: \"127.0.0.1:8080\", mode: forward_proxy, unmatched: tunnel}\nroutes:\n"
                + "  - {listen: l, to: \"http://a.test\", use: none, match: {host: a.test}}\n")
        func get(_ fields: String = "") -> String {
            "GET http://192.0.2.9/ HTTP/1.1\r\nHost: 192.0.2.9\r\n\(fields)\r\n"
        }
        let caller = scene.call(get(Self.firstMessage))
        try #require(scene.upstreams.count == 1)
        answer(scene, 0)
        let other = scene.call(get())
        try #require(scene.upstreams.count == 2)
        answer(scene, 1)
        #expect(caller.status == 200 && other.status == 200 && !scene.upstreams[0].isClosed)
        caller.finish()
        scene.settle()
        #expect(scene.upstreams[0].isClosed && !scene.upstreams[1].isClosed)
        scene.upstreams[1].finish()
        scene.settle()
        scene.end()
    }

    @Test func itEndsAfterTheIdleTimeout() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 3s}"))
        _ = authenticated(scene, at: 0)
        scene.pass(seconds: 2.5)
        #expect(!scene.upstreams[0].isClosed)
        scene.pass(seconds: 1)
        #expect(scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func aReloadThatTakesTheRouteAwayEndsIt() throws {
        let scene = try Scene(Plans.open())
        _ = authenticated(scene, at: 0)
        try scene.reload(Plans.open("timeouts: {idle: 7s}"))
        #expect(scene.upstreams[0].isClosed)
        scene.end()
    }

    /// At the bound the one that has waited the longest for its owner gives way, and not one in the middle of an exchange.
    @Test func theIdlestGivesWayToWhoWaits() throws {
        let scene = try Scene(Plans.open("limits: {connections: 3}"))
        let callers = (0..<3).map { authenticated(scene, at: $0) }
        let cells = scene.plan.metrics.upstreams[0]
        #expect(scene.count(cells.idle) == 3 && scene.count(cells.open) == 0)
        scene.pass(seconds: 1)
        // The first is busy, the third was used last.
        callers[0].send(Wire.get("/busy"))
        scene.settle()
        callers[2].send(Wire.get("/again"))
        scene.settle()
        answer(scene, 2)
        let fourth = scene.call(Wire.get("/fourth"))
        #expect(scene.upstreams.map(\.isClosed) == [false, true, false, false])
        answer(scene, 3)
        answer(scene, 0)
        #expect(fourth.status == 200)
        // Its owner goes on without it.
        callers[1].send(Wire.get("/other"))
        scene.settle()
        #expect(scene.upstreams[3].receivedText.contains("GET /other "))
        scene.end()
    }

    /// One that becomes idle while somebody waits for any connection is closed for that one.
    @Test func aWaiterIsServedWhenAnExchangeEnds() throws {
        let scene = try Scene(Plans.open("limits: {connections: 1}"))
        let first = scene.call(Wire.get("/", Self.firstMessage))
        let second = scene.call(Wire.get("/second"))
        #expect(scene.upstreams.count == 1)
        let cells = scene.plan.metrics.upstreams[0]
        #expect(scene.count(cells.waiting) == 1)
        answer(scene, 0)
        #expect(scene.upstreams[0].isClosed && scene.upstreams.count == 2)
        #expect(scene.count(cells.waiting) == 0 && scene.count(cells.open) == 1)
        answer(scene, 1)
        #expect(first.status == 200 && second.status == 200)
        scene.end()
    }

    /// More callers than connections: each handshake comes to its end before the next one begins.
    @Test func handshakesDoNotDisplaceOneAnother() throws {
        let scene = try Scene(Plans.open("limits: {connections: 1}"))
        let callers = (0..<3).map { _ in scene.call(Wire.get("/", Self.firstMessage)) }
        for index in 0..<3 {
            #expect(scene.upstreams.count == index + 1)
            answer(scene, index, Self.asked)
            scene.pass(seconds: 0.5)
            #expect(!scene.upstreams[index].isClosed)
            callers[index].send(Wire.get("/\(index)", Self.lastMessage))
            scene.settle()
            #expect(scene.upstreams[index].receivedText.contains("GET /\(index) "))
            answer(scene, index, Wire.ok("x", "WWW-Authenticate: Negotiate oYG=\r\n"))
            #expect(callers[index].receivedText.contains("200 OK"))
        }
        #expect(scene.upstreams.map(\.isClosed) == [true, true, false])
        scene.end()
    }

    /// Whoever does not go on with it is not waited for longer than a second, and not at all where nobody else may wait.
    @Test(arguments: [true, false]) func aHandshakeThatStopsGivesWay(mayWait: Bool) throws {
        let scene = try Scene(Plans.open("limits: {connections: 1, waiters: \(mayWait ? 4 : 0)}"))
        _ = scene.call(Wire.get("/", Self.firstMessage))
        answer(scene, 0, Self.asked)
        let second = scene.call(Wire.get("/second"))
        if mayWait {
            scene.pass(seconds: 0.9)
            #expect(!scene.upstreams[0].isClosed && scene.upstreams.count == 1)
            scene.pass(seconds: 0.2)
        }
        #expect(scene.upstreams[0].isClosed && scene.upstreams.count == 2)
        answer(scene, 1)
        #expect(second.status == 200)
        scene.end()
    }

    /// Who may wait for less gets it sooner.
    @Test func aWaiterGetsItWithinItsOwnTime() throws {
        let scene = try Scene(Plans.open("limits: {connections: 1}, timeouts: {connect: 1s}"))
        _ = scene.call(Wire.get("/", Self.firstMessage))
        answer(scene, 0, Self.asked)
        let second = scene.call(Wire.get("/second"))
        scene.pass(seconds: 0.6)
        #expect(scene.upstreams[0].isClosed && scene.upstreams.count == 2)
        answer(scene, 1)
        #expect(second.status == 200)
        scene.end()
    }

    /// Behind the second it has the time that every owned connection has.
    @Test func aHandshakeThatStopsEndsAfterTheIdleTimeout() throws {
        let scene = try Scene(Plans.open("timeouts: {idle: 3s}"))
        _ = scene.call(Wire.get("/", Self.firstMessage))
        answer(scene, 0, Self.asked)
        scene.pass(seconds: 1.5)
        scene.pass(seconds: 1)
        #expect(!scene.upstreams[0].isClosed)
        scene.pass(seconds: 1)
        #expect(scene.upstreams[0].isClosed)
        scene.end()
    }
}
