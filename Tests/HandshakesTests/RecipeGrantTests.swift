import Configuration
import Synchronization
import Testing

@testable import Handshakes

@Suite struct RecipeGrantTests {
    /// Three layers; `changes` replace one text each.
    static func handshake(_ changes: [(String, String)] = []) throws -> RecipeHandshake {
        var text = """
            identities:
              a:
                recipe:
                  secrets:
                    password: { value: env:P, to: https://sso.example.com }
                  challenge:
                    scheme: In-House
                    take:
                      gate: { param: realm, match: '^([^:]+):' }
                      nonce: { header: X-Nonce }
                  key: [gate]
                  steps:
                    - name: device
                      layer: durable
                      post: https://sso.example.com/device
                      form: { id: "{uuid}" }
                      take: { id: { json: /device/id } }
                    - name: login
                      layer: session
                      post: https://sso.example.com/login
                      json: { user: svc, password: "{secret.password}", device: "{device.id}" }
                      stale: { status: 401, json: /unknown_device }
                      take: { user: { json: /token }, lifetime: { json: /expires_in, else: 30m } }
                    - name: access
                      post: https://sso.example.com/access/{challenge.gate}?n={challenge.nonce}
                      headers: { X-User: "{login.user}" }
                      form: { url: "{request.url}", method: "{request.method}" }
                      stale: { status: 401 }
                      take: { token: { json: /token }, lifetime: { json: /expires_in, else: 15m } }
                  token: "{access.token}"
                  inject: { value: "In-House {token}" }
            routes: [{ listen: "127.0.0.1:8080", to: "https://u.example.com", use: a }]
            store: { path: /t, key: env:K }
            """
        for (old, new) in changes {
            #expect(text.contains(old), "\(old)")
            text = text.replacing(old, with: new)
        }
        let result = Configuration.load(.text(text)) { _ in nil }
        #expect(result.errors.map(\.description) == [])
        let recipe = try #require(result.configuration?.identities.first?.scheme as? RecipeScheme).recipe
        return RecipeHandshake(
            recipe, identity: "a",
            GrantWorld(wallMilliseconds: { 1_763_712_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
    }

    static func challenge(gate: String = "HR", nonce: String = "n 1&") throws -> Challenge {
        let verdict = try handshake().judge(
            UpstreamAnswer(
                status: 401,
                fields: [
                    (bytes("WWW-Authenticate"), bytes(#"Basic realm="x", In-House realm="\#(gate):2", a=b"#)),
                    (bytes("x-nonce"), bytes(nonce)),
                ], requestURL: "https://u.example.com/hr/1?q=ä", requestMethod: bytes("PUT")))
        guard case .challenged(let challenge) = verdict else { throw GrantFailure.challengeNeeded }
        return challenge
    }

    private let device = ScriptedIssuer.Line.ok(#"{"device":{"id":"d\u0022\n1"}}"#)
    private let login = ScriptedIssuer.Line.ok(#"{"token":"u1","expires_in":60}"#)
    private let access = ScriptedIssuer.Line.ok(#"{"token":"t.1","expires_in":"90"}"#)

    private func grant(
        _ handshake: RecipeHandshake, _ issuer: ScriptedIssuer, _ environment: MemoryEnvironment
    ) async throws -> AccessGrant {
        let wanted = Wanted(challenge: try Self.challenge(), upstreamOrigin: "https://u.example.com")
        return try await handshake.acquire(wanted, environment: environment.over(issuer))
    }

    @Test func aWholeRun() async throws {
        let journal = Journal()
        let issuer = ScriptedIssuer([device, login, access], journal: journal)
        let environment = MemoryEnvironment(password: "pa\"ss\\\u{1}wörd", journal: journal)
        let grant = try await grant(try Self.handshake(), issuer, environment)
        #expect(grant.token.text == "t.1")
        #expect(grant.lifetime == 90_000_000_000)
        #expect(
            issuer.sent.map(\.url) == [
                "https://sso.example.com/device", "https://sso.example.com/login",
                "https://sso.example.com/access/HR?n=n%201%26",
            ])
        #expect(issuer.sent[0].body == "id=abababab-abab-4bab-abab-abababababab")
        #expect(issuer.sent[1].body == #"{"user":"svc","password":"pa\"ss\\\u0001wörd","device":"d\"\u000a1"}"#)
        #expect(issuer.sent[2].header("X-User") == "u1")
        #expect(issuer.sent[2].header("Content-Type") == "application/x-www-form-urlencoded")
        #expect(issuer.sent[2].body == "url=https%3A%2F%2Fu.example.com%2Fhr%2F1%3Fq%3D%C3%A4&method=PUT")
        #expect(issuer.sent.map(\.carriesPassword) == [false, true, false])
        #expect(
            journal.all == [
                "send device", "commit recipe", "spend recipe env:P", "send login", "settle accepted", "commit session",
                "send access",
            ])
    }

    @Test func keptLayersAreNotMadeAgain() async throws {
        let environment = MemoryEnvironment()
        let handshake = try Self.handshake()
        _ = try await grant(handshake, ScriptedIssuer([device, login, access]), environment)
        let issuer = ScriptedIssuer([.ok(#"{"token":"t2"}"#)])
        #expect(try await grant(handshake, issuer, environment).token.text == "t2")
        #expect(issuer.steps == ["access"])
        #expect(environment.outcomes == [.accepted])
    }

    @Test func aStaleSessionIsMadeAnewOnce() async throws {
        let environment = MemoryEnvironment()
        let handshake = try Self.handshake()
        _ = try await grant(handshake, ScriptedIssuer([device, login, access]), environment)
        let issuer = ScriptedIssuer([.status(401), login, access])
        #expect(try await grant(handshake, issuer, environment).token.text == "t.1")
        #expect(issuer.steps == ["access", "login", "access"])
        let twice = ScriptedIssuer([.status(401), login, .status(401)])
        environment.state.withLock { $0.isRenewed = false }
        #expect(await failure { _ = try await grant(handshake, twice, environment) }?.kind == "invalid")
        #expect(twice.isFinished)
        // The next flight registers anew.
        #expect(environment.state.withLock { $0.durables.isEmpty })
    }

    @Test func aStaleRegistrationIsNoRefusedPassword() async throws {
        let environment = MemoryEnvironment()
        let handshake = try Self.handshake()
        _ = try await grant(handshake, ScriptedIssuer([device, login, access]), environment)
        environment.state.withLock { $0.session = nil }
        let issuer = ScriptedIssuer([.status(401, #"{"unknown_device":true}"#), device, login, access])
        #expect(try await grant(handshake, issuer, environment).token.text == "t.1")
        #expect(issuer.steps == ["login", "device", "login", "access"])
        #expect(environment.outcomes == [.accepted, .notSent, .accepted])
    }

    /// Answers to the password step, what became of the flight and of the attempt.
    @Test(arguments: [
        (401, #"{"error":"no"}"#, "rejected", AttemptOutcome.rejected), (403, "", "denied", .unknown),
        (404, "", "configuration", .notSent), (400, "", "configuration", .unknown),
        (302, "", "configuration", .unknown),
        (503, "", "unavailable", .notSent), (429, "", "unavailable", .notSent), (200, "{}", "invalid", .unknown),
        (200, "<html>", "invalid", .unknown), (200, #"{"token":{"a":1}}"#, "invalid", .unknown),
        (200, #"{"token":"a","token":"b"}"#, "invalid", .unknown),
        (200, #"{"token":"a","expires_in":0}"#, "invalid", .unknown),
        (200, #"{"token":null}"#, "invalid", .unknown), (418, "", "configuration", .unknown),
    ])
    func whatAnAnswerMeans(status: Int, body: String, kind: String, outcome: AttemptOutcome) async throws {
        let environment = MemoryEnvironment()
        let issuer = ScriptedIssuer([device, .status(status, body)])
        let failure = await failure { _ = try await grant(try Self.handshake(), issuer, environment) }
        #expect(failure?.kind == kind)
        #expect(environment.outcomes == [outcome])
        #expect(environment.isBalanced)
        #expect(issuer.isFinished)
    }

    @Test(arguments: [(true, AttemptOutcome.notSent), (false, .unknown)])
    func aLostCallIsCountedUnlessProvablyUnsent(unsent: Bool, outcome: AttemptOutcome) async throws {
        let environment = MemoryEnvironment()
        let issuer = ScriptedIssuer([device, .fault(IssuerFault(.closed, provablyUnsent: unsent))])
        #expect(await failure { _ = try await grant(try Self.handshake(), issuer, environment) }?.kind == "unavailable")
        #expect(environment.outcomes == [outcome])
    }

    @Test func nothingIsBookedForWhatCannotBeSent() async throws {
        let environment = MemoryEnvironment(password: "line\nfeed")
        let handshake = try Self.handshake([
            (
                "json: { user: svc, password: \"{secret.password}\", device: \"{device.id}\" }",
                "headers: { X-Password: \"{secret.password}\" }"
            )
        ])
        let issuer = ScriptedIssuer([device])
        #expect(await failure { _ = try await grant(handshake, issuer, environment) }?.kind == "configuration")
        #expect(environment.outcomes == [])
        #expect(issuer.isFinished)
    }

    /// A password on the access layer takes a turn at the issuer, where attempts are booked, and leaves a session alone.
    @Test func aSecretOnTheAccessLayerTakesATurn() async throws {
        let journal = Journal()
        let environment = MemoryEnvironment(journal: journal)
        let handshake = try Self.handshake([
            (
                "headers: { X-User: \"{login.user}\" }",
                "headers: { X-User: \"Basic {'svc:' secret.password | base64}\" }"
            )
        ])
        let issuer = ScriptedIssuer([device, login, access, access], journal: journal)
        _ = try await grant(handshake, issuer, environment)
        _ = try await grant(handshake, issuer, environment)
        #expect(issuer.steps == ["device", "login", "access", "access"])
        #expect(environment.outcomes == [.accepted, .accepted, .accepted])
        #expect(issuer.sent[2].header("X-User") == "Basic c3ZjOnBhInNzXHfDtnJk")
        #expect(journal.all.filter { $0.hasPrefix("s") && $0.contains("recipe") }.count == 3)
    }

    // MARK: - What an answer of the upstream means

    private func verdict(_ lines: [String], nonce: String? = "n") throws -> ChallengeVerdict {
        var fields = lines.map { (name: bytes("www-authenticate"), value: bytes($0)) }
        if let nonce { fields.append((bytes("X-Nonce"), bytes(nonce))) }
        return try Self.handshake().judge(
            UpstreamAnswer(status: 401, fields: fields, requestURL: "u", requestMethod: bytes("GET")))
    }

    @Test func onlyTheDeclaredAnswerIsAChallenge() throws {
        #expect(try verdict(["Basic realm=\"a:\""]) == .none)
        #expect(try verdict(["In-House realm=\"a\""]) == .unusable(reason: "no 'gate'"))
        #expect(try verdict(["In-House realm=\"a:\""], nonce: nil) == .unusable(reason: "no 'nonce'"))
        #expect(try verdict(["In-House realm=\"a:\", realm=\"b:\""]) == .unusable(reason: "duplicate realm"))
        guard case .challenged(let second) = try verdict(["In-House x=1", "in-house realm=\"b:\""]) else {
            return _ = Issue.record("no challenge")
        }
        #expect(second.realm == "b")
        let other = try Self.handshake().judge(
            UpstreamAnswer(status: 403, fields: [], requestURL: "u", requestMethod: []))
        #expect(other == .none)
        #expect(
            try verdict(["In-House realm=\"\(String(repeating: "a", count: 1025)):\""])
                == .unusable(reason: "'gate' is too long for a key"))
    }

    @Test func severalKeyValuesAreNotMixedUp() throws {
        let handshake = try Self.handshake([("key: [gate]", "key: [gate, nonce]")])
        func realm(_ gate: String, _ nonce: String) -> String? {
            let fields = [
                (name: bytes("WWW-Authenticate"), value: bytes("In-House realm=\"\(gate):\"")),
                (bytes("X-Nonce"), bytes(nonce)),
            ]
            guard
                case .challenged(let challenge) = handshake.judge(
                    UpstreamAnswer(status: 401, fields: fields, requestURL: "u", requestMethod: []))
            else { return nil }
            return challenge.realm
        }
        #expect(realm("a&b", "c") == "a%26b&c")
        #expect(realm("a", "b&c") == "a&b%26c")
    }

    // MARK: - Hostile values

    /// Values of a challenge never choose where a request goes, whatever they hold.
    @Test(arguments: ["..", ".", "%2e%2e", "/etc", "?x", "#", "a b", "@evil.example", "//evil.example", "\u{0}", "é"])
    func aChallengeChoosesNoPlace(gate: String) async throws {
        let environment = MemoryEnvironment()
        let handshake = try Self.handshake([("match: '^([^:]+):'", "match: '^(.+)$'")])
        let verdict = handshake.judge(
            UpstreamAnswer(
                status: 401,
                fields: [
                    (bytes("WWW-Authenticate"), bytes("In-House realm=\"\(gate)\"")), (bytes("X-Nonce"), bytes("n")),
                ], requestURL: "https://u.example.com/", requestMethod: bytes("GET")))
        guard case .challenged(let challenge) = verdict else {
            return #expect(gate == "\u{0}", "\(verdict)")
        }
        let issuer = ScriptedIssuer([device, login, access])
        let wanted = Wanted(challenge: challenge, upstreamOrigin: "https://u.example.com")
        let failure = await failure {
            _ = try await handshake.acquire(wanted, environment: environment.over(issuer))
        }
        guard gate != "..", gate != "." else { return #expect(failure?.kind == "configuration") }
        let url = try #require(issuer.sent.last?.url)
        #expect(url.hasPrefix("https://sso.example.com/access/"))
        #expect(
            url.dropFirst("https://sso.example.com/access/".count).dropLast("?n=n".count).allSatisfy {
                !"/?#@ ".contains($0)
            })
    }

    @Test func aTokenThatIsNoFieldValueIsNotUsed() async throws {
        for token in [#"a\r\nX: y"#, "", #" a"#, #"é"#] {
            let issuer = ScriptedIssuer([device, login, .ok(#"{"token":"\#(token)"}"#)])
            #expect(
                await failure { _ = try await grant(try Self.handshake(), issuer, MemoryEnvironment()) }?.kind
                    == "invalid")
        }
    }

    @Test func aSecretStaysWithItsUpstream() async throws {
        let handshake = try Self.handshake([
            ("to: https://sso.example.com }", "to: [https://sso.example.com, https://u.example.com] }"),
            ("token: \"{access.token}\"", "token: \"{access.token}.{secret.password | sha256 | hex}\""),
        ])
        let wanted = Wanted(challenge: try Self.challenge(), upstreamOrigin: "https://other.example.com")
        let issuer = ScriptedIssuer([device, login, access])
        let failure = await failure {
            _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failure == .configuration(reason: "secret password must not go to https://other.example.com"))
        #expect(issuer.sent.isEmpty)
        let good = Wanted(challenge: try Self.challenge(), upstreamOrigin: "https://u.example.com")
        let grant = try await handshake.acquire(good, environment: MemoryEnvironment().over(issuer))
        #expect(grant.token.count == 4 + 64)
    }

    // MARK: - Trace

    @Test func aTraceHoldsNamesAndLengthsOnly() async throws {
        let environment = WatchedEnvironment()
        let issuer = ScriptedIssuer([device, login, access])
        _ = try await Self.handshake().acquire(
            Wanted(challenge: try Self.challenge(nonce: "canary-nonce"), upstreamOrigin: "https://u.example.com"),
            environment: environment.over(issuer))
        let trace = try #require(environment.seen.runs.last)
        #expect(trace.steps.map(\.name) == ["device", "login", "access"])
        #expect(trace.steps.map(\.layer) == ["durable", "session", "access"])
        #expect(trace.steps[2].request == "POST https://sso.example.com/access/{challenge.gate}?n={challenge.nonce}")
        #expect(trace.steps[2].taken == [.init(name: "lifetime", length: 2), .init(name: "token", length: 3)])
        #expect(trace.challenge == [.init(name: "gate", length: 2), .init(name: "nonce", length: 12)])
        #expect(trace.outcome == "token of 3 bytes, good for 90 s")
        var text = ""
        dump(trace, to: &text)
        for secret in ["canary-nonce", "pa\"ss", "t.1", "u1"] { #expect(!text.contains(secret)) }
    }
}
