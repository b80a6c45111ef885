import Glibc
import HotCache
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// The desk where its mailbox is full or its places are taken, and orders that come at an odd moment.
@Suite struct DeskEdgeTests {
    // MARK: - A keeper that takes nothing

    @Test func aRequestThatCannotBeParkedIsRefused() throws {
        let scene = try Scene(Plans.webgate())
        scene.keeper.isFull = true
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 1\r\n"))
        #expect(scene.data.desk.parked.isEmpty && scene.upstreams.isEmpty)
        scene.keeper.isFull = false
        let next = scene.call(Wire.get())
        #expect(next.receivedCount == 0 && scene.keeper.cold.count == 1)
        scene.end()
    }

    @Test func placesOfParkedRequestsAreBounded() throws {
        let scene = try Scene(Plans.webgate() + "limits: {waiters: 2}\n")
        let callers = (0..<3).map { _ in scene.call(Wire.get()) }
        #expect(callers.map(\.status) == [nil, nil, 503] && scene.keeper.cold.count == 2)
        callers[0].reset()
        scene.settle()
        #expect(scene.call(Wire.get()).receivedCount == 0 && scene.keeper.left.count == 1)
        scene.end()
    }

    /// A challenge finds the places taken by those who wait for the first token.
    @Test func aChallengeWithoutAPlaceIsRefused() throws {
        let route = "{listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", match: {path: "
        let scene = try Scene(
            "identities:\n  o: {oauth2: {token_url: \"https://i.example.com/t\", client_id: c, client_secret: env:V}}\n"
                + "  p: {static: {value: env:V}}\n"
                + "routes:\n  - \(route)/a/}, use: o}\n  - \(route)/b/}, use: p}\nlimits: {waiters: 1}\n")
        try scene.publish("Bearer old", generation: 1)
        let challenged = scene.call(Wire.get("/a/"))
        let waiting = scene.call(Wire.get("/b/"))
        #expect(waiting.receivedCount == 0 && scene.data.desk.waiters == 1)
        try #require(scene.upstreams.first).send(Wire.challenge)
        scene.settle()
        #expect(challenged.status == 503 && scene.keeper.challenges.isEmpty && waiting.receivedCount == 0)
        scene.end()
    }

    // MARK: - Orders

    @Test func anOrderForACallerThatLeftIsNobodys() throws {
        let scene = try Scene(Plans.webgate())
        let caller = scene.call(Wire.get())
        let ticket = try #require(scene.keeper.cold.first?.ticket)
        caller.reset()
        scene.settle()
        scene.answer(ticket, .bare(scout: true))
        #expect(scene.upstreams.isEmpty && scene.keeper.left == [ticket])
        scene.end()
    }

    /// A request that was never sent cannot pass its answer on.
    @Test func whatIsNoAnswerToAWaitIsAFault() throws {
        let scene = try Scene(Plans.fixed())
        let caller = scene.call(Wire.get())
        let slot = try #require(scene.plan.routes[0].slot)
        scene.data.desk.open(.settled(slot: slot, .pass))
        scene.settle()
        #expect(caller.status == 500 && scene.upstreams.isEmpty)
        scene.end()
    }

    /// Another token has the slot by now: without a key of its own there is nothing to ask for anew.
    @Test func aTokenThatIsGoneIsAFaultOrAskedForAnew() throws {
        let scene = try Scene(Plans.fixed())
        let caller = scene.call(Wire.get())
        let slot = try #require(scene.plan.routes[0].slot)
        scene.data.desk.open(.settled(slot: slot, .gone))
        scene.settle()
        #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 1\r\n"))
        scene.end()
        let learned = try Scene(Plans.webgate())
        let patient = learned.call(Wire.get())
        learned.answer(try #require(learned.keeper.cold.first?.ticket), .gone)
        #expect(patient.receivedCount == 0 && learned.keeper.cold.count == 2)
        learned.end()
    }

    // MARK: - What the loop hears of upstreams

    @Test func newsOfAnUpstreamThatIsGoneChangeNothing() throws {
        let scene = try Scene(Plans.open("addresses: [\"127.0.0.1:9001\", \"127.0.0.2:9001\"]"))
        let gone = try #require(scene.plan.upstreams.first)
        try scene.reload(Plans.open("addresses: [\"127.0.0.2:9001\", \"127.0.0.1:9001\"], timeouts: {connect: 1s}"))
        let address = try #require(SocketAddress(parsing: "127.0.0.1:9001"))
        scene.data.noteUnhealthy([address], of: gone)
        _ = (0..<2).map { _ in scene.call(Wire.get()) }
        #expect(Set(scene.upstreams.map { $0.address?.host }) == ["127.0.0.1", "127.0.0.2"])
        let now = try #require(scene.data.plan.upstreams.first)
        scene.data.noteUnhealthy([address], of: now)
        let before = scene.upstreams.count
        _ = (0..<4).map { _ in scene.call(Wire.get()) }
        #expect(scene.upstreams[before...].allSatisfy { $0.address?.host == "127.0.0.2" })
        scene.end()
    }

    // MARK: - Destinations of callers' choice

    private static let proxy = """
        listeners:
          edge: {address: "127.0.0.1:8080", mode: forward_proxy, unmatched: tunnel}
        routes:
          - {listen: edge, match: {host: api.test}, to: "http://127.0.0.1:9000", use: none}

        """

    private static func absolute(_ host: String) -> String { "GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n" }

    /// Destinations that nobody uses give way; where all are in use the next one is refused.
    @Test func openDestinationsAreBounded() throws {
        let scene = try Scene(Self.proxy)
        let callers = (0..<DataLoop.destinationLimit).map { place in
            scene.call(Self.absolute("203.0.113.\(place % 250):\(8000 + place / 250)"))
        }
        #expect(scene.upstreams.count == DataLoop.destinationLimit && callers.allSatisfy { $0.receivedCount == 0 })
        let refused = scene.call(Self.absolute("198.51.100.1"))
        #expect(refused.status == 503 && refused.receivedText.contains("Retry-After: 1\r\n"))
        // The eighth destination is free when its connection has ended.
        scene.upstreams[7].send(Wire.ok("x", "Connection: close\r\n"))
        scene.settle()
        #expect(callers[7].status == 200)
        _ = scene.call(Self.absolute("198.51.100.1"))
        #expect(scene.upstreams.count == DataLoop.destinationLimit + 1)
        #expect(scene.upstreams.last?.address?.host == "198.51.100.1")
        scene.end()
    }

    /// A reload ends what belongs to no route: idle connections at once, others with their exchange.
    @Test func aReloadLetsOpenDestinationsGo() throws {
        let scene = try Scene(Self.proxy)
        let (idle, busy) = (scene.call(Self.absolute("203.0.113.1")), scene.call(Self.absolute("203.0.113.2")))
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(idle.status == 200 && !scene.upstreams[0].isClosed)
        try scene.reload(Self.proxy)
        #expect(scene.upstreams[0].isClosed && !scene.upstreams[1].isClosed)
        scene.upstreams[1].send(Wire.ok("y"))
        scene.settle()
        #expect(busy.takeText().hasSuffix("\r\n\r\ny") && scene.upstreams[1].isClosed)
        scene.end()
    }

    /// Callers of a listener that is gone are told so, over HTTP/2 as over HTTP/1.1.
    @Test func aListenerThatIsGoneLetsItsCallersGo() throws {
        let scene = try Scene(Plans.open())
        let modern = scene.call()
        modern.send(Frames.preface + Frames.frame(1, 5, 1, [0x82, 0x84, 0x86, 0x01, 9] + Array("localhost".utf8)))
        scene.settle()
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(Frames.read(modern.take()).contains { $0.type == 1 && $0.stream == 1 })
        try scene.reload(Plans.open().replacing("127.0.0.1:8080", with: "127.0.0.1:8081"))
        #expect(Frames.read(modern.take()).contains { $0.type == 7 })
        scene.pass(seconds: 3)
        #expect(modern.isClosed)
        scene.end()
    }

    // MARK: - Callers of a unix socket

    /// The kernel of tests says that every caller is user 1000.
    @Test(arguments: [("\"1000\"", 200), ("[\"0\", \"1000\"]", 200), ("\"0\"", 403)])
    func usersOfASocketAreAdmittedByTheirNumber(users: String, status: Int) throws {
        let scene = try Scene(
            "routes: [{listen: \"unix:/run/x.sock\", to: \"http://127.0.0.1:9000\", use: none, "
                + "callers: {unix_users: \(users)}}]\n"
        )
        let caller = scene.call(Wire.get())
        if status == 200 { try #require(scene.upstreams.first).send(Wire.ok()) }
        scene.settle()
        #expect(caller.status == status && scene.upstreams.count == (status == 200 ? 1 : 0))
        scene.end()
    }

    /// A token that should be renewed is served on, and asked for again when the mailbox has room.
    @Test func aRenewalThatCouldNotBeAskedForIsAskedForAgain() throws {
        let scene = try Scene(Plans.oauth())
        let slot = try #require(scene.plan.routes[0].slot)
        let end = scene.kernel.clock + 100_000_000_000
        scene.cache.publish(
            slot: slot,
            record: RecordFields(refreshAt: scene.kernel.clock, servedUntil: end, expiresAt: end, generation: 1),
            bytes: Array("Authorization: Bearer t\r\n".utf8))
        scene.keeper.isFull = true
        for _ in 0..<2 {
            let caller = scene.call(Wire.get())
            let upstream = try #require(scene.upstreams.first)
            #expect(upstream.takeText().contains("Bearer t"))
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.status == 200)
        }
        scene.keeper.isFull = false
        func asked() -> Int {
            scene.keeper.reports.count { if case .refreshDue(slot, 1) = $0 { true } else { false } }
        }
        _ = scene.call(Wire.get())
        #expect(asked() == 1)
        // Once is enough.
        _ = scene.call(Wire.get())
        #expect(asked() == 1)
        scene.end()
    }
}
