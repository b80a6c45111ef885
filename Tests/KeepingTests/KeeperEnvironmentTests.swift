import Octets
import ScriptedKernel
import Synchronization
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// The keeper as a running handshake sees it: what it keeps for it, reads for it and asks for it.
@Suite struct KeeperEnvironmentTests {
    private static func material(_ text: String) -> LayerMaterial {
        LayerMaterial(bytes: Secret(text), obtainedAt: 1, lifetime: nil)
    }

    /// The end of a handshake's work.
    private final class Outcome: Sendable {
        let failure = Mutex<Handshakes.GrantFailure?>(nil)
        let ended = Mutex(false)
    }

    /// Runs work with an environment of the first identity that was made before `meanwhile`.
    private func run(
        _ scene: KeeperScene, meanwhile: () -> Void = {},
        _ work: @escaping @Sendable (KeeperEnvironment) async throws(Handshakes.GrantFailure) -> Void
    ) -> Outcome {
        let outcome = Outcome()
        let environment = scene.inKeeper { $0.environment(of: $0.identities[0]) }
        meanwhile()
        scene.inKeeper { keeper in
            _ = keeper.start { _ in
                do throws(Handshakes.GrantFailure) { try await work(environment) } catch {
                    outcome.failure.withLock { $0 = error }
                }
                outcome.ended.withLock { $0 = true }
            }
        }
        scene.settle()
        return outcome
    }

    // MARK: - Durable parts

    /// A registration access token that the server rotates takes the place of the one before.
    @Test func aPartThatIsReplacedIsOnDiskBeforeTheHandshakeGoesOn() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.client(), store: store)
        for text in ["one", "two"] {
            let outcome = run(scene) { environment async throws(Handshakes.GrantFailure) in
                try await environment.commit(.registration, Self.material(text))
            }
            #expect(outcome.ended.withLock { $0 } && outcome.failure.withLock { $0 } == nil)
        }
        #expect(store.rows(RowKind.durable).count == 1)
        let next = try KeeperScene(Plans.client(), store: store)
        let found = Mutex<LayerMaterial?>(nil)
        _ = run(next) { environment async throws(Handshakes.GrantFailure) in
            let part = await environment.durable(.registration)
            found.withLock { $0 = part }
        }
        #expect(found.withLock { $0?.bytes } == Secret("two"))
    }

    @Test func aPartThatComesAfterALogoutIsNotKept() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.client(), store: store)
        let outcome = run(scene, meanwhile: { _ = scene.inKeeper { $0.beginLogout("o") } }) {
            environment async throws(Handshakes.GrantFailure) in
            try await environment.commit(.registration, Self.material("late"))
        }
        #expect(outcome.failure.withLock { $0 } == .timedOut(step: "superseded by a logout"))
        #expect(store.rows(RowKind.durable).isEmpty)
    }

    // MARK: - Attempts

    /// An attempt is settled by the secret that was sent, once.
    @Test func anAttemptThatIsSettledTwiceCountsOnce() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(
            Plans.client(identity: "grant: password, username: u, password: env:P"), store: store)
        let outcome = run(scene) { environment async throws(Handshakes.GrantFailure) in
            await environment.settleAttempt(.rejected, secret: nil)
            try await environment.spendAttempt(user: "u", secret: "password")
            await environment.settleAttempt(.rejected, secret: "client_secret")
            await environment.settleAttempt(.notSent, secret: "password")
            await environment.settleAttempt(.rejected, secret: "password")
        }
        #expect(outcome.ended.withLock { $0 } && outcome.failure.withLock { $0 } == nil)
        #expect(scene.inKeeper { !$0.attemptsRefused($0.identities[0]) })
        let rows = store.rows(RowKind.attempt)
        #expect(rows.isEmpty, "nothing was sent, so that nothing is booked: \(rows)")
    }

    @Test func aSecretThatNobodyConfiguredIsNotRead() throws {
        let scene = try KeeperScene(Plans.client())
        let outcome = run(scene) { environment async throws(Handshakes.GrantFailure) in
            _ = try await environment.secret("nothing")
        }
        #expect(outcome.failure.withLock { $0 } == .internal(reason: "no secret named nothing"))
    }

    // MARK: - Secrets that turn

    /// The token of a file may be rotated between its reading and its refusal: the new one is read and sent at once.
    @Test func aTokenThatWasRotatedWhileItWasSentIsReadAgain() throws {
        let plan = """
            identities:
              m:
                mobile_hub:
                  {base_url: "http://127.0.0.1:9100", backend_id: 00000000-1111-2222-3333-444444444444,
                   method: token_exchange, third_party_token: env:T}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: m}

            """
        let secrets = Secrets(["T": "old"])
        let scene = try KeeperScene(plan, secrets: secrets)
        scene.issuer = { request in
            guard request.authorization == "Bearer new" else {
                secrets["T"] = "new"
                return Wire.json("{}", status: 401)
            }
            return Wire.json(#"{"access_token":"mobile","expires_in":"21600"}"#)
        }
        #expect(scene.status() == 200)
        #expect(scene.issuerCalls.map(\.authorization) == ["Bearer old", "Bearer new"])
        // A second refusal is one of what stands there now.
        secrets["T"] = "old"
        scene.issuer = { _ in Wire.json("{}", status: 401) }
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        let before = scene.issuerCalls.count
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.issuerCalls.count == before + 1)
    }

    // MARK: - The upstream

    /// The place that an API's challenge names is asked as the route reaches its upstream, and nowhere else.
    @Test(arguments: ["http://127.0.0.1:9000/meta", "http://127.0.0.1:9999/meta"])
    func metadataOfAnAPIIsAskedOfTheAPIAlone(_ place: String) throws {
        let events = try EventLog()
        let plan = Plans.client(identity: #"allowed_issuers: ["http://127.0.0.1:9200"]"#)
        let scene = try KeeperScene(plan, events: events)
        let issuer = NumberedIssuer()
        scene.issuer = { $0.path == "/meta" ? Wire.json("{}", status: 404) : issuer.answer($0) }
        scene.upstream = { request in
            if request.authorization == "Bearer t2" { return Wire.ok("in") }
            return "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer resource_metadata=\"\(place)\"\r\n"
                + "Content-Length: 0\r\n\r\n"
        }
        #expect(scene.status() == 200 && issuer.granted == 2)
        let isAsked = scene.issuerCalls.contains { $0.path == "/meta" }
        #expect(isAsked == place.contains(":9000"))
        let told = events.takeTold().filter { $0.hasPrefix("handshake identity=o reason=the API's challenge leads to") }
        #expect(told.count == 1, "\(told)")
        #expect(scene.issuers.allSatisfy { $0.address?.port != 9999 })
    }

    // MARK: - Pauses

    /// The service asks for another try: it is made after a pause, and a second one after a longer one.
    @Test func aServiceThatAsksForAnotherTryHasItAfterAPause() throws {
        let adobe = KeeperOneTimeTests.Adobe()
        let scene = try KeeperScene(KeeperOneTimeTests.plan(), store: MemoryStore())
        scene.issuer = adobe.answer
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("p"), obtainedAt: keeper.now, lifetime: 3_600_000_000_000, isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        #expect(scene.status("/CH1") == 200)
        let before = scene.issuerCalls.count
        adobe.fails = Wire.json(#"{"status":500,"action":"retry","code":"internal_server_error"}"#, status: 500)
        let caller = scene.call(Wire.get("/CH1"))
        #expect(scene.issuerCalls.count == before + 1 && caller.status == nil)
        scene.pass(seconds: 0.6, step: 0.1)
        #expect(scene.issuerCalls.count == before + 2 && caller.status == nil)
        adobe.fails = nil
        scene.pass(seconds: 1.1, step: 0.1)
        #expect(scene.issuerCalls.count == before + 3 && caller.status == 200)
    }
}
