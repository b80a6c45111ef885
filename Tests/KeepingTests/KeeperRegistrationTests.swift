import ScriptedKernel
import Telemetry
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A client that registers itself: once for all who need it, again where the issuer has forgotten it, and never without anybody's need.
@Suite struct KeeperRegistrationTests {
    /// Numbers its clients c1, c2, …, and tells each token request by its client's.
    private final class Issuer {
        var clients = 0
        var isSilent = false
        var fails: String?
        /// Clients that it does not know any more.
        var forgotten: Set<Int> = []
        var tokens = 0
        /// Goes with each token.
        var more = ""

        func answer(_ request: Request) -> String? {
            if request.path == "/register" { return isSilent ? nil : register() }
            let client = (1...9).first { request.authorization == Self.basic($0) } ?? 0
            if client == 0 || forgotten.contains(client) {
                return Wire.json(#"{"error":"invalid_client"}"#, status: 401)
            }
            if request.path == "/revoke" { return Wire.ok() }
            tokens += 1
            return Wire.bearer("t\(tokens)", more)
        }

        func register() -> String {
            if let fails { return fails }
            clients += 1
            return Wire.json(#"{"client_id":"c\#(clients)","client_secret":"s"}"#, status: 201)
        }

        /// Base64 of c1:s and so on.
        static func basic(_ client: Int) -> String {
            "Basic " + ["", "YzE6cw==", "YzI6cw==", "YzM6cw=="][min(client, 3)]
        }
    }

    private static func plan(_ identity: String = "", token: String = "") -> String {
        var text = """
            identities:
              o:
                oauth2: {token_url: "http://127.0.0.1:9100/token", registration: {url: "http://127.0.0.1:9100/register"},
                  \(identity)}
                token: {\(token)}
            routes:

            """
        for name in ["a", "b"] {
            text += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: o, match: {path: /\(name)/}, "
            text += "scopes: [\(name)], name: \(name)}\n"
        }
        return text
    }

    private let issuer = Issuer()

    private func scene(
        _ yaml: String = plan(), store: MemoryStore? = MemoryStore(), events: EventLog? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, events: events)
        scene.issuer = issuer.answer
        return scene
    }

    private func asBoth(_ scene: KeeperScene) -> [Peer] {
        let callers = ["/a/", "/b/"].map { scene.call(Wire.get($0), settles: false) }
        scene.settle()
        return callers
    }

    private func registrations(_ scene: KeeperScene) -> Int { scene.issuerCalls.count { $0.path == "/register" } }

    private func release(_ scene: KeeperScene) throws {
        issuer.isSilent = false
        try #require(scene.issuers.last { !$0.isClosed }).send(issuer.register())
        scene.settle()
    }

    // MARK: - One registration

    @Test func aGrantThatNeedsAClientWaitsForItsRegistration() throws {
        let scene = try scene()
        issuer.isSilent = true
        let callers = asBoth(scene)
        #expect(registrations(scene) == 1 && callers.allSatisfy { $0.status == nil })
        try release(scene)
        #expect(callers.map(\.status) == [200, 200] && registrations(scene) == 1)
        #expect(scene.store?.rows(RowKind.durable).count == 1)
    }

    @Test func aRegistrationThatFailsFailsForAllWhoWaitForIt() throws {
        let scene = try scene()
        issuer.isSilent = true
        issuer.fails = Wire.unavailable
        let callers = asBoth(scene)
        try release(scene)
        #expect(callers.map(\.status) == [503, 503] && registrations(scene) == 1)
        #expect(scene.store?.rows(RowKind.durable).isEmpty == true)
        issuer.fails = nil
        scene.pass(seconds: 40)
        #expect(asBoth(scene).map(\.status) == [200, 200] && registrations(scene) == 2)
    }

    @Test func aClientOutlivesARestart() throws {
        let store = MemoryStore()
        #expect(try scene(store: store).status("/a/") == 200)
        let next = try scene(store: store)
        #expect(next.status("/b/") == 200 && registrations(next) == 0)
    }

    // MARK: - An issuer that forgets

    /// Both grants are told that the client is not known; the second takes what the first has registered.
    @Test func aClientThatTheIssuerForgotIsRegisteredOnceMore() throws {
        let events = try EventLog()
        let scene = try scene(events: events)
        #expect(asBoth(scene).map(\.status) == [200, 200] && registrations(scene) == 1)
        issuer.forgotten = [1]
        scene.pass(seconds: 120, step: 10)
        _ = events.takeTold()
        #expect(asBoth(scene).map(\.status) == [200, 200] && registrations(scene) == 2)
        let told = events.takeTold().filter { $0.hasPrefix("handshake identity=o") }
        #expect(told.count == 2 && told.allSatisfy { $0.contains("does not know the client any more") }, "\(told)")
        #expect(scene.store?.rows(RowKind.durable).count == 1)
    }

    // MARK: - Logouts

    /// The registration came when the logout had forgotten everything: it is not kept, and the next request makes another.
    @Test func aClientThatComesAfterALogoutIsNotKept() throws {
        let scene = try scene()
        issuer.isSilent = true
        let caller = scene.call(Wire.get("/a/"))
        _ = scene.inKeeper { $0.beginLogout("o") }
        scene.settle()
        try release(scene)
        #expect(caller.status == 503 && scene.store?.rows(RowKind.durable).isEmpty == true)
        scene.pass(seconds: 5)
        #expect(scene.status("/b/") == 200)
        #expect(scene.issuerCalls.last?.authorization == Issuer.basic(2))
    }

    /// A refresh token is revoked by the client that it was given to, although that client is forgotten by then.
    @Test func aLogoutSpeaksAsTheClientThatItForgets() throws {
        issuer.more = #","refresh_token":"r""#
        let scene = try scene(
            Self.plan("grant: password, username: u, password: env:P, revocation_url: \"http://127.0.0.1:9100/revoke\"")
        )
        #expect(scene.status("/a/") == 200)
        guard case .started(let report) = scene.inKeeper({ $0.beginLogout("o") }) else {
            Issue.record("not begun")
            return
        }
        scene.settle()
        let revocation = try #require(scene.issuerCalls.last)
        #expect(revocation.path == "/revoke" && revocation.authorization == Issuer.basic(1))
        #expect(scene.inKeeper { $0.login(report.flow) }?.detail == "forgotten here and revoked at the issuer")
        #expect(registrations(scene) == 1 && scene.store?.rows(RowKind.durable).isEmpty == true)
    }

    /// A reset cuts the grant off that waits for the client: the one that follows it sends the password, and no other.
    @Test func aGrantThatWasCutOffSendsNoPassword() throws {
        let scene = try scene(Self.plan("grant: password, username: u, password: env:P"))
        issuer.isSilent = true
        let caller = scene.call(Wire.get("/a/"))
        #expect(registrations(scene) == 1)
        _ = scene.inKeeper { $0.reset(identity: "o") }
        scene.settle()
        try release(scene)
        #expect(caller.status == 200 && registrations(scene) == 1)
        #expect(scene.issuerCalls.count { $0.member("grant_type") == "password" } == 1)
    }

    // MARK: - Reloads

    private func reload(_ scene: KeeperScene, to yaml: String?) throws {
        guard let yaml else {
            scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
            return
        }
        let change = try KeeperScene(yaml, store: scene.store == nil ? nil : MemoryStore()).change
        scene.inKeeper { $0.take(change) }
    }

    @Test func aClientComesBackWithItsIdentity() throws {
        let scene = try scene()
        #expect(scene.status("/a/") == 200)
        try reload(scene, to: nil)
        let kept = try #require(scene.store?.rows(RowKind.durable).first)
        #expect(kept.expiresWall != nil, "its 30 days are counted")
        try reload(scene, to: Self.plan())
        #expect(scene.store?.rows(RowKind.durable).map(\.expiresWall) == [nil])
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status("/a/") == 200 && registrations(scene) == 1)
    }

    @Test func aClientLeavesTheDiskWithPersistence() throws {
        let scene = try scene()
        #expect(scene.status("/a/") == 200 && scene.store?.rows(RowKind.durable).count == 1)
        try reload(scene, to: Self.plan(token: "persist: false"))
        #expect(scene.store?.rows(RowKind.durable).isEmpty == true)
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status("/a/") == 200 && registrations(scene) == 1, "memory has it still")
    }
}
