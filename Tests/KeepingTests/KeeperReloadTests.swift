import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Tokens that no configuration leads to any more are served for as long as an exchange may need them, and then are gone.
@Suite struct KeeperReloadTests {
    private func empty(_ scene: KeeperScene) {
        scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        scene.settle()
    }

    /// Tokens and routes that are there, and whether any are retired.
    private func kept(_ scene: KeeperScene) -> [Int] {
        scene.inKeeper { keeper in
            [keeper.tokens.count, keeper.catalogue.routesByNumber.count, keeper.catalogue.hasRetired ? 1 : 0]
        }
    }

    /// The time of the retired is over, while exchanges that began with them go on.
    private func dropRetired(_ scene: KeeperScene) { scene.inKeeper { $0.catalogue.alarm?.action() } }

    @Test func whatNoConfigurationNamesIsServedForAWhile() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        #expect(scene.status() == 200 && scene.store?.rows(RowKind.access).count == 1)
        empty(scene)
        // On disk it is gone at once, in memory it serves the exchanges that began with it.
        #expect(scene.store?.rows(RowKind.access).isEmpty == true)
        #expect(scene.status() == 200 && kept(scene) == [1, 1, 1])
        scene.pass(seconds: 89, step: 1)
        #expect(scene.status() == 200 && kept(scene) == [1, 1, 1])
        scene.pass(seconds: 2, step: 1)
        #expect(kept(scene) == [0, 0, 0])
        // Somebody who comes later all the same is told, and does not wait.
        let late = scene.call()
        #expect(late.status.map { $0 >= 500 } == true && scene.issuerCalls.count == 1)
    }

    /// A configuration is being compiled that may name it again.
    @Test func whatMayBeNamedAgainWaitsForTheNextConfiguration() throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status() == 200)
        let configured = scene.change
        empty(scene)
        let slots = scene.inKeeper { $0.holdings().slots }
        #expect(slots.count == 1)
        scene.pass(seconds: 95, step: 1)
        #expect(kept(scene) == [1, 1, 1])
        scene.inKeeper { $0.take(configured) }
        scene.pass(seconds: 95, step: 1)
        #expect(kept(scene) == [1, 1, 0])
        // A reload that came to nothing holds nothing up.
        empty(scene)
        _ = scene.inKeeper { $0.holdings() }
        scene.pass(seconds: 95, step: 1)
        scene.inKeeper { $0.keepAsIs(giving: []) }
        scene.pass(seconds: 2, step: 1)
        #expect(kept(scene) == [0, 0, 0])
    }

    /// Challenges and cold requests of a route that is gone.
    @Test func aRequestThatOutlivesItsRouteHasItsAnswer() throws {
        let scene = try KeeperScene(Plans.gate())
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = { _ in nil }
        let early = scene.call(Wire.get("/w/x"))
        #expect(scene.upstreamCalls.count == 1)
        empty(scene)
        dropRetired(scene)
        #expect(kept(scene)[1] == 0)
        let challenge = try #require(gate.guarded()(scene.upstreamCalls[0]))
        try #require(scene.loops[0].kernel.connections.last).send(challenge)
        scene.settle()
        // Nobody knows any more what would answer the challenge: it is the caller's.
        #expect(early.status == 401 && scene.issuerCalls.isEmpty)
        let late = scene.call(Wire.get("/w/x"))
        #expect(late.status == 500 && scene.issuerCalls.isEmpty && scene.upstreamCalls.count == 1)
    }

    /// The probe of a route that a reload has taken away is not repeated.
    @Test func aRouteThatIsGoneIsNotProbed() throws {
        let scene = try KeeperScene(Plans.gate("startup: wait", identity: "probe: /w/9"))
        // The upstream is asked over the keeper's own connections.
        scene.issuer = { _ in Wire.unavailable }
        scene.settle()
        let probes = { scene.issuerCalls.count { $0.path == "/w/9" } }
        #expect(probes() == 1)
        scene.pass(seconds: 3)
        #expect(probes() == 2)
        empty(scene)
        dropRetired(scene)
        scene.pass(seconds: 30)
        #expect(probes() <= 3)
        scene.pass(seconds: 30)
        #expect(probes() <= 3)
    }

    // MARK: - Probes

    /// The fault of a probe stands in the log and in the status, and the probe is asked again.
    @Test(arguments: ["", "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth\r\nContent-Length: 0\r\n\r\n"])
    func aProbeThatBringsNothingIsRepeated(_ said: String) throws {
        let scene = try KeeperScene(Plans.gate("startup: required", identity: "probe: /w/9"))
        let gate = NumberedGate()
        scene.upstream = gate.guarded()
        var answer: String? = said.isEmpty ? Wire.ok("open to all") : said
        scene.issuer = { request in
            guard request.path == "/w/9" else { return gate.answer(request) }
            return answer ?? gate.guarded()(request)
        }
        scene.settle()
        #expect(scene.inKeeper { $0.awaited(strictly: true) } == ["w"] && gate.tokens == 0)
        answer = nil
        scene.pass(seconds: 3)
        #expect(scene.inKeeper { $0.awaited(strictly: true) } == [] && gate.tokens == 1)
        #expect(scene.status("/w/9") == 200 && gate.tokens == 1)
    }
}
