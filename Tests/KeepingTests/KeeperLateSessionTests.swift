import ScriptedKernel
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A refresh token that comes when nobody waits for it any more: its predecessor is spent, so it is what counts, or is revoked.
@Suite struct KeeperLateSessionTests {
    private let issuer = RotatingIssuer()
    private let secrets = Secrets(["R": "r0"])
    private static let plan = RotatingIssuer.plan(["revocation_url: \"http://127.0.0.1:9100/revoke\""])

    private func scene(_ yaml: String = plan, store: MemoryStore? = MemoryStore()) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets)
        scene.issuer = issuer.answer
        scene.settle()
        return scene
    }

    /// A step whose answer the issuer keeps to itself until `release` is called.
    private func begin(_ scene: KeeperScene) throws -> (caller: Peer, release: () throws -> Void) {
        var held: Request?
        scene.issuer = { request in
            held = request
            return nil
        }
        let caller = scene.call(Wire.get("/a/"))
        let request = try #require(held)
        let peer = try #require(scene.issuers.last { !$0.isClosed })
        scene.issuer = issuer.answer
        return (
            caller,
            {
                peer.send(try #require(self.issuer.answer(request)))
                scene.settle()
            }
        )
    }

    private func sent(_ scene: KeeperScene) -> [String] {
        scene.issuerCalls.filter { $0.path == "/token" }.compactMap { $0.member("refresh_token") }
    }

    @Test func whatComesAfterAPurgeIsKept() throws {
        let scene = try scene()
        let (caller, release) = try begin(scene)
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        try release()
        scene.pass(seconds: 2)
        #expect(caller.status == 200)
        #expect(scene.status("/a/") == 200 && issuer.reuses == 0)
        // Also on disk.
        let again = try self.scene(store: scene.store)
        _ = again.inKeeper { $0.purge(.everything) }
        #expect(again.status("/a/") == 200 && issuer.reuses == 0 && !sent(again).contains("r0"))
    }

    @Test func whatComesAfterALogoutIsRevoked() throws {
        let scene = try scene()
        let (_, release) = try begin(scene)
        _ = scene.inKeeper { $0.beginLogout("i0") }
        scene.settle()
        try release()
        scene.pass(seconds: 2)
        let revoked = scene.issuerCalls.filter { $0.path == "/revoke" }.compactMap { $0.member("token") }
        #expect(revoked == ["r1"], "\(scene.issuerCalls.map(\.path))")
        #expect(scene.store?.rows(RowKind.session).isEmpty == true)
        #expect(scene.status("/a/") == 503 && issuer.reuses == 0)
        #expect(sent(scene) == ["r0"])
    }

    /// A reload takes the identity away while its step is under way; it comes back with what the step has brought.
    @Test(arguments: [false, true]) func whatComesForAnIdentityThatIsGoneComesBackWithIt(restarts: Bool) throws {
        let scene = try scene()
        let configured = scene.change
        let (_, release) = try begin(scene)
        scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        scene.settle()
        scene.inKeeper { $0.catalogue.alarm?.action() }
        try release()
        scene.pass(seconds: 1)
        let next = restarts ? try self.scene(store: scene.store) : scene
        if !restarts { scene.inKeeper { $0.take(configured) } }
        next.settle()
        _ = next.inKeeper { $0.purge(.everything) }
        #expect(next.status("/a/") == 200 || restarts == false)
        #expect(issuer.reuses == 0 && sent(next).last == "r1")
    }

    /// The predecessor is dead from now on, so the successor is waited for until it is on disk: for five seconds, and then used all the same.
    @Test func aDiskThatHangsHoldsANewRefreshTokenUpForFiveSeconds() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        #expect(scene.status("/a/") == 200)
        scene.pass(seconds: 100, step: 10)
        store.disk = .hung
        let caller = scene.call(Wire.get("/a/"))
        scene.pass(seconds: 4.5)
        #expect(caller.status == nil && issuer.uses == 2)
        scene.pass(seconds: 1)
        #expect(caller.status == 200)
        store.thaw()
        scene.pass(seconds: 1)
        #expect(scene.inKeeper { $0.health.state } == .serving)
        let again = try self.scene(store: store)
        _ = again.inKeeper { $0.purge(.everything) }
        #expect(again.status("/a/") == 200 && issuer.reuses == 0)
    }
}
