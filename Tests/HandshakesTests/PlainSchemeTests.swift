import Testing

@testable import Handshakes

private let wanted = Wanted(upstreamOrigin: "https://api.example.com")

private func environment(_ name: String, _ value: String) -> MemoryEnvironment {
    var state = MemoryEnvironment.State()
    state.secrets = [name: value]
    return MemoryEnvironment(state)
}

@Suite struct PlainSchemeTests {
    @Test func `static value`() async throws {
        let scheme = try StaticHandshake(header: "X-Api-Key", prefix: "Key ")
        let issuer = ScriptedIssuer([])
        let grant = try await scheme.acquire(wanted, environment: environment("value", "a b\tc").over(issuer))
        #expect(
            scheme.injection(for: bytes(grant.token.text))
                == InjectedField(name: "X-Api-Key", value: bytes("Key a b\tc")))
        #expect(issuer.sent.isEmpty && grant.sentAt == 10_000)
        for unfit in ["", " a", "a ", "a\r\nb", "a\u{0}", "ä", String(repeating: "a", count: 40_000)] {
            let failed = await failure {
                _ = try await scheme.acquire(wanted, environment: environment("value", unfit).over(issuer))
            }
            #expect(failed?.kind == "secret")
        }
        #expect(throws: GrantFailure.self) { try StaticHandshake(header: "a:b") }
        #expect(throws: GrantFailure.self) { try StaticHandshake(prefix: "a\n") }
    }

    @Test func `basic credentials`() async throws {
        let scheme = try BasicHandshake(username: "Jörg")
        let issuer = ScriptedIssuer([])
        let grant = try await scheme.acquire(wanted, environment: environment("password", "a:£").over(issuer))
        #expect(scheme.injection(for: bytes(grant.token.text)).value == bytes("Basic SsO2cmc6YTrCow=="))
        #expect(issuer.sent.isEmpty)
        for unfit in ["a\nb", "\u{7F}"] {
            let failed = await failure {
                _ = try await scheme.acquire(wanted, environment: environment("password", unfit).over(issuer))
            }
            #expect(failed?.kind == "secret")
        }
        for name in ["", "a:b", "a\nb"] { #expect(throws: GrantFailure.self) { try BasicHandshake(username: name) } }
        #expect(
            scheme.judge(status: 401, wwwAuthenticate: [], location: nil, requestURL: "u")
                == .challenged(Challenge(resource: "u")))
        #expect(scheme.judge(status: 403, wwwAuthenticate: [], location: nil, requestURL: "u") == .none)
    }

    /// A password that would make the header longer than servers take is not sent cut short.
    @Test func aPasswordThatFitsNoHeaderIsNotSent() async throws {
        let scheme = try BasicHandshake(username: "u")
        let fits = String(repeating: "p", count: TokenAlphabet.longest / 4 * 3 - 4)
        let grant = try await scheme.acquire(
            wanted, environment: environment("password", fits).over(ScriptedIssuer([])))
        #expect(grant.token.count <= TokenAlphabet.longest)
        let failed = await failure {
            _ = try await scheme.acquire(
                wanted, environment: environment("password", fits + "ppppp").over(ScriptedIssuer([])))
        }
        #expect(failed?.kind == "secret")
    }

    @Test func aCertificateHasNoToken() async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await ClientCertificateHandshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed == .configuration(reason: "a certificate has no token") && issuer.sent.isEmpty)
    }

    /// A scheme that does not say otherwise is tried by having its secret, and cannot end a session.
    @Test func aPlainSchemeIsTriedByItsSecret() async throws {
        let scheme = try StaticHandshake()
        let known = environment("value", "v").over(ScriptedIssuer([]))
        #expect(try await scheme.tryOut(wanted, environment: known) == nil)
        let unfit = environment("value", "")
        #expect(await failure { _ = try await scheme.tryOut(wanted, environment: unfit) }?.kind == "secret")
        let session = LayerMaterial(bytes: Secret("v"), obtainedAt: 1, lifetime: nil)
        #expect(await scheme.revoke(session, environment: known) == .impossible)
    }

    /// The words that metrics count by, and the sentences for operators.
    @Test func everyFailureHasItsWord() {
        #expect(GrantFailure.challengeNeeded.word == .challengeNeeded)
        #expect("\(GrantFailure.challengeNeeded)" == "a challenge is needed first")
        #expect(GrantFailure.internal(reason: "x").word == .internal)
        #expect(GrantFailure.internal(reason: "x").toldToCallers == "internal fault: x")
        let unreadable = GrantFailure.secretUnreadable(name: "password", reason: "/run/secrets/p: no such file")
        #expect(!unreadable.toldToCallers.contains("/run") && unreadable.description.contains("/run"))
        #expect(IssuerFault.Kind.cancelled.description == "given up")
    }

    @Test func `no secret shows`() throws {
        let secret = Secret("hunter2")
        let call = IssuerCall(
            step: "token", method: "POST", url: try #require(IssuerURL("https://a/b")),
            headers: [("Authorization", "hunter2")], body: bytes("hunter2"), carriesPassword: true)
        let answer = IssuerAnswer(
            status: 200, headers: [("X", "hunter2")], body: bytes("hunter2"), sentAt: 1, overTLS: true)
        let grant = AccessGrant(token: secret, tokenType: "Bearer", lifetime: nil, sentAt: 1)
        let material = LayerMaterial(bytes: secret, obtainedAt: 1, lifetime: nil)
        let field = InjectedField(name: "Authorization", value: bytes("hunter2"))
        let object = try AnswerObject(bytes(#"{"access_token":"hunter2"}"#))
        for value in [secret, call, answer, grant, material, field, object] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(!text.contains("hunter2") && !text.contains("104, 117"), "\(text)")
            }
        }
        #expect(secret == Secret(bytes("hunter2")) && secret != Secret("hunter3") && secret != Secret("hunter"))
        var taken = bytes("x")
        #expect(Secret(taking: &taken).text == "x" && taken.isEmpty)
    }
}

@Suite struct IssuerURLTests {
    @Test(arguments: [
        ("https://idp.example.com/token", "https://idp.example.com", "/token"),
        ("HTTPS://IDP.example.com", "https://idp.example.com", "/"),
        ("http://127.0.0.1:8080/a?b=c%20d", "http://127.0.0.1:8080", "/a?b=c%20d"),
        ("https://[::1]:443/x", "https://[::1]", "/x"), ("http://h:443?q", "http://h:443", "/?q"),
    ]) func reads(_ text: String, _ origin: String, _ path: String) throws {
        let url = try #require(IssuerURL(text))
        #expect(url.origin == origin && url.path == path)
        #expect(IssuerURL(url.description) == url)
    }

    @Test(arguments: [
        "", "https://", "https:///a", "ftp://a/", "//a/b", "https://u:p@a/", "https://a:0/", "https://a:65536/",
        "https://a:/", "https://a:80x/", "https://a/b#c", "https://a/b c", "https://a/\\", "https://a/%",
        "https://a/%zz",
        "https://a\r\n/", "https://ä/", "https://[::1/", "https://[a]/", "https://[::1]x/", "https://a/../b",
        "https://a/.",
        "https://a/<", "https:/a", "https://a?%2",
    ]) func refuses(_ text: String) {
        #expect(IssuerURL(text) == nil)
    }

    @Test(
        arguments: [
            ("https://a/b", "c", "https://a/b/c"), ("https://a/b/", "/c/d", "https://a/b/c/d"),
            ("https://a", "c", "https://a/c"),
            ("https://a/b?q=1", "c", "https://a/b/c?q=1"), ("https://a/b", "../c", nil), ("https://a/b", "c#d", nil),
        ] as [(String, String, String?)])
    func appends(_ base: String, _ path: String, _ whole: String?) throws {
        #expect(try #require(IssuerURL(base)).appending(path: path)?.description == whole)
    }
}
