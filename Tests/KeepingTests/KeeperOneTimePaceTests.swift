import ScriptedKernel
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Credentials that are good for one request, as far as there is none: no resource, no login, a client that was refused, and an issuer that
/// takes only so many calls.
@Suite struct KeeperOneTimePaceTests {
    private typealias Adobe = KeeperOneTimeTests.Adobe
    private let adobe = Adobe()

    private func scene(
        _ yaml: String = KeeperOneTimeTests.plan(), store: MemoryStore? = MemoryStore(), loggedIn: Bool = true,
        events: EventLog? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, events: events)
        scene.issuer = adobe.answer
        scene.settle()
        guard loggedIn else { return scene }
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("p"), obtainedAt: keeper.now, lifetime: 3_600_000_000_000, isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        return scene
    }

    // MARK: - None to be had

    @Test func aRequestThatNamesNoResourceIsToldSo() throws {
        let scene = try scene()
        let caller = scene.call(Wire.get("/"))
        #expect(caller.receivedText.contains("problems/resource-missing") && caller.status.map { $0 >= 400 } == true)
        #expect(scene.issuerCalls.isEmpty && scene.upstreamCalls.isEmpty)
    }

    @Test func aMissingLoginIsToldToCallersAndOperators() throws {
        let events = try EventLog()
        let scene = try scene(loggedIn: false, events: events)
        #expect(scene.inKeeper { $0.status().identities[0].login?.word } == .needed)
        let caller = scene.call(Wire.get("/CH1"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/login-required"))
        #expect(adobe.media == 0 && scene.upstreamCalls.isEmpty)
        #expect(events.takeTold().contains("login needed identity=tv advice=run: cardea login tv"))
    }

    @Test func anIssuerThatIsDownIsComeBackTo() throws {
        let scene = try scene()
        adobe.fails = Wire.unavailable
        let caller = scene.call(Wire.get("/CH1"))
        #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 1\r\n"))
        #expect(caller.receivedText.contains("problems/issuer-unavailable"))
        adobe.fails = nil
        scene.pass(seconds: 40)
        #expect(scene.status("/CH1") == 200)
    }

    /// The mark of the statement is on disk, so that a process that comes after does not send it either.
    @Test(arguments: [false, true]) func aStatementThatWasRefusedIsHeldBack(besideALogin: Bool) throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        adobe.rejectsStatement = true
        func told(_ scene: KeeperScene) -> Bool {
            let caller = scene.call(Wire.get("/CH1"))
            return caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined")
        }
        #expect(told(scene) && adobe.registrations == 1 && !store.rows(RowKind.attempt).isEmpty)
        if !besideALogin { scene.pass(seconds: 3700, step: 370) }
        #expect(told(scene) && adobe.registrations == 1)
        let next = try KeeperScene(KeeperOneTimeTests.plan(), store: store, clock: scene.clock)
        next.issuer = adobe.answer
        next.settle()
        #expect(told(next) && next.issuerCalls.isEmpty)
        _ = next.inKeeper { $0.reset(identity: "tv") }
        adobe.rejectsStatement = false
        let after = next.call(Wire.get("/CH1"))
        #expect(besideALogin ? after.status == 200 : after.receivedText.contains("problems/login-required"))
    }

    /// A second refusal is no matter of the media token any more.
    @Test func aMediaTokenThatIsRefusedTwiceIsTheGatewaysFault() throws {
        let yaml = KeeperOneTimeTests.plan().replacing("inject:", with: "on_rejected: {statuses: [403]}, inject:")
        let scene = try scene(yaml)
        scene.upstream = { _ in "HTTP/1.1 403 Not here\r\nContent-Length: 4\r\n\r\nwhy!" }
        let caller = scene.call(Wire.get("/CH1"))
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-refused-credential"))
        #expect(scene.upstreamCalls.map { $0.field("x-media") } == ["m1", "m2"])
    }

    // MARK: - How many calls at once

    @Test func callsForSingleRequestsLeaveConnectionsToOthers() throws {
        let scene = try scene()
        #expect(scene.status("/CH1") == 200)
        let before = scene.issuerCalls.count
        adobe.isSilent = true
        let callers = (0..<Keeper.mostOneTimeCalls + 8).map { scene.call(Wire.get("/CH\($0)"), settles: false) }
        scene.settle()
        #expect(scene.issuerCalls.count - before == Keeper.mostOneTimeCalls)
        adobe.isSilent = false
        let waiting = scene.issuerCalls.dropFirst(before).compactMap { adobe.answer($0) }
        for (peer, answer) in zip(scene.issuers.filter { !$0.isClosed }, waiting) { peer.send(answer) }
        scene.settle()
        #expect(callers.allSatisfy { $0.status == 200 }, "\(callers.map(\.status))")
        let media = scene.upstreamCalls.compactMap { $0.field("x-media") }
        #expect(Set(media).count == media.count && media.count == callers.count + 1, "no two requests share one")
    }

    // MARK: - Pace

    /// The registration and the access token have taken their turns before.
    private func paced(_ pace: String) throws -> KeeperScene {
        let scene = try scene(KeeperOneTimeTests.plan(pace: pace))
        let caller = scene.call(Wire.get("/CH1"))
        for _ in 0..<60 where caller.status == nil { scene.pass(seconds: 0.5) }
        #expect(caller.status == 200)
        scene.pass(seconds: 30)
        return scene
    }

    @Test func requestsWaitForTheirTurnInTheIssuersPace() throws {
        let scene = try paced("1")
        let before = adobe.media
        let callers = (0..<3).map { scene.call(Wire.get("/CH\($0)")) }
        #expect(adobe.media - before == 1 && callers.count { $0.status == 200 } == 1)
        scene.pass(seconds: 1.1, step: 0.1)
        #expect(adobe.media - before == 2)
        scene.pass(seconds: 1.1, step: 0.1)
        #expect(adobe.media - before == 3 && callers.allSatisfy { $0.status == 200 })
    }

    @Test func aRequestThatLeavesBeforeItsTurnIsNotAskedFor() throws {
        let scene = try paced("1")
        let before = adobe.media
        let callers = (0..<2).map { scene.call(Wire.get("/CH\($0)")) }
        callers[1].reset()
        scene.settle()
        scene.pass(seconds: 5)
        #expect(callers[0].status == 200 && adobe.media - before == 1)
    }

    @Test func requestsThatWouldWaitTooLongComeAgain() throws {
        let scene = try paced("1")
        let before = adobe.media
        let callers = (0..<100).map { scene.call(Wire.get("/CH\($0)"), settles: false) }
        scene.settle()
        let refused = callers.filter { $0.status == 503 }
        #expect(!refused.isEmpty && refused.allSatisfy { $0.receivedText.contains("Retry-After: ") })
        #expect(adobe.media - before == 1)
        scene.pass(seconds: 60)
        #expect(callers.count { $0.status == 200 } + refused.count == 100)
    }

    @Test func anIssuerThatThrottlesIsToldOfAndAskedOnceMore() throws {
        let events = try EventLog()
        let scene = try scene(events: events)
        #expect(scene.status("/CH1") == 200)
        let before = scene.issuerCalls.count
        adobe.fails = Wire.json("<html>", status: 429)
        let caller = scene.call(Wire.get("/CH1"))
        for _ in 0..<120 where caller.status == nil { scene.pass(seconds: 0.5) }
        #expect(caller.status == 503 && scene.issuerCalls.count - before == 2)
        #expect(events.takeTold().contains("issuer throttles issuer=http://127.0.0.1:9100"))
    }

    // MARK: - For operators

    @Test func aLoginWithoutAPreviewHasItsOwnFactsAlone() throws {
        let scene = try scene()
        let before = scene.issuerCalls.count
        let facts = scene.inKeeper { $0.status().identities[0].facts }
        #expect(!facts.contains { $0.0 == "preview" } && scene.issuerCalls.count == before)
        let elsewhere = try self.scene(loggedIn: false)
        #expect(elsewhere.inKeeper { $0.status().identities[0].facts.isEmpty })
    }
}
