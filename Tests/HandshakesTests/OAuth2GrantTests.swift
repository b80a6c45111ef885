import Synchronization
import Testing

@testable import Handshakes

private let origin = "https://api.example.com"
private let wanted = Wanted(scopes: ["a"], upstreamOrigin: origin)

private func handshake(_ grant: OAuth2Settings.Grant) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
    settings.grant = grant
    return try OAuth2Handshake(settings)
}

private func environment(refresh: String? = nil, journal: Journal) -> MemoryEnvironment {
    let environment = MemoryEnvironment(journal: journal)
    environment.state.withLock {
        if let refresh {
            $0.session = LayerMaterial(
                bytes: Secret([]), obtainedAt: 1, lifetime: nil, refreshToken: Secret(refresh))
        }
        $0.secrets["refresh_token"] = "first"
        $0.secrets["assertion"] = "e30.e30.c2ln"
        $0.secrets["subject_token"] = "subject"
    }
    return environment
}

extension MemoryEnvironment {
    fileprivate var refreshToken: String? { state.withLock { $0.session?.refreshToken?.text } }
}

private func answer(_ token: String, refresh: String? = nil) -> ScriptedIssuer.Line {
    .ok(#"{"access_token":"\#(token)","token_type":"Bearer""# + (refresh.map { #","refresh_token":"\#($0)"}"# } ?? "}"))
}

private func refusal(_ code: String) -> ScriptedIssuer.Line { .status(400, #"{"error":"\#(code)"}"#) }

@Suite struct OAuth2GrantTests {
    @Test func `a rotated refresh token is committed before its access token is used`() async throws {
        let journal = Journal()
        let environment = environment(refresh: "r1", journal: journal)
        let issuer = ScriptedIssuer([answer("t", refresh: "r2")], journal: journal)
        let grant = try await handshake(.password(username: "u")).acquire(
            wanted, environment: environment.over(issuer))
        #expect(grant.token.text == "t" && environment.refreshToken == "r2")
        #expect(journal.all == ["send token", "commit session"])
        #expect(issuer.sent[0].body == "grant_type=refresh_token&refresh_token=r1&scope=a")
        #expect(issuer.sent[0].carriesPassword)
    }

    @Test func `a refresh token survives an access token beside it that cannot be used`() async throws {
        let journal = Journal()
        let environment = environment(refresh: "r1", journal: journal)
        let issuer = ScriptedIssuer(
            [.ok(#"{"access_token":"a b","token_type":"Bearer","refresh_token":"r2"}"#)], journal: journal)
        let failed = await failure {
            _ = try await handshake(.password(username: "u")).acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed?.kind == "invalid" && environment.refreshToken == "r2")
    }

    @Test func `one rung down, and each secret once`() async throws {
        let journal = Journal()
        let environment = environment(refresh: "r1", journal: journal)
        let issuer = ScriptedIssuer([refusal("invalid_grant"), answer("t", refresh: "r2")], journal: journal)
        _ = try await handshake(.password(username: "u")).acquire(wanted, environment: environment.over(issuer))
        #expect(
            journal.all == [
                "send token", "drop refresh token", "spend u", "send token", "settle accepted", "commit session",
            ])
        #expect(issuer.sent[1].body.hasPrefix("grant_type=password&username=u&password=pa%22ss"))
        #expect(issuer.sent[1].carriesPassword && environment.refreshToken == "r2")
    }

    @Test(
        arguments: [
            (.fault(IssuerFault(.closed, provablyUnsent: false)), "unavailable"),
            (.fault(IssuerFault(.timedOut, provablyUnsent: false)), "timedOut"), (.status(503), "unavailable"),
            (.ok("<html>"), "invalid"), (refusal("invalid_client"), "rejected"),
            (refusal("temporarily_unavailable"), "unavailable"),
        ] as [(ScriptedIssuer.Line, String)])
    func `trouble with a refresh does not cost a password`(_ line: ScriptedIssuer.Line, _ kind: String) async throws {
        let journal = Journal()
        let environment = environment(refresh: "r1", journal: journal)
        let issuer = ScriptedIssuer([line], journal: journal)
        let failed = await failure {
            _ = try await handshake(.password(username: "u")).acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed?.kind == kind && environment.refreshToken == "r1")
        #expect(issuer.sent.count == 1 && !journal.all.contains("spend u"))
    }

    @Test(
        arguments: [
            (refusal("invalid_grant"), "rejected", .rejected), (refusal("invalid_request"), "rejected", .rejected),
            (refusal("invalid_client"), "rejected", .notSent), (refusal("invalid_scope"), "configuration", .notSent),
            (.status(500), "unavailable", .notSent), (.ok("<html>"), "invalid", .unknown),
            (.status(302), "configuration", .notSent), (refusal("odd_word"), "configuration", .unknown),
            (.fault(IssuerFault(.refused, provablyUnsent: true)), "unavailable", .notSent),
            (.fault(IssuerFault(.timedOut, provablyUnsent: false)), "timedOut", .unknown),
        ] as [(ScriptedIssuer.Line, String, AttemptOutcome)])
    func `what becomes of a password`(
        _ line: ScriptedIssuer.Line, _ kind: String, _ outcome: AttemptOutcome
    ) async throws {
        let environment = environment(journal: Journal())
        let failed = await failure {
            _ = try await handshake(.password(username: "u")).acquire(
                wanted, environment: environment.over(ScriptedIssuer([line])))
        }
        #expect(failed?.kind == kind && environment.outcomes == [outcome] && environment.isBalanced)
    }

    @Test func `a refresh token that is not replaced stays`() async throws {
        let environment = environment(refresh: "r1", journal: Journal())
        let issuer = ScriptedIssuer([answer("t"), answer("t")])
        let oauth = try handshake(.password(username: "u"))
        _ = try await oauth.acquire(wanted, environment: environment.over(issuer))
        _ = try await oauth.acquire(wanted, environment: environment.over(issuer))
        #expect(environment.refreshToken == "r1" && issuer.sent[1].body == issuer.sent[0].body)
    }

    @Test func `a refresh token good for less keeps its place`() async throws {
        let journal = Journal()
        let environment = environment(refresh: "r1", journal: journal)
        let issuer = ScriptedIssuer([refusal("invalid_scope")], journal: journal)
        let failed = await failure {
            _ = try await handshake(.refreshToken).acquire(wanted, environment: environment.over(issuer))
        }
        // The configured one is asked once as well: it may be of another grant.
        #expect(failed?.kind == "unavailable" && environment.refreshToken == "r1")
    }

    @Test func `the configured refresh token begins, its successors go on`() async throws {
        let journal = Journal()
        let environment = environment(journal: journal)
        let issuer = ScriptedIssuer([answer("t", refresh: "r1"), answer("t", refresh: "r2")], journal: journal)
        let oauth = try handshake(.refreshToken)
        _ = try await oauth.acquire(wanted, environment: environment.over(issuer))
        _ = try await oauth.acquire(wanted, environment: environment.over(issuer))
        #expect(issuer.sent.map { $0.body.contains("refresh_token=first") } == [true, false])
        #expect(environment.refreshToken == "r2")
    }

    @Test func `a refused refresh token with nothing below it`() async throws {
        let environment = environment(journal: Journal())
        let failed = await failure {
            _ = try await handshake(.refreshToken).acquire(
                wanted, environment: environment.over(ScriptedIssuer([refusal("invalid_grant")])))
        }
        #expect(failed?.kind == "rejected")
    }

    @Test func assertions() async throws {
        let environment = environment(journal: Journal())
        let issuer = ScriptedIssuer([answer("t"), answer("t"), refusal("invalid_grant")])
        _ = try await handshake(.jwtBearer).acquire(wanted, environment: environment.over(issuer))
        environment.state.withLock { $0.secrets["assertion"] = "<a>?</a>" }
        let saml = try handshake(.saml2Bearer)
        _ = try await saml.acquire(wanted, environment: environment.over(issuer))
        let failed = await failure { _ = try await saml.acquire(wanted, environment: environment.over(issuer)) }
        #expect(
            issuer.sent.map(\.body) == [
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=e30.e30.c2ln&scope=a",
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Asaml2-bearer&assertion=PGE-PzwvYT4&scope=a",
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Asaml2-bearer&assertion=PGE-PzwvYT4&scope=a",
            ])
        #expect(failed?.kind == "rejected")
    }

    @Test(arguments: ["PGE-PzwvYT4", "PGE+PzwvYT4=", "PGE+\nPzwvYT4=\n", " <a>?</a>"])
    func `every spelling of a SAML assertion`(_ text: String) throws {
        #expect(try SAMLAssertion.encoded(Secret(text)).text == "PGE-PzwvYT4")
    }

    /// Base 64 without padding may want one sign, two, or none.
    @Test(arguments: [("PGE-fj8-fn4_PC9hPg", 1), ("PGE-fj8-fn4_IDwvYT4", 2), ("PGE-fj8-fn4_ICA8L2E-", 0)])
    func `a SAML assertion of any length`(_ text: String, beyondThirds: Int) throws {
        #expect(text.utf8.count * 3 / 4 % 3 == beyondThirds)
        #expect(try SAMLAssertion.encoded(Secret(text)).text == text)
    }

    @Test(arguments: ["", "!", "aGVsbG8"]) func `what is no SAML assertion`(_ text: String) {
        #expect(throws: GrantFailure.self) { try SAMLAssertion.encoded(Secret(text)) }
    }

    @Test func exchange() async throws {
        let environment = environment(journal: Journal())
        environment.state.withLock { $0.secrets["actor_token"] = "actor" }
        var exchange = OAuth2Settings.TokenExchange()
        exchange.subject = .identity("other")
        exchange.actorType = "urn:x"
        exchange.requestedType = "urn:y"
        let issuer = ScriptedIssuer([answer("t", refresh: "ignored"), refusal("invalid_grant")])
        let oauth = try handshake(.tokenExchange(exchange))
        _ = try await oauth.acquire(
            Wanted(audience: ["aud"], upstreamOrigin: origin), environment: environment.over(issuer))
        #expect(
            issuer.sent[0].body
                == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=token+of+other"
                + "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&actor_token=actor"
                + "&actor_token_type=urn%3Ax&requested_token_type=urn%3Ay&audience=aud")
        #expect(environment.refreshToken == nil)
        let failed = await failure {
            _ = try await oauth.acquire(
                Wanted(upstreamOrigin: origin), environment: environment.over(issuer))
        }
        #expect(failed?.kind == "configuration")
    }

    @Test(arguments: [
        #""refresh_token":7"#, #""refresh_token":"a\u0000b""#, #""refresh_token":"ä""#, #""refresh_token":["r"]"#,
    ]) func `refresh tokens that are none`(_ member: String) async throws {
        let environment = environment(journal: Journal())
        let failed = await failure {
            _ = try await handshake(.password(username: "u")).acquire(
                wanted,
                environment: environment.over(
                    ScriptedIssuer([.ok(#"{"access_token":"a","token_type":"Bearer",\#(member)}"#)])))
        }
        #expect(failed?.kind == "invalid" && environment.refreshToken == nil)
    }

    @Test func `a refresh token is revoked where the issuer says`() async throws {
        var settings = OAuth2Settings(
            .tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
        settings.revocationURL = IssuerURL("https://idp.example.com/revoke")
        let session = LayerMaterial(bytes: Secret([]), obtainedAt: 1, lifetime: nil, refreshToken: Secret("r 1"))
        let issuer = ScriptedIssuer([.status(200)])
        await (try OAuth2Handshake(settings)).revoke(session, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent.map(\.url) == ["https://idp.example.com/revoke"])
        #expect(issuer.sent[0].body == "token=r+1&token_type_hint=refresh_token")
        #expect(issuer.sent[0].header("Authorization") != nil)
        settings.revocationURL = nil
        await (try OAuth2Handshake(settings)).revoke(session, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent.count == 1)
    }
}
