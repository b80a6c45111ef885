import HotCache
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Scenes

/// Credentials that authenticate their connection, with keeper, server and library played by the test.
@Suite struct NegotiationTests {
    /// The library's side, of which the loop sees no more than this.
    private final class Played: Negotiation {
        let scheme = "negotiate"
        let wantsProof: Bool
        let lifetime: UInt64?

        init(wantsProof: Bool = true, lifetime: UInt64? = nil) {
            self.wantsProof = wantsProof
            self.lifetime = lifetime
        }

        func answer(_ token: [UInt8], isLast: Bool) async throws(GrantFailure) -> Secret? { nil }
    }

    private static func plan(_ route: String = "") -> String {
        let fields = "listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", cache_control: pass"
        return "identities:\n  a: {negotiate: {cache: /tickets-a}}\n  b: {negotiate: {cache: /tickets-b}}\n"
            + "routes:\n  - {\(fields), match: {path: /a/}, use: a\(route)}\n"
            + "  - {\(fields), match: {path: /b/}, use: b}\n  - {\(fields), match: {path: /none/}, use: none}\n"
    }

    private static func line(_ token: String) -> Secret { Secret("Authorization: Negotiate \(token)\r\n") }

    private static func sent(_ token: String, _ path: String = "/a/") -> String {
        "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nAuthorization: Negotiate \(token)\r\nVia: 1.1 gate\r\n\r\n"
    }

    private static func answer(_ status: Int, _ token: String?, _ body: String = "x") -> String {
        let challenge = token.map { "WWW-Authenticate: Negotiate \($0)\r\n" } ?? ""
        return "HTTP/1.1 \(status) Word\r\n\(challenge)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Gives the request that waited last its credential.
    private static func grant(_ scene: Scene, _ token: String, _ negotiation: Played = Played()) throws {
        let ticket = try #require(scene.keeper.cold.last?.ticket)
        scene.answer(ticket, .once(line(token), negotiation: negotiation))
    }

    /// A whole exchange on the connection.
    private static func exchange(_ scene: Scene, _ token: String, path: String = "/a/", on upstream: Int) throws {
        let caller = scene.call(Wire.get(path))
        try grant(scene, token)
        #expect(scene.upstreams[upstream].takeText() == sent(token, path))
        scene.upstreams[upstream].send(answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200)
    }

    // MARK: - One request

    @Test func theConnectionComesFirst() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        #expect(scene.upstreams.count == 1 && scene.keeper.cold.count == 1)
        #expect(scene.upstreams[0].takeText() == "")
        try Self.grant(scene, "Zmlyc3Q=")
        #expect(scene.upstreams[0].takeText() == Self.sent("Zmlyc3Q="))
        scene.upstreams[0].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        // The answer waits until the server has proven itself.
        let report = try #require(scene.keeper.negotiations.first)
        #expect(report.isLast && report.token == Array("proof".utf8) && caller.receivedCount == 0)
        scene.answer(report.ticket, .pass)
        #expect(caller.takeText() == Self.answer(200, "cHJvb2Y="))
        scene.end()
    }

    @Test func aServerThatProvesNothingIsAFault() throws {
        let scene = try Scene(Self.plan())
        let without = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "Zmlyc3Q=")
        scene.upstreams[0].send(Self.answer(200, nil))
        scene.settle()
        #expect(without.status == 502 && without.receivedText.contains("mutual: off"))

        let forged = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "Zmlyc3Q=")
        try #require(scene.upstreams.last).send(Self.answer(200, "bGll"))
        scene.settle()
        scene.answer(
            try #require(scene.keeper.negotiations.last?.ticket), .fault(Fault(.upstreamGarbage, detail: "no proof")))
        #expect(forged.status == 502 && scene.idleUpstreams == 0)
        scene.end()
    }

    @Test(arguments: [403, 404, 500, 503])
    func whatHasNotLookedAtTheCredentialProvesNothing(_ status: Int) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "Zmlyc3Q=")
        scene.upstreams[0].send(Self.answer(status, nil))
        scene.settle()
        #expect(caller.status == status)
        scene.end()
    }

    @Test func noProofIsWantedWhereTheConfigurationSaysSo() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "Zmlyc3Q=", Played(wantsProof: false))
        scene.upstreams[0].send(Self.answer(200, nil))
        scene.settle()
        #expect(caller.status == 200 && scene.keeper.negotiations.isEmpty)
        scene.end()
    }

    // MARK: - Several messages

    @Test func theNextMessageGoesOutOnTheSameConnection() throws {
        let scene = try Scene(Self.plan(", on_rejected: {max_body: 1KiB}"))
        let caller = scene.call(Wire.post("body", path: "/a/"))
        try Self.grant(scene, "b25l")
        _ = scene.upstreams[0].takeText()
        scene.upstreams[0].send(Self.answer(401, "dHdv"))
        scene.settle()
        let report = try #require(scene.keeper.negotiations.first)
        #expect(!report.isLast && report.token == Array("two".utf8))
        scene.answer(report.ticket, .once(Self.line("dGhyZWU="), negotiation: Played()))
        #expect(scene.upstreams.count == 1)
        let again = scene.upstreams[0].takeText()
        #expect(again.contains("Authorization: Negotiate dGhyZWU=\r\n") && again.hasSuffix("\r\n\r\nbody"))
        scene.upstreams[0].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200 && scene.keeper.challenges.isEmpty && scene.idleUpstreams == 1)
        scene.end()
    }

    @Test func messagesAreBounded() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "b25l")
        for _ in 0..<UpstreamNegotiation.mostTokens {
            scene.upstreams[0].send(Self.answer(401, "dHdv"))
            scene.settle()
            scene.answer(
                try #require(scene.keeper.negotiations.last?.ticket),
                .once(Self.line("dGhyZWU="), negotiation: Played()))
        }
        #expect(scene.keeper.negotiations.count == UpstreamNegotiation.mostTokens && caller.receivedCount == 0)
        scene.upstreams[0].send(Self.answer(401, "dHdv"))
        scene.settle()
        // The answer is a refusal like any other now.
        #expect(scene.keeper.negotiations.count == UpstreamNegotiation.mostTokens)
        scene.answer(try #require(scene.keeper.challenges.last?.ticket), .final)
        #expect(caller.status == 502)
        scene.end()
    }

    @Test func aServerThatClosesInTheMiddleIsAFault() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "b25l")
        scene.upstreams[0].send(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate dHdv\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        let ticket = try #require(scene.keeper.negotiations.first?.ticket)
        scene.upstreams[0].finish()
        scene.settle()
        scene.answer(ticket, .once(Self.line("dGhyZWU="), negotiation: Played()))
        // A new connection begins a new negotiation, once.
        #expect(scene.upstreams.count == 2 && scene.keeper.cold.count == 2 && caller.receivedCount == 0)
        scene.end()
    }

    // MARK: - Refusals

    @Test func aRefusedTokenIsReplacedOnce() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "b25l")
        _ = scene.upstreams[0].takeText()
        scene.upstreams[0].send("HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        #expect(!report.isReplay && !report.isFinal)
        scene.answer(try #require(report.ticket), .anew)
        try Self.grant(scene, "dHdv")
        #expect(try #require(scene.upstreams.last).takeText() == Self.sent("dHdv"))
        try #require(scene.upstreams.last).send(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(try #require(scene.keeper.challenges.last).isReplay && scene.keeper.cold.count == 2)
        scene.answer(try #require(scene.keeper.challenges.last?.ticket), .final)
        #expect(caller.status == 502)
        scene.end()
    }

    @Test func aCredentialThatCannotBeHadLeavesItsConnectionToTheNext() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        scene.answer(try #require(scene.keeper.cold.last?.ticket), .fault(Fault(.issuerUnavailable, retryAfter: 1)))
        #expect(caller.status == 503 && scene.idleUpstreams == 1)
        try Self.exchange(scene, "b25l", on: 0)
        scene.end()
    }

    // MARK: - Losses

    @Test func aConnectionThatEndsWhileItsCredentialIsMadeIsReplaced() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        scene.upstreams[0].finish()
        scene.settle()
        try Self.grant(scene, "b25l")
        // The token was made for another connection and is not sent.
        #expect(scene.upstreams.count == 2 && scene.keeper.cold.count == 2)
        #expect(scene.upstreams[1].takeText() == "")
        try Self.grant(scene, "dHdv")
        #expect(scene.upstreams[1].takeText() == Self.sent("dHdv"))
        scene.upstreams[1].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func aServerThatAlwaysClosesIsNotAskedForEver() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        for index in 0..<2 {
            scene.upstreams[index].finish()
            scene.settle()
            try Self.grant(scene, "b25l")
        }
        #expect(caller.status == 502 && scene.upstreams.count == 2)
        scene.end()
    }

    @Test func aStaleConnectionIsReplacedWithItsCredential() throws {
        let scene = try Scene(Self.plan())
        try Self.exchange(scene, "b25l", on: 0)
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "dHdv")
        #expect(scene.upstreams[0].takeText() == Self.sent("dHdv"))
        scene.upstreams[0].finish()
        scene.settle()
        #expect(scene.upstreams.count == 2)
        try Self.grant(scene, "dGhyZWU=")
        #expect(scene.upstreams[1].takeText() == Self.sent("dGhyZWU="))
        scene.upstreams[1].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func aCallerThatLeavesIsForgotten() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        let ticket = try #require(scene.keeper.cold.last?.ticket)
        caller.reset()
        scene.settle()
        #expect(scene.keeper.left == [ticket])
        scene.answer(ticket, .once(Self.line("b25l"), negotiation: Played()))
        #expect(scene.upstreams[0].takeText() == "")
        scene.end()
    }

    // MARK: - Whose connection it is

    @Test func aConnectionServesNoOtherIdentity() throws {
        let scene = try Scene(Self.plan())
        try Self.exchange(scene, "b25l", on: 0)
        try Self.exchange(scene, "dHdv", path: "/b/", on: 1)
        let bare = scene.call(Wire.get("/none/"))
        #expect(scene.upstreams.count == 3)
        scene.upstreams[2].send(Wire.ok())
        scene.settle()
        #expect(bare.status == 200)
        // Either identity has its own connection again.
        try Self.exchange(scene, "dGhyZWU=", on: 0)
        try Self.exchange(scene, "Zm91cg==", path: "/b/", on: 1)
        #expect(scene.upstreams.count == 3)
        scene.end()
    }

    @Test func aPurgeEndsWhatWasAuthenticated() throws {
        let scene = try Scene(Self.plan())
        try Self.exchange(scene, "b25l", on: 0)
        let identity = try #require(scene.plan.routes[0].identity)
        // Counted and not told yet: another loop's order may be late.
        identity.connections.rise()
        #expect(scene.idleUpstreams == 1)
        try Self.exchange(scene, "dHdv", on: 1)
        scene.data.desk.open(.ended(identity.connections))
        scene.settle()
        #expect(scene.upstreams[0].sawEnd && scene.idleUpstreams == 0)
        scene.end()
    }

    @Test func aRequestUnderWayIsTheLastOnItsConnection() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "b25l")
        let identity = try #require(scene.plan.routes[0].identity)
        identity.connections.rise()
        scene.data.desk.open(.ended(identity.connections))
        scene.upstreams[0].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200 && scene.idleUpstreams == 0)
        scene.end()
    }

    @Test func aConnectionEndsWithItsTickets() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Wire.get("/a/"))
        try Self.grant(scene, "b25l", Played(lifetime: 5_000_000_000))
        scene.upstreams[0].send(Self.answer(200, "cHJvb2Y="))
        scene.settle()
        scene.answer(try #require(scene.keeper.negotiations.last?.ticket), .pass)
        #expect(caller.status == 200 && scene.idleUpstreams == 1)
        scene.pass(seconds: 6)
        #expect(scene.idleUpstreams == 0)
        scene.end()
    }

    @Test func aReloadEndsWhatWasAuthenticated() throws {
        let scene = try Scene(Self.plan())
        try Self.exchange(scene, "b25l", on: 0)
        try scene.reload(Self.plan())
        #expect(scene.idleUpstreams == 0)
        scene.end()
    }
}
