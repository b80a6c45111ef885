import ScriptedKernel
import TLS
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A store that another process had, and what its lock's end brings.
@Suite struct KeeperOwnershipTests {
    /// A gateway that came second.
    private func second(_ store: MemoryStore, blocking: ScriptedWork = ScriptedWork()) throws -> KeeperScene {
        store.disk = .taken
        let scene = try KeeperScene(
            Plans.gate(), store: store, state: .locked("another process has it"), blocking: blocking)
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        scene.settle()
        return scene
    }

    private func words(_ scene: KeeperScene) -> String { scene.inKeeper { $0.health.words } }

    /// The damaged file is kept for whoever looks into it; an empty one takes its place.
    @Test func aDamagedStoreBeginsAnew() throws {
        let store = MemoryStore()
        let scene = try second(store)
        #expect(scene.status("/w/x") == 503 && scene.issuerCalls.isEmpty)
        store.disk = .good
        store.opensAs = .setAside("tokens.db.damaged")
        scene.pass(seconds: 2)
        #expect(scene.inKeeper { $0.health.state } == .serving)
        #expect(scene.status("/w/x") == 200 && store.rows(RowKind.session).count == 1)
    }

    /// Its marks cannot be seen: no password is sent, and the file is not asked for again.
    @Test(arguments: [
        (StoreOpening.unknownKey([0xAB]), SealingKey.name(of: 0xAB)), (.notOurs("it is a picture"), "it is a picture"),
        (.newer(version: 99), "format 99"),
    ])
    func aStoreThatCannotBeReadIsLeftAlone(_ opening: StoreOpening, _ word: String) throws {
        let store = MemoryStore()
        let scene = try second(store)
        store.disk = .good
        store.opensAs = opening
        scene.pass(seconds: 2)
        #expect(words(scene).hasPrefix("not used: ") && words(scene).contains(word), "\(words(scene))")
        store.opensAs = nil
        scene.pass(seconds: 10)
        #expect(words(scene).contains(word))
        #expect(scene.status("/w/x") == 503)
        #expect(!scene.issuerCalls.contains { $0.path.hasSuffix("authenticate") })
        #expect(store.rows(RowKind.session).isEmpty && store.rows(RowKind.attempt).isEmpty)
    }

    /// The lock is asked for on another thread, which may be busy for a while.
    @Test func aThreadThatIsBusyPutsTheQuestionOff() throws {
        let (store, blocking) = (MemoryStore(), ScriptedWork())
        let scene = try second(store, blocking: blocking)
        store.disk = .good
        blocking.thread = .full
        scene.pass(seconds: 5)
        #expect(scene.inKeeper { $0.health.isLocked })
        blocking.thread = .free
        scene.pass(seconds: 2)
        #expect(scene.inKeeper { $0.health.state } == .serving && scene.status("/w/x") == 200)
    }

    /// The disk did not answer at the start, so nobody knew whose the store is.
    @Test func aStoreThatTurnsOutToBeAnothersIsWaitedFor() throws {
        let store = MemoryStore()
        store.disk = .failing
        let scene = try KeeperScene(Plans.gate(), store: store, state: .degraded("the disk does not answer"))
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        scene.settle()
        store.disk = .taken
        scene.pass(seconds: 61, step: 1)
        #expect(words(scene).hasPrefix("not used: ") && words(scene).contains("locked by another process"))
        #expect(scene.status("/w/x") == 503 && gate.users == 0)
        store.disk = .good
        scene.pass(seconds: 2)
        #expect(scene.inKeeper { $0.health.state } == .serving)
        scene.pass(seconds: 60, step: 5)
        #expect(scene.status("/w/x") == 200)
    }

    /// The other process may use the same refresh token at any moment.
    @Test func noRefreshTokenIsSentWithoutTheStore() throws {
        let store = MemoryStore()
        store.disk = .taken
        let issuer = RotatingIssuer()
        let scene = try KeeperScene(
            RotatingIssuer.plan(), store: store, state: .locked("another process has it"), secrets: Secrets(["R": "r0"])
        )
        scene.issuer = issuer.answer
        scene.settle()
        #expect(scene.status("/a/") == 503 && issuer.uses == 0 && scene.issuerCalls.isEmpty)
        let told = scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told.contains("no refresh token step without the store"), "\(told)")
        store.disk = .good
        scene.pass(seconds: 2)
        #expect(scene.status("/a/") == 200 && issuer.uses == 1)
    }
}
