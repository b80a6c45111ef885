import Configuration
import Synchronization
import Testing

@testable import Handshakes

/// Adobe's refusals and odd answers, in both generations.
@Suite struct AdobePassFailureTests {
    private static let now: Int64 = 1_780_000_000_000
    private let wanted = Wanted(upstreamOrigin: "")

    private func handshake(_ change: (inout AdobePassSettings) -> Void = { _ in }) throws -> AdobePassHandshake {
        let base = try #require(IssuerURL("https://sp.example"))
        var settings = AdobePassSettings(
            base: base, serviceProvider: "NORTH1", mvpd: "CableCo", resource: try? ResourceTemplate("own"),
            quota: CallQuota(origin: base.origin, perSecond: 1, burst: 10, patience: 1))
        settings.domainName = "north.example"
        settings.device.id = "d"
        change(&settings)
        return AdobePassHandshake(
            settings, GrantWorld(wallMilliseconds: { Self.now }, random: { Array(repeating: 0x11, count: $0) }))
    }

    private func environment(loggedIn: Bool = true) -> MemoryEnvironment {
        var state = MemoryEnvironment.State()
        state.secrets["software_statement"] = "a.b.c"
        if loggedIn {
            state.session = LayerMaterial(bytes: Secret("p"), obtainedAt: 1, lifetime: 1_000_000, isHuman: true)
        }
        return MemoryEnvironment(state)
    }

    private static let registered = ScriptedIssuer.Line.answer(201, #"{"client_id":"c-1","client_secret":"s"}"#, [])
    private static let token = ScriptedIssuer.Line.ok(#"{"access_token":"tkn","expires_in":21600}"#)
    private static let client = [registered, token]

    private func credential(
        _ lines: [ScriptedIssuer.Line], _ environment: MemoryEnvironment? = nil,
        _ change: (inout AdobePassSettings) -> Void = { _ in }
    ) async throws -> (GrantFailure?, ScriptedIssuer) {
        let issuer = ScriptedIssuer(lines)
        let failed = await failure {
            _ = try await handshake(change).credential(
                for: OneTimeNeed(resource: "R"), environment: (environment ?? self.environment()).over(issuer))
        }
        return (failed, issuer)
    }

    // MARK: - The client

    @Test(arguments: [
        (ScriptedIssuer.Line.status(500), "issuer unavailable: token: status 500"),
        (.status(400, #"{"error":"invalid_scope"}"#), "configuration: token: invalid_scope"),
        (.status(404), "configuration: token: status 404"),
        (.ok("{}"), "issuer answer invalid: token: not an answer to it"),
        (
            .ok(#"{"access_token":"a b","expires_in":60}"#),
            "issuer answer invalid: token: access_token cannot be sent"
        ),
        (.ok(#"{"access_token":"a"}"#), "issuer answer invalid: token: no expires_in"),
        (.ok(#"{"access_token":"a","expires_in":0}"#), "issuer answer invalid: token: no expires_in"),
    ])
    func anAccessTokenThatIsNoneIsNotUsed(line: ScriptedIssuer.Line, said: String) async throws {
        let (failed, issuer) = try await credential([Self.registered, line])
        #expect(failed.map { "\($0)" } == said)
        #expect(issuer.steps == ["register", "token"])
    }

    @Test(arguments: ["", "a b", "é"])
    func aStatementThatIsNoJWTIsNotSent(statement: String) async throws {
        let environment = environment()
        environment.state.withLock { $0.secrets["software_statement"] = statement }
        let (failed, issuer) = try await credential(Self.client, environment)
        #expect(failed == .secretUnusable(name: "software_statement", reason: "it is no JWT") && issuer.sent.isEmpty)
    }

    @Test(arguments: [
        (400, #"{"error":"unapproved_software_statement"}"#, "rejected"), (400, #"{"error":"odd"}"#, "configuration"),
        (503, "", "unavailable"), (201, #"{"client_id":"","client_secret":"s"}"#, "invalid"),
    ])
    func aRegistrationThatFailsSaysWhy(status: Int, body: String, kind: String) async throws {
        let (failed, issuer) = try await credential([.status(status, body)])
        #expect(failed?.kind == kind && issuer.steps == ["register"])
    }

    @Test func theRedirectIsRegistered() async throws {
        let (_, issuer) = try await credential([.status(500)]) { $0.redirectURL = "https://a.example/cb" }
        #expect(issuer.sent[0].body == #"{"software_statement":"a.b.c","redirect_uri":"https://a.example/cb"}"#)
    }

    /// Another registration would end every login, so one that cannot be read is not replaced by itself.
    @Test func aRegistrationThatCannotBeReadIsNotReplaced() async throws {
        let environment = environment()
        environment.state.withLock {
            $0.durables[.registration] = LayerMaterial(bytes: Secret("of another time"), obtainedAt: 1, lifetime: nil)
        }
        let (failed, issuer) = try await credential(Self.client, environment)
        #expect(failed?.kind == "internal" && issuer.sent.isEmpty)
        #expect(environment.heldHandle == Secret("of another time"))
    }

    @Test func aNewAccessTokenThatIsRefusedTooEndsTheCall() async throws {
        let (failed, issuer) = try await credential(Self.client + [.status(401), Self.token, .status(401)])
        #expect(failed == .configuration(reason: "authorize: status 401, a new access token is refused too"))
        #expect(issuer.steps == ["register", "token", "authorize", "token", "authorize"])
    }

    // MARK: - Logins

    private func login(
        _ lines: [ScriptedIssuer.Line], _ change: (inout AdobePassSettings) -> Void = { _ in }
    ) async throws -> (LoginGrant?, GrantFailure?, ScriptedIssuer, ScriptedPerson) {
        let issuer = ScriptedIssuer(Self.client + lines)
        let person = ScriptedPerson()
        var grant: LoginGrant?
        let failed = await failure {
            grant = try await handshake(change).login(
                wanted, dialogue: person, environment: environment(loggedIn: false).over(issuer))
        }
        return (grant, failed, issuer, person)
    }

    private static let direct = ScriptedIssuer.Line.ok(#"{"actionName":"authorize"}"#)
    private static let pending = ScriptedIssuer.Line.ok(
        #"{"actionName":"authenticate","url":"/login","code":"ABC","notAfter":"1780000100000"}"#)

    @Test(arguments: [
        (ScriptedIssuer.Line.status(500), "unavailable"), (.ok("{}"), "invalid"),
        (.ok(#"{"profiles":{"CableCo":{}}}"#), "invalid"), (.ok(#"{"profiles":{}}"#), "interaction"),
        (.ok(#"{"profiles":{"Other":{"notAfter":1780000009000}}}"#), "denied"),
    ])
    func aProfileThatIsNoneIsNoLogin(line: ScriptedIssuer.Line, kind: String) async throws {
        let (grant, failed, issuer, _) = try await login([Self.direct, line])
        #expect(grant == nil && failed?.kind == kind && issuer.isFinished)
    }

    /// Times and types that are not told are the usual ones; of two members with one name the first counts.
    @Test func aProfileThatSaysLittleIsALogin() async throws {
        let bare = ScriptedIssuer.Line.ok(
            #"{"profiles":{"CableCo":{"notAfter":\#(Self.now + 9000),"attributes":{"a":{"state":"enc"},"a":{}}}}}"#)
        let (grant, _, _, _) = try await login([Self.direct, bare])
        let material = try #require(grant?.material)
        #expect(material.lifetime == 9_000_000_000 && grant?.remark == nil)
        #expect(try handshake().facts(of: material).map(\.value) == ["CableCo", "regular", "a (encrypted)"])
        let degraded = ScriptedIssuer.Line.ok(
            #"{"profiles":{"CableCo":{"notAfter":\#(Self.now + 9000),"type":"degraded"}}}"#)
        #expect(
            try await login([Self.direct, degraded]).0?.remark == "this is no regular login but one of type degraded")
    }

    @Test func aCodeThatIsNotGoodAnyMoreEndsTheLogin() async throws {
        let gone = ScriptedIssuer.Line.status(400, #"{"action":"none","code":"invalid_authentication_session"}"#)
        let (_, failed, _, person) = try await login([Self.pending, gone])
        let why = "login: the code is not good any more (invalid_authentication_session)"
        #expect(failed == .policyDenied(reason: why) && person.prompts.count == 1)
    }

    @Test func theRedirectIsSentAlsoWithoutADomain() async throws {
        let (_, _, issuer, _) = try await login([.status(500)]) {
            $0.domainName = nil
            $0.redirectURL = "https://a.example/cb"
        }
        #expect(issuer.sent.last?.body == "mvpd=CableCo&redirectUrl=https%3A%2F%2Fa.example%2Fcb")
    }

    @Test func aLoginThatIsOverIsForgotten() async throws {
        let environment = environment()
        let issuer = ScriptedIssuer(Self.client + [.ok(#"{"profiles":{}}"#)])
        let handshake = try handshake()
        let failed = await failure { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) }
        #expect(failed?.kind == "interaction" && environment.heldSession == nil)
        let nobody = await failure { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) }
        #expect(nobody == .interactionRequired(reason: "nobody has logged in at the provider"))
        #expect(issuer.sent.count == 3, "without a login Adobe is not asked")
        // Trouble says nothing of the login.
        let standing = self.environment()
        _ = await failure {
            _ = try await handshake.acquire(
                wanted, environment: standing.over(ScriptedIssuer(Self.client + [.status(503)])))
        }
        #expect(standing.heldSession != nil)
    }

    @Test(arguments: [(200, Revocation.revoked), (302, .revoked), (404, .unconfirmed), (500, .unconfirmed)])
    func aLogoutIsConfirmedByItsStatus(status: Int, said: Revocation) async throws {
        let handshake = try handshake()
        #expect(handshake.endsSessions && handshake.keepsRegistration, "a logout ends the login, not the device")
        let issuer = ScriptedIssuer(Self.client + [.status(status)])
        let session = LayerMaterial(bytes: Secret("p"), obtainedAt: 1, lifetime: nil)
        #expect(await handshake.revoke(session, environment: environment().over(issuer)) == said)
        #expect(issuer.sent.last?.url == "https://sp.example/api/v2/NORTH1/logout/CableCo")
        #expect(handshake.facts(of: session).isEmpty, "what cannot be read tells nothing")
    }

    // MARK: - Decisions

    @Test func aDecisionToTryAgainIsNoDenial() async throws {
        let decisions =
            #"{"decisions":[{"resource":"X","authorized":true},{"resource":"R","authorized":false,"error":{"action":"retry","code":"busy"}}]}"#
        let (failed, _) = try await credential(Self.client + [.ok(decisions)])
        #expect(failed == .timedOut(step: "authorize (busy)"))
        let bare = #"{"decisions":[{"resource":"R","authorized":false,"error":{"code":"concurrency"}}]}"#
        #expect(try await credential(Self.client + [.ok(bare)]).0 == .policyDenied(reason: "concurrency"))
    }

    @Test(arguments: [AdobePassSettings.Generation.v1, .v2])
    func adviceThatFailsSaysWhy(generation: AdobePassSettings.Generation) async throws {
        let handshake = try handshake {
            $0.preauthorized = ["A", "B"]
            $0.generation = generation
        }
        let issuer = ScriptedIssuer(Self.client + [.status(500)])
        let environment = environment().over(issuer)
        let failed = await failure { _ = try await handshake.preview(environment: environment) }
        #expect(failed == .issuerUnavailable(retryAfterSeconds: nil, reason: "preauthorize: status 500"))
        let nobody = self.environment(loggedIn: false).over(issuer)
        #expect(try await handshake.preview(environment: nobody).isEmpty && issuer.isFinished)
    }

    @Test func aResourceWithoutADecisionIsNotDecided() async throws {
        let handshake = try handshake { $0.preauthorized = ["A", "B"] }
        let issuer = ScriptedIssuer(Self.client + [.ok(#"{"decisions":[{"resource":"B","authorized":true}]}"#)])
        let facts = try await handshake.preview(environment: environment().over(issuer))
        #expect(facts.map(\.value) == ["not decided", "would be authorized"])
    }

    @Test func aRouteWithoutAResourceHasTheIdentitys() throws {
        let handshake = try handshake()
        #expect(handshake.resource(of: bytes("/a"), on: wanted) == "own")
        #expect(handshake.resource(of: bytes("/a"), on: Wanted(resource: ["route"], upstreamOrigin: "")) == "route")
    }

    // MARK: - V1

    private static func v1(_ settings: inout AdobePassSettings) { settings.generation = .v1 }

    @Test(arguments: [
        (ScriptedIssuer.Line.status(500), "unavailable"), (.ok("{}"), "invalid"), (.ok(#"{"code":"A B"}"#), "invalid"),
        (.ok(#"{"code":"../x"}"#), "invalid"),
    ])
    func aCodeThatIsNoneIsNotShown(line: ScriptedIssuer.Line, kind: String) async throws {
        let (_, failed, issuer, person) = try await login([.status(404, "{}"), line], Self.v1)
        #expect(failed?.kind == kind && person.prompts.isEmpty)
        #expect(issuer.steps.suffix(2) == ["authn", "regcode"])
    }

    @Test(arguments: ["", #","expires":1"#])
    func aCodeWithoutAnEndIsGoodForAsLongAsWasAsked(more: String) async throws {
        let authn = ScriptedIssuer.Line.ok(#"{"mvpd":"CableCo","expires":"\#(Self.now + 9000)"}"#)
        let (grant, _, issuer, person) = try await login(
            [.status(404, "{}"), .ok(#"{"code":"ABC"\#(more)}"#), authn, .status(500)]
        ) {
            Self.v1(&$0)
            $0.domainName = nil
            $0.redirectURL = "https://a.example/cb"
        }
        #expect(person.prompts.first?.deadline == 10_000 + 1_800_000_000_000)
        #expect(
            person.prompts.first?.url.hasSuffix(
                "&domain_name=&noflash=true&no_iframe=true&redirect_url=https%3A%2F%2Fa.example%2Fcb") == true)
        // The names of the metadata are for operators: a login is one without them.
        let material = try #require(grant?.material)
        #expect(try handshake().facts(of: material).map(\.value) == ["CableCo", "regular"] && issuer.isFinished)
    }

    @Test(arguments: [
        (ScriptedIssuer.Line.status(500), "unavailable"), (.ok("{}"), "invalid"),
        (.ok(#"{"mvpd":"CableCo","expires":"\#(now - 1)"}"#), "interaction"), (.status(404, "{}"), "interaction"),
        (.ok(#"{"mvpd":"Other","expires":"\#(now + 9000)"}"#), "denied"),
    ])
    func aLoginOfV1ThatIsNoneIsNoGrant(line: ScriptedIssuer.Line, kind: String) async throws {
        let issuer = ScriptedIssuer(Self.client + [line])
        let failed = await failure {
            _ = try await handshake(Self.v1).acquire(wanted, environment: environment().over(issuer))
        }
        #expect(failed?.kind == kind && issuer.isFinished)
    }

    @Test(arguments: [(204, Revocation.revoked), (200, .revoked), (404, .unconfirmed)])
    func aLogoutOfV1IsConfirmedByItsStatus(status: Int, said: Revocation) async throws {
        let issuer = ScriptedIssuer(Self.client + [.status(status)])
        let session = LayerMaterial(bytes: Secret("p"), obtainedAt: 1, lifetime: nil)
        #expect(try await handshake(Self.v1).revoke(session, environment: environment().over(issuer)) == said)
        #expect(issuer.sent.last?.method == "DELETE")
    }

    /// Two calls bring a media token. Both turns are had at once, unless a quota never gives two.
    @Test(arguments: [(10, [1, 1, 2]), (1, [1, 1, 1, 1])])
    func bothCallsHaveTheirTurns(burst: Int, turns: [Int]) async throws {
        let issuer = ScriptedIssuer(
            Self.client + [.ok(#"{"resource":"R"}"#), .ok(#"{"resource":"R","serializedToken":"m"}"#)])
        let environment = WatchedEnvironment(environment().over(issuer))
        let token = try await handshake {
            Self.v1(&$0)
            $0.quota.burst = burst
        }.credential(for: OneTimeNeed(resource: "R"), environment: environment).secret
        #expect(token.text == "m" && environment.seen.turns == turns)
    }
}
