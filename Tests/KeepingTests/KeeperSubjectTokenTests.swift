import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Exchanges of another identity's token (RFC 8693): a new one is had for each, kept nowhere, and its failure is the exchange's.
@Suite struct KeeperSubjectTokenTests {
    /// Numbers the base's tokens, and exchanges whatever is brought.
    private final class Issuer {
        var granted = 0
        var fails: String?

        func answer(_ request: Request) -> String? {
            if let subject = request.member("subject_token") { return Wire.bearer("for-\(subject)") }
            if let fails { return fails }
            granted += 1
            return Wire.bearer("b\(granted)")
        }
    }

    private static let plan = """
        identities:
          base: {oauth2: {token_url: "http://127.0.0.1:9100/base", client_id: b, client_secret: env:B}, scopes: [low]}
          x:
            oauth2:
              {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, grant: token_exchange,
               subject_token: {identity: base}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: x}

        """

    private let issuer = Issuer()

    private func scene(store: MemoryStore? = nil, secrets: Secrets = Secrets()) throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan, store: store, secrets: secrets)
        scene.issuer = issuer.answer
        return scene
    }

    @Test func eachExchangeHasATokenOfItsOwnWithTheScopesOfItsIdentity() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        #expect(scene.status() == 200)
        #expect(scene.issuerCalls.map(\.path) == ["/base", "/token"] && scene.issuerCalls[0].member("scope") == "low")
        #expect(scene.upstreamCalls.last?.authorization == "Bearer for-b1")
        #expect(store.rows(RowKind.access).count == 1, "what is exchanged is kept nowhere")
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status() == 200 && scene.upstreamCalls.last?.authorization == "Bearer for-b2")
    }

    @Test func aBaseThatCannotBeHadIsTheExchangesFailure() throws {
        let scene = try scene()
        issuer.fails = Wire.unavailable
        let caller = scene.call()
        #expect(caller.status == 503 && scene.issuerCalls.map(\.path) == ["/base"])
        let failures = scene.inKeeper { $0.status().identities.map { $0.lastFailure?.contains("503") } }
        #expect(failures == [true, true], "operators see it at both")
        issuer.fails = nil
        scene.pass(seconds: 30)
        #expect(scene.status() == 200)
    }

    /// The base's client secret is marked as any other, and no exchange sends it again.
    @Test func aBaseThatIsRefusedIsNotAskedForAgain() throws {
        let (store, secrets) = (MemoryStore(), Secrets())
        let scene = try scene(store: store, secrets: secrets)
        issuer.fails = Wire.json(#"{"error":"invalid_client"}"#, status: 401)
        #expect(scene.status() == 503 && scene.issuerCalls.count == 1)
        #expect(!store.rows(RowKind.attempt).isEmpty)
        _ = scene.inKeeper { $0.reset(identity: "x") }
        #expect(scene.status() == 503 && scene.issuerCalls.count == 1)
        // Not by a process that comes after it either.
        let next = try self.scene(store: store, secrets: secrets)
        #expect(next.status() == 503 && next.issuerCalls.isEmpty)
        issuer.fails = nil
        _ = next.inKeeper { [$0.reset(identity: "base"), $0.reset(identity: "x")] }
        #expect(next.status() == 200)
    }

    @Test func aBaseThatAReloadTookAwayIsAskedForByNobody() throws {
        let scene = try scene()
        let change = scene.change
        scene.inKeeper { keeper in
            let left = change.identities.filter { $0.plan.name == "x" }
            keeper.take(
                KeeperChange(
                    identities: left, routes: change.routes, keys: change.keys.filter { $0.identity.plan.name == "x" },
                    subjects: keeper.users.limits))
        }
        #expect(scene.status() >= 500 && scene.issuerCalls.isEmpty)
        let told = scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told.contains("no identity named base"), "\(told)")
    }
}
