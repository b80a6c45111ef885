import ScriptedKernel
import Synchronization
import Testing

@testable import DataPath
@testable import Fleet
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// The one try of a `basic` password where its caller leaves, its secret changes or another gateway knows better meanwhile.
@Suite struct KeeperProbationTests {
    private static let plan = """
        identities: {b: {basic: {username: u, password: env:P}, token: {acquire_timeout: 2s}}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: b}

        """

    private let server = MemoryServer()
    private let secrets = Secrets(["P": "one"])

    private func scene(
        fleet: Bool = true, blocking: any BlockingWork = ImmediateWork()
    ) throws -> KeeperScene {
        let scene = try KeeperScene(
            Self.plan, store: MemoryStore(), secrets: secrets, fleet: fleet ? server : nil, blocking: blocking)
        scene.settle()
        return scene
    }

    private func told(_ scene: KeeperScene) -> String { scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" } }

    private func account(_ scene: KeeperScene) throws -> SharedName {
        let name = scene.inKeeper { keeper in
            keeper.fleet.tier.flatMap { tier in keeper.identities[0].account.map { tier.name(of: $0) } }
        }
        return try #require(name)
    }

    /// The secret is still being read when its only caller leaves.
    @Test func nobodysTryIsNotSentWhenTheSecretIsThere() throws {
        let blocking = ScriptedWork()
        blocking.thread = .stuck
        let scene = try scene(fleet: false, blocking: blocking)
        let caller = scene.call()
        #expect(caller.status == nil)
        caller.reset()
        scene.settle()
        blocking.goOn()
        scene.settle()
        #expect(scene.upstreamCalls.isEmpty)
        #expect(scene.status() == 200 && scene.upstreamCalls.count == 1)
    }

    /// The server does not answer the claim of a try, and the password is another one when it does: the caller has the new one's try.
    @Test func aTryThatWasWithheldForAFormerPasswordIsNotTold() throws {
        let scene = try scene()
        server.hold([.claim])
        let caller = scene.call()
        #expect(caller.status == nil && scene.upstreamCalls.isEmpty)
        secrets["P"] = "two"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        server.fault = .claim
        server.goOn()
        server.fault = nil
        scene.settle()
        // Base64 of u:two.
        let sent = scene.upstreamCalls.map { $0.authorization }
        #expect(caller.status == 200 && sent == ["Basic dTp0d28="])
        #expect(server.leases.isEmpty)
    }

    @Test(arguments: [("it has just come up", true), ("another gateway is trying the password", false)])
    func aTryThatIsNotToBeHadInTimeIsWithheld(_ words: String, isSettling: Bool) throws {
        let scene = try scene()
        server.state.withLock { state in
            if isSettling { state.spent = nil } else { state.claim = .busy }
        }
        let caller = scene.call()
        scene.pass(seconds: 3, step: 0.25)
        #expect(caller.status == 504)
        // The next caller waits for the same try, and is told what became of it.
        let next = scene.call()
        scene.pass(seconds: 3, step: 0.25)
        #expect([503, 504].contains(next.status) && scene.upstreamCalls.isEmpty)
        #expect(told(scene) == "not without the shared store: \(words)", "\(told(scene))")
        server.state.withLock { ($0.spent, $0.claim) = (0, nil) }
        #expect(scene.status() == 200)
    }

    // MARK: - News of a refusal

    /// The secret could not be read until now, so that nobody knows here which one it is.
    @Test func aRefusalElsewhereIsHeededBeforeTheFirstTry() throws {
        secrets.missing = ["P"]
        let scene = try scene()
        #expect(scene.status() == 503)
        secrets.missing = []
        server.state.withLock { $0.spent = 1 }
        server.tell(.rejected(account: SharedName(Array(repeating: 7, count: 32))))
        scene.settle()
        #expect(scene.inKeeper { $0.identities[0].secretHashes.isEmpty }, "it is another account's")
        server.tell(.rejected(account: try account(scene)))
        scene.settle()
        scene.pass(seconds: 2)
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.upstreamCalls.isEmpty && scene.store?.rows(RowKind.attempt).isEmpty == false)
    }

    /// A password that was good here is not sent any more either.
    @Test func aRefusalElsewhereEndsThePasswordThatWasGood() throws {
        let scene = try scene()
        #expect(scene.status() == 200 && scene.status() == 200)
        let sent = scene.upstreamCalls.count
        server.state.withLock { $0.spent = 1 }
        server.tell(.rejected(account: try account(scene)))
        scene.settle()
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.upstreamCalls.count == sent)
    }

    /// The answer to the last login was not seen: its one more try is one that the fleet allows, too.
    @Test func theOneMoreTryOfAGoodPasswordIsBookedAsThat() throws {
        let gate = NumberedGate()
        let scene = try KeeperScene(
            Plans.gate("acquire_timeout: 2s, negative_for: 1s"), store: MemoryStore(), secrets: secrets, fleet: server)
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        #expect(scene.status("/w/x") == 200)
        #expect(server.state.withLock { $0.limits.max() } == 1)
        gate.hangs = ["authenticate"]
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        let caller = scene.call(Wire.get("/w/x"))
        scene.pass(seconds: 30, step: 1)
        #expect(caller.status == 504)
        gate.hangs = []
        scene.pass(seconds: 30, step: 1)
        #expect(scene.status("/w/x") == 200)
        #expect(server.state.withLock { $0.limits.last } == 2, "\(server.state.withLock { $0.limits })")
    }
}
