import Synchronization
import Testing

@testable import Handshakes

private let wanted = Wanted(upstreamOrigin: "https://api.example.com")
private let token = ScriptedIssuer.Line.ok(#"{"access_token":"t","token_type":"Bearer"}"#)

private func refusal(_ code: String) -> ScriptedIssuer.Line { .status(400, #"{"error":"\#(code)"}"#) }

private func handshake(
    _ grant: OAuth2Settings.Grant, _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
    settings.grant = grant
    settings.clientAuth = .none
    change(&settings)
    return try OAuth2Handshake(settings)
}

private func environment(_ lines: [ScriptedIssuer.Line], _ secrets: [String: String]) -> (
    WatchedEnvironment, ScriptedIssuer
) {
    let issuer = ScriptedIssuer(lines)
    let environment = WatchedEnvironment().over(issuer)
    environment.inner.state.withLock { $0.secrets.merge(secrets) { $1 } }
    return (environment, issuer)
}

/// The token or account that a grant is made for, and whose refusal it is when the issuer says no.
@Suite struct OAuth2SubjectTests {
    private static let secretExchange = OAuth2Settings.Grant.tokenExchange(OAuth2Settings.TokenExchange())

    @Test func `a configured subject token is exchanged`() async throws {
        let (environment, issuer) = environment([token], ["subject_token": "subject 1"])
        _ = try await handshake(Self.secretExchange).acquire(wanted, environment: environment)
        #expect(issuer.sent[0].body.contains("subject_token=subject+1&subject_token_type=urn"))
    }

    /// Only `invalid_grant` names the token itself; sending it again would not help, and another answer says nothing about it.
    @Test(arguments: [("invalid_grant", "rejected"), ("invalid_request", "configuration")])
    func `a configured subject token that is refused is a rejected secret`(_ code: String, _ kind: String)
        async throws
    {
        let (environment, _) = environment([refusal(code)], ["subject_token": "s"])
        let failed = await failure {
            _ = try await handshake(Self.secretExchange).acquire(wanted, environment: environment)
        }
        #expect(failed?.kind == kind)
    }

    @Test(arguments: [
        ("invalid_request", "denied"), ("invalid_grant", "denied"), ("invalid_token", "denied"),
        ("invalid_target", "configuration"),
    ])
    func `a caller's token that is refused denies that caller alone`(_ code: String, _ kind: String) async throws {
        var exchange = OAuth2Settings.TokenExchange()
        exchange.subject = .caller
        var asked = wanted
        asked.user = .token(Secret("caller's"))
        let (environment, issuer) = environment([refusal(code)], [:])
        let failed = await failure {
            _ = try await handshake(.tokenExchange(exchange)).acquire(asked, environment: environment)
        }
        #expect(failed?.kind == kind && issuer.sent[0].body.contains("subject_token=caller%27s"))
    }

    @Test func `a refresh token in the configured one's place is sent instead`() async throws {
        let (environment, issuer) = environment([token], ["refresh_token": "first"])
        environment.stand(.replaced(by: Secret("second")))
        #expect(try await handshake(.refreshToken).acquire(wanted, environment: environment).token.text == "t")
        #expect(issuer.sent[0].body.contains("refresh_token=second"))
    }

    @Test(arguments: [
        (FirstRefreshToken.spent, "rejected", "put a new one in its place"),
        (.uncertain, "interaction", "cardea reset IDENTITY"),
    ])
    func `a configured refresh token that may be spent is not sent`(
        _ standing: FirstRefreshToken, _ kind: String, _ advice: String
    ) async throws {
        let (environment, issuer) = environment([token], ["refresh_token": "first"])
        environment.stand(standing)
        let failed = await failure {
            _ = try await handshake(.refreshToken).acquire(wanted, environment: environment)
        }
        #expect(failed?.kind == kind && "\(failed as Any)".contains(advice) && issuer.sent.isEmpty)
    }

    @Test func `a refresh token that the issuer refuses is told to the keeper`() async throws {
        let (environment, _) = environment([refusal("invalid_grant")], ["refresh_token": "first"])
        _ = await failure { _ = try await handshake(.refreshToken).acquire(wanted, environment: environment) }
        #expect(environment.seen.refusedTokens == ["first"])
    }

    /// A success is what brings a token, whatever word stands beside it.
    @Test func `an access token beside an error counts`() async throws {
        let line = ScriptedIssuer.Line.ok(#"{"error":"invalid_grant","access_token":"t","token_type":"Bearer"}"#)
        for (grant, secrets) in [
            (OAuth2Settings.Grant.jwtBearer, ["assertion": "e30.e30.c2ln"]),
            (Self.secretExchange, ["subject_token": "s"]),
        ] {
            let (environment, _) = environment([line], secrets)
            #expect(try await handshake(grant).acquire(wanted, environment: environment).token.text == "t")
        }
    }

    @Test(arguments: [
        (OAuth2Settings.Grant.clientCredentials, "CLIENT_CREDENTIALS"), (.password(username: "u"), "PASSWORD"),
        (.refreshToken, "REFRESH_TOKEN"), (.jwtBearer, "JWT_BEARER"),
        (.saml2Bearer, "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Asaml2-bearer"),
    ])
    func `a server with grants in capitals is sent them so`(_ grant: OAuth2Settings.Grant, _ spelling: String)
        async throws
    {
        let (environment, issuer) = environment(
            [token, token], ["assertion": "<a/>", "refresh_token": "first"])
        let oauth = try handshake(grant) {
            $0.oracle = OAMOAuthDialect()
            $0.oracle?.hasUpperCaseGrants = true
        }
        _ = try await oauth.acquire(wanted, environment: environment)
        #expect(issuer.sent[0].body.hasPrefix("grant_type=\(spelling)&"))
    }

    /// Base 64 of these texts has both signs in which the alphabets differ.
    @Test(arguments: ["<a>~?>~~??</a>", "<a>~?>~~?~?</a>"])
    func `a SAML assertion in the alphabet of URLs is read`(_ text: String) throws {
        let encoded = try SAMLAssertion.encoded(Secret(text)).text
        #expect(encoded.contains("-") && encoded.contains("_"))
        #expect(try SAMLAssertion.encoded(Secret(encoded)).text == encoded)
    }

    @Test func `a refusal that is not of the client is not explained by its encoding`() async throws {
        let (environment, _) = environment(
            [.ok(#"{"error":"invalid_client","access_token":"a b","token_type":"Bearer"}"#)], ["client_secret": "a:b"])
        let failed = await failure {
            _ = try await handshake(.clientCredentials) { $0.clientAuth = .basic }
                .acquire(wanted, environment: environment)
        }
        #expect(
            failed
                == .issuerAnswerInvalid(reason: "token: access_token is empty, too long, or not fit for a header"))
    }

    @Test(arguments: [
        (#"{"error":"two words"}"#, "unknown error"), (#"{"error":7}"#, "unknown error"),
        (#"{"error":{"code":"two words"}}"#, "unknown error"),
        (#"{"error":null,"errorCode":"AUTH-3001"}"#, "AUTH-3001"),
    ])
    func `an error that is no code is not repeated`(_ body: String, _ word: String) async throws {
        let (environment, _) = environment([.status(400, body)], [:])
        let failed = await failure {
            _ = try await handshake(.clientCredentials).acquire(wanted, environment: environment)
        }
        #expect(failed == .configuration(reason: "token: status 400, \(word)"))
    }
}
