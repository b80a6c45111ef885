import HTTP1
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// What a route changes in requests and answers, on the whole loop.
@Suite struct EditTests {
    private static func forwarded(_ route: String, _ request: String, token: String = "Bearer t") throws -> String {
        let scene = try Scene(Plans.fixed(route))
        try scene.publish(token, generation: 1)
        _ = scene.call(request)
        let seen = try #require(scene.upstreams.first).takeText()
        scene.end()
        return seen
    }

    private static func answered(
        _ route: String, _ answer: String, request: String = Wire.get(), replacing: String = ""
    ) throws -> String {
        let plan = Plans.fixed(route).replacing(
            "cache_control: pass", with: replacing.isEmpty ? "paths: strict" : replacing)
        let scene = try Scene(plan)
        try scene.publish("Bearer t", generation: 1)
        let caller = scene.call(request)
        try #require(scene.upstreams.first).send(answer)
        scene.settle()
        let seen = caller.takeText()
        scene.end()
        return seen
    }

    // MARK: - Places

    /// Of WebDAV (RFC 4918 section 10.3): where Location is mapped, the other way round too.
    @Test(arguments: [
        ("", "http://localhost/a%20b", "http://127.0.0.1:9000/base/a%20b"), ("", "/a", "/base/a"),
        ("rewrite: {strip_prefix: /hr}", "http://localhost/hr/b", "http://127.0.0.1:9000/base/b"),
        ("", "http://elsewhere.example/a", "http://elsewhere.example/a"),
        ("rewrite: {response: false}", "http://localhost/a", "http://localhost/a"),
    ])
    func aDestinationIsTheUpstreams(route: String, sent: String, seen: String) throws {
        let scene = try Scene(Plans.open(route).replacing("127.0.0.1:9000\"", with: "127.0.0.1:9000/base\""))
        _ = scene.call("MOVE /hr/x HTTP/1.1\r\nHost: localhost\r\nDestination: \(sent)\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.receivedText.contains("\r\nDestination: \(seen)\r\n"))
        scene.end()
    }

    // MARK: - Where the credential goes

    @Test func intoTheQuery() throws {
        let seen = try Self.forwarded(
            "inject: {query: api.key}", Wire.get("/a?api.key=x&b=%zz&API%2Ekey=y", "Authorization: mine\r\n"),
            token: "a+b/c=")
        #expect(seen == Wire.forwarded("GET", "/a?b=%zz&api.key=a%2Bb%2Fc%3D", "Authorization: mine\r\n"))
    }

    @Test func intoTheCookie() throws {
        let seen = try Self.forwarded(
            "inject: {cookie: sid}", Wire.get("/", "Cookie: a=1; sid=x; b=2\r\n"), token: "a;b=")
        #expect(seen == Wire.forwarded("GET", "/", "Cookie: a=1; b=2; sid=a%3Bb=\r\n"))
    }

    /// Not even a request that is sent without a credential carries the caller's own.
    @Test func theCallersCopyGoesWithoutOursToo() throws {
        let scene = try Scene(Plans.webgate("inject: {query: key}"))
        let caller = scene.call(Wire.get("/a?key=mine"))
        scene.answer(try #require(scene.keeper.cold.first).ticket, .bare(scout: true))
        let seen = try #require(scene.upstreams.first).takeText()
        #expect(seen.hasPrefix("GET /a HTTP/1.1\r\n"))
        caller.reset()
        scene.end()
    }

    @Test func aTokenTooLongForItsPlaceIsNotCut() throws {
        let scene = try Scene(Plans.fixed("inject: {query: key}"))
        // Three times as long once it is encoded.
        try scene.publish(String(repeating: "+", count: 20_000), generation: 1)
        let caller = scene.call(Wire.get())
        #expect(caller.status == 503)
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        scene.end()
    }

    // MARK: - Paths and addresses

    @Test func aPrefixIsTakenOff() throws {
        let seen = try Self.forwarded("rewrite: {strip_prefix: /hr/}", Wire.get("/hr/a?b"))
        #expect(seen.hasPrefix("GET /a?b HTTP/1.1\r\n"))
    }

    @Test func addressesInAnswersBecomeTheCallers() throws {
        let answer =
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9000/a\r\nSet-Cookie: a=b; Path=/; Secure\r\n"
            + "Content-Length: 0\r\n\r\n"
        let seen = try Self.answered("rewrite: {strip_prefix: /hr}", answer, request: Wire.get("/hr/a"))
        #expect(
            seen == "HTTP/1.1 302 Found\r\nLocation: http://localhost/hr/a\r\nSet-Cookie: a=b; Path=/hr\r\n"
                + "Cache-Control: private\r\nContent-Length: 0\r\n\r\n")
        #expect(try Self.answered("rewrite: {response: off}", answer, replacing: "cache_control: pass") == answer)
    }

    /// Another request's head lies in the loop's scratch when the answer comes.
    @Test func theOriginIsOfTheAnswersOwnRequest() throws {
        let scene = try Scene(Plans.open())
        let first = scene.call("GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
        let second = scene.call("GET / HTTP/1.1\r\nHost: 127.0.0.1:2\r\n\r\n")
        for upstream in scene.upstreams {
            upstream.send("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9000/\r\nContent-Length: 0\r\n\r\n")
        }
        scene.settle()
        #expect(first.takeText().contains("Location: http://localhost:1/\r\n"))
        #expect(second.takeText().contains("Location: http://127.0.0.1:2/\r\n"))
        scene.end()
    }

    @Test func sharedCachesAreKeptOutWhereACredentialWasSent() throws {
        let plain = Wire.ok("x", "Cache-Control: max-age=5\r\n")
        #expect(
            try Self.answered("", plain)
                == "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nCache-Control: private\r\nContent-Length: 1\r\n\r\nx"
        )
        let open = Wire.ok("x", "Cache-Control: public, max-age=5\r\n")
        #expect(try Self.answered("", open) == open)
        #expect(try Self.answered("", plain, replacing: "cache_control: pass") == plain)
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        try #require(scene.upstreams.first).send(plain)
        scene.settle()
        #expect(caller.takeText() == plain)
        scene.end()
    }

    @Test func theLastHopAnswersForItself() throws {
        let scene = try Scene(Plans.open())
        let request = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n"
        let caller = scene.call(request + request)
        let own =
            "HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\nContent-Length: 0\r\n\r\n"
        #expect(caller.takeText() == own + own && scene.upstreams.isEmpty && !caller.isClosed)
        caller.send("TRACE / HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\nCookie: a=b\r\n\r\n")
        scene.settle()
        #expect(caller.status == 405 && !caller.takeText().contains("a=b") && scene.upstreams.isEmpty)
        caller.send("OPTIONS / HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 1\r\n\r\n")
        scene.settle()
        #expect(
            try #require(scene.upstreams.first).takeText() == Wire.forwarded("OPTIONS", "/", "Max-Forwards: 0\r\n"))
        scene.end()
    }

    @Test func timesAreTold() throws {
        let scene = try Scene(Plans.open("server_timing: on"))
        let caller = scene.call(Wire.get())
        scene.kernel.advance(seconds: 0.0125)
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(
            caller.takeText()
                == "HTTP/1.1 200 OK\r\nServer-Timing: cardea-token;dur=0.000, cardea-connect;dur=0.000, "
                + "cardea-upstream;dur=12.500\r\nContent-Length: 1\r\n\r\nx")
        scene.end()
    }

    // MARK: - Who called

    private static let claims = "Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\n"

    @Test func nobodysClaimsArePassedOn() throws {
        let scene = try Scene(Plans.open())
        _ = scene.call(Wire.get("/", Self.claims))
        #expect(try #require(scene.upstreams.first).takeText() == Wire.forwarded())
        scene.end()
    }

    @Test func aTrustedPeersAre() throws {
        let scene = try Scene(
            "listeners: {l: {address: \"127.0.0.1:8080\", forwarded_from: [127.0.0.0/8]}}\n"
                + "routes: [{listen: l, to: \"http://127.0.0.1:9000\", use: none}]\n")
        let caller = scene.call(Wire.get("/", Self.claims + "X-Forwarded-Proto: https\r\n"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText() == Wire.forwarded("GET", "/", Self.claims + "X-Forwarded-Proto: https\r\n"))
        upstream.send("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9000/\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(caller.takeText().contains("Location: https://localhost/\r\n"))
        scene.end()
    }

    @Test func theCallerIsToldToTheUpstream() throws {
        let scene = try Scene(Plans.open("forwarded: {fields: both, caller: address}"))
        _ = scene.call(Wire.get("/", Self.claims))
        #expect(
            try #require(scene.upstreams.first).takeText()
                == Wire.forwarded(
                    "GET", "/",
                    "Forwarded: for=127.0.0.1;host=\"localhost\";proto=http\r\nX-Forwarded-For: 127.0.0.1\r\n"
                        + "X-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost\r\n"))
        scene.end()
    }

    @Test func anIdentifierIsNewForEveryRequest() throws {
        let scene = try Scene(Plans.open("forwarded: on"))
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        var seen: Set<String> = []
        for _ in 0..<8 {
            seen.insert(upstream.takeText())
            upstream.send(Wire.ok())
            scene.settle()
            caller.send(Wire.get())
            scene.settle()
        }
        #expect(seen.count == 8 && seen.allSatisfy { $0.contains("\r\nForwarded: for=_") })
        scene.end()
    }
}
