import HotCache
import Octets
import ScriptedKernel
import Testing
import Tokens

@testable import DataPath
@testable import Handshakes
@testable import Scenes

/// Identities that sign requests, read answers or have a token for each URL: what their upstreams and keepers get.
@Suite struct IdentityEdgeTests {
    // MARK: - Signatures

    private static func signing(_ sign: String, _ value: String, _ route: String = "") -> String {
        """
        identities:
          a:
            recipe:
              secrets: {key: {value: env:K, to: "http://127.0.0.1:9000"}}
              sign: {\(sign)}
              inject: {header: X-Signed, value: "\(value)"}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a, cache_control: pass\(route)}]

        """
    }

    /// The secrets of the signature, as the keeper puts them into the cache.
    private func keyed(_ yaml: String) throws -> Scene {
        let scene = try Scene(yaml)
        let route = scene.plan.routes[0]
        let identity = try #require(route.identity)
        let material = RecipeMaterial.encode([RecipeSigningHandshake.part: ["key": Secret("k")]])
        let end = scene.kernel.clock + 1_000_000_000_000
        var line = [UInt8](repeating: 0x78, count: identity.linePrefix)
        material.withBytes { line += Array($0) }
        line += [13, 10]
        scene.cache.publish(
            slot: try #require(route.slot),
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: 1), bytes: line)
        return scene
    }

    private func signed(_ request: String) -> String? {
        request.split(separator: "\r\n").first { $0.hasPrefix("X-Signed: ") }.map { String($0.dropFirst(10)) }
    }

    /// The signature is of the request that is sent, and of nothing that the caller has made up.
    @Test(arguments: ["", ", proxy: {url: \"http://127.0.0.9:3128\"}, allow_cleartext: true"])
    func theRequestIsSignedAsItIsSent(proxy: String) throws {
        let scene = try keyed(
            Self.signing(
                "k: \"{secret.key}\", a: \"{request.method} {request.host} {request.path} {request.query}\", "
                    + "mac: \"{sign.a | hmac_sha256(sign.k) | hex}\"", "{sign.mac}|{sign.a}", proxy))
        let caller = scene.call(Wire.get("/p/q?x=1", "X-Signed: mine\r\n"))
        let request = try #require(scene.upstreams.first).takeText()
        #expect(request.hasPrefix("GET \(proxy.isEmpty ? "" : "http://127.0.0.1:9000")/p/q?x=1 HTTP/1.1\r\n"))
        #expect(!request.contains("mine"))
        let parts = try #require(signed(request)).split(separator: "|")
        #expect(parts.count == 2 && parts[0].count == 64 && parts[1] == "GET 127.0.0.1:9000 /p/q x=1")
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test func theBodyIsSignedBeforeItIsSent() throws {
        let scene = try keyed(Self.signing("a: \"{request.body_sha256 | hex}\"", "{sign.a}"))
        for (request, digest) in [
            (Wire.get(), Self.empty), (Wire.post("abc"), Self.abc), (Wire.post(""), Self.empty),
            (Wire.chunkedPost(["a", "bc"]), Self.abc),
        ] {
            let caller = scene.call(request)
            let upstream = try #require(scene.upstreams.last)
            #expect(signed(upstream.takeText()) == digest)
            upstream.send(Wire.ok("x", "Connection: close\r\n"))
            scene.settle()
            #expect(caller.status == 200)
        }
        // In pieces, and not a byte before the last one has come.
        let slow = scene.call()
        let count = scene.upstreams.count
        for octet in Wire.post("abc").utf8 {
            #expect(scene.upstreams.count == count)
            slow.send([octet])
            scene.settle()
        }
        #expect(signed(try #require(scene.upstreams.last).takeText()) == Self.abc)
        scene.end()
    }

    @Test func aBodyThatIsTooLargeToBeSignedIsRefused() throws {
        let scene = try keyed(
            Self.signing("a: \"{request.body_sha256 | hex}\"", "{sign.a}", ", on_rejected: {max_body: 1KiB}"))
        let long = String(repeating: "x", count: 2000)
        for request in [
            Wire.post(long), Wire.chunkedPost([long]), Wire.chunkedPost(Array(repeating: "x", count: 20_000)),
        ] {
            let caller = scene.call(request)
            #expect(caller.status == 413 && scene.upstreams.isEmpty)
        }
        let cut = scene.call(String(Wire.post("abc").dropLast()))
        cut.finish()
        scene.settle()
        #expect(cut.isClosed && scene.upstreams.isEmpty)
        scene.end()
    }

    /// Nothing leaves without its signature.
    @Test func whatCannotBeSignedIsNotSent() throws {
        let scene = try keyed(Self.signing("a: \"{request.query}\"", "{sign.a}"))
        let caller = scene.call(Wire.get("/p"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/identity-misconfigured"))
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        let next = scene.call(Wire.get("/p?x=1"))
        let request = try #require(scene.upstreams.last).takeText()
        #expect(signed(request) == "x=1")
        try #require(scene.upstreams.last).send(Wire.ok("x"))
        scene.settle()
        #expect(next.status == 200)
        scene.end()
    }

    // MARK: - Answers that are read

    private static let reading = """
        identities:
          a:
            recipe:
              challenge: {json: /error/need, take: {need: {json: /error/need}}}
              key: [need]
              steps: [{name: access, get: "https://sso.example.com/", take: {token: {json: /token}}}]
              token: "{access.token}"
              inject: {value: "In-House {token}"}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a, cache_control: pass}]

        """

    private struct Play {
        let scene: Scene
        let caller: Peer
        let upstream: Peer

        init(_ route: String = "") throws {
            scene = try Scene(reading.replacing("cache_control: pass", with: "cache_control: pass\(route)"))
            caller = scene.call(Wire.get("/p"))
            scene.answer(try #require(scene.keeper.cold.first?.ticket), .bare(scout: true))
            upstream = try #require(scene.upstreams.first)
            upstream.discard()
        }

        func answer(_ text: String) {
            upstream.send(text)
            scene.settle()
        }
    }

    private static func refusal(_ fields: String) -> String {
        "HTTP/1.1 401 No\r\nContent-Type: application/json\r\n\(fields)\r\n"
    }
    private static let need = #"{"error":{"need":"gate 7"}}"#

    private static let challenges: [(String, String)] = [
        (refusal("Content-Length: 27\r\n"), need),
        (refusal("Transfer-Encoding: chunked\r\n"), "1b\r\n\(need)\r\n0\r\n\r\n"),
        (refusal("Content-Length: 30027\r\n"), String(repeating: " ", count: 30_000) + need),
    ]

    @Test(arguments: challenges)
    func aChallengeInABodyIsReported(head: String, body: String) throws {
        let play = try Play()
        play.answer(head + String(body.prefix(5)))
        #expect(play.scene.keeper.challenges.isEmpty && play.caller.receivedCount == 0)
        play.answer(String(body.dropFirst(5)))
        let report = try #require(play.scene.keeper.challenges.first)
        #expect(report.challenge.realm == "gate 7" && play.caller.receivedCount == 0)
        // The answer is still there for the caller.
        play.scene.answer(try #require(report.ticket), .pass)
        #expect(play.caller.status == 401 && play.caller.receivedText.contains("gate 7"))
        play.scene.end()
    }

    @Test func aBodyThatEndsWithItsConnectionIsReadToo() throws {
        let play = try Play()
        play.answer(Self.refusal("") + Self.need)
        #expect(play.scene.keeper.challenges.isEmpty)
        play.upstream.finish()
        play.scene.settle()
        #expect(play.scene.keeper.challenges.first?.challenge.realm == "gate 7")
        play.scene.end()
    }

    private static let others: [String] = [
        "HTTP/1.1 401 No\r\nContent-Length: 27\r\n\r\n\(need)",
        "HTTP/1.1 401 No\r\nContent-Type: text/json\r\nContent-Length: 27\r\n\r\n\(need)",
        "HTTP/1.1 401 No\r\nContent-Type: json\r\nContent-Length: 27\r\n\r\n\(need)",
        refusal("Content-Length: 2\r\n") + "{}", refusal("Content-Length: 0\r\n"),
        refusal("Content-Length: 70000\r\n") + String(repeating: "x", count: 70_000),
        refusal("Content-Encoding: br\r\nContent-Length: 27\r\n") + need,
    ]

    /// An answer that is no challenge goes to the caller as it came.
    @Test(arguments: others)
    func otherBodiesPass(answer: String) throws {
        let play = try Play()
        play.answer(answer)
        #expect(play.scene.keeper.challenges.isEmpty && play.caller.takeText() == answer)
        play.scene.end()
    }

    /// An answer without end is not held for ever.
    @Test func aBodyThatDoesNotEndPassesAfterAWhile() throws {
        let play = try Play()
        let head = Self.refusal("Content-Length: 27\r\n")
        let first = String(Self.need.prefix(9))
        let rest = String(Self.need.dropFirst(9))
        play.answer(head + first)
        play.scene.pass(seconds: 4)
        #expect(play.caller.receivedCount == 0)
        play.scene.pass(seconds: 2)
        #expect(play.caller.takeText() == head + first && play.scene.keeper.challenges.isEmpty)
        play.answer(rest)
        #expect(play.caller.takeText() == rest)
        play.scene.end()
    }

    @Test(arguments: ["zz\r\n", "3\r\nabcd\r\n", "END"])
    func aBrokenBodyIsNoAnswer(body: String) throws {
        let play = try Play()
        play.answer(Self.refusal("Transfer-Encoding: chunked\r\n") + (body == "END" ? "5\r\nab" : body))
        if body == "END" { play.upstream.finish() }
        play.scene.settle()
        #expect(play.caller.status == 502 && play.upstream.isClosed && play.scene.keeper.challenges.isEmpty)
        #expect(!play.caller.receivedText.contains("application/json\r\n\r\n"))
        play.scene.end()
    }

    // MARK: - A token for each URL

    private static func urls(_ webgate: String) -> String {
        Plans.webgate().replacing("password: env:V}", with: "password: env:V, \(webgate)}")
    }

    @Test func aTokenIsItsURLsAlone() throws {
        let scene = try Scene(Self.urls("token_scope: url"))
        let space = try #require(scene.plan.routes[0].urls)
        let long = "/" + String(repeating: "d", count: 300)
        for (path, token) in [("/a", "one"), (long, "two")] {
            let slot = try #require(scene.cache.allocateSlot())
            #expect(scene.cache.addKey(URLKey.of(path: path + "?query").bytes, in: space, slot: slot))
            scene.publish("OAM-Auth \(token)", generation: 1, in: slot)
        }
        for (path, token) in [("/a?x", "one"), ("/a?y=/b", "one"), (long, "two"), (long + "?z", "two")] {
            let caller = scene.call(Wire.get(path))
            let upstream = try #require(scene.upstreams.last)
            #expect(upstream.takeText().contains("\r\nAuthorization: OAM-Auth \(token)\r\n"), "\(path)")
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.status == 200)
        }
        let count = scene.upstreams.count
        for path in ["/a/", "/A", "/", long + "d"] { #expect(scene.call(Wire.get(path)).receivedCount == 0) }
        #expect(scene.upstreams.count == count && scene.keeper.cold.count == 4)
        // The keeper is told the path where the key holds it, and a digest of it cannot be turned back.
        let keys = scene.keeper.cold.compactMap(\.subject?.key)
        #expect(keys.map { URLKey.path(of: $0) } == ["/a/", "/A", "/", nil])
        scene.end()
    }

    /// The configuration says whether the resource has the URL that the caller sees or the one that the upstream sees.
    @Test(arguments: [("upstream", "http://127.0.0.1:9000/x"), ("caller", "http://localhost/x")])
    func theResourceIsNamedAsConfigured(view: String, prefix: String) throws {
        let scene = try Scene(Self.urls("resource_url: \(view)"))
        _ = scene.call("GET /x?y HTTP/1.1\r\nHost: localhost\r\n\r\n")
        scene.answer(try #require(scene.keeper.cold.first?.ticket), .bare(scout: true))
        try #require(scene.upstreams.first).send(Wire.oamChallenge)
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        #expect(report.challenge.resource.hasPrefix(prefix))
        scene.end()
    }

    // MARK: - A token for one request

    /// A token that the keeper has fetched for one request goes out with it, and again with its replay.
    @Test func aTokenForOneRequestIsSentWithIt() throws {
        let scene = try Scene(Plans.oauth())
        try scene.publish("Bearer old", generation: 1)
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.discard()
        upstream.send(Wire.challenge)
        scene.settle()
        let ticket = try #require(scene.keeper.challenges.first?.ticket)
        scene.answer(ticket, .once(Secret("Authorization: Bearer once\r\n")))
        let again = try #require(scene.upstreams.last)
        #expect(again.takeText().contains("\r\nAuthorization: Bearer once\r\n"))
        again.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        // The next request knows nothing of it.
        _ = scene.call(Wire.get())
        #expect(try #require(scene.upstreams.last).takeText().contains("Bearer old"))
        scene.end()
    }
}
