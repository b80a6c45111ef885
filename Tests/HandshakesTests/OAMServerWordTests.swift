import Testing

@testable import Handshakes

private let server = "https://oam.example.com"
private let wanted = Wanted(upstreamOrigin: "https://api.example.com")

private func handshake(
    _ issuance: OAMOAuthDialect.Issuance?, _ grant: OAuth2Settings.Grant = .clientCredentials,
    _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("\(server)/svc/tokens"))), clientID: "app")
    settings.grant = grant
    settings.clientAuth = issuance == .forSecret ? .basic : .none
    settings.oracle = OAMOAuthDialect()
    settings.oracle?.issued = issuance
    change(&settings)
    return try OAuth2Handshake(settings)
}

private func mobile(_ change: (inout OAMMobileClient) -> Void = { _ in }) throws -> OAMOAuthDialect.Issuance {
    var mobile = OAMMobileClient(service: try #require(IssuerURL("\(server)/svc")), username: "u")
    mobile.fetchesProfile = false
    change(&mobile)
    return .mobile(mobile)
}

private func bearer(_ token: String, _ more: String = "") -> ScriptedIssuer.Line {
    .ok(#"{"access_token":"\#(token)","token_type":"Bearer"\#(more)}"#)
}

private let user = #","oracle_aux_tokens":{"user_assertion":{"access_token":"ua"}}"#

/// Members of Oracle's answers beyond the standard, and how far each is believed.
@Suite struct OAMServerWordTests {
    @Test(arguments: [
        (#","oracle_client_assertion_type":"urn:x:y""#, "urn%3Ax%3Ay"),
        (#","oracle_client_assertion_type":"two words""#, "jwt-bearer"),
        (#","oracle_client_assertion_type":"""#, "jwt-bearer"), ("", "jwt-bearer"),
    ])
    func `the type of an issued assertion is the server's where it can be sent`(_ more: String, _ type: String)
        async throws
    {
        let issuer = ScriptedIssuer([bearer("ca", more), bearer("t")])
        let grant = try await handshake(.forSecret).acquire(
            wanted, environment: MemoryEnvironment().over(issuer))
        #expect(grant.token.text == "t" && issuer.steps == ["client assertion", "token"])
        let form = issuer.sent[1].body
        #expect(form.contains("client_assertion=ca"))
        #expect(form.split(separator: "&").contains { $0.hasPrefix("client_assertion_type=") && $0.hasSuffix(type) })
    }

    @Test func `a server that keeps the user says so with the registration`() async throws {
        let kept = user + #","oracle_token_in_server_device_store":true"#
        let issuer = ScriptedIssuer([bearer("code"), bearer("ca", kept), bearer("t")])
        let oauth = try handshake(mobile(), .oamUser)
        _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[2].body.contains("oracle_use_server_device_store=true"))
        #expect(!issuer.sent[2].body.contains("assertion=ua"))
        // The operator's own word counts before the server's.
        let told = ScriptedIssuer([bearer("code"), bearer("ca", kept), bearer("t")])
        let off = try handshake(mobile { $0.usesDeviceStore = false }, .oamUser)
        _ = try await off.acquire(wanted, environment: MemoryEnvironment().over(told))
        #expect(!told.sent[2].body.contains("device_store") && told.sent[2].body.contains("assertion=ua"))
    }

    @Test(
        arguments: [
            ([:], "device_os=&os_ver="), (["oracle:idm:claims:client:ostype": "i OS"], "device_os=i%20OS&os_ver="),
        ]
            as [([String: String], String)])
    func `an application profile is asked for with what is known of the device`(
        _ claims: [String: String], _ query: String
    ) async throws {
        let issuer = ScriptedIssuer([.ok("{}"), bearer("code"), bearer("ca", user), bearer("t")])
        let issuance = try mobile {
            $0.fetchesProfile = true
            $0.deviceClaims = claims
        }
        _ = try await handshake(issuance, .oamUser).acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[0].url == "\(server)/svc/appprofiles/app?\(query)")
    }

    @Test func `tokens behind OAM's cookies are asked for with the device's profile`() async throws {
        let issuer = ScriptedIssuer([bearer("code"), bearer("ca", user), bearer("t")])
        let oauth = try handshake(mobile(), .oamCredentials)
        #expect(
            try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer)).token.text == "t")
        let form = issuer.sent[2].body
        #expect(form.hasPrefix("grant_type=oracle-idm%3A%2Foauth%2Fgrant-type%2Foam_credentials&"))
        #expect(form.contains("&oracle_device_profile=") && form.contains("&assertion=ua"))
    }

    // MARK: - Questions about a token

    @Test(arguments: [
        (#"{"successful":true}"#, true), (#"{"successful":false}"#, false), ("{}", false),
    ])
    func `11g says of a token whether it is good by an action at its token endpoint`(_ body: String, _ isGood: Bool)
        async throws
    {
        let issuer = ScriptedIssuer([bearer("t1"), .ok(body)])
        let oauth = try handshake(nil) {
            $0.introspects = true
            $0.oracle?.inquiry = .tokenAction
        }
        let trial = try await oauth.tryOut(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(trial?.isGood == isGood)
        #expect(issuer.sent[1].url == "\(server)/svc/tokens")
        #expect(issuer.sent[1].body.contains("oracle_token_action=validate&assertion=t1"))
    }

    @Test(arguments: [
        (ScriptedIssuer.Line.ok(#"{"iss":"x"}"#), true), (.ok(#"{"exp":1}"#), true), (.status(401), false),
        (.status(400, #"{"error":"x"}"#), false),
    ])
    func `12c says of a token whether it knows it by the token itself`(_ line: ScriptedIssuer.Line, _ isGood: Bool)
        async throws
    {
        let issuer = ScriptedIssuer([bearer("t1"), line])
        let oauth = try handshake(nil) {
            $0.introspects = true
            $0.introspectionURL = IssuerURL("\(server)/info")
            $0.identityDomain = "D"
            $0.oracle?.inquiry = .tokenInfo
        }
        let trial = try await oauth.tryOut(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(trial?.isGood == isGood)
        let sent = issuer.sent[1]
        #expect(sent.method == "GET" && sent.url == "\(server)/info" && sent.body.isEmpty)
        #expect(sent.header("Authorization") == "Bearer t1" && sent.header("X-USER-IDENTITY-DOMAIN-NAME") == "D")
    }

    @Test func `a token is deleted by an action where the server has it`() async throws {
        let oauth = try handshake(nil) { $0.oracle?.deletesByAction = true }
        let session = LayerMaterial(bytes: Secret([]), obtainedAt: 1, lifetime: nil, refreshToken: Secret("r1"))
        for (line, said) in [
            (ScriptedIssuer.Line.ok(#"{"successful":true}"#), Revocation.revoked), (.ok("{}"), .unconfirmed),
            (.status(500), .unconfirmed), (.fault(IssuerFault(.refused, provablyUnsent: true)), .unconfirmed),
        ] {
            let issuer = ScriptedIssuer([line])
            #expect(await oauth.revoke(session, environment: MemoryEnvironment().over(issuer)) == said)
            #expect(issuer.sent[0].body.contains("oracle_token_action=delete&assertion=r1"))
        }
    }

    @Test func `a login of OAM needs a person only where its grant does`() throws {
        #expect(try handshake(nil, .authorizationCode).needsPerson)
        #expect(try !handshake(nil, .clientCredentials).needsPerson)
    }
}
