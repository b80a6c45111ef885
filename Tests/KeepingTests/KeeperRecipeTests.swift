import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Secrets of several steps and checks, from the keeper's side: each has attempts of its own, and operators see the course of a run.
@Suite struct KeeperRecipeTests {
    private static let plan = """
        identities:
          r:
            recipe:
              secrets:
                one: {value: env:A, to: "http://127.0.0.1:9100"}
                two: {value: env:B, to: "http://127.0.0.1:9101"}
              steps:
                - {name: login, post: "http://127.0.0.1:9100/login", form: {password: "{secret.one}"},
                   rejected: {status: [401]}, take: {session: {json: /session}}}
                - {name: access, post: "http://127.0.0.1:9101/token", form: {pin: "{secret.two}", in: "{login.session}"},
                   rejected: {status: [401]}, take: {token: {json: /token}}}
              token: "{access.token}"
              attempts: {json: /left}
              inject: {header: Authorization, value: "House {token}"}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: r}

        """

    /// Set: the answer of the second step.
    private final class House {
        var refusal: String?

        func answer(_ request: Request) -> String? {
            if request.path == "/login" { return Wire.json(#"{"session":"s"}"#) }
            return refusal ?? Wire.json(#"{"token":"h"}"#)
        }
    }

    private let house = House()

    private func scene(_ store: MemoryStore = MemoryStore(), secrets: Secrets = Secrets()) throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan, store: store, secrets: secrets)
        scene.issuer = house.answer
        return scene
    }

    private func pins(_ scene: KeeperScene) -> Int { scene.issuerCalls.count { $0.path == "/token" } }

    @Test func operatorsSeeTheCourseOfARun() throws {
        let scene = try scene()
        #expect(scene.status() == 200 && scene.upstreamCalls.last?.authorization == "House h")
        let good = try #require(scene.inKeeper { $0.identities[0].lastRun })
        #expect(good.outcome.hasPrefix("token of 1 bytes"), "\(good.outcome)")
        house.refusal = Wire.json("{}", status: 401)
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status() == 503)
        let bad = try #require(scene.inKeeper { $0.identities[0].lastRun })
        #expect(bad.outcome.contains("access: status 401"), "\(bad.outcome)")
    }

    /// The issuer says how many more it would judge: one alone is not spent, by no process that comes after either.
    @Test(arguments: [(1, 1), (5, 1)]) func theAttemptsThatARefusalLeavesAreHeeded(_ left: Int, _ sent: Int) throws {
        let (store, secrets) = (MemoryStore(), Secrets())
        let scene = try scene(store, secrets: secrets)
        house.refusal = Wire.json(#"{"left":\#(left)}"#, status: 401)
        #expect(scene.status() == 503 && pins(scene) == sent)
        #expect(store.rows(RowKind.attempt).count == 1, "the password of the first step is none of it")
        let next = try self.scene(store, secrets: secrets)
        house.refusal = nil
        let caller = next.call()
        #expect(caller.status == 503 && pins(next) == 0)
        #expect(caller.receivedText.contains("problems/credential-quarantined"))
        _ = next.inKeeper { $0.reset(identity: "r") }
        #expect(next.status() == 200 && pins(next) == 1)
    }

    /// The server locks each check of a device by itself.
    @Test func eachCheckOfADeviceHasAnAccountOfItsOwn() throws {
        let yaml = """
            identities:
              teller:
                mobilefirst:
                  {base: "http://127.0.0.1:9100/mfp/api", mode: registered, application: com.acme.teller,
                   answers: {Pin: {pin: env:PIN}, Otp: {code: env:OTP}}}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: teller, scopes: [read]}

            """
        let scene = try KeeperScene(yaml, store: MemoryStore())
        let accounts = scene.inKeeper { $0.identities[0].accounts.map { "\($0.user)" } }
        #expect(accounts.count == Set(accounts).count && accounts.count >= 2, "\(accounts)")
        let (otp, pin) = (accounts.firstIndex { $0.contains("Otp") }, accounts.firstIndex { $0.contains("Pin") })
        #expect(try #require(otp) < #require(pin), "in an order that is always the same")
    }

    @Test func aSecretThatIsNobodysPasswordLocksNoAccount() throws {
        let scene = try KeeperScene(
            "identities: {a: {static: {value: env:V}}}\n"
                + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: a}\n",
            store: MemoryStore())
        #expect(scene.status() == 200)
        let isReset = scene.inKeeper { $0.reset(identity: "a") }
        #expect(isReset && scene.inKeeper { $0.identities[0].accounts.isEmpty })
        #expect(scene.store?.rows(RowKind.attempt).isEmpty == true && scene.status() == 200)
    }
}
