import HotCache
import Octets
import ScriptedKernel
import TLS
import Testing
import Tokens

@testable import DataPath
@testable import Handshakes
@testable import Scenes
@testable import TLSTests

/// Answers that say something of the credential, by what their schemes have for it: gates, conflicts and nonces.
@Suite struct JudgementTests {
    // MARK: - A gate

    /// A request that goes out without a token, to see what guards its path.
    private static func scout(_ route: String = "") throws -> (scene: Scene, caller: Peer, upstream: Peer, Ticket) {
        let scene = try Scene(Plans.webgate(route))
        let caller = scene.call(Wire.get("/p"))
        let ticket = try #require(scene.keeper.cold.first?.ticket)
        scene.answer(ticket, .bare(scout: true))
        return (scene, caller, try #require(scene.upstreams.first), ticket)
    }

    /// The answer goes to the caller as it came, and the keeper hears that nothing was found out of the path.
    @Test(arguments: [
        "OAM-Auth realm=\"WG:2 /\"", "OAM-Auth realm=\"WG:2 /\", request-ctx=\"\"",
        "OAM-Auth realm=\"a\", realm=\"b\", request-ctx=\"c\"",
    ])
    func aChallengeThatCannotBeUsedIsTheCallers(challenge: String) throws {
        let (scene, caller, upstream, ticket) = try Self.scout()
        let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 2\r\n\r\nno"
        upstream.send(answer)
        scene.settle()
        #expect(caller.takeText() == answer && scene.glitches(.unusableChallenge) == 1)
        #expect(scene.keeper.scoutsFailed == [ticket] && scene.keeper.challenges.isEmpty)
        scene.end()
    }

    /// A browser's login page is no use to a program, and its cause is the identity's configuration.
    @Test(arguments: [
        "https://sso.test/oam/server/obrareq.cgi?a=b", "/oam/server/login", "https://sso.test/obrareq.cgi",
    ])
    func aRedirectToTheLoginPageIsAFaultOfTheIdentity(location: String) throws {
        let (scene, caller, upstream, _) = try Self.scout()
        upstream.send("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-redirected-to-login"))
        #expect(!caller.receivedText.contains("sso.test") && scene.glitches(.loginRedirect) == 1)
        scene.end()
    }

    @Test func aRedirectOfTheApplicationIsItsAnswer() throws {
        let (scene, caller, upstream, ticket) = try Self.scout()
        let answer = "HTTP/1.1 302 Found\r\nLocation: /obrareq.cgi/other\r\nContent-Length: 0\r\n\r\n"
        upstream.send(answer)
        scene.settle()
        // The path is open, since nothing asked for a token there.
        #expect(caller.takeText() == answer && scene.keeper.foundOpen == [ticket])
        scene.end()
    }

    /// Where a token was taken before and is refused now, it has been revoked; elsewhere the path may refuse every token.
    @Test(arguments: [("/p", true), ("/p?q=2", true), ("/other", false)])
    func theKeeperHearsWhetherThePathTookTheToken(refused: String, hadTaken: Bool) throws {
        let scene = try Scene(Plans.webgate())
        let slot = try #require(scene.cache.allocateSlot())
        scene.publish("OAM-Auth t", generation: 1, in: slot)
        scene.data.desk.open(
            .watch(slot: slot, route: scene.plan.routes[0].number, until: scene.kernel.clock + 60_000_000_000))
        func ask(_ path: String, _ answer: String) throws -> Peer {
            let caller = scene.call(Wire.get(path))
            scene.answer(try #require(scene.keeper.cold.last?.ticket), .use(slot: slot, granted: 0))
            try #require(scene.upstreams.first).send(answer)
            scene.settle()
            return caller
        }
        // A status in which a challenge may hide, and an answer that is none.
        let redirect = "HTTP/1.1 303 See Other\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n"
        #expect(try ask("/p?q=1", redirect).takeText() == redirect)
        _ = try ask(refused, Wire.oamChallenge)
        #expect(scene.keeper.challenges.map(\.hadTaken) == [hadTaken])
        scene.end()
    }

    // MARK: - A conflict

    private static func mobile(_ identity: String = "", _ route: String = "") -> String {
        """
        identities:
          m: {mobilefirst: {base: "https://mfp.test/mfp/api", client_id: c, client_secret: env:V\(identity)}}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: m, cache_control: pass\(route)}]

        """
    }

    private static let conflict = "HTTP/1.1 409 Conflict\r\nMFP-Conflict: true\r\nContent-Length: 2\r\n\r\nno"

    /// A request of this scheme with a token, on its way.
    private static func mobileRequest(_ request: String, _ plan: String = mobile()) throws -> (Scene, Peer, Peer) {
        let scene = try Scene(plan)
        let slot = try #require(scene.plan.routes[0].slot ?? scene.cache.allocateSlot())
        scene.publish("Bearer t", generation: 1, in: slot)
        let caller = scene.call(request)
        if let parked = scene.keeper.cold.first { scene.answer(parked.ticket, .use(slot: slot, granted: 0)) }
        return (scene, caller, try #require(scene.upstreams.first))
    }

    /// The pause doubles from 50 ms, and the connection whose answer was read carries the next try.
    @Test func aRequestThatMetAConflictIsSentAgainAfterAPause() throws {
        let (scene, caller, upstream) = try Self.mobileRequest(Wire.get("/p"))
        let request = upstream.takeText()
        for pause in [0.05, 0.1, 0.2, 0.4, 0.8, 1.6] {
            upstream.send(Self.conflict)
            scene.settle()
            scene.pass(seconds: pause * 0.9)
            #expect(upstream.receivedCount == 0 && caller.receivedCount == 0)
            scene.pass(seconds: pause * 0.2)
            #expect(upstream.takeText() == request, "\(pause)")
        }
        // The seventh is the answer.
        upstream.send(Self.conflict)
        scene.settle()
        #expect(caller.takeText() == Self.conflict && scene.upstreams.count == 1 && scene.keeper.challenges.isEmpty)
        scene.end()
    }

    @Test func aConflictThatIsOverWasNeverSeen() throws {
        let (scene, caller, upstream) = try Self.mobileRequest(Wire.get("/p"))
        upstream.send(Self.conflict)
        scene.settle()
        scene.pass(seconds: 0.06)
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x") && scene.upstreams.count == 1)
        scene.end()
    }

    /// RFC 9110 section 9.2.2: what may have been done must not be done twice, unless the operator says so.
    @Test(arguments: [("", true), (", conflict_replay: all", false)])
    func aPostThatMetAConflictIsAnsweredWithIt(identity: String, isAnswered: Bool) throws {
        let (scene, caller, upstream) = try Self.mobileRequest(Wire.post("x"), Self.mobile(identity))
        upstream.discard()
        upstream.send(Self.conflict)
        scene.settle()
        #expect(caller.takeText() == (isAnswered ? Self.conflict : ""))
        scene.pass(seconds: 0.06)
        #expect((upstream.receivedCount > 0) == !isAnswered)
        scene.end()
    }

    /// A 409 of the application's own has not the field.
    @Test func aConflictOfTheApplicationIsItsAnswer() throws {
        let (scene, caller, upstream) = try Self.mobileRequest(Wire.get("/p"))
        let answer = Self.conflict.replacing("MFP-Conflict", with: "X-Conflict")
        upstream.send(answer)
        scene.settle()
        #expect(caller.takeText() == answer)
        scene.end()
    }

    /// A connection whose answer has not ended, or never will, is no use for the next try: a new one carries it.
    @Test(arguments: [
        "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\nX-T:", "Transfer-Encoding: chunked\r\n\r\n2\r\nnope",
        "Content-Length: 9\r\n\r\nno",
    ])
    func anAnswerThatHasNotEndedGivesItsConnectionUp(rest: String) throws {
        let (scene, caller, upstream) = try Self.mobileRequest(Wire.get("/p"))
        upstream.send("HTTP/1.1 409 Conflict\r\nMFP-Conflict: true\r\n" + rest)
        scene.settle()
        scene.pass(seconds: 0.06)
        try #require(scene.upstreams.count == 2)
        #expect(upstream.isClosed && scene.upstreams[1].receivedText.hasPrefix("GET /p "))
        scene.upstreams[1].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    // MARK: - A nonce

    /// A scene with a token that is bound to a key, as the keeper puts both into the cache.
    private static func bound(_ plan: String) throws -> Scene {
        let scene = try Scene(plan.replacing("client_secret: env:V", with: "client_secret: env:V, dpop: true"))
        let route = scene.plan.routes[0]
        let key = try #require(DPoPKey(try DPoPKey.make()))
        var line = [UInt8](repeating: 0x78, count: try #require(route.identity).linePrefix)
        BoundToken.encode(Secret("tok"), boundTo: key).withBytes { line += Array($0) }
        line += [13, 10]
        let end = scene.kernel.clock + 1_000_000_000_000
        scene.cache.publish(
            slot: try #require(route.slot),
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: 1), bytes: line)
        return scene
    }

    /// The claims of the proof in a request's head.
    private static func claims(_ request: String) throws -> String {
        let line = try #require(request.split(separator: "\r\n").first { $0.hasPrefix("DPoP: ") })
        let parts = line.dropFirst(6).split(separator: ".")
        try #require(parts.count == 3)
        return String(decoding: try #require(Base64.decodeURL(String(parts[1]))), as: UTF8.self)
    }

    private static func challenge(_ nonce: String, body: String = "Content-Length: 0\r\n\r\n") -> String {
        "HTTP/1.1 401 No\r\nWWW-Authenticate: DPoP error=\"use_dpop_nonce\"\r\nDPoP-Nonce: \(nonce)\r\n\(body)"
    }

    /// RFC 9449 section 9: the credential was not judged, and the keeper has no part in it.
    @Test func aProofThatLackedTheNonceIsSentAgainWithIt() throws {
        let scene = try Self.bound(Plans.oauth())
        let caller = scene.call(Wire.get("/a?b"))
        let upstream = try #require(scene.upstreams.first)
        let first = upstream.takeText()
        #expect(first.contains("\r\nAuthorization: DPoP tok\r\n"))
        let claims = try Self.claims(first)
        #expect(!claims.contains("nonce") && claims.contains("\"htm\":\"GET\""))
        #expect(claims.contains("\"htu\":\"http://127.0.0.1:9000/a\""))
        upstream.send(Self.challenge("n-1"))
        scene.settle()
        #expect(try Self.claims(upstream.takeText()).contains("\"nonce\":\"n-1\""))
        #expect(caller.receivedCount == 0 && scene.keeper.challenges.isEmpty)
        // Any answer may bring the next one.
        upstream.send(Wire.ok("x", "DPoP-Nonce: n-2\r\n"))
        scene.settle()
        #expect(caller.takeText().hasSuffix("\r\n\r\nx") && scene.upstreams.count == 1)
        caller.send(Wire.get())
        scene.settle()
        #expect(try Self.claims(upstream.takeText()).contains("\"nonce\":\"n-2\""))
        scene.end()
    }

    /// A server that wants another nonce each time would otherwise be asked for ever.
    @Test func aSecondWishForANonceIsARefusal() throws {
        let scene = try Self.bound(Plans.oauth())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Self.challenge("n-1"))
        scene.settle()
        upstream.send(Self.challenge("n-2"))
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-refused-credential"))
        #expect(scene.keeper.challenges.isEmpty)
        scene.end()
    }

    @Test func aWishForANonceWithoutOneIsAChallenge() throws {
        let scene = try Self.bound(Plans.oauth())
        _ = scene.call(Wire.get())
        try #require(scene.upstreams.first).send(Self.challenge("n 1"))
        scene.settle()
        #expect(scene.keeper.challenges.count == 1)
        scene.end()
    }

    /// The proof names the URL as the upstream sees it.
    @Test func aProofForAServerOfTLSNamesItsScheme() throws {
        let ca = try Certificates.shared.get().path("ca.pem")
        let scene = try Self.bound(
            Plans.oauth("tls: {ca: \(ca)}, addresses: [\"127.0.0.1:9443\"]")
                .replacing("http://127.0.0.1:9000", with: "https://good.test:9443/v2"))
        _ = scene.call(Wire.get("/a"))
        let server = try SecureUpstream(scene, try #require(scene.upstreams.first))
        #expect(server.shake() == .done)
        #expect(try Self.claims(server.receiveText()).contains("\"htu\":\"https://good.test:9443/v2/a\""))
        scene.end()
    }

    /// No server takes a bound token without its proof.
    @Test(arguments: ["", "short\r\n", "no-key-in-this-line-of-a-token\r\n"])
    func aTokenWithoutItsKeyIsNotSent(line: String) throws {
        let scene = try Scene(Plans.oauth().replacing("client_secret: env:V", with: "client_secret: env:V, dpop: true"))
        let end = scene.kernel.clock + 1_000_000_000_000
        scene.cache.publish(
            slot: try #require(scene.plan.routes[0].slot),
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: 1),
            bytes: Array(line.utf8))
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503 && caller.receivedText.contains("problems/identity-misconfigured"))
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        scene.end()
    }
}
