import ScriptedKernel
import Synchronization
import TLS
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A shared server that fails at one step: what could do harm is not done, and what has been done is not lost.
@Suite struct KeeperFleetFaultTests {
    private let server = MemoryServer()
    private let issuer = RotatingIssuer()
    private let secrets = Secrets(["R": "r0"])

    private func scene(
        _ yaml: String = RotatingIssuer.plan(), store: MemoryStore? = MemoryStore(),
        answers: ((Request) -> String?)? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets, fleet: server)
        scene.issuer = answers ?? issuer.answer
        scene.settle()
        return scene
    }

    private func status(_ scene: KeeperScene, _ path: String = "/a/") -> Int? {
        let caller = scene.call(Wire.get(path))
        for _ in 0..<60 where caller.status == nil { scene.pass(seconds: 0.5) }
        return caller.status
    }

    private func told(_ scene: KeeperScene) -> String { scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" } }

    // MARK: - Sessions

    @Test func withoutATurnNoRefreshTokenIsSent() throws {
        let scene = try scene()
        server.fault = .turn
        #expect(status(scene) == 503 && issuer.uses == 0)
        #expect(told(scene).contains("not without the shared store: no answer"), "\(told(scene))")
        server.fault = nil
        scene.pass(seconds: 2)
        #expect(status(scene) == 200 && issuer.uses == 1)
    }

    /// The session that the step brought is used here, and goes to the server when that is there again.
    @Test func whatCouldNotBeCommittedIsBroughtBack() throws {
        let scene = try scene()
        server.fault = .commit
        #expect(status(scene) == 200 && server.sessions.isEmpty)
        server.fault = nil
        scene.inKeeper { $0.fleetChanged(nil) }
        #expect(server.sessions.count == 1)
        let other = try self.scene()
        #expect(status(other) == 200 && issuer.reuses == 0)
        #expect(other.issuerCalls.compactMap { $0.member("refresh_token") } == ["r1"])
    }

    /// The turn had passed to another gateway: the outcome counts all the same, unless that one has come further.
    @Test func anOutcomeThatComesAfterItsTurnIsOffered() throws {
        let scene = try scene()
        scene.issuer = { [issuer, server] request in
            server.leases = [:]
            return issuer.answer(request)
        }
        #expect(status(scene) == 200)
        #expect(scene.inKeeper { $0.fleet.late } == 2, "the session, and the access token that came with it")
        #expect(server.sessions.count == 1)
    }

    /// Somebody is at it for as long as anybody may wait.
    @Test func whoeverIsAtItForTooLongIsNotWaitedFor() throws {
        let scene = try scene(RotatingIssuer.plan(token: "acquire_timeout: 2s"))
        #expect(status(scene) == 200)
        scene.pass(seconds: 100, step: 10)
        let lock = try #require(
            server.news.compactMap { if case .spending(let name, _, _) = $0 { name } else { nil } }.last)
        server.tell(.spending(lock, owner: "another", isOver: false))
        scene.settle()
        #expect([503, 504].contains(status(scene)) && issuer.uses == 1)
        server.tell(.spending(lock, owner: "another", isOver: true))
        scene.pass(seconds: 5)
        #expect(status(scene) == 200 && issuer.uses == 2 && issuer.reuses == 0)
    }

    /// The others ask for a session that has ended: the server hears of the end again.
    @Test func anEndIsToldToWhoAsksForTheSession() throws {
        let scene = try scene()
        #expect(status(scene) == 200)
        let name = try #require(server.sessions.keys.first)
        _ = scene.inKeeper { $0.beginLogout("i0") }
        scene.pass(seconds: 1)
        let ended = try #require(server.sessions[name])
        #expect(ended.value.isEmpty)
        server.sessions = [name: SharedSession(version: .none, value: [1])]
        server.tell(.sessionMissed(name))
        scene.settle()
        #expect(server.sessions[name]?.value.isEmpty == true && server.sessions[name]?.version == ended.version)
    }

    // MARK: - Access tokens

    /// The holder of the lease takes longer than callers wait.
    @Test func aGrantOfAnotherGatewayIsWaitedForNoLongerThanOnesOwn() throws {
        let scene = try scene(Plans.client("acquire_timeout: 2s"), answers: NumberedIssuer().answer)
        server.state.withLock { $0.claim = .busy }
        #expect(status(scene, "/") == 504)
        #expect(scene.issuerCalls.isEmpty)
        scene.pass(seconds: 3)
        #expect(scene.issuerCalls.isEmpty)
        server.state.withLock { $0.claim = nil }
        scene.pass(seconds: 10)
        #expect(status(scene, "/") == 200)
    }

    /// A grant that harms nobody is made alone.
    @Test func withoutALeaseAnAccessTokenIsGrantedAlone() throws {
        let scene = try scene(Plans.client(), answers: NumberedIssuer().answer)
        server.fault = .claim
        #expect(status(scene, "/") == 200 && scene.inKeeper { $0.fleet.alone } == 1)
        #expect(server.leases.isEmpty)
    }

    @Test func aTokenThatCouldNotBePublishedServesHere() throws {
        let scene = try scene(Plans.client(), answers: NumberedIssuer().answer)
        server.fault = .publish
        #expect(status(scene, "/") == 200)
        let state = scene.inKeeper { $0.fleet.server.state(at: $0.now) }
        #expect(state == .degraded("no answer"))
    }

    // MARK: - Passwords

    private func gate() throws -> (KeeperScene, NumberedGate) {
        let gate = NumberedGate()
        let scene = try scene(Plans.gate("acquire_timeout: 2s, negative_for: 1s"), answers: gate.answer)
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    private func passwords(_ scene: KeeperScene) -> Int {
        scene.issuerCalls.count { $0.path.hasSuffix("authenticate") || $0.path.hasSuffix("register") }
    }

    @Test func anAttemptThatCannotBeBookedIsNotMade() throws {
        let (scene, _) = try gate()
        server.fault = .spend
        #expect(status(scene, "/w/x") == 503 && passwords(scene) == 0)
        // The attempt may have been booked, and its password was not sent.
        #expect(server.state.withLock { $0.refunds } == 1)
        server.fault = nil
        scene.pass(seconds: 5)
        #expect(status(scene, "/w/x") == 200)
    }

    @Test func aServerThatHasJustComeUpAllowsNoAttempt() throws {
        let (scene, _) = try gate()
        server.state.withLock { $0.verdict = .settling }
        #expect(status(scene, "/w/x") == 503 && passwords(scene) == 0)
        server.state.withLock { $0.verdict = nil }
        scene.pass(seconds: 5)
        #expect(status(scene, "/w/x") == 200)
    }

    /// Another gateway's password was refused: the mark holds here while the server is away.
    @Test func anAttemptThatTheFleetHasSpentIsKeptInMind() throws {
        let (scene, _) = try gate()
        server.state.withLock { $0.verdict = .spent }
        #expect(status(scene, "/w/x") == 503 && passwords(scene) == 0)
        #expect(scene.store?.rows(RowKind.attempt).isEmpty == false)
        server.state.withLock { $0.verdict = nil }
        scene.pass(seconds: 5)
        let caller = scene.call(Wire.get("/w/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(passwords(scene) == 0)
    }

    /// Nobody knows what became of it: it is not given back.
    @Test func anAttemptWithoutAnAnswerStaysSpent() throws {
        let (scene, gate) = try gate()
        gate.hangs = ["register", "authenticate"]
        #expect([503, 504].contains(status(scene, "/w/x")))
        scene.pass(seconds: 30, step: 1)
        #expect(passwords(scene) == 1 && server.state.withLock { $0.refunds } == 0)
    }

    // MARK: - Registrations

    @Test func aRegistrationIsNotMadeWithoutTheServer() throws {
        let (scene, gate) = try gate()
        server.fault = .claim
        #expect(status(scene, "/w/x") == 503 && gate.handles == 0)
        #expect(told(scene).contains("not without the shared store"), "\(told(scene))")
        server.fault = nil
        scene.pass(seconds: 5)
        #expect(status(scene, "/w/x") == 200 && gate.handles == 1)
    }
}
