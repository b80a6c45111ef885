import Synchronization
import Testing

@testable import Handshakes

private let wanted = Wanted(scopes: ["a"], upstreamOrigin: "https://api.example.com")
private let token = ScriptedIssuer.Line.ok(#"{"access_token":"t","token_type":"Bearer"}"#)

private func handshake(_ change: (inout OAuth2Settings) -> Void = { _ in }) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "")
    settings.grant = .clientCredentials
    settings.registration = ClientRegistration(url: IssuerURL("https://idp.example.com/register"))
    change(&settings)
    return try OAuth2Handshake(settings)
}

/// A client that has no id of its own gets one, and keeps it for as long as the server knows it (RFC 7591).
@Suite struct OAuth2RegistrationTests {
    private func client(_ id: String, _ more: String = "") -> ScriptedIssuer.Line {
        .answer(201, #"{"client_id":"\#(id)","client_secret":"s"\#(more)}"#, [])
    }

    @Test func aRegisteredClientIsKeptAndUsed() async throws {
        let issuer = ScriptedIssuer([client("one"), token, token])
        let environment = MemoryEnvironment().over(issuer)
        let handshake = try handshake()
        for _ in 0..<2 {
            #expect(try await handshake.acquire(wanted, environment: environment).token.text == "t")
        }
        #expect(issuer.steps == ["registration", "token", "token"] && issuer.isFinished)
        #expect(issuer.sent[0].method == "POST" && issuer.sent[0].url == "https://idp.example.com/register")
        #expect(issuer.sent[0].header("Authorization") == nil)
        // "one:s" in Base64 (RFC 7617).
        #expect(issuer.sent[1].header("Authorization") == "Basic b25lOnM=")
    }

    @Test func aClientThatIsForgottenIsRegisteredOnceMore() async throws {
        let refused = ScriptedIssuer.Line.status(401, #"{"error":"invalid_client"}"#)
        let issuer = ScriptedIssuer([client("one"), refused, client("two"), token])
        let environment = MemoryEnvironment().over(issuer)
        #expect(try await handshake().acquire(wanted, environment: environment).token.text == "t")
        #expect(issuer.steps == ["registration", "token", "registration", "token"])
        #expect(issuer.sent[3].header("Authorization") == "Basic dHdvOnM=")
        let twice = ScriptedIssuer([client("one"), refused, client("two"), refused])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(twice))
        }
        #expect(failed != nil && twice.isFinished, "a second new client would fare no better")
    }

    @Test func whatIsKeptAndCannotBeReadIsRegisteredAnew() async throws {
        let issuer = ScriptedIssuer([client("one"), token])
        let environment = MemoryEnvironment(handle: "of another time").over(issuer)
        #expect(try await handshake().acquire(wanted, environment: environment).token.text == "t")
        #expect(issuer.steps == ["registration", "token"])
    }

    @Test func theServerIsToldWhatTheClientWillDo() async throws {
        let member = ClientRegistration.Member(name: "client_name", values: ["Cardea"], isList: false)
        let contacts = ClientRegistration.Member(name: "contacts", values: ["a@b", "c@d"], isList: true)
        let issuer = ScriptedIssuer([client("one"), token])
        let environment = MemoryEnvironment()
        environment.state.withLock {
            $0.secrets["initial_access_token"] = "first.token"
            $0.secrets["software_statement"] = "e30.e30.c2ln"
        }
        let handshake = try handshake {
            $0.registration?.metadata = [member, contacts]
            $0.registration?.hasInitialToken = true
            $0.registration?.hasStatement = true
        }
        _ = try await handshake.acquire(wanted, environment: environment.over(issuer))
        #expect(issuer.sent[0].header("Authorization") == "Bearer first.token")
        #expect(issuer.sent[0].carriesPassword, "it is not sent again after a lost answer")
        #expect(
            issuer.sent[0].body
                == #"{"client_name":"Cardea","contacts":["a@b","c@d"],"token_endpoint_auth_method":"client_secret_basic","#
                + #""grant_types":["client_credentials"],"response_types":[],"software_statement":"e30.e30.c2ln"}"#)
    }

    static let answers: [(status: Int, body: String, kind: String)] = [
        (302, "", "configuration"), (400, #"{"error":"invalid_client_metadata"}"#, "configuration"),
        (404, "", "configuration"), (401, "", "configuration"), (403, "", "configuration"),
        (400, #"{"error":"access_denied"}"#, "configuration"), (429, "", "unavailable"), (500, "", "unavailable"),
        (408, "", "unavailable"), (204, "", "invalid"), (201, "", "invalid"), (201, "{}", "invalid"),
        (201, #"{"client_id":""}"#, "invalid"), (201, #"{"client_id":"é","client_secret":"s"}"#, "invalid"),
        (201, #"{"client_id":"c"}"#, "invalid"), (201, #"{"client_id":"c","client_secret":"a\nb"}"#, "invalid"),
        (201, #"{"client_id":"c","client_secret":"s","client_secret_expires_at":1}"#, "invalid"),
        (
            201, #"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#, "configuration"
        ),
    ]

    @Test(arguments: answers)
    func anAnswerThatBringsNoClientSaysWhat(status: Int, body: String, kind: String) async throws {
        let issuer = ScriptedIssuer([.status(status, body)])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == kind && issuer.isFinished, "\(String(describing: failed))")
    }

    /// The only secret that was shown is the initial access token, and it is not tried again.
    @Test(arguments: [(401, ""), (403, ""), (400, #"{"error":"access_denied"}"#)])
    func aRefusedInitialTokenIsRejected(status: Int, body: String) async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["initial_access_token"] = "first" }
        let failed = await failure {
            _ = try await handshake { $0.registration?.hasInitialToken = true }
                .acquire(wanted, environment: environment.over(ScriptedIssuer([.status(status, body)])))
        }
        #expect(failed?.kind == "rejected")
    }

    @Test func anInitialTokenThatFitsNoHeaderIsNotSent() async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["initial_access_token"] = "a b" }
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await handshake { $0.registration?.hasInitialToken = true }
                .acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed?.kind == "secret" && issuer.sent.isEmpty)
    }

    @Test func withoutAnAddressNothingIsAsked() async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await handshake { $0.registration?.url = nil }
                .acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == "configuration" && issuer.sent.isEmpty)
    }

    @Test func aSecretThatEndsLaterIsKeptUntilThen() async throws {
        let date = [(name: "Date", value: "Thu, 01 Jan 1970 00:00:10 GMT")]
        let issuer = ScriptedIssuer([
            .answer(201, #"{"client_id":"c","client_secret":"s","client_secret_expires_at":70}"#, date), token,
        ])
        let environment = MemoryEnvironment().over(issuer)
        _ = try await handshake().acquire(wanted, environment: environment)
        #expect(environment.state.withLock { $0.durables[.registration]?.lifetime } == 60_000_000_000)
    }

    @Test func aClientWithAKeyOfItsOwnNeedsNoSecret() async throws {
        let issuer = ScriptedIssuer([.answer(201, #"{"client_id":"c"}"#, []), token])
        let handshake = try handshake { $0.clientAuth = .none }
        _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[0].body.contains(#""token_endpoint_auth_method":"none""#))
        #expect(issuer.sent[1].body.contains("client_id=c"))
    }

    static let grants: [(grant: OAuth2Settings.Grant, members: String)] = [
        (.clientCredentials, #"["client_credentials"],"response_types":[]"#),
        (.password(username: "u"), #"["password","refresh_token"],"response_types":[]"#),
        (
            .deviceCode,
            #"["urn:ietf:params:oauth:grant-type:device_code","refresh_token"],"response_types":[]"#
        ),
        (
            .authorizationCode,
            #"["authorization_code","refresh_token"],"response_types":["code"],"redirect_uris":["http://127.0.0.1/callback"]"#
        ),
        (.jwtBearer, #"["urn:ietf:params:oauth:grant-type:jwt-bearer","refresh_token"],"response_types":[]"#),
        (.mintedJWT(claims: []), #"["urn:ietf:params:oauth:grant-type:jwt-bearer"],"response_types":[]"#),
        (.refreshToken, #"["refresh_token"],"response_types":[]"#),
        (.saml2Bearer, #"["urn:ietf:params:oauth:grant-type:saml2-bearer","refresh_token"],"response_types":[]"#),
        (
            .tokenExchange(OAuth2Settings.TokenExchange()),
            #"["urn:ietf:params:oauth:grant-type:token-exchange"],"response_types":[]"#
        ),
    ]

    /// The names of RFC 7591 §2, RFC 7523, RFC 7522, RFC 8628 and RFC 8693: a server lets a client do nothing else.
    @Test(arguments: grants.indices)
    func eachGrantIsRegisteredByItsName(index: Int) async throws {
        let issuer = ScriptedIssuer([.status(500)])
        _ = await failure {
            _ = try await handshake { $0.grant = Self.grants[index].grant }
                .acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(
            issuer.sent.map(\.body) == [
                #"{"token_endpoint_auth_method":"client_secret_basic","grant_types":\#(Self.grants[index].members)}"#
            ])
    }

    @Test(arguments: [
        (OAuth2Settings.ClientAuth.post, "client_secret_post"), (.clientSecretJWT, "client_secret_jwt"),
        (.privateKeyJWT, "private_key_jwt"), (.tls, "tls_client_auth"), (.none, "none"),
    ])
    func eachProofIsRegisteredByItsName(proof: OAuth2Settings.ClientAuth, name: String) async throws {
        let issuer = ScriptedIssuer([.status(500)])
        _ = await failure {
            _ = try await handshake {
                $0.clientAuth = proof
                $0.keys = ["key"]
            }.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(issuer.sent.first?.body.hasPrefix(#"{"token_endpoint_auth_method":"\#(name)","#) == true)
    }

    @Test func theConfiguredRedirectStandsFirstAndOnce() async throws {
        let own = "https://edge.example.com/cb"
        let issuer = ScriptedIssuer([.status(500)])
        _ = await failure {
            _ = try await handshake {
                $0.grant = .authorizationCode
                $0.redirectURI = IssuerURL(own)
                $0.redirectText = own
                $0.dpop = true
                let others = ["https://b.example.com/", own]
                $0.registration?.metadata = [.init(name: "redirect_uris", values: others, isList: true)]
            }.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        let body = try #require(issuer.sent.first?.body)
        #expect(
            body.hasSuffix(#""redirect_uris":["\#(own)","https://b.example.com/"],"dpop_bound_access_tokens":true}"#))
    }

    /// The token is revoked as the client that it was given to; a client that is not known is not registered for that.
    @Test func aTokenIsRevokedAsTheClientThatHadIt() async throws {
        let session = LayerMaterial(bytes: Secret([]), obtainedAt: 1, lifetime: nil, refreshToken: Secret("r"))
        let issuer = ScriptedIssuer([client("one"), token, .status(200)])
        let environment = MemoryEnvironment().over(issuer)
        let handshake = try handshake { $0.revocationURL = IssuerURL("https://idp.example.com/revoke") }
        #expect(await handshake.revoke(session, environment: environment) == .impossible)
        #expect(issuer.sent.isEmpty)
        _ = try await handshake.acquire(wanted, environment: environment)
        #expect(await handshake.revoke(session, environment: environment) == .revoked)
        #expect(issuer.sent.last?.header("Authorization") == "Basic b25lOnM=")
    }
}
