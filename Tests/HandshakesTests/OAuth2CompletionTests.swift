import Synchronization
import Testing

@testable import Handshakes

/// What an operator writes down beside `issuer`, and what he is told of a refusal.
@Suite struct OAuth2CompletionTests {
    private let wanted = Wanted(upstreamOrigin: "https://api.example.com")
    private let token = ScriptedIssuer.Line.ok(#"{"access_token":"t","token_type":"Bearer"}"#)

    private func metadata(_ more: String = "") -> ScriptedIssuer.Line {
        .ok(#"{"issuer":"https://idp.example.com","token_endpoint":"https://idp.example.com/token"\#(more)}"#)
    }

    private func handshake(_ change: (inout OAuth2Settings) -> Void) throws -> OAuth2Handshake {
        let issuer = "https://idp.example.com"
        var settings = OAuth2Settings(.issuer(issuer, try #require(IssuerURL(issuer))), clientID: "c")
        change(&settings)
        return try OAuth2Handshake(settings)
    }

    @Test func `an endpoint that the metadata has not is the one that was written down`() async throws {
        let issuer = ScriptedIssuer([metadata(), .ok(#"{"active":true}"#)])
        let oauth = try handshake {
            $0.introspects = true
            $0.introspectionURL = IssuerURL("https://idp.example.com/introspect")
        }
        let isActive = try await oauth.introspect(Secret("t"), environment: MemoryEnvironment().over(issuer))
        #expect(isActive == true && issuer.sent.map(\.url).last == "https://idp.example.com/introspect")
        #expect(try await oauth.endpointConflicts(environment: MemoryEnvironment().over(ScriptedIssuer([]))).isEmpty)
    }

    @Test func `the metadata counts where both name one, and the difference is told`() async throws {
        let issuer = ScriptedIssuer([
            metadata(#","introspection_endpoint":"https://idp.example.com/v2/introspect""#), .ok(#"{"active":true}"#),
        ])
        let oauth = try handshake {
            $0.introspects = true
            $0.introspectionURL = IssuerURL("https://idp.example.com/introspect")
        }
        _ = try await oauth.introspect(Secret("t"), environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent.map(\.url).last == "https://idp.example.com/v2/introspect")
        let told = try await oauth.endpointConflicts(environment: MemoryEnvironment().over(ScriptedIssuer([])))
        #expect(
            told.count == 1
                && told[0].hasPrefix("'introspection_url' is not what the issuer's metadata names, https://idp"))
    }

    @Test func `revocation by hand`() async throws {
        let issuer = ScriptedIssuer([metadata(), .ok("")])
        let oauth = try handshake { $0.revocationURL = IssuerURL("https://idp.example.com/revoke") }
        var session = LayerMaterial(bytes: Secret("s"), obtainedAt: 1, lifetime: nil)
        session.refreshToken = Secret("r")
        #expect(await oauth.revoke(session, environment: MemoryEnvironment().over(issuer)) == .revoked)
        #expect(issuer.sent.map(\.url).last == "https://idp.example.com/revoke")
    }

    @Test(arguments: [
        ("s:cret +", OAuth2Settings.BasicEncoding.form, "; id or secret has characters that the two encodings"),
        ("s:cret +", .raw, "try basic_encoding: form"), ("plain-secret_1.0", .form, ""),
    ])
    func `a client that is refused for its encoding`(
        secret: String, encoding: OAuth2Settings.BasicEncoding, advice: String
    ) async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["client_secret"] = secret }
        let issuer = ScriptedIssuer([metadata(), .status(401, #"{"error":"invalid_client"}"#)])
        let oauth = try handshake { $0.basicEncoding = encoding }
        do throws(GrantFailure) {
            _ = try await oauth.acquire(wanted, environment: environment.over(issuer))
            Issue.record("it was refused")
        } catch {
            let said = "\(error)"
            #expect(said.hasPrefix("credential rejected: token: status 401, invalid_client"))
            #expect(said.contains("basic_encoding") != advice.isEmpty && (advice.isEmpty || said.contains(advice)))
        }
    }

    @Test(arguments: [
        (#"{"error":"invalid_scope"}"#, "configuration: login: status 400, invalid_scope"),
        ("", "issuer answer invalid: login: status 400 without an OAuth error: not the issuer's own answer"),
    ])
    func `a device request that fails is not told as a token request`(body: String, said: String) async throws {
        let issuer = ScriptedIssuer([metadata(), .status(400, body)])
        let oauth = try handshake {
            $0.grant = .deviceCode
            $0.clientAuth = .none
            $0.deviceAuthorizationURL = IssuerURL("https://idp.example.com/device")
        }
        do throws(GrantFailure) {
            _ = try await oauth.login(
                wanted, dialogue: ScriptedPerson(), environment: MemoryEnvironment().over(issuer))
            Issue.record("it was refused")
        } catch { #expect("\(error)" == said) }
        #expect(issuer.sent.last?.url == "https://idp.example.com/device")
    }

    @Test func `metadata of a registration has lists, and what is refused is told by its word`() async throws {
        let registration = #","registration_endpoint":"https://idp.example.com/register""#
        let issuer = ScriptedIssuer([metadata(registration), .status(400, #"{"error":"invalid_redirect_uri"}"#)])
        let oauth = try handshake {
            var registration = ClientRegistration()
            registration.metadata = [
                .init(name: "client_name", values: ["edge"], isList: false),
                .init(name: "contacts", values: ["a@example.com", "b@example.com"], isList: true),
                .init(name: "redirect_uris", values: ["https://edge.example.com/"], isList: true),
            ]
            $0.registration = registration
        }
        do throws(GrantFailure) {
            _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
            Issue.record("it was refused")
        } catch { #expect("\(error)" == "configuration: registration: status 400, invalid_redirect_uri") }
        let body = try #require(issuer.sent.last?.body)
        for part in [
            #""client_name":"edge""#, #""contacts":["a@example.com","b@example.com"]"#,
            #""redirect_uris":["https://edge.example.com/"]"#,
        ] { #expect(body.contains(part), "\(body)") }
    }
}
