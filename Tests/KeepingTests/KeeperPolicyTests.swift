import Octets
import ScriptedKernel
import TLS
import Testing

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// Every word of `token:`, as callers feel it, on a clock that the test moves. Grants last 100 s: due at 80 (up to 2 earlier), served
/// until 95, expired at 100.
@Suite struct KeeperPolicyTests {
    private func warm(
        _ token: String = "", loops: Int = 1, store: MemoryStore? = nil
    ) throws -> (KeeperScene, NumberedIssuer) {
        let scene = try KeeperScene(Plans.client(token), loops: loops, store: store)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        return (scene, issuer)
    }

    private func lastToken(_ scene: KeeperScene) -> String? { scene.upstreamCalls.last?.authorization }

    // MARK: - refresh_ahead

    @Test func aTokenIsRenewedAheadByItsFirstUsePastTheMark() throws {
        let (scene, issuer) = try warm()
        scene.pass(seconds: 77)
        #expect(scene.status() == 200 && issuer.granted == 1)
        // Nobody uses it: nobody renews it.
        scene.pass(seconds: 5)
        #expect(issuer.granted == 1)
        #expect(scene.status() == 200 && issuer.granted == 2 && lastToken(scene) == "Bearer t1")
        #expect(scene.status() == 200 && issuer.granted == 2 && lastToken(scene) == "Bearer t2")
    }

    @Test(arguments: [("50%", 44.0, 52.0), ("30s", 66.0, 72.0), ("10s", 88.0, 92.0)])
    func refreshAheadIsAShareOrASpan(_ text: String, early: Double, late: Double) throws {
        let (scene, issuer) = try warm("refresh_ahead: \(text)")
        scene.pass(seconds: early)
        _ = scene.status()
        #expect(issuer.granted == 1)
        scene.pass(seconds: late - early)
        _ = scene.status()
        #expect(issuer.granted == 2)
    }

    @Test func identitiesDoNotRenewInStep() throws {
        var marks: Set<UInt64> = []
        for _ in 0..<8 {
            let (scene, _) = try warm()
            if let grant = scene.inKeeper({ $0.tokens.all.first?.machine.heldGrant }) {
                marks.insert(grant.lifetime.refreshAt)
                #expect(grant.lifetime.expiresAt - grant.lifetime.refreshAt <= 22_000_000_000)
            }
        }
        #expect(marks.count > 4)
    }

    @Test func defaultLifetimeHoldsWhereTheIssuerSaysNone() throws {
        let scene = try KeeperScene(Plans.client("default_lifetime: 40s"))
        scene.issuer = { _ in Wire.json(#"{"access_token":"t","token_type":"Bearer"}"#) }
        #expect(scene.status() == 200)
        scene.pass(seconds: 37)
        #expect(scene.status() == 200 && scene.issuerCalls.count == 2)
    }

    @Test(arguments: [("\"100\"", 100.0), ("100.0", 100), ("1e2", 100), ("99999999999999999999", 31_536_000)])
    func lifetimesComeAsNumbersAndStrings(_ text: String, seconds: Double) throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = { _ in Wire.bearer("t", expiresIn: text) }
        #expect(scene.status() == 200)
        let life = scene.inKeeper { $0.tokens.all.first?.machine.heldGrant?.lifetime.original }
        #expect(life == UInt64(seconds * 1e9))
    }

    @Test(arguments: [(1_000, nil, 1_000), (1_000, 0, 1_000), (5_000, 0, 5_000), (1_000, 500, 500), (-50, -950, 900)])
    func aJWTSaysItselfHowLongItLives(expires: Int64, issued: Int64?, seconds: UInt64) throws {
        let scene = try KeeperScene(Plans.client())
        let now = scene.keeperKernel.wallMilliseconds() / 1000
        let iat = issued.map { ",\"iat\":\(now + $0)" } ?? ""
        let payload = Base64.encodeURL(Array("{\"exp\":\(now + expires)\(iat)}".utf8))
        scene.issuer = { _ in Wire.json(#"{"access_token":"e30.\#(payload).c2ln","token_type":"Bearer"}"#) }
        #expect(scene.status() == 200)
        let life = scene.inKeeper { $0.tokens.all.first?.machine.heldGrant?.lifetime.original }
        #expect(life == seconds * 1_000_000_000)
    }

    // MARK: - on_issuer_failure

    @Test func serveValid_AnIssuerThatIsDownIsNotFeltWhileTheTokenLives() throws {
        let (scene, issuer) = try warm()
        issuer.fails = Wire.unavailable
        scene.pass(seconds: 82)
        for _ in 0..<12 {
            #expect(scene.status() == 200)
            scene.pass(seconds: 1)
        }
        #expect(scene.state == .renewalFailing)
        scene.pass(seconds: 1.5)
        #expect(scene.status() == 503)
        issuer.fails = nil
        scene.pass(seconds: 40)
        #expect(scene.status() == 200)
    }

    @Test func serveExpiredFor_CarriesOnPastTheExpiry() throws {
        let (scene, issuer) = try warm("on_issuer_failure: {serve_expired_for: 60s}")
        issuer.fails = Wire.unavailable
        scene.pass(seconds: 82)
        #expect(scene.status() == 200)
        scene.pass(seconds: 70)
        #expect(scene.status() == 200 && scene.state == .expiredServed)
        scene.pass(seconds: 10)
        #expect(scene.status() == 503)
    }

    @Test func fail_StopsServingWhenARenewalFails() throws {
        let (scene, issuer) = try warm("on_issuer_failure: fail")
        issuer.fails = Wire.unavailable
        scene.pass(seconds: 82)
        #expect(scene.status() == 200)
        #expect(scene.status() == 503)
    }

    // MARK: - negative_for

    @Test func aDownIssuerIsAskedSeldomHoweverManyCall() throws {
        let scene = try KeeperScene(Plans.client("negative_for: 10s"))
        scene.issuer = { _ in Wire.unavailable }
        for _ in 0..<200 {
            let caller = scene.call()
            #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: "))
            scene.pass(seconds: 0.5)
        }
        // 100 s of waits that grow to 5–10 s.
        #expect((8...30).contains(scene.issuerCalls.count), "\(scene.issuerCalls.count)")
    }

    @Test(arguments: [("20", 20), ("999999999999", 300), ("Tue, 14 Nov 2023 22:33:20 GMT", 1)])
    func retryAfterIsObeyedWithinBounds(_ text: String, seconds: Int) throws {
        let scene = try KeeperScene(Plans.client("negative_for: 1s"))
        scene.issuer = { _ in
            "HTTP/1.1 503 No\r\nRetry-After: \(text)\r\nContent-Length: 0\r\n\r\n"
        }
        #expect(scene.status() == 503)
        scene.pass(seconds: Double(seconds) - 0.6)
        #expect(scene.status() == 503 && scene.issuerCalls.count == 1)
        scene.pass(seconds: 1.2)
        #expect(scene.status() == 503 && scene.issuerCalls.count >= 2)
    }

    @Test func anIssuerThatIsDownIsNotAskedByEachOfItsTokens() throws {
        var text = "identities:\n"
        var routes = "routes:\n"
        for number in 0..<30 {
            text += "  i\(number): {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c\(number), "
            text += "client_secret: env:S}}\n"
            routes += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: i\(number), "
            routes += "match: {path: \"/\(number)/\"}, name: r\(number)}\n"
        }
        let scene = try KeeperScene(text + routes)
        let issuer = NumberedIssuer()
        issuer.fails = Wire.unavailable
        scene.issuer = issuer.answer
        for _ in 0..<60 {
            for number in 0..<30 { #expect(scene.status("/\(number)/") == 503) }
            scene.pass(seconds: 1, step: 1)
        }
        #expect(scene.issuerCalls.count < 20, "\(scene.issuerCalls.count)")
        issuer.fails = nil
        scene.pass(seconds: 31)
        for number in 0..<30 { _ = scene.status("/\(number)/") }
        scene.pass(seconds: 31)
        for number in 0..<30 { #expect(scene.status("/\(number)/") == 200) }
    }

    // MARK: - acquire_timeout

    @Test func callersWaitNoLongerThanTheyMust() throws {
        let scene = try KeeperScene(Plans.client("acquire_timeout: 3s"))
        scene.issuer = { _ in nil }
        let first = scene.call()
        scene.pass(seconds: 2)
        let second = scene.call(Wire.get("/b"))
        #expect(first.status == nil && second.status == nil && scene.issuerCalls.count == 1)
        scene.pass(seconds: 1.1)
        #expect(first.status == 504 && second.status == 504)
    }

    // MARK: - startup

    @Test(arguments: [("lazy", 0), ("wait", 1), ("required", 1)])
    func startupFetchesBeforeAnybodyAsks(_ word: String, calls: Int) throws {
        let scene = try KeeperScene(Plans.client("startup: \(word)"))
        scene.issuer = NumberedIssuer().answer
        scene.settle()
        #expect(scene.issuerCalls.count == calls)
        #expect(scene.inKeeper { $0.awaited(strictly: false) } == [])
    }

    @Test func startup_RequiredTriesUntilTheIssuerIsThereAndRenewsByTimer() throws {
        let scene = try KeeperScene(Plans.client("startup: required"))
        let issuer = NumberedIssuer()
        issuer.fails = Wire.unavailable
        scene.issuer = issuer.answer
        scene.pass(seconds: 20)
        #expect(scene.issuerCalls.count > 1)
        #expect(scene.inKeeper { $0.awaited(strictly: true) } == ["o"])
        issuer.fails = nil
        scene.pass(seconds: 40)
        #expect(scene.inKeeper { $0.awaited(strictly: false) } == [] && issuer.granted == 1)
        scene.pass(seconds: 100)
        #expect(issuer.granted == 2)
    }

    @Test func startup_WaitGivesUpWaitingNotTrying() throws {
        let scene = try KeeperScene(Plans.client("startup: wait, acquire_timeout: 5s"))
        scene.issuer = { _ in Wire.unavailable }
        scene.settle()
        #expect(scene.inKeeper { $0.awaited(strictly: false) } == ["o"])
        // `strictly`: the time of `wait` is over.
        #expect(scene.inKeeper { $0.awaited(strictly: true) } == [])
    }

    // MARK: - persist, connectivity

    @Test func persist_FalseLeavesNothingBehind() throws {
        let store = MemoryStore()
        let (_, _) = try warm("persist: false", store: store)
        #expect(store.rows(RowKind.access).isEmpty && store.rows(RowKind.session).isEmpty)
        #expect(store.rows(RowKind.durable).isEmpty)
    }

    @Test func connectivity_OfflineServesTheStoreAndNeverCalls() throws {
        let store = MemoryStore()
        _ = try warm(store: store)
        let scene = try KeeperScene(Plans.client("connectivity: offline"), store: store)
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status() == 200)
        scene.pass(seconds: 120)
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("offline"))
        #expect(scene.issuerCalls.isEmpty)
    }

    @Test func connectivity_OnlineTrustsNoStoreAtTheStart() throws {
        let store = MemoryStore()
        _ = try warm(store: store)
        let scene = try KeeperScene(Plans.client("connectivity: online"), store: store)
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status() == 200 && scene.issuerCalls.count == 1)
    }

    // MARK: - Clocks

    @Test func aJumpOfTheWallClockMakesTokensDueNotDead() throws {
        let (scene, issuer) = try warm()
        scene.jump(seconds: 29)
        #expect(scene.status() == 200 && scene.status() == 200 && issuer.granted == 1)
        scene.jump(seconds: -3600)
        // Noticed with the next mail to the keeper; a hit sends none.
        scene.pass(seconds: 82)
        #expect(scene.status() == 200)
        #expect(scene.status() == 200 && issuer.granted == 2)
    }

    @Test func aSuspendedMachineDoesNotServeWhatExpiredMeanwhile() throws {
        let (scene, issuer) = try warm()
        scene.pass(seconds: 3600, step: 3600)
        #expect(scene.status() == 200 && issuer.granted == 2 && lastToken(scene) == "Bearer t2")
    }

    @Test(arguments: [
        (0.0, "Bearer t1"), (-1_000_000_000, "Bearer t1"), (1000, "Bearer t2"), (4_000_000_000, "Bearer t2"),
    ])
    func aRestoredTokenLivesNoLongerThanItsLife(_ jump: Double, first: String) throws {
        let store = MemoryStore()
        _ = try warm(store: store)
        let scene = try KeeperScene(Plans.client(), store: store)
        let issuer = NumberedIssuer()
        issuer.granted = 1
        scene.issuer = issuer.answer
        scene.jump(seconds: jump)
        #expect(scene.status() == 200 && lastToken(scene) == first)
        scene.pass(seconds: 101)
        #expect(scene.status() == 200 && lastToken(scene) != first)
    }

    // MARK: - Secrets

    @Test func whatASecretLacksIsSaid() throws {
        let long = String(repeating: "x", count: 40_000)
        let scene = try KeeperScene(
            "identities: {a: {static: {value: env:V}}}\n"
                + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: a}\n",
            secrets: Secrets(["V": long]))
        let caller = scene.call()
        #expect(caller.status == 503)
        #expect(caller.receivedText.contains("problems/secret-unusable"))
        #expect(caller.receivedText.contains("40000 bytes, at most 32768"))
        #expect(scene.upstreamCalls.isEmpty)
    }

    @Test func aRoutesStatusesReplaceThoseOfAFixedValue() throws {
        let scene = try KeeperScene(
            "identities: {a: {static: {value: env:V}}}\n"
                + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: a, "
                + "on_rejected: {statuses: [403]}}\n")
        scene.upstream = { $0.path == "/403" ? "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" : Wire.challenge }
        #expect(scene.status("/401") == 401)
        #expect(scene.status("/403") == 502)
    }
}
