import HotCache
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Scenes
@testable import Tokens

/// A route driven by challenges: cold keys, the scout and those who wait for it.
@Suite struct ScoutTests {
    private func cold(_ request: String = Wire.get("/a")) throws -> (Scene, Peer, ParkedRequest) {
        let scene = try Scene(Plans.webgate())
        let caller = scene.call(request)
        let parked = try #require(scene.keeper.cold.first)
        #expect(scene.upstreams.isEmpty && scene.data.desk.parked.count == 1)
        return (scene, caller, parked)
    }

    @Test func aColdRequestIsReported() throws {
        let (scene, _, parked) = try cold()
        #expect(parked.path == Array("/a".utf8) && parked.method == Array("GET".utf8))
        #expect(parked.isReplayable && parked.isSafe && parked.route == 0 && parked.slot == nil)
        scene.end()
        #expect(scene.keeper.left == [parked.ticket])
    }

    @Test(arguments: [(Wire.post("x"), true, false), ("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", true, true)])
    func whoMayScoutIsSaid(_ request: String, isReplayable: Bool, isSafe: Bool) throws {
        let (scene, _, parked) = try cold(request)
        #expect(parked.isReplayable == isReplayable && parked.isSafe == isSafe)
        scene.end()
    }

    @Test func theScoutsChallengeComesBackAsAReplay() throws {
        let (scene, caller, parked) = try cold()
        scene.answer(parked.ticket, .bare(scout: true))
        let upstream = try #require(scene.upstreams.first)
        let sent = upstream.takeText()
        #expect(sent.contains("User-Agent: P") && !sent.lowercased().contains("authorization"))
        upstream.send(Wire.oamChallenge)
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        #expect(report.scout == parked.ticket && report.sent == nil && report.challenge.realm == "WG")
        let slot = try #require(scene.cache.allocateSlot())
        scene.publish("OAM-Auth t1", generation: 5, in: slot)
        scene.answer(try #require(report.ticket), .use(slot: slot, granted: 1))
        #expect(scene.upstreams.count == 1 && upstream.takeText().contains("Authorization: OAM-Auth t1\r\n"))
        upstream.send(Wire.ok("in"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("in"))
        #expect(scene.keeper.scoutsFailed == [] && scene.keeper.foundOpen == [])
        scene.end()
    }

    @Test func anOpenPathIsReportedAndDelivered() throws {
        let (scene, caller, parked) = try cold()
        scene.answer(parked.ticket, .bare(scout: true))
        scene.upstreams[0].send(Wire.ok("open"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("open") && scene.keeper.foundOpen == [parked.ticket])
        scene.end()
        #expect(scene.keeper.scoutsFailed == [])
    }

    /// Whatever ends the scout without an answer, the keeper hears of it and can send the next.
    @Test(arguments: ["caller", "upstream", "connect", "timeout"])
    func aScoutThatFailsIsReported(_ way: String) throws {
        let (scene, caller, parked) = try cold()
        if way == "connect" { scene.kernel.connectPlan = { _ in .failed(111) } }
        scene.answer(parked.ticket, .bare(scout: true))
        switch way {
        case "caller": caller.reset()
        case "upstream": scene.upstreams[0].reset()
        case "timeout": scene.pass(seconds: 61)
        default: break
        }
        scene.settle()
        #expect(scene.keeper.scoutsFailed == [parked.ticket] && scene.keeper.foundOpen == [])
        if way != "caller" { #expect((caller.status ?? 0) >= 502) }
        scene.end()
        #expect(scene.keeper.scoutsFailed.count == 1)
    }

    /// Those who waited while the scout was out: without a credential where the path is open.
    @Test func theOthersGoOn() throws {
        let (scene, _, first) = try cold()
        let second = scene.call(Wire.get("/b"))
        let third = scene.call(Wire.get("/c"))
        #expect(scene.keeper.cold.count == 3)
        scene.answer(first.ticket, .bare(scout: true))
        #expect(scene.upstreams.count == 1)
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        scene.answer(scene.keeper.cold[1].ticket, .bare(scout: false))
        scene.answer(scene.keeper.cold[2].ticket, .fault(Fault(.issuerUnavailable, retryAfter: 1)))
        #expect(third.status == 503)
        #expect(scene.upstreams[0].takeText().contains("GET /b HTTP/1.1"))
        scene.upstreams[0].send(Wire.ok("b"))
        scene.settle()
        #expect(second.takeText() == Wire.ok("b") && scene.keeper.foundOpen == [first.ticket])
        scene.end()
    }

    /// The next in line is told to ask again, as a request of its own.
    @Test func aRequestMayBeSentBackIntoTheLine() throws {
        let (scene, caller, parked) = try cold()
        scene.answer(parked.ticket, .retry)
        #expect(scene.keeper.cold.count == 2 && scene.keeper.cold[1].ticket != parked.ticket)
        #expect(scene.data.desk.parked.count == 1 && caller.receivedCount == 0)
        scene.answer(parked.ticket, .bare(scout: true))
        #expect(scene.upstreams.isEmpty, "the old ticket is void")
        scene.answer(scene.keeper.cold[1].ticket, .bare(scout: false))
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    @Test func aSecretMayBeCarriedByOneRequest() throws {
        let (scene, caller, parked) = try cold()
        let slot = try #require(scene.cache.allocateSlot())
        scene.answer(
            parked.ticket, .carry(Secret("Authorization: Basic eA==\r\n"), slot: slot, generation: 3))
        #expect(scene.upstreams[0].takeText().contains("Authorization: Basic eA==\r\n"))
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }
}
