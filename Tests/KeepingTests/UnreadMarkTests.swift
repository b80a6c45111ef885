import ScriptedKernel
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// No password leaves while its marks cannot be read, or where none can be left.
@Suite struct UnreadMarkTests {
    private let store = MemoryStore()
    private let secrets = Secrets(["P": "wrong"])
    private static let slow = StoreHealth.State.degraded("the disk did not answer in 5000 ms")
    private static let owned = StoreHealth.State.locked("another process owns it")
    private static let basic = """
        identities: {b: {basic: {username: u, password: env:P}}}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: b}]

        """

    private func gateway(_ state: StoreHealth.State? = nil, refuses: Bool = false) throws -> (KeeperScene, NumberedGate)
    {
        let scene = try KeeperScene(Plans.gate("negative_for: 1s"), store: store, state: state, secrets: secrets)
        let gate = NumberedGate()
        gate.refusesPassword = refuses
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    /// - Returns: one whose upstream takes this password alone.
    private func basic(_ state: StoreHealth.State? = nil, takes password: String) throws -> KeeperScene {
        let scene = try KeeperScene(Self.basic, store: store, state: state, secrets: secrets)
        let right = "Basic " + (password == "right" ? "dTpyaWdodA==" : "none")
        scene.upstream = { request in
            request.authorization == right ? Wire.ok("in") : "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
        }
        return scene
    }

    private func isWithheld(_ caller: Peer) -> Bool {
        caller.status == 503 && caller.receivedText.contains("problems/store-unusable")
    }

    @Test func aRefusedPasswordStaysHomeWhileADiskIsSlow() throws {
        let (first, _) = try gateway(refuses: true)
        #expect(first.status("/w/x") == 503 && first.issuerCalls.count == 1)
        store.disk = .failing
        let (scene, _) = try gateway(Self.slow, refuses: true)
        #expect(isWithheld(scene.call(Wire.get("/w/x"))))
        #expect(scene.inKeeper { $0.status().identities.map(\.lacksStore) } == [true])
        store.disk = .good
        scene.pass(seconds: 3)
        let caller = scene.call(Wire.get("/w/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.issuerCalls.isEmpty && scene.inKeeper { $0.health.state } == .serving)
    }

    /// The process before may still write what it has while the disk is slow and the next one starts.
    @Test func aStoreWhoseOwnerWasNotKnownAtTheStartIsTakenOverFromIt() throws {
        let (first, _) = try gateway(refuses: true)
        #expect(first.status("/w/x") == 503 && first.issuerCalls.count == 1)
        store.disk = .failing
        let (scene, _) = try gateway(Self.slow, refuses: true)
        store.disk = .taken
        scene.pass(seconds: 5)
        #expect(scene.inKeeper { $0.health.isLocked })
        #expect(scene.status("/w/x") == 503 && scene.issuerCalls.isEmpty)
        store.disk = .good
        scene.pass(seconds: 2)
        #expect(scene.inKeeper { $0.health.state } == .serving)
        let caller = scene.call(Wire.get("/w/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.issuerCalls.isEmpty)
    }

    @Test func aGoodPasswordGoesOutWhenTheDiskAnswers() throws {
        store.disk = .failing
        let (scene, _) = try gateway(Self.slow)
        #expect(isWithheld(scene.call(Wire.get("/w/x"))))
        store.disk = .good
        scene.pass(seconds: 3)
        #expect(scene.status("/w/x") == 200)
        #expect(scene.inKeeper { $0.status().identities.map(\.lacksStore) } == [false])
    }

    @Test func anOperatorMaySayThatItGoesOut() throws {
        store.disk = .failing
        let (scene, _) = try gateway(Self.slow)
        #expect(isWithheld(scene.call(Wire.get("/w/x"))))
        _ = scene.inKeeper { $0.reset(identity: "w") }
        #expect(scene.status("/w/x") == 200)
    }

    @Test func aRefusedBasicPasswordStaysHomeWhileADiskIsSlow() throws {
        #expect(try basic(takes: "right").status() == 502)
        store.disk = .failing
        let scene = try basic(Self.slow, takes: "right")
        #expect(isWithheld(scene.call()))
        store.disk = .good
        scene.pass(seconds: 3)
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.upstreamCalls.isEmpty)
    }

    @Test(arguments: [slow, owned]) func aGoodBasicPasswordWaitsForItsStore(_ state: StoreHealth.State) throws {
        secrets["P"] = "right"
        store.disk = .failing
        let scene = try basic(state, takes: "right")
        #expect(isWithheld(scene.call()) && scene.upstreamCalls.isEmpty)
        store.disk = .good
        scene.pass(seconds: 3)
        #expect(scene.status() == 200)
    }

    // MARK: - A clock

    /// A jump makes every token due; a secret that is held back stays home.
    @Test func aRefusedBasicPasswordStaysHomeWhenTheClockIsSet() throws {
        secrets["P"] = "right"
        let scene = try basic(takes: "right")
        #expect(scene.status() == 200)
        scene.upstream = { _ in "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" }
        for path in ["/1", "/2", "/3"] { #expect(scene.status(path) == 502) }
        #expect(scene.status("/4") == 503)
        let calls = scene.upstreamCalls.count
        scene.jump(seconds: 3600)
        scene.pass(seconds: 3)
        #expect(scene.status("/5") == 503)
        #expect(scene.status("/6") == 503 && scene.upstreamCalls.count == calls)
    }

    // MARK: - A full disk

    @Test func aPasswordThatWasNeverAcceptedNeedsAMark() throws {
        let (scene, _) = try gateway()
        scene.settle()
        store.disk = .failing
        #expect(isWithheld(scene.call(Wire.get("/w/x"))) && scene.issuerCalls.isEmpty)
        store.disk = .good
        scene.pass(seconds: 120, step: 5)
        #expect(scene.status("/w/x") == 200)
    }

    @Test func oneThatWasAcceptedServesOn() throws {
        #expect(try gateway().0.status("/w/x") == 200)
        let (scene, gate) = try gateway()
        store.disk = .failing
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/w/x") == 200 && gate.users == 1)
    }

    /// It was cut off once already.
    @Test func itsOneMoreTryNeedsAMark() throws {
        #expect(try gateway().0.status("/w/x") == 200)
        let (cut, gate) = try gateway()
        _ = cut.inKeeper { $0.purge(.everything) }
        gate.hangs = ["authenticate"]
        cut.call(Wire.get("/w/x"))
        cut.pass(seconds: 1)
        #expect(cut.issuerCalls.last?.path.hasSuffix("authenticate") == true)
        let (scene, _) = try gateway()
        scene.settle()
        store.disk = .failing
        #expect(isWithheld(scene.call(Wire.get("/w/x"))) && scene.issuerCalls.isEmpty)
        store.disk = .good
        scene.pass(seconds: 120, step: 5)
        #expect(scene.status("/w/x") == 200)
    }
}
