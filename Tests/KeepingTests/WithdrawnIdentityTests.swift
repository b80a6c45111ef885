import ScriptedKernel
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// `token.persist: false` for an identity that kept its tokens until now: nothing of it stays on disk, and what the fleet has is not used
/// without the fleet's turn.
@Suite struct WithdrawnIdentityTests {
    private static let kinds = [RowKind.session, RowKind.access, RowKind.durable, RowKind.version]
    private static let keeping = RotatingIssuer.plan()
    private static let withdrawn = RotatingIssuer.plan(token: "persist: false")

    private let issuer = RotatingIssuer()
    private let secrets = Secrets(["R": "r0"])

    private func scene(
        _ yaml: String, store: MemoryStore? = nil, fleet: MemoryServer? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets, fleet: fleet)
        scene.issuer = issuer.answer
        scene.settle()
        return scene
    }

    private func reload(_ scene: KeeperScene, to yaml: String) throws {
        let next = try KeeperScene(yaml, store: scene.store == nil ? nil : MemoryStore(), secrets: secrets)
        let change = next.change
        scene.inKeeper { $0.take(change) }
        scene.settle()
    }

    /// Asks when nothing that is held is good any more.
    private func step(_ scene: KeeperScene) -> Int {
        scene.pass(seconds: 100, step: 10)
        let caller = scene.call(Wire.get("/a/"))
        for _ in 0..<20 where caller.status == nil { scene.pass(seconds: 0.5) }
        return caller.status ?? 0
    }

    private func left(in store: MemoryStore) -> [UInt8: Int] {
        Dictionary(uniqueKeysWithValues: Self.kinds.map { ($0, store.rows($0).count) }).filter { $0.value > 0 }
    }

    @Test(arguments: [true, false]) func theFleetKeepsItsLogin(stored: Bool) throws {
        let server = MemoryServer()
        let store = stored ? MemoryStore() : nil
        let leaving = try scene(Self.keeping, store: store, fleet: server)
        let staying = try scene(Self.keeping, store: stored ? MemoryStore() : nil, fleet: server)
        #expect(step(leaving) == 200)
        leaving.pass(seconds: 1)
        staying.settle()
        #expect(step(staying) == 200)
        try reload(leaving, to: Self.withdrawn)
        let uses = issuer.uses
        #expect(step(leaving) == 503)
        #expect(issuer.reuses == 0 && issuer.uses == uses)
        #expect(step(staying) == 200 && issuer.uses == uses + 1)
        // A gateway that is once more in the fleet has what the fleet has.
        try reload(leaving, to: Self.keeping)
        #expect(step(leaving) == 200 && issuer.reuses == 0)
    }

    /// A step is under way when the reload comes: its outcome is the fleet's.
    @Test func whatAStepBringsAfterwardsIsTheFleets() throws {
        let server = MemoryServer()
        let leaving = try scene(Self.keeping, store: MemoryStore(), fleet: server)
        let staying = try scene(Self.keeping, store: MemoryStore(), fleet: server)
        #expect(step(leaving) == 200)
        leaving.pass(seconds: 100, step: 10)
        leaving.issuer = { _ in nil }
        let caller = leaving.call(Wire.get("/a/"))
        let asked = try #require(leaving.issuerCalls.last)
        try reload(leaving, to: Self.withdrawn)
        #expect(caller.status == nil)
        leaving.issuer = issuer.answer
        leaving.issuers.last?.send(try #require(issuer.answer(asked)))
        leaving.settle()
        #expect(caller.status == 200)
        let uses = issuer.uses
        #expect(step(leaving) == 503 && issuer.uses == uses && issuer.reuses == 0)
        staying.settle()
        #expect(step(staying) == 200 && issuer.reuses == 0)
    }

    @Test func nothingOfItStaysOnDisk() throws {
        let store = MemoryStore()
        let scene = try scene(Self.keeping, store: store)
        #expect(scene.status("/a/") == 200)
        #expect(left(in: store).keys.contains(RowKind.session) && left(in: store).keys.contains(RowKind.access))
        try reload(scene, to: Self.withdrawn)
        #expect(left(in: store) == [:])
        // Memory goes on with it.
        #expect(step(scene) == 200 && issuer.uses == 2)
        #expect(left(in: store) == [:])
        // The configuration names a token that was sent: the mark of that has what is in its place.
        let after = try self.scene(Self.withdrawn, store: store)
        #expect(after.status("/a/") == 200 && issuer.uses == 3 && issuer.reuses == 0)
    }

    /// The store was written before the restart that brought `persist: false`.
    @Test func rowsOfBeforeAreNotTakenUp() throws {
        let store = MemoryStore()
        #expect(try scene(Self.keeping, store: store).status("/a/") == 200)
        let after = try scene(Self.withdrawn, store: store)
        #expect(left(in: store) == [:])
        #expect(after.status("/a/") == 200 && issuer.uses == 2 && issuer.reuses == 0)
        #expect(left(in: store) == [:])
    }

    /// A reload takes the identity away, and the next one brings it back; its login waits in memory.
    @Test func aLoginThatIsAwayIsNotWrittenDown() throws {
        let store = MemoryStore()
        let yaml = Plans.client(
            "persist: false", identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")
        let scene = try KeeperScene(yaml, store: store)
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100") }
        scene.settle()
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("s"), obtainedAt: keeper.now, lifetime: nil, refreshToken: Secret("r"), isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        scene.settle()
        let configured = scene.change
        scene.inKeeper {
            $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits))
        }
        scene.settle()
        #expect(left(in: store) == [:] && scene.status() == 503)
        scene.inKeeper { $0.take(configured) }
        scene.settle()
        #expect(left(in: store) == [:] && scene.status() == 200)
    }
}
