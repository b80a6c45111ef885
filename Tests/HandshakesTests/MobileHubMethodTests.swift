import Octets
import Synchronization
import Testing

@testable import Handshakes

private let wanted = Wanted(upstreamOrigin: "https://acme.mobile.example")
private let granted = ScriptedIssuer.Line.ok(#"{"access_token":"c.1","token_type":"Bearer","expires_in":60}"#)
private let exchanged = ScriptedIssuer.Line.ok(#"{"access_token":"mobile.1"}"#)
private let silent = ScriptedIssuer.Line.fault(IssuerFault(.timedOut, provablyUnsent: false))

private func handshake(
    _ method: MobileHubSettings.Method, base: String = "https://acme.mobile.example"
) throws -> MobileHubHandshake {
    try MobileHubHandshake(
        MobileHubSettings(base: try #require(IssuerURL(base)), backendID: "b", method: method),
        GrantWorld(wallMilliseconds: { 1_800_000_000_000 }, random: { Array(repeating: 7, count: $0) }))
}

private func consumer(_ grant: OAuth2Settings.Grant = .clientCredentials) throws -> OAuth2Settings {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idcs.example/token"))), clientID: "app")
    settings.grant = grant
    settings.basicEncoding = .raw
    return settings
}

private func environment(_ lines: [ScriptedIssuer.Line]) -> (WatchedEnvironment, ScriptedIssuer) {
    let issuer = ScriptedIssuer(lines)
    let environment = WatchedEnvironment().over(issuer)
    environment.inner.state.withLock {
        $0.secrets = [
            "third_party_token": "opaque", "client_secret": "s", "password": "pass", "anonymous_key": "YTpi",
        ]
    }
    return (environment, issuer)
}

/// The ways to a token of a mobile backend, each with what it sends.
@Suite struct MobileHubMethodTests {
    @Test func `a user's name and password are the credential`() async throws {
        let hub = try handshake(.user("clerk"))
        let (environment, issuer) = environment([])
        let grant = try await hub.acquire(wanted, environment: environment)
        #expect(grant.token.text == Base64.encode(Array("clerk:pass".utf8)) && issuer.sent.isEmpty)
        #expect(hub.injection(for: bytes("x")).value == bytes("Basic x"))
    }

    @Test func `an anonymous key is sent as the settings page shows it`() async throws {
        let (environment, issuer) = environment([])
        let grant = try await handshake(.anonymousKey).acquire(wanted, environment: environment)
        #expect(grant.token.text == "YTpi" && grant.lifetime == AccessGrant.longestLifetime)
        #expect(grant.sentAt == 10_000 && issuer.sent.isEmpty)
    }

    @Test func `a consumer proves itself with a token of its own where the exchange wants that`() async throws {
        let proof = MobileHubSettings.Exchange.ClientProof.assertion(try consumer(), scope: "urn:x")
        var exchange = MobileHubSettings.Exchange(endpoint: .token(proof), subject: .secret)
        exchange.grantType = nil
        let (environment, issuer) = environment([granted, exchanged])
        let grant = try await handshake(.exchange(exchange)).acquire(wanted, environment: environment)
        #expect(grant.token.text == "mobile.1" && issuer.steps == ["token", "exchange"])
        #expect(issuer.sent[0].body == "grant_type=client_credentials&scope=urn%3Ax")
        let form = issuer.sent[1].body
        #expect(form.contains("name=\"client_assertion\"\r\n\r\nc.1\r\n") && form.contains("jwt-bearer\r\n"))
        #expect(form.contains("name=\"assertion\"\r\n\r\nopaque\r\n") && !form.contains("name=\"grant_type\""))
        #expect(issuer.sent[1].header("Authorization") == nil)
    }

    @Test func `a consumer without a scope asks for none, and is patient`() async throws {
        let (environment, issuer) = environment([silent, .status(503), granted])
        let grant = try await handshake(.consumer(consumer(), scope: nil)).acquire(wanted, environment: environment)
        #expect(grant.token.text == "c.1" && issuer.isFinished)
        #expect(issuer.sent.allSatisfy { $0.body == "grant_type=client_credentials" })
        #expect(environment.seen.pauses == [200_000_000, 800_000_000])
    }

    @Test func `a user's password goes to the consumer's issuer once, whatever becomes of it`() async throws {
        let (environment, issuer) = environment([silent, granted])
        let hub = try handshake(.consumer(consumer(.password(username: "clerk")), scope: nil))
        let failed = await failure { _ = try await hub.acquire(wanted, environment: environment) }
        #expect(failed?.kind == "timedOut" && issuer.sent.count == 1 && environment.seen.pauses == [])
        #expect(environment.inner.outcomes == [.unknown])
    }

    @Test func `a token that the token endpoint calls no good is a rejected secret`() async throws {
        let exchange = MobileHubSettings.Exchange(endpoint: .token(.basic(id: "app")), subject: .secret)
        let (environment, _) = environment([.status(400, #"{"error":"invalid_grant"}"#)])
        let failed = await failure {
            _ = try await handshake(.exchange(exchange)).acquire(wanted, environment: environment)
        }
        #expect(failed == .credentialRejected(reason: "exchange: status 400, invalid_grant"))
    }

    @Test func `a client that single sign-on does not know is no refused token`() async throws {
        let exchange = MobileHubSettings.Exchange(endpoint: .sso, subject: .caller)
        var asked = wanted
        asked.user = .token(Secret("caller.1"))
        let (environment, _) = environment([.status(401, #"{"error":"invalid_client"}"#)])
        let failed = await failure {
            _ = try await handshake(.exchange(exchange)).acquire(asked, environment: environment)
        }
        #expect(failed == .credentialRejected(reason: "token: status 401, invalid_client"))
    }

    @Test func `an assertion that comes back as the token says itself when it ends`() async throws {
        let document = Base64.encode(Array("<a NotOnOrAfter='2030-01-02T03:04:05Z'/>".utf8))
        let exchange = MobileHubSettings.Exchange(endpoint: .sso, subject: .secret)
        let (environment, _) = environment([.ok(#"{"access_token":"\#(document)"}"#)])
        let grant = try await handshake(.exchange(exchange)).acquire(wanted, environment: environment)
        #expect(grant.lifetime == nil && grant.statedTimes?.expires == 1_893_553_445)
        #expect(grant.statedTimes?.issued == nil && grant.notAfter == nil)
    }

    /// An URL may have 4096 octets: a base that leaves no room for the paths behind it is told when the gateway starts.
    @Test func `a base that is too long for its paths makes no handshake`() throws {
        let long = "https://acme.mobile.example/" + String(repeating: "a", count: 4060)
        let exchange = MobileHubSettings.Exchange(endpoint: .sso, subject: .secret)
        #expect(throws: GrantFailure.configuration(reason: "base_url: not a URL")) {
            try handshake(.exchange(exchange), base: long)
        }
        #expect(throws: Never.self) { try handshake(.anonymousKey, base: long) }
        let base = try #require(IssuerURL(long))
        #expect(throws: GrantFailure.configuration(reason: "base, az_base: not a URL")) {
            try MobileFirstHandshake(MobileFirstSettings(base: base, client: .confidential(id: "c")))
        }
    }
}
