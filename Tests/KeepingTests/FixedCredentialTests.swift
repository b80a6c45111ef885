import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes

/// Credentials that nobody grants: what is read is what is sent. A program may make another value at each reading.
@Suite struct FixedCredentialTests {
    private let secrets = Secrets(restless: "P")

    private static func plan(_ identity: String) -> String {
        """
        identities: {b: {\(identity)}}
        routes:
          - {listen: "127.0.0.1:8080", match: {path: /a/}, realm: a, to: "http://127.0.0.1:9000", use: b}
          - {listen: "127.0.0.1:8080", match: {path: /b/}, realm: b, to: "http://127.0.0.1:9000", use: b}

        """
    }

    private func scene(_ identity: String, fleet: MemoryServer? = nil) throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan(identity), store: MemoryStore(), secrets: secrets, fleet: fleet)
        scene.settle()
        return scene
    }

    /// The credentials of the last two requests that the upstream got.
    private func sent(_ scene: KeeperScene) -> [String] { scene.upstreamCalls.suffix(2).map { $0.authorization ?? "" } }

    @Test func aValueThatIsNewAtEachReadingIsServedByAllRoutes() throws {
        let scene = try scene("static: {value: env:P}")
        let atStart = secrets.readings
        #expect(atStart <= 3)
        #expect(scene.status("/a/x") == 200 && scene.status("/b/x") == 200)
        let values = sent(scene)
        #expect(values.first == values.last && values.first == "value-\(atStart)")
        _ = scene.inKeeper { $0.purge(.identity("b")) }
        #expect((atStart + 1...atStart + 4).contains(secrets.readings))
        #expect(scene.status("/a/x") == 200 && scene.status("/b/x") == 200)
        #expect(sent(scene).allSatisfy { $0 == "value-\(secrets.readings)" })
    }

    @Test(arguments: [false, true]) func aPasswordThatIsNewAtEachReadingIsTriedOnce(_ isFleet: Bool) throws {
        let scene = try scene("basic: {username: u, password: env:P}", fleet: isFleet ? MemoryServer() : nil)
        #expect(scene.status("/a/x") == 200 && scene.status("/b/x") == 200)
        #expect(secrets.readings <= 4)
        let values = sent(scene)
        #expect(values.first == values.last && values.first?.hasPrefix("Basic ") == true)
    }

    @Test(arguments: [false, true]) func whoWaitsForATryMakesItWithTheNewPassword(_ isFleet: Bool) throws {
        let scene = try scene("basic: {username: u, password: env:P}", fleet: isFleet ? MemoryServer() : nil)
        let caller = scene.call(Wire.get("/a/x"), settles: false)
        for loop in scene.loops { loop.data.loop.turnOnce() }
        scene.inKeeper { $0.secretsMayHaveChanged() }
        scene.settle()
        #expect(caller.status == 200)
    }

    // MARK: - A key and its id

    private func signer(_ secrets: Secrets) throws -> KeeperScene {
        let settings = "access_key_id: env:ID, secret_access_key: env:KEY, service: x, region: y"
        let scene = try KeeperScene(Self.plan("aws_sigv4: {\(settings)}"), secrets: secrets)
        scene.settle()
        return scene
    }

    /// The id of the key that the next request is signed with.
    private func signingID(_ scene: KeeperScene) -> Substring? {
        #expect(scene.status("/a/x") == 200)
        return sent(scene).last?.split(separator: "=")[1].prefix { $0 != "/" }
    }

    @Test func aPairThatIsReplacedInTwoStepsIsServedAsItWasUntilBothAreThere() throws {
        let secrets = Secrets(["ID": "OLD", "KEY": "old"])
        let scene = try signer(secrets)
        #expect(signingID(scene) == "OLD")
        secrets["ID"] = "NEW"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        #expect(signingID(scene) == "OLD")
        scene.pass(seconds: 0.5)
        #expect(signingID(scene) == "OLD")
        secrets["KEY"] = "new"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        #expect(signingID(scene) == "NEW")
        scene.pass(seconds: 5)
        #expect(signingID(scene) == "NEW")
    }

    /// The other half may be right as it is.
    @Test func anIDThatIsReplacedAloneCountsAfterAMoment() throws {
        let secrets = Secrets(["ID": "OLD", "KEY": "old"])
        let scene = try signer(secrets)
        secrets["ID"] = "NEW"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        #expect(signingID(scene) == "OLD")
        scene.pass(seconds: 1.1)
        #expect(signingID(scene) == "NEW")
    }
}
