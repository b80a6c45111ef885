import ScriptedKernel
import Testing
internal import TokenStore

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// A registered device, as the keeper keeps it.
@Suite struct MobileFirstKeeperTests {
    private static let yaml = """
        identities:
          teller:
            mobilefirst:
              base: http://127.0.0.1:9100/mfp/api
              mode: registered
              application: com.acme.teller
              answers: { Pin: { pin: env:PIN } }
        routes:
          - { listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: teller, scopes: [read] }
        """

    /// Says yes to everything, after one challenge for each login.
    private static func server(_ request: Request) -> String? {
        func answer(_ status: String, _ fields: String = "", _ body: String = "{}") -> String {
            "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        let path = request.path.prefix { $0 != "?" }
        if path.hasSuffix("/self") { return answer("201 Created", "Location: /clients/c1\r\n") }
        if path.hasSuffix("/authorization") {
            return answer(
                "302 Found",
                "Location: http://127.0.0.1:9100/mfp/api/az/v1/authorization/redirect/c1?code=x\r\n")
        }
        if path.hasSuffix("/preauthorize"), !request.body.contains("challengeResponse") {
            return answer("401 No", "WWW-Authenticate: MFP-Challenge\r\n", #"{"challenges":{"Pin":null}}"#)
        }
        if path.hasSuffix("/token") {
            return answer("200 OK", "", #"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#)
        }
        return answer("200 OK")
    }

    @Test func aLogoutIsToldAndTheRegistrationGoes() throws {
        let secrets = Secrets()
        secrets["PIN"] = "4711"
        let store = MemoryStore()
        let scene = try KeeperScene(Self.yaml, store: store, secrets: secrets)
        scene.issuer = Self.server
        #expect(scene.status() == 200)
        #expect(store.rows(RowKind.durable).count == 2)
        scene.inKeeper { _ = $0.beginLogout($0.identities[0].plan.name) }
        scene.settle()
        let told = scene.issuerCalls.filter { $0.path.hasSuffix("/logout") }
        #expect(told.map { String($0.body.prefix(18)) } == ["security_check=Pin"])
        #expect(store.rows(RowKind.durable).isEmpty && store.rows(RowKind.session).isEmpty)
        #expect(scene.status() == 200)
        #expect(scene.issuerCalls.count { $0.path.hasSuffix("/self") } == 2)
    }

    @Test func aResetOrAPurgeKeepsTheRegistration() throws {
        let secrets = Secrets()
        secrets["PIN"] = "4711"
        let scene = try KeeperScene(Self.yaml, store: MemoryStore(), secrets: secrets)
        scene.issuer = Self.server
        #expect(scene.status() == 200)
        for cause in [EpochCause.reset, .purge] {
            scene.inKeeper { $0.raiseEpoch(of: $0.identities[0], cause: cause) }
            scene.settle()
            #expect(scene.status() == 200)
        }
        #expect(scene.issuerCalls.count { $0.path.hasSuffix("/self") } == 1)
        #expect(!scene.issuerCalls.contains { $0.path.hasSuffix("/logout") })
    }

    /// Its key is made on another thread, which may have too much to do.
    @Test func aDeviceIsRegisteredWhenItsKeyCanBeMade() throws {
        let (secrets, blocking) = (Secrets(), ScriptedWork())
        secrets["PIN"] = "4711"
        let scene = try KeeperScene(Self.yaml, store: MemoryStore(), secrets: secrets, blocking: blocking)
        scene.issuer = Self.server
        scene.settle()
        blocking.thread = .full
        #expect(scene.status() == 503 && !scene.issuerCalls.contains { $0.path.hasSuffix("/self") })
        blocking.thread = .free
        scene.pass(seconds: 60, step: 5)
        #expect(scene.status() == 200)
    }
}
