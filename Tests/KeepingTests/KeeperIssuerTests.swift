import ScriptedKernel
import TLS
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// The ways to issuers: proxies, addresses of the configuration, certificates that are shown, and how many issuers there may be.
@Suite struct KeeperIssuerTests {
    private let issuer = NumberedIssuer()

    private func scene(_ url: String, network: String, events: EventLog? = nil) throws -> KeeperScene {
        let plan = Plans.client().replacing("http://127.0.0.1:9100/token", with: url)
            .replacing("    token: {}", with: "    network: {\(network)}")
        let scene = try KeeperScene(plan, events: events)
        scene.issuer = issuer.answer
        return scene
    }

    private func ports(_ scene: KeeperScene) -> [UInt16?] { scene.issuers.map { $0.address?.port } }

    // MARK: - Where to connect

    @Test func anIssuerBehindAProxyIsNamedToIt() throws {
        let scene = try scene(
            "http://idp.example.com:9100/token", network: #"proxy: "http://127.0.0.1:3128", allow_cleartext: true"#)
        #expect(scene.status() == 200 && ports(scene) == [3128])
        #expect(scene.issuerCalls.map(\.path) == ["http://idp.example.com:9100/token"])
    }

    @Test func anIssuerThatItsProxyIsNotForIsReachedWithoutIt() throws {
        let scene = try scene(
            "http://localhost:9100/token",
            network: #"proxy: {url: "http://127.0.0.1:3128", except: [localhost]}, resolve: {localhost: 127.0.0.1}"#)
        #expect(scene.status() == 200 && ports(scene) == [9100] && scene.issuerCalls.map(\.path) == ["/token"])
    }

    @Test func addressesOfTheConfigurationTakeTheResolversPlace() throws {
        let scene = try scene(
            "http://idp.example.com:9100/token",
            network: "resolve: {idp.example.com: 127.0.0.7}, allow_cleartext: true")
        #expect(scene.status() == 200 && ports(scene) == [9100])
        #expect(scene.issuers.first?.address.map { "\($0)" }?.contains("127.0.0.7") == true)
        #expect(scene.issuerCalls.first?.field("host") == "idp.example.com:9100")
    }

    @Test func anIssuerThatSpeaksNoTLSIsToldOf() throws {
        let events = try EventLog()
        let scene = try scene("https://127.0.0.1:9443/token", network: "timeout: 10s", events: events)
        let caller = scene.call()
        #expect(ports(scene) == [9443] && caller.status == nil)
        scene.issuers[0].send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(caller.status == 503)
        let told = events.takeTold().filter { $0.hasPrefix("issuer TLS failed issuer=https://127.0.0.1:9443 reason=") }
        #expect(told.count == 1)
    }

    // MARK: - Certificates

    /// Tokens may be bound to the certificate that was shown when they were had (RFC 8705).
    @Test func aTokenOfAFormerCertificateIsNotServed() throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = issuer.answer
        #expect(scene.status() == 200 && issuer.granted == 1)
        let (keys, others) = (ClientKeys([]), ClientKeys([]))
        scene.inKeeper { keeper in
            let identity = keeper.identities[0]
            var policy = identity.policy
            policy.network.clientKeys = keys
            identity.take(
                KeptIdentity(
                    plan: identity.plan, digest: identity.digest, policy: policy, account: identity.account,
                    issuer: identity.issuer))
        }
        scene.inKeeper { $0.clientKeysChanged(others) }
        #expect(scene.status() == 200 && issuer.granted == 1, "it is shown by others")
        scene.inKeeper { $0.clientKeysChanged(keys) }
        // A connection is not made without the certificate that it is to show, and there is none here.
        let sent = scene.upstreamCalls.count
        #expect(scene.status() == 503 && issuer.granted == 1 && scene.upstreamCalls.count == sent)
    }

    // MARK: - How many

    /// Reloads and discovery bring new issuers; those that nobody is connected to any more make room.
    @Test func issuersThatNobodyIsConnectedToMakeRoom() throws {
        let count = IssuerCalls.most + 1
        var text = "identities:\n"
        var routes = "routes:\n"
        for number in 0..<count {
            text += "  i\(number): {oauth2: {token_url: \"http://127.0.0.1:\(20_000 + number)/token\", client_id: c, "
            text += "client_secret: env:S}}\n"
            routes += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: i\(number), "
            routes += "match: {path: \"/\(number)/\"}, name: r\(number)}\n"
        }
        let scene = try KeeperScene(text + routes, slots: count + 8)
        scene.issuer = issuer.answer
        scene.issuer = { _ in nil }
        let callers = (0..<count - 1).map { scene.call(Wire.get("/\($0)/"), settles: $0 % 64 == 63) }
        #expect(scene.issuerCalls.count == count - 1 && callers.allSatisfy { $0.status == nil })
        let late = scene.call(Wire.get("/\(count - 1)/"))
        #expect(late.status == 503 && scene.issuerCalls.count == count - 1, "all of them are being called")
        for peer in scene.issuers { peer.send(Wire.bearer("t")) }
        scene.settle()
        #expect(callers.allSatisfy { $0.status == 200 })
        scene.issuer = issuer.answer
        scene.pass(seconds: 60, step: 10)
        #expect(scene.status("/\(count - 1)/") == 200 && issuer.granted == 1)
    }
}
