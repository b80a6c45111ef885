import Synchronization
import Testing

@testable import Handshakes

private let wanted = Wanted(scopes: ["a"], upstreamOrigin: "https://api.example.com")
private let server = "https://oam.example.com"

private func handshake(
    _ grant: OAuth2Settings.Grant = .oamUser, _ change: (inout OAMMobileClient) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("\(server)/svc/tokens"))), clientID: "app")
    settings.grant = grant
    settings.clientAuth = .none
    var mobile = OAMMobileClient(service: try #require(IssuerURL("\(server)/svc")), username: "u")
    mobile.deviceClaims = ["ostype": "iOS", "osversion": "9 1"]
    change(&mobile)
    var oracle = OAMOAuthDialect()
    oracle.issued = .mobile(mobile)
    settings.oracle = oracle
    return try OAuth2Handshake(settings)
}

private func bearer(_ token: String, _ more: String = "") -> ScriptedIssuer.Line {
    .ok(#"{"access_token":"\#(token)","token_type":"Bearer"\#(more)}"#)
}

private let user = #","oracle_aux_tokens":{"user_assertion":{"access_token":"ua"}}"#
private let refusal = ScriptedIssuer.Line.status(400, #"{"error":"invalid_grant"}"#)

/// A mobile client of OAM 11g (docs/design/wire/oam-oauth.md#mobile): registered once with a password, then known by assertions.
@Suite struct OAMMobileTests {
    @Test func aClientIsRegisteredOnceAndThenProvesItself() async throws {
        let issuer = ScriptedIssuer([
            .ok(#"{"oauthTokenService":"/other/tokens","server_side_sso":false}"#), bearer("code"),
            bearer("ca", user), bearer("t"), bearer("t2"),
        ])
        let environment = MemoryEnvironment().over(issuer)
        let handshake = try handshake()
        #expect(try await handshake.acquire(wanted, environment: environment).token.text == "t")
        #expect(try await handshake.acquire(wanted, environment: environment).token.text == "t2")
        #expect(issuer.steps == ["application profile", "pre-authorization", "register", "token", "token"])
        #expect(issuer.sent[0].url == "\(server)/svc/appprofiles/app?device_os=iOS&os_ver=9%201")
        #expect(issuer.sent[1].url == "\(server)/other/tokens", "the profile says where tokens are")
        #expect(issuer.sent[1].body.contains("grant_type=client_credentials"))
        #expect(
            issuer.sent[2].body.contains("oracle_pre_authz_code=code") && issuer.sent[2].body.contains("username=u"))
        #expect(issuer.sent.map(\.carriesPassword)[2])
        #expect(issuer.sent[3].body.contains("assertion=ua") && issuer.sent[3].body.contains("client_assertion=ca"))
        #expect(issuer.sent[4].url == "\(server)/other/tokens", "and it is remembered with the client")
        #expect(environment.outcomes.count == 1 && environment.isBalanced, "the password went out once")
    }

    @Test func aUserAssertionThatHasRunOutIsReplacedOnce() async throws {
        let registered = [bearer("code"), bearer("ca", user)]
        let issuer = ScriptedIssuer(registered + [refusal, bearer("ub"), bearer("t")])
        let handshake = try handshake { $0.fetchesProfile = false }
        #expect(try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer)).token.text == "t")
        #expect(issuer.steps == ["pre-authorization", "register", "token", "user assertion", "token"])
        #expect(issuer.sent[4].body.contains("assertion=ub"))
        let twice = ScriptedIssuer(registered + [refusal, bearer("ub"), refusal])
        let failed = await failure {
            _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(twice))
        }
        #expect(failed?.kind == "rejected" && twice.isFinished, "\(String(describing: failed))")
    }

    @Test func aServerThatKeepsTheUserIsAskedWithoutAnAssertion() async throws {
        let issuer = ScriptedIssuer([bearer("code"), bearer("ca", user), bearer("t")])
        let handshake = try handshake {
            $0.fetchesProfile = false
            $0.usesDeviceStore = true
        }
        _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[2].body.contains("oracle_use_server_device_store=true"))
        #expect(!issuer.sent[2].body.contains("assertion=ua"))
        let lost = ScriptedIssuer([bearer("code"), bearer("ca", user), refusal])
        let failed = await failure {
            _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(lost))
        }
        #expect(failed?.kind == "interaction")
    }

    static let profiles: [(line: ScriptedIssuer.Line, kind: String)] = [
        (.status(503), "unavailable"), (.status(429), "unavailable"), (.status(404), "configuration"),
        (.status(302), "configuration"), (.status(204), "invalid"), (.ok("<html>"), "invalid"),
        (.ok(#"{"oauthTokenService":"https://evil.example.com/tokens"}"#), "invalid"),
        (.ok(#"{"oauthTokenService":"//evil.example.com/tokens"}"#), "invalid"),
        (.ok(#"{"oauthTokenService":"tokens"}"#), "invalid"),
    ]

    /// The profile must not send the password elsewhere, and without it nothing is sent at all.
    @Test(arguments: profiles)
    func aProfileThatIsOfNoUseEndsTheFlight(line: ScriptedIssuer.Line, kind: String) async throws {
        let issuer = ScriptedIssuer([line])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == kind && issuer.steps == ["application profile"], "\(String(describing: failed))")
    }

    private func kept(_ more: [String: Secret], life: UInt64? = nil) -> MemoryEnvironment {
        var values = ["assertion": Secret("ca"), "type": Secret("urn:t"), "user": Secret("ua")]
        values.merge(more) { $1 }
        values["life"] = life.map { Secret(String($0)) }
        let environment = MemoryEnvironment()
        environment.state.withLock {
            $0.durables[.registration] = LayerMaterial(
                bytes: RecipeMaterial.encode(["client": values]), obtainedAt: 1, lifetime: nil)
        }
        return environment
    }

    @Test func aRegistrationThatHasRunOutIsRenewedWithoutThePassword() async throws {
        let issuer = ScriptedIssuer([bearer("cb", user), bearer("t")])
        let environment = kept(["refresh": Secret("r")], life: 10)
        let handshake = try handshake { $0.fetchesProfile = false }
        _ = try await handshake.acquire(wanted, environment: environment.over(issuer))
        #expect(issuer.steps == ["renew registration", "token"] && environment.outcomes.isEmpty)
        #expect(issuer.sent[0].body.contains("refresh_token=r") && issuer.sent[1].body.contains("client_assertion=cb"))
        // A refusal leaves the password; a server that is down would not take that either.
        let refused = ScriptedIssuer([refusal, bearer("code"), bearer("cb", user), bearer("t")])
        _ = try await handshake.acquire(
            wanted, environment: kept(["refresh": Secret("r")], life: 10).over(refused))
        #expect(refused.steps == ["renew registration", "pre-authorization", "register", "token"])
        let down = ScriptedIssuer([.status(503)])
        let failed = await failure {
            _ = try await handshake.acquire(
                wanted, environment: kept(["refresh": Secret("r")], life: 10).over(down))
        }
        #expect(failed?.kind == "unavailable" && down.steps == ["renew registration"])
    }

    /// A user assertion that replaced the one of the registration is used until it is refused itself.
    @Test func theNewerUserAssertionIsUsedWithoutThePassword() async throws {
        let environment = kept([:], life: 1_000_000)
        let handshake = try handshake { $0.fetchesProfile = false }
        let first = ScriptedIssuer([refusal, bearer("ub"), bearer("t")])
        _ = try await handshake.acquire(wanted, environment: environment.over(first))
        #expect(first.steps == ["token", "user assertion", "token"])
        let second = ScriptedIssuer([bearer("t2"), refusal, bearer("uc"), bearer("t3")])
        for token in ["t2", "t3"] {
            #expect(try await handshake.acquire(wanted, environment: environment.over(second)).token.text == token)
        }
        #expect(second.steps == ["token", "token", "user assertion", "token"])
        let assertions = ["ub", "ub", nil, "uc"]
        for (sent, assertion) in zip(second.sent, assertions) {
            if let assertion { #expect(sent.body.contains("&assertion=\(assertion)&")) }
        }
        #expect(environment.outcomes == [.accepted, .accepted], "the password went out for each new assertion alone")
    }

    @Test func whatIsKeptAndIsNoClientIsRegisteredAnew() async throws {
        let environment = MemoryEnvironment(handle: "of another time")
        let issuer = ScriptedIssuer([bearer("code"), bearer("cb", user), bearer("t")])
        _ = try await handshake { $0.fetchesProfile = false }.acquire(wanted, environment: environment.over(issuer))
        #expect(issuer.steps == ["pre-authorization", "register", "token"])
    }

    @Test func aClientThatTheServerForgotIsRegisteredAnew() async throws {
        let forgotten = ScriptedIssuer.Line.status(401, #"{"error":"invalid_client"}"#)
        let issuer = ScriptedIssuer([forgotten, bearer("code"), bearer("cb", user), bearer("t")])
        let handshake = try handshake { $0.fetchesProfile = false }
        _ = try await handshake.acquire(wanted, environment: kept([:], life: 1_000_000).over(issuer))
        #expect(issuer.steps == ["token", "pre-authorization", "register", "token"])
    }
}

/// OAM deletes tokens and tells of them at its token endpoint, which has neither of the two standard endpoints for it
/// (docs/design/wire/oam-oauth.md#token-action).
@Suite struct OAMTokenActionTests {
    private func oam(_ inquiry: OAMOAuthDialect.Inquiry = .tokenAction) throws -> OAuth2Handshake {
        var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("\(server)/tokens"))), clientID: "c")
        settings.grant = .clientCredentials
        settings.introspectionURL = IssuerURL("\(server)/info")
        var oracle = OAMOAuthDialect()
        oracle.deletesByAction = true
        oracle.inquiry = inquiry
        settings.oracle = oracle
        return try OAuth2Handshake(settings)
    }

    @Test(arguments: [
        (200, #"{"successful":true}"#, Revocation.revoked), (200, #"{"successful":false}"#, .unconfirmed),
        (200, "", .unconfirmed), (400, #"{"successful":true}"#, .unconfirmed), (503, "", .unconfirmed),
    ])
    func aTokenIsDeletedWhereTheServerSaysSo(status: Int, body: String, outcome: Revocation) async throws {
        let issuer = ScriptedIssuer([.status(status, body)])
        let oam = try oam()
        #expect(oam.revokesAccessTokens)
        #expect(await oam.delete(Secret("t"), environment: MemoryEnvironment().over(issuer)) == outcome)
        #expect(
            issuer.sent[0].body.contains("oracle_token_action=delete") && issuer.sent[0].body.contains("assertion=t"))
    }

    @Test func aTokenThatCannotBeDeletedIsNotCalledDeleted() async throws {
        let lost = ScriptedIssuer([.fault(IssuerFault(.timedOut, provablyUnsent: false))])
        #expect(try await oam().delete(Secret("t"), environment: MemoryEnvironment().over(lost)) == .unconfirmed)
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets = [:] }
        let unasked = ScriptedIssuer([.ok(#"{"successful":true}"#)])
        #expect(try await oam().delete(Secret("t"), environment: environment.over(unasked)) == .impossible)
        #expect(unasked.sent.isEmpty)
    }

    /// An assertion for id and secret that the server calls something else is not taken for one.
    @Test(arguments: [
        (#","oracle_tk_context":"client_assertion""#, true), ("", true),
        (#","oracle_tk_context":"resource_access_tk""#, false),
    ])
    func onlyAClientAssertionProvesTheClient(more: String, isOne: Bool) async throws {
        var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("\(server)/tokens"))), clientID: "c")
        settings.grant = .clientCredentials
        var oracle = OAMOAuthDialect()
        oracle.issued = .forSecret
        oracle.deletesByAction = true
        settings.oracle = oracle
        let handshake = try OAuth2Handshake(settings)
        let environment = MemoryEnvironment()
        let issuer = ScriptedIssuer([bearer("ca", more), bearer("t"), .ok(#"{"successful":true}"#)])
        let failed = await failure { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) }
        #expect((failed == nil) == isOne && (failed?.kind ?? "configuration") == "configuration")
        #expect(issuer.steps == (isOne ? ["client assertion", "token"] : ["client assertion"]))
        guard isOne else { return #expect(environment.heldHandle == nil) }
        #expect(issuer.sent[1].body.contains("client_assertion=ca"))
        // The standing client deletes its token at the same place.
        #expect(await handshake.delete(Secret("t"), environment: environment.over(issuer)) == .revoked)
        #expect(issuer.sent[2].url == "\(server)/tokens" && issuer.sent[2].body.contains("client_assertion=ca"))
    }

    @Test(arguments: [
        (200, #"{"successful":true}"#, "true"), (200, "{}", "false"), (200, "<html>", "invalid"),
        (400, "", "configuration"),
    ])
    func aTokenIsGoodWhereTheServerSaysSo(status: Int, body: String, answer: String) async throws {
        let issuer = ScriptedIssuer([.status(status, body)])
        var said = ""
        let failed = await failure {
            said = "\(try await oam().validate(Secret("t"), environment: MemoryEnvironment().over(issuer)))"
        }
        #expect(failed?.kind ?? said == answer)
    }

    @Test(arguments: [
        (200, #"{"exp":1}"#, "true"), (200, #"{"iss":"x"}"#, "true"), (200, "{}", "invalid"), (401, "", "false"),
        (400, "", "false"), (403, "", "false"), (500, "", "configuration"), (302, "", "configuration"),
    ])
    func theServerTellsWhatItKnowsOfAToken(status: Int, body: String, answer: String) async throws {
        let issuer = ScriptedIssuer([.status(status, body)])
        var said = ""
        let failed = await failure {
            said =
                "\(try await oam(.tokenInfo).readInfo(of: Secret("t"), environment: MemoryEnvironment().over(issuer)))"
        }
        #expect(failed?.kind ?? said == answer, "\(String(describing: failed))")
        #expect(issuer.sent[0].header("Authorization") == "Bearer t" && issuer.sent[0].url == "\(server)/info")
    }
}
