import Handshakes
import HotCache
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests
@testable import Telemetry

/// Records of exchanges, and orders of the keeper, that a loop seldom has.
@Suite struct LoopRecordTests {
    private static func access(of scene: Scene) throws -> AccessRecord {
        let ring = try #require(scene.data.access)
        var found: AccessRecord?
        #expect(ring.next { found = copy $0 })
        return try #require(found)
    }

    private static func traces(of scene: Scene) throws -> [ExchangeTrace] {
        let ring = try #require(scene.data.traces)
        var records: [ExchangeTrace] = []
        while ring.next({ records.append(copy $0) }) {}
        return records
    }

    private static let all = "log: {access: all}\n"
    private static let tracing = "tracing: {ratio: 100%}\n"

    // MARK: - Access records

    @Test(arguments: [("1.0", LogProtocol.http10), ("1.1", .http11)])
    func theCallersVersionIsRecorded(version: String, expected: LogProtocol) throws {
        let scene = try Scene(Plans.open() + Self.all, logsAccess: true)
        _ = scene.call("GET /a HTTP/\(version)\r\nHost: localhost\r\n\r\n")
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        let record = try Self.access(of: scene)
        #expect(record.callerProtocol == expected && record.upstreamProtocol == .http11 && record.status == 200)
        scene.end()
    }

    /// A caller whose address the kernel does not say has none in its record.
    @Test func aCallerWithoutAnAddressIsRecordedWithoutOne() throws {
        let scene = try Scene(
            "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none, "
                + "callers: {unsafe_open: true}}\n" + Self.all, logsAccess: true)
        let (descriptor, caller) = scene.kernel.pair()
        scene.data.admit(descriptor, from: nil, listener: scene.plan.listeners[0])
        caller.send(Wire.get())
        scene.settle()
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        let record = try Self.access(of: scene)
        #expect(record.caller == LogAddress() && record.upstream != LogAddress())
        caller.reset()
        scene.end()
    }

    // MARK: - Spans

    /// The head of a tunnel's request is gone when the tunnel ends.
    @Test func aTunnelLeavesItsMethod() throws {
        let scene = try Scene(Plans.open() + Self.tracing, exportsSpans: true)
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        scene.settle()
        caller.send(String(repeating: "z", count: 4096))
        scene.settle()
        #expect(try Self.traces(of: scene).isEmpty)
        caller.reset()
        scene.settle()
        let record = try #require(Self.traces(of: scene).first)
        #expect(record.method == .get && record.status == 101 && record.isSampled)
        scene.end()
    }

    @Test func aFaultIsNamedInItsSpan() throws {
        let scene = try Scene(Plans.open() + Self.tracing, exportsSpans: true)
        scene.kernel.connectPlan = { _ in .failed(111) }
        let caller = scene.call(Wire.get())
        #expect(caller.status == 502)
        let record = try #require(Self.traces(of: scene).first)
        #expect(record.status == 502 && record.isFailed && record.fault != 0)
        #expect(record.fault == scene.plan.faultNames[.upstreamRefused])
        scene.end()
    }

    /// A request that met no route has nothing that it could be a span of.
    @Test func aRequestWithoutARouteLeavesNoSpan() throws {
        let scene = try Scene(Plans.open("match: {path: /here/}") + Self.tracing, exportsSpans: true)
        #expect(scene.call("GET / HTTP/9.9\r\nHost: localhost\r\n\r\n").status == 505)
        #expect(try Self.traces(of: scene).isEmpty)
        scene.end()
    }

    /// A grant's span points at the requests that wait for it, those that the keeper knows one by one, too.
    @Test func aParkedWaitIsToldBeforeItsReport() throws {
        let scene = try Scene(Plans.webgate() + Self.tracing, exportsSpans: true)
        _ = scene.call(Wire.get())
        let ticket = try #require(scene.keeper.cold.first?.ticket)
        #expect(scene.keeper.traced.map(\.place) == [.ticket(ticket)])
        if case .traced? = scene.keeper.reports.first {} else { Issue.record("the wait was reported before its span") }
        scene.end()
    }

    /// A reload that takes tracing up finds the loop's ring among those of all loops.
    @Test func aReloadKeepsWritingSpans() throws {
        let scene = try Scene(Plans.open() + Self.tracing, exportsSpans: true)
        let ring = try #require(scene.data.traces)
        scene.data.take(
            NextPlan(plan: scene.plan, metrics: [scene.data.metrics], traces: [ring], census: nil), sockets: [:])
        _ = scene.call(Wire.get())
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(try Self.traces(of: scene).map(\.status) == [200])
        // Without a ring nothing is left any more.
        scene.data.take(NextPlan(plan: scene.plan, metrics: [scene.data.metrics], census: nil), sockets: [:])
        #expect(scene.data.traces == nil)
        scene.end()
    }

    // MARK: - Orders

    /// A challenge that is answered with a line for one request alone: it goes out with that line.
    @Test func aChallengeIsAnsweredWithALineForOneRequest() throws {
        let scene = try Scene(Plans.oauth())
        try scene.publish("Bearer old", generation: 1)
        let caller = scene.call(Wire.get())
        scene.upstreams[0].discard()
        scene.upstreams[0].send(Wire.challenge)
        scene.settle()
        let ticket = try #require(scene.keeper.challenges.first?.ticket)
        scene.answer(ticket, .once(Secret("Authorization: Bearer once\r\n")))
        let upstream = try #require(scene.upstreams.last)
        #expect(upstream.receivedText.contains("\r\nAuthorization: Bearer once\r\n"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// A refusal that is final stands for requests that were not sent yet, too.
    @Test func aFinalRefusalReachesWhoWaits() throws {
        let scene = try Scene(Plans.webgate())
        let caller = scene.call(Wire.get())
        scene.answer(try #require(scene.keeper.cold.first?.ticket), .final)
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-refused-credential"))
        #expect(scene.upstreams.isEmpty)
        scene.end()
    }

    /// The resource of a challenge is the URL as the upstream sees it, or as the caller does.
    @Test func aChallengedResourceIsNamedAsConfigured() throws {
        let stripped = try Scene(Plans.fixed("rewrite: {strip_prefix: /billing}"))
        try stripped.publish("t", generation: 1)
        _ = stripped.call(Wire.get("/billing"))
        stripped.upstreams[0].send(Wire.challenge)
        stripped.settle()
        #expect(stripped.keeper.challenges.map(\.challenge.resource) == ["http://127.0.0.1:9000/"])
        stripped.end()
        let caller = Plans.webgate().split(separator: "password: env:V").joined(
            separator: "password: env:V, resource_url: caller")
        let clear = try Scene(caller)
        _ = clear.call(Wire.get("/a?b"))
        try challenge(clear)
        #expect(clear.keeper.challenges.map(\.challenge.resource) == ["http://localhost/a?b"])
        clear.end()
    }

    /// What a WebGate is asked for is the address that its browser-like caller would see.
    @Test func aChallengedResourceUnderTLSIsNamedSo() throws {
        let identity =
            "identities: {w: {oam_webgate: {service: \"https://i.example.com/s\", user_agent_prefix: P, "
            + "client_id: c, username: u, password: env:V, resource_url: caller}}}\n"
        let open = try ArrivalTests.secure("hosts: [good.test]")
        let listener = open.split(separator: "use: none").joined(separator: "use: w")
        let scene = try Scene(identity + listener)
        let caller = try SecureCaller(scene, scene.call())
        #expect(caller.shake() == .done && caller.send("GET /a HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        try challenge(scene)
        #expect(scene.keeper.challenges.map(\.challenge.resource) == ["https://good.test/a"])
        scene.end()
    }

    /// The keeper lets the request out to see what its upstream says.
    private func challenge(_ scene: Scene) throws {
        scene.answer(try #require(scene.keeper.cold.first?.ticket), .bare(scout: true))
        try #require(scene.upstreams.first).send(Wire.oamChallenge)
        scene.settle()
    }

    @Test func anOrderForASlotThatNobodyWaitsForIsNobodys() throws {
        let scene = try Scene(Plans.fixed())
        let slot = try scene.publish("t", generation: 1)
        scene.data.desk.open(.settled(slot: slot, .use(slot: slot, granted: 1)))
        scene.settle()
        #expect(scene.upstreams.isEmpty && scene.data.desk.waiters == 0)
        _ = scene.call(Wire.get())
        #expect(try #require(scene.upstreams.first).receivedText.contains("Authorization: t\r\n"))
        scene.end()
    }
}
