import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// A person's login at one gateway serves the fleet, however the other gateways come to know of it.
@Suite struct FleetLoginTests {
    private static let plan = """
        identities:
          i0:
            oauth2:
              {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, grant: device_code,
               device_authorization_url: "http://127.0.0.1:9100/device"}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i0, match: {path: /a/}, scopes: [a]}
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i0, match: {path: /b/}, scopes: [b]}

        """

    private let server = MemoryServer()

    private func gateway() throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan, store: MemoryStore(), fleet: server)
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100", #","refresh_token":"r""#) }
        scene.settle()
        return scene
    }

    private func logIn(at scene: KeeperScene) {
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("s"), obtainedAt: keeper.now, lifetime: nil, refreshToken: Secret("r"), isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        scene.settle()
    }

    /// Both gateways have told callers that a person has to log in, and the news of the login are lost.
    private func missedLogin() throws -> KeeperScene {
        let (first, second) = (try gateway(), try gateway())
        #expect(first.status("/a/") == 503 && second.status("/a/") == 503)
        server.isSilent = true
        logIn(at: first)
        second.settle()
        #expect(first.status("/a/") == 200 && second.status("/a/") == 503)
        return second
    }

    @Test func aReloadFindsALoginThatNewsDidNotTell() throws {
        let scene = try missedLogin()
        let configured = scene.change
        scene.inKeeper { $0.take(configured) }
        scene.settle()
        #expect(scene.status("/a/") == 200)
    }

    @Test func theFlightOfOneTokenFindsTheLoginForAll() throws {
        let scene = try missedLogin()
        let caller = scene.call(Wire.get("/b/"))
        for _ in 0..<20 where caller.status == nil { scene.pass(seconds: 0.5) }
        #expect(caller.status == 200)
        #expect(scene.status("/a/") == 200)
    }
}
