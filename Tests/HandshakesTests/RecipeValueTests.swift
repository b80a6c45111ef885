import Configuration
import Synchronization
import TLS
import Testing

@testable import Handshakes

/// The requests of a recipe, byte for byte, and the values that are taken of an answer.
@Suite struct RecipeValueTests {
    private static let key = "a key of at least thirty-two bytes"

    /// A recipe of two steps: the first takes a value out of JSON, the second has the lines given.
    private static func lines(_ second: String, first: String = "take: { user: { json: /user } }") -> String {
        """
        secrets: { key: { value: env:K, to: https://sso.example.com } }
        steps:
          - name: login
            layer: session
            get: https://sso.example.com/login
            \(first)
          - name: access
            \(second)
            take: { token: { json: /token } }
        token: "{access.token}"
        """
    }

    private func acquire(_ lines: String, _ issuer: ScriptedIssuer) async throws -> AccessGrant {
        let handshake = RecipeHandshake(
            try readRecipe(lines), identity: "a",
            GrantWorld(wallMilliseconds: { 1_763_712_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["key"] = Self.key }
        return try await handshake.acquire(
            Wanted(upstreamOrigin: "https://u.example.com"), environment: environment.over(issuer))
    }

    private func user(_ text: String) -> ScriptedIssuer.Line { .ok(#"{"user":"\#(text)"}"#) }
    private let access = ScriptedIssuer.Line.ok(#"{"token":"t"}"#)

    // MARK: - Requests

    @Test func aBodyOfJSONKeepsItsShape() async throws {
        let issuer = ScriptedIssuer([user(#"u\"1"#), access])
        _ = try await acquire(
            Self.lines(
                """
                post: https://sso.example.com/access
                    headers: { content-type: application/vnd.own+json, X-Now: "{now} {now_iso} {now_basic} {date_basic}" }
                    json: { list: [1, "{identity.name}", [true, null], []], user: "{login.user}" }
                """), issuer)
        let sent = try #require(issuer.sent.last)
        #expect(sent.body == #"{"list":[1,"a",[true,null],[]],"user":"u\"1"}"#)
        #expect(sent.header("X-Now") == "1763712000 2025-11-21T08:00:00Z 20251121T080000Z 20251121")
        #expect(sent.header("content-type") == "application/vnd.own+json")
        #expect(sent.header("Content-Type") == nil, "the file's own field stands alone")
        #expect(sent.header("Accept") == "application/json")
    }

    @Test func aTextHoldsValuesAsTheirPipesMakeThem() async throws {
        let issuer = ScriptedIssuer([user(#"<é\n&\""#), access])
        _ = try await acquire(
            Self.lines(
                """
                put: https://sso.example.com/access
                    text: "{login.user | xml} {login.user | url} {login.user | json} {login.user | base64url} {('<' (now | hex)) | xml}"
                """), issuer)
        let sent = try #require(issuer.sent.last)
        #expect(sent.method == "PUT")
        #expect(
            sent.body == "&lt;é\n&amp;&quot; %3C%C3%A9%0A%26%22 " + #"<é\u000a&\" "# + "PMOpCiYi "
                + "&lt;31373633373132303030")
        #expect(sent.header("Content-Type") == "text/plain; charset=utf-8")
    }

    @Test func aSignedValueIsMadeWithItsKey() async throws {
        let issuer = ScriptedIssuer([user("u"), access])
        _ = try await acquire(
            Self.lines(
                """
                post: https://sso.example.com/access
                    form: { assertion: "{'{}' | jws(secret.key, HS256)}" }
                """), issuer)
        let expected = try RecipeJWS.compact(
            payload: bytes("{}"), key: Secret(Self.key), named: "key", .hs256, keyID: nil, known: nil)
        #expect(issuer.sent.last?.body == "assertion=" + String(decoding: expected, as: UTF8.self))
        #expect(issuer.sent.map(\.carriesPassword) == [false, true], "the signature costs an attempt")
    }

    @Test func aURLWithoutAPathHasOne() async throws {
        let issuer = ScriptedIssuer([user("a b"), access])
        _ = try await acquire(Self.lines("get: \"https://sso.example.com?u={login.user}\""), issuer)
        #expect(issuer.sent.last?.url == "https://sso.example.com/?u=a%20b")
    }

    /// A value that would be too large, or is not fit for its place, is not sent at all.
    @Test(arguments: [
        ("form: { a: \"{login.user}\", b: \"{login.user}\", c: \"{login.user}\" }", "body: longer than 64 KiB"),
        ("json: { a: \"{login.user}\", b: \"{login.user}\", c: \"{login.user}\" }", "body: longer than 64 KiB"),
        ("json: { a: \"{login.user}{login.user}{login.user}\" }", "body: longer than 64 KiB"),
        ("text: \"{login.user login.user login.user | base64}\"", "body: longer than 64 KiB"),
        ("headers: { X-A: \"{login.user}{login.user}{login.user}\" }", "X-A: longer than 64 KiB"),
    ])
    func whatIsTooLargeIsNotSent(body: String, why: String) async throws {
        let issuer = ScriptedIssuer([user(String(repeating: "u", count: 30_000)), access])
        let failed = await failure {
            _ = try await acquire(Self.lines("post: https://sso.example.com/access\n    \(body)"), issuer)
        }
        #expect(failed == .configuration(reason: "access: \(why)"))
        #expect(issuer.steps == ["login"])
    }

    @Test(arguments: [
        (30_000, "{login.user}{login.user}{login.user}", "URL: longer than 64 KiB"),
        (30_000, "{login.user}", "the URL with its values is too long, or has a dot segment"),
    ])
    func aURLThatIsTooLongIsNotAsked(count: Int, target: String, why: String) async throws {
        let issuer = ScriptedIssuer([user(String(repeating: "u", count: count)), access])
        let failed = await failure {
            _ = try await acquire(Self.lines("get: \"https://sso.example.com/\(target)\""), issuer)
        }
        #expect(failed == .configuration(reason: "access: \(why)"))
        #expect(issuer.steps == ["login"])
    }

    @Test func aControlCharacterIsNoXML() async throws {
        let issuer = ScriptedIssuer([user(#"a\u0001"#), access])
        let failed = await failure {
            _ = try await acquire(
                Self.lines("post: https://sso.example.com/\n    text: \"<a>{login.user | xml}</a>\""), issuer)
        }
        #expect(failed == .configuration(reason: "access: body: not text, as XML needs it"))
        #expect(issuer.steps == ["login"])
    }

    @Test func aTokenOfTooManyValuesIsNone() async throws {
        let issuer = ScriptedIssuer([user("u"), .ok(#"{"token":"\#(String(repeating: "t", count: 30_000))"}"#)])
        let lines = Self.lines("get: https://sso.example.com/").replacing(
            "\"{access.token}\"", with: "\"{access.token}{access.token}{access.token}\"")
        let failed = await failure { _ = try await acquire(lines, issuer) }
        #expect(failed == .configuration(reason: "token: longer than 64 KiB"))
    }

    @Test func aChallengeThatIsNoTextGoesIntoNoJSON() async throws {
        let recipe = try readRecipe(
            """
            challenge: { header: X-Nonce, take: { nonce: { header: X-Nonce } } }
            steps:
              - name: access
                post: https://sso.example.com/
                json: { n: "{challenge.nonce}" }
                take: { token: { json: /token } }
            token: "{access.token}"
            """)
        let handshake = RecipeHandshake(recipe, identity: "a")
        let verdict = handshake.judge(
            UpstreamAnswer(
                status: 401, fields: [(bytes("x-nonce"), [0x61, 0xFF])], requestURL: "https://u.example.com/",
                requestMethod: bytes("GET")))
        guard case .challenged(let challenge) = verdict else { return _ = Issue.record("no challenge: \(verdict)") }
        let issuer = ScriptedIssuer([access])
        let failed = await failure {
            _ = try await handshake.acquire(
                Wanted(challenge: challenge, upstreamOrigin: "https://u.example.com"),
                environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed == .configuration(reason: "access: body: not UTF-8, as JSON needs it"))
        #expect(issuer.sent.isEmpty)
    }

    // MARK: - Answers

    @Test func theLastCookieOfItsNameCounts() async throws {
        let cookies = ["other=0", "broken", "SID=1", " sid= two words ; Path=/", "sid= three\t;Secure"]
        let login = ScriptedIssuer.Line.answer(200, "", cookies.map { ("set-cookie", $0) })
        let lines = Self.lines(
            "post: https://sso.example.com/\n    form: { sid: \"{login.sid}\" }",
            first: "take: { sid: { cookie: sid } }")
        let issuer = ScriptedIssuer([login, access])
        _ = try await acquire(lines, issuer)
        #expect(issuer.sent.last?.body == "sid=three")
        #expect(issuer.sent.first?.header("Accept") == "*/*", "no JSON is read of this answer")
        let emptied = ScriptedIssuer([.answer(200, "", [("Set-Cookie", "sid=1"), ("Set-Cookie", "sid=; Max-Age=0")])])
        #expect(
            await failure { _ = try await acquire(lines, emptied) }
                == .issuerAnswerInvalid(reason: "login: status 200: no 'sid'"))
    }

    @Test(arguments: [
        ("take: { user: { json: /user } }", 33_000, "'user' is longer than 32 KiB"),
        ("take: { user: { json: /user, match: '^(u+)$' } }", 9_000, "'user' is too long for its 'match'"),
    ])
    func aValueThatIsTooLongIsNotTaken(first: String, count: Int, why: String) async throws {
        let issuer = ScriptedIssuer([user(String(repeating: "u", count: count)), access])
        let failed = await failure {
            _ = try await acquire(Self.lines("get: https://sso.example.com/", first: first), issuer)
        }
        #expect(failed == .issuerAnswerInvalid(reason: "login: status 200: \(why)"))
        #expect(issuer.steps == ["login"])
    }

    @Test(arguments: [("[201]", 201, true), ("[302]", 302, true), ("200", 204, false), ("200", 201, false)])
    func onlyTheStatusesThatAreNamedAreASuccess(accepted: String, status: Int, isGood: Bool) async throws {
        let issuer = ScriptedIssuer([.status(status, #"{"user":"u"}"#), access])
        let failed = await failure {
            _ = try await acquire(
                Self.lines(
                    "get: https://sso.example.com/",
                    first: "accepted: { status: \(accepted) }\n    take: { user: { json: /user } }"), issuer)
        }
        #expect(failed == (isGood ? nil : .issuerAnswerInvalid(reason: "login: status \(status)")))
        #expect(issuer.isFinished == isGood)
    }

    /// A refusal with a place and a pattern is one only where both are met.
    @Test(arguments: [
        (#"{"code":"bad pin"}"#, "rejected"), (#"{"code":"slow down"}"#, "configuration"), ("", "configuration"),
        ("{}", "configuration"), (#"{"code":{"bad":1}}"#, "configuration"), ("<html>", "configuration"),
    ])
    func aRefusalIsToldByWhatStandsInIt(body: String, kind: String) async throws {
        let issuer = ScriptedIssuer([user("u"), .status(400, body)])
        let failed = await failure {
            _ = try await acquire(
                Self.lines(
                    """
                    post: https://sso.example.com/
                        form: { key: "{secret.key}" }
                        rejected: { status: 400, json: /code, match: '^(bad)' }
                    """), issuer)
        }
        #expect(failed?.kind == kind)
    }

    @Test(
        arguments: [
            (#"{"error":{"need":"gate 7"}}"#, "gate 7"), (#"{"error":{"need":null}}"#, nil), (#"{"error":{}}"#, nil),
            ("<html>", nil), (nil, nil),
        ] as [(String?, String?)])
    func aBodyThatSaysSoIsAChallenge(body: String?, realm: String?) throws {
        let handshake = RecipeHandshake(
            try readRecipe(
                """
                challenge: { json: /error/need, take: { need: { json: /error/need } } }
                key: [need]
                steps: [{ name: access, get: "https://sso.example.com/", take: { token: { json: /token } } }]
                token: "{access.token}"
                """), identity: "a")
        #expect(handshake.readsBody)
        var answer = UpstreamAnswer(
            status: 401, fields: [], requestURL: "https://u.example.com/", requestMethod: bytes("GET"))
        answer.body = body.map { bytes($0) }
        switch handshake.judge(answer) {
        case .challenged(let challenge): #expect(challenge.realm == realm)
        case .none: #expect(realm == nil)
        default: Issue.record("a verdict that nobody expects")
        }
    }
}
