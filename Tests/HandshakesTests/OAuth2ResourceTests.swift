import Testing

@testable import Handshakes

private let api = "https://api.example.com"
private let document = api + "/.well-known/oauth-protected-resource"
private let own = "https://own.example.com"
private let first = "https://first.example.net"
private let second = "https://second.example.net"

/// An API that wants its tokens of other issuers, an operator who allows two of these, and the issuers behind one script.
private struct Scene {
    let oauth: OAuth2Handshake
    let issuer: ScriptedIssuer
    let upstream: ScriptedIssuer
    let environment: WatchedEnvironment

    init(
        issuer lines: [ScriptedIssuer.Line], upstream words: [ScriptedIssuer.Line],
        _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) throws {
        var settings = OAuth2Settings(.issuer(own, try #require(IssuerURL(own))), clientID: "c")
        settings.allowedIssuers = [
            (first, try #require(IssuerURL(first))), (second, try #require(IssuerURL(second))),
        ]
        change(&settings)
        oauth = try OAuth2Handshake(settings)
        issuer = ScriptedIssuer(lines)
        upstream = ScriptedIssuer(words)
        environment = WatchedEnvironment(upstream: upstream).over(issuer)
    }

    /// Acquires a token as after a 401, or ahead of a request where no metadata is named.
    @discardableResult
    func acquire(_ metadata: String? = document, audience: [String] = []) async throws -> String {
        var wanted = Wanted(audience: audience, upstreamOrigin: api)
        if let metadata {
            var challenge = Challenge(resource: api + "/v1/things")
            challenge.resourceMetadata = metadata
            wanted.challenge = challenge
        }
        return try await oauth.acquire(wanted, environment: environment).token.text
    }

    /// Where the tokens were asked for.
    var tokenRequests: [String] { issuer.sent.filter { $0.step == "token" }.map(\.url) }
}

private func discovery(_ issuer: String) -> ScriptedIssuer.Line {
    .ok(#"{"issuer":"\#(issuer)","token_endpoint":"\#(issuer)/token"}"#)
}

private func token(_ text: String) -> ScriptedIssuer.Line {
    .ok(#"{"access_token":"\#(text)","token_type":"Bearer"}"#)
}

private func names(_ issuers: String..., resource: String = api) -> ScriptedIssuer.Line {
    let list = issuers.map { "\"\($0)\"" }.joined(separator: ",")
    return .ok(#"{"resource":"\#(resource)","authorization_servers":[\#(list)]}"#)
}

private let refused = ScriptedIssuer.Line.status(401, #"{"error":"invalid_client"}"#)

@Suite struct OAuth2ResourceTests {
    @Test func `metadata of an API leads to an issuer that the operator allows`() async throws {
        let scene = try Scene(
            issuer: [discovery(first), token("a"), token("b"), discovery(own), token("c")], upstream: [names(first)])
        #expect(try await scene.acquire() == "a")
        let question = try #require(scene.upstream.sent.first)
        #expect(question.url == document && question.method == "GET" && question.header("Authorization") == nil)
        // Tokens of the same purpose are had there from now on; those of another purpose are not.
        #expect(try await scene.acquire(nil) == "b")
        #expect(try await scene.acquire(nil, audience: ["other"]) == "c")
        #expect(scene.tokenRequests == [first + "/token", first + "/token", own + "/token"])
        #expect(scene.environment.concerns == [] && scene.upstream.sent.count == 1)
    }

    @Test func `a document of an API is used for five minutes`() async throws {
        let scene = try Scene(
            issuer: [discovery(first), token("a"), token("b"), discovery(second), token("c")],
            upstream: [names(first), names(second)])
        try await scene.acquire()
        scene.environment.pass(seconds: 299)
        #expect(try await scene.acquire() == "b" && scene.upstream.sent.count == 1)
        scene.environment.pass(seconds: 1)
        #expect(try await scene.acquire() == "c" && scene.upstream.isFinished)
        #expect(scene.tokenRequests.last == second + "/token")
    }

    @Test func `a useless document is told once and asked for again after a minute`() async throws {
        let scene = try Scene(
            issuer: [discovery(own), token("a"), token("b"), discovery(first), token("c")],
            upstream: [.status(404), names(first)])
        try await scene.acquire()
        scene.environment.pass(seconds: 59)
        try await scene.acquire()
        #expect(scene.upstream.sent.count == 1 && scene.environment.concerns.count == 1)
        scene.environment.pass(seconds: 1)
        #expect(try await scene.acquire() == "c")
        #expect(scene.tokenRequests == [own + "/token", own + "/token", first + "/token"])
    }

    @Test(
        arguments: [
            (.status(404), "metadata: status 404"), (.status(302), "metadata: status 302"),
            (.fault(IssuerFault(.refused, provablyUnsent: true)), "metadata cannot be read: connection refused"),
            (.ok("<html>"), "metadata is "), (.ok("{}"), "metadata without resource"),
            (names(first, resource: "https://other.example.com"), "its metadata is of another resource"),
            (names(), "its metadata names no issuer"), (names("no URL"), "its metadata names no issuer"),
            (
                names("https://e.example.org", "https://f.example.org"),
                "its metadata names 'https://e.example.org/', 'https://f.example.org/', and allowed_issuers does not"
            ),
        ] as [(ScriptedIssuer.Line, String)])
    func `metadata of no use leaves the flight with its own issuer, and the operator hears why`(
        _ word: ScriptedIssuer.Line, _ reason: String
    ) async throws {
        let scene = try Scene(issuer: [discovery(own), token("a")], upstream: [word])
        #expect(try await scene.acquire() == "a")
        #expect(scene.tokenRequests == [own + "/token"])
        let concern = try #require(scene.environment.concerns.first)
        #expect(concern.hasPrefix("the API's challenge leads to no other issuer: \(reason)"), "\(concern)")
    }

    @Test func `an address at another origin is not asked`() async throws {
        let scene = try Scene(issuer: [discovery(own), token("a")], upstream: [names(first)])
        #expect(try await scene.acquire("https://10.0.0.1/latest") == "a")
        #expect(scene.upstream.sent.isEmpty)
        #expect(
            scene.environment.concerns == [
                "the API's challenge leads to no other issuer: resource_metadata is not at the API's own origin"
            ])
    }

    @Test func `the identity's own issuer is kept where the metadata names it first`() async throws {
        let scene = try Scene(issuer: [discovery(own), token("a")], upstream: [names(first, own + "/")])
        #expect(try await scene.acquire() == "a")
        #expect(scene.tokenRequests == [own + "/token"] && scene.environment.concerns == [])
    }

    @Test func `an issuer in use is kept as long as it is still named`() async throws {
        let scene = try Scene(
            issuer: [discovery(second), token("a"), token("b"), discovery(own), token("c")],
            upstream: [names(second), names(first, second), names(own, first)])
        try await scene.acquire()
        scene.environment.pass(seconds: 300)
        try await scene.acquire()
        scene.environment.pass(seconds: 300)
        try await scene.acquire()
        #expect(scene.tokenRequests == [second + "/token", second + "/token", own + "/token"])
        #expect(scene.environment.concerns == [])
    }

    @Test func `an identity with a token endpoint alone is led to an allowed issuer`() async throws {
        let url = try #require(IssuerURL(own + "/written"))
        let scene = try Scene(issuer: [token("a"), discovery(second), token("b")], upstream: [names(second)]) {
            $0.location = .tokenURL(url)
        }
        #expect(try await scene.acquire(nil) == "a")
        #expect(try await scene.acquire() == "b")
        #expect(scene.tokenRequests == [own + "/written", second + "/token"])
    }

    @Test func `an allowed issuer that refuses the client is a mistake of the set-up and not of the secret`()
        async throws
    {
        let scene = try Scene(
            issuer: [discovery(first), refused, discovery(own), token("a"), token("b"), token("c")],
            upstream: [names(first), names(first)])
        let failed = await failure { try await scene.acquire() }
        guard case .configuration(let reason)? = failed else {
            Issue.record("\(failed as Any)")
            return
        }
        #expect(reason.hasPrefix("allowed issuer \(first), which the API names, refused the client: token: status 401"))
        // The secret is not sent there again for ten minutes, whatever the API says; its own issuer serves meanwhile.
        #expect(try await scene.acquire() == "a")
        #expect(
            scene.environment.concerns == [
                "the API's challenge leads to no other issuer: allowed issuer \(first) refused the client a short while ago"
            ])
        scene.environment.pass(seconds: 599)
        #expect(try await scene.acquire() == "b" && scene.environment.concerns.count == 2)
        scene.environment.pass(seconds: 1)
        #expect(try await scene.acquire() == "c")
        #expect(scene.tokenRequests == [first + "/token", own + "/token", own + "/token", first + "/token"])
    }

    @Test func `an allowed issuer that is down fails the flight with its own words`() async throws {
        let scene = try Scene(issuer: [discovery(first), .status(503), token("a")], upstream: [names(first)])
        let failed = await failure { try await scene.acquire() }
        #expect(failed == .issuerUnavailable(retryAfterSeconds: nil, reason: "token: status 503"))
        #expect(try await scene.acquire(nil) == "a" && scene.tokenRequests == [first + "/token", first + "/token"])
    }

    @Test func `no more than 256 choices and documents are remembered`() async throws {
        let many = OAuth2Resources.most
        let about = names(first, resource: api + "/v1/things")
        let scene = try Scene(
            issuer: [discovery(first)] + (0...many).map { _ in token("a") } + [discovery(own), token("y"), token("z")],
            upstream: [ScriptedIssuer.Line](repeating: about, count: many + 2))
        for index in 0...many { try await scene.acquire(api + "/about?\(index)", audience: ["\(index)"]) }
        #expect(scene.upstream.sent.count == many + 1)
        // At the bound all are forgotten: the oldest purpose is back at its own issuer, and its document is read again.
        #expect(try await scene.acquire(nil, audience: ["0"]) == "y")
        #expect(try await scene.acquire(api + "/about?0", audience: ["0"]) == "z")
        #expect(scene.tokenRequests.suffix(2) == [own + "/token", first + "/token"] && scene.upstream.isFinished)
    }

    @Test(
        arguments: [
            (401, [#"Bearer resource_metadata="https://api/m""#], "https://api/m"),
            (401, [#"Bearer error="invalid_token", Bearer resource_metadata="https://api/m""#], "https://api/m"),
            (401, [#"Bearer error="invalid_token", resource_metadata="a", Bearer resource_metadata="b""#], "a"),
            (401, [#"Basic resource_metadata="https://api/m""#], nil), (401, ["Bearer"], nil),
            (403, [#"Bearer error="insufficient_scope", scope="s", resource_metadata="https://api/m""#], nil),
        ] as [(Int, [String], String?)])
    func `a challenge of 401 says where the API describes itself`(
        _ status: Int, _ lines: [String], _ metadata: String?
    ) throws {
        let scene = try Scene(issuer: [], upstream: []) { $0.allowedScopes = ["s"] }
        let verdict = scene.oauth.judge(
            status: status, wwwAuthenticate: lines.map(bytes), location: nil, requestURL: "u")
        guard case .challenged(let challenge) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(challenge.resourceMetadata == metadata)
    }
}
