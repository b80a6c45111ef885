import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// Credentials that are good for one request, from the keeper's side: who gets one, and who is told what without a call to the issuer.
@Suite struct KeeperOneTimeTests {
    /// Adobe, which numbers its media tokens.
    final class Adobe {
        var media = 0
        var registrations = 0
        var isSilent = false
        var rejectsStatement = false
        /// Set: answers this instead.
        var fails: String?
        /// Resources that are denied.
        var denied: (String) -> Bool = { _ in false }
        var preview = Wire.json(#"{"decisions":[{"resource":"CH1","authorized":true}]}"#)

        func answer(_ request: Request) -> String? {
            if isSilent { return nil }
            if let fails { return fails }
            switch request.path.split(separator: "?")[0] {
            case "/o/client/register":
                registrations += 1
                if rejectsStatement { return Wire.json(#"{"error":"invalid_software_statement"}"#, status: 400) }
                return Wire.json(#"{"client_id":"c","client_secret":"s"}"#, status: 201)
            case "/o/client/token":
                return Wire.json(#"{"access_token":"at","expires_in":36000}"#, status: 201)
            case "/api/v2/NORTH1/decisions/authorize/CableCo":
                media += 1
                let resource = request.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
                let verdict =
                    denied(resource)
                    ? #""authorized":false,"error":{"action":"none","code":"denied_by_mvpd"}"#
                    : #""authorized":true,"token":{"serializedToken":"m\#(media)"}"#
                return Wire.json(#"{"decisions":[{"resource":"\#(resource)",\#(verdict)}]}"#)
            case "/api/v2/NORTH1/decisions/preauthorize/CableCo": return preview
            default: return Wire.json("{}", status: 404)
            }
        }
    }

    static func plan(_ token: String = "", identity: String = "", pace: String = "1000") -> String {
        """
        identities:
          tv:
            adobe_pass:
              {base_url: "http://127.0.0.1:9100", service_provider: NORTH1, mvpd: CableCo, software_statement: env:S,
               domain_name: north.example, resource: "{path.1}", calls_per_second: \(pace), burst: \(pace)\(identity)}
            token: {\(token)}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: tv, inject: {header: X-Media}}

        """
    }

    private let adobe = Adobe()

    private func scene(
        _ yaml: String = plan(), store: MemoryStore? = MemoryStore(), secrets: Secrets = Secrets(),
        loggedIn: Bool = true
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets)
        scene.issuer = adobe.answer
        scene.settle()
        guard loggedIn else { return scene }
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("p"), obtainedAt: keeper.now, lifetime: 3_600_000_000_000, isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        return scene
    }

    private func sent(_ scene: KeeperScene) -> [String?] { scene.upstreamCalls.map { $0.field("x-media") } }

    @Test func eachRequestHasOneOfItsOwn() throws {
        let scene = try scene()
        for _ in 0..<3 { #expect(scene.status("/CH1") == 200) }
        #expect(sent(scene) == ["m1", "m2", "m3"] && adobe.registrations == 1)
    }

    // MARK: - Known ahead

    @Test func whatIsKnownAheadCostsNoCall() throws {
        let offline = try scene(Self.plan("connectivity: offline"))
        let caller = offline.call(Wire.get("/CH1"))
        #expect(caller.status == 503 && caller.receivedText.contains("identity tv is configured to be offline"))
        let handed = try scene()
        handed.inKeeper { $0.stopGranting {} }
        let told = handed.call(Wire.get("/CH1"))
        #expect(told.status == 503 && told.receivedText.contains("problems/upgrading"))
        #expect(told.receivedText.contains("Retry-After: 1\r\n"))
        #expect(adobe.media == 0 && offline.upstreamCalls.isEmpty && handed.upstreamCalls.isEmpty)
    }

    @Test func aStatementThatCannotBeReadIsToldAsThat() throws {
        let secrets = Secrets()
        let scene = try scene(secrets: secrets)
        secrets.missing = ["S"]
        let caller = scene.call(Wire.get("/CH1"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/secret-unreadable"))
        #expect(scene.issuerCalls.isEmpty)
        secrets.missing = []
        #expect(scene.status("/CH1") == 200)
    }

    // MARK: - Denials

    @Test func aDenialIsToldAgainForAWhileWithoutACall() throws {
        let scene = try scene()
        adobe.denied = { $0 == "CH7" }
        for _ in 0..<3 {
            let caller = scene.call(Wire.get("/CH7"))
            #expect(caller.status == 403 && caller.receivedText.contains("denied_by_mvpd"))
        }
        #expect(adobe.media == 1 && scene.status("/CH1") == 200)
        adobe.denied = { _ in false }
        scene.pass(seconds: 6)
        #expect(scene.status("/CH7") == 200 && scene.upstreamCalls.count == 2)
    }

    /// Somebody tries every resource that there is.
    @Test func denialsAreBounded() throws {
        let scene = try scene()
        adobe.denied = { _ in true }
        func kept() -> Int { scene.inKeeper { $0.identities[0].denials.count } }
        for number in 0..<256 { #expect(scene.status("/A\(number)") == 403) }
        #expect(kept() == 256)
        // All of them stand still: they give way together.
        #expect(scene.status("/B") == 403 && kept() == 1 && adobe.media == 257)
        #expect(scene.status("/B") == 403 && adobe.media == 257)
        for number in 0..<200 { #expect(scene.status("/C\(number)") == 403) }
        scene.pass(seconds: 3)
        for number in 0..<55 { #expect(scene.status("/D\(number)") == 403) }
        scene.pass(seconds: 3)
        // Tokens whose time is over make room, and the others stay.
        let asked = adobe.media
        #expect(scene.status("/E") == 403 && kept() == 56)
        #expect(scene.status("/D3") == 403 && adobe.media == asked + 1)
    }

    // MARK: - Many at once

    @Test func whoWaitsBeyondTheBoundComesAgain() throws {
        let scene = try scene()
        adobe.isSilent = true
        let callers = (0..<OneTimeTickets.mostOfIdentity).map { _ in scene.call(Wire.get("/CH1"), settles: false) }
        scene.settle()
        #expect(callers.allSatisfy { $0.status == nil })
        let late = scene.call(Wire.get("/CH1"))
        #expect(late.status == 503 && late.receivedText.contains("Retry-After: 1\r\n"))
        // A request that leaves makes room.
        callers[0].reset()
        scene.settle()
        #expect(scene.call(Wire.get("/CH1")).status == nil)
        #expect(scene.upstreamCalls.isEmpty)
    }

    /// A media token is fetched once more for whom the service has refused it, and what it then says is the caller's.
    @Test func aSecondRefusalIsTheCallers() throws {
        let yaml = Self.plan().replacing("inject:", with: "on_rejected: {statuses: [403], final: pass}, inject:")
        let scene = try scene(yaml)
        scene.upstream = { _ in "HTTP/1.1 403 Not here\r\nContent-Length: 4\r\n\r\nwhy!" }
        let caller = scene.call(Wire.get("/CH1"))
        #expect(caller.status == 403 && caller.receivedText.hasSuffix("why!"))
        #expect(sent(scene) == ["m1", "m2"] && adobe.media == 2)
    }

    // MARK: - For operators

    @Test func aPreviewThatFailsSaysSoUntilTheNext() throws {
        let scene = try scene(Self.plan(identity: ", preauthorize: [CH1]"))
        func facts() -> [String] {
            _ = scene.inKeeper { $0.status() }
            scene.settle()
            return scene.inKeeper { $0.status().identities[0].facts.map { "\($0.0): \($0.1)" } }
        }
        adobe.preview = Wire.json("{}", status: 403)
        let told = facts()
        #expect(told.count == 1 && told[0].hasPrefix("preview: ") && told[0].contains("403"), "\(told)")
        let asked = scene.issuerCalls.count
        #expect(facts() == told && scene.issuerCalls.count == asked, "not asked at each look")
        adobe.preview = Adobe().preview
        scene.pass(seconds: 301, step: 10)
        #expect(facts() == ["CH1: would be authorized"])
    }
}
