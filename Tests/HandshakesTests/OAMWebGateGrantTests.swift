import Testing

@testable import Handshakes

private let challenge = Challenge(
    realm: "HR_WG", level: 2, context: Secret("encquery%3DpQ7%2B%20agentid%3DHR_WG"),
    resource: "https://hr.example.com/hr/rest/42?a=1")
private let wanted = Wanted(challenge: challenge, upstreamOrigin: "https://hr.example.com")

private func settings(_ change: (inout OAMWebGateSettings) -> Void = { _ in }) throws -> OAMWebGateSettings {
    let service = try #require(IssuerURL("https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication"))
    var settings = OAMWebGateSettings(
        service: service, username: "svc-hr", clientID: "EdgeProxy", userAgentPrefix: "OIC-Agent")
    change(&settings)
    return settings
}

private func reply(_ type: String, _ value: String) -> ScriptedIssuer.Line {
    .ok(#"{"X-Idaas-Rest-Token-Type":"\#(type)","X-Idaas-Rest-Token-Value":"\#(value)"}"#)
}

private let handleReply = reply("CLIENTREGHANDLE", "eyJv.h/1+==")
private let userReply = reply("USERTOKEN", "j0Y9%2Bu")
private let accessReply = reply("ACCESSTOKEN", "qMn4%2FV1")
private let deadUser = ScriptedIssuer.Line.status(401, #"{"message":"token expired","oicErrorCode":"IDAAS-61002"}"#)
private let deadHandle = ScriptedIssuer.Line.status(
    401, #"{"message":"The client registration handle is invalid","oicErrorCode":"IDAAS-63001"}"#)

@Suite struct OAMWebGateGrantTests {
    @Test func `three calls on a cold start, exactly as the service knows them`() async throws {
        let journal = Journal()
        let issuer = ScriptedIssuer([handleReply, userReply, accessReply], journal: journal)
        let environment = MemoryEnvironment(journal: journal)
        let webgate = try OAMWebGateHandshake(
            settings {
                $0.deviceClaims = ["udid": "u-1", "oracle:idm:claims:client:ostype": "Linux", "locale": "de"]
                $0.restVersion = "v1"
                $0.resourceSuffix = "?"
            })
        let grant = try await webgate.acquire(wanted, environment: environment.over(issuer))

        #expect(grant.token.text == "qMn4%2FV1")
        #expect(grant.level == 2 && grant.lifetime == nil && grant.sentAt == 5_000)
        let base = "https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication/"
        #expect(issuer.sent.map(\.url) == ["register", "authenticate", "access"].map { base + $0 })
        #expect(issuer.sent.map(\.method) == ["POST", "POST", "POST"])
        #expect(issuer.sent.map(\.carriesPassword) == [true, true, false])
        for call in issuer.sent {
            #expect(call.header("Content-Type") == "application/json")
            #expect(call.header("X-IDAAS-SERVICEDOMAIN") == "MobileServiceDomain")
            #expect(call.header("X-IDAAS-REST-VERSION") == "v1")
        }
        #expect(issuer.sent[0].header("X-Idaas-Rest-Authorization") == nil)
        let proof = #"UIDPASSWORD cred="RWRnZVByb3h5OmV5SnYuaC8xKz09""#
        #expect(issuer.sent[1].header("X-Idaas-Rest-Authorization") == proof)
        #expect(issuer.sent[2].header("X-Idaas-Rest-Authorization") == proof)

        let claim = "oracle:idm:claims:client:"
        let credential =
            #""X-Idaas-Rest-Subject-Type":"USERCREDENTIAL","X-Idaas-Rest-Subject-Username":"svc-hr","#
            + #""X-Idaas-Rest-Subject-Password":"pa\"ss\\wörd","X-Idaas-Rest-New-Token-Type-To-Create":"#
        let profile =
            #","deviceProfile":{"\#(claim)sdkversion":"","\#(claim)ostype":"Linux","\#(claim)osversion":"","#
            + #""\#(claim)locale":"de","hardwareIds":{"\#(claim)udid":"u-1"}},"clientId":"EdgeProxy"}"#
        #expect(issuer.sent[0].body == "{" + credential + #""CLIENTREGHANDLE""# + profile)
        #expect(issuer.sent[1].body == "{" + credential + #""USERTOKEN""# + profile)
        #expect(
            issuer.sent[2].body
                == #"{"X-Idaas-Rest-Subject-Type":"TOKEN","X-Idaas-Rest-Subject-Value":"j0Y9%2Bu","#
                + #""X-Idaas-Rest-Application-Context":"encquery%3DpQ7%2B%20agentid%3DHR_WG","#
                + #""X-Idaas-Rest-Application-Resource":"https://hr.example.com/hr/rest/42?a=1?","#
                + #""X-Idaas-Rest-New-Token-Type-To-Create":"ACCESSTOKEN"}"#)
        // The mark stands before the password leaves, and each layer is durable before it is used.
        #expect(
            journal.all == [
                "spend svc-hr", "send register", "settle accepted", "commit registration",
                "spend svc-hr", "send authenticate", "settle accepted", "commit session", "send access",
            ])
        #expect(environment.heldSession?.text == "j0Y9%2Bu")
    }

    @Test func `desktop service proves no client and registers nothing`() async throws {
        let issuer = ScriptedIssuer([reply("USERTOKEN", "jwt"), accessReply])
        let webgate = try OAMWebGateHandshake(
            settings {
                $0.clientAuth = .none
                $0.clientID = nil
                $0.serviceDomain = "Default"
                $0.userTokenType = "USERTOKEN::OAMUT"
            })
        _ = try await webgate.acquire(wanted, environment: MemoryEnvironment(password: "pw").over(issuer))
        #expect(issuer.steps == ["authenticate", "access"])
        #expect(issuer.sent.allSatisfy { $0.header("X-Idaas-Rest-Authorization") == nil })
        #expect(
            issuer.sent[0].body
                == #"{"X-Idaas-Rest-Subject-Type":"USERCREDENTIAL","X-Idaas-Rest-Subject-Username":"svc-hr","#
                + #""X-Idaas-Rest-Subject-Password":"pw","X-Idaas-Rest-New-Token-Type-To-Create":"USERTOKEN::OAMUT"}"#)
    }

    @Test func `basic client proof and own paths`() async throws {
        let issuer = ScriptedIssuer([accessReply])
        let webgate = try OAMWebGateHandshake(
            settings {
                $0.clientAuth = .basic
                $0.clientAuthHeader = "Authorization"
                $0.paths.access = "v2/grant"
            })
        _ = try await webgate.acquire(wanted, environment: MemoryEnvironment(handle: "h", session: "u").over(issuer))
        #expect(issuer.sent[0].header("Authorization") == "Basic RWRnZVByb3h5Omg=")
        #expect(issuer.sent[0].url.hasSuffix("/mobileoamauthentication/v2/grant"))
    }

    struct Rung: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var handle: String?
        var session: String?
        var script: [ScriptedIssuer.Line]
        var steps: [String]
        var failure: String?
        var outcomes: [AttemptOutcome] = []
        var keepsHandle = true
        var keepsSession = true
    }

    static let ladder: [Rung] = [
        Rung(
            testDescription: "everything cached", handle: "h", session: "u", script: [accessReply], steps: ["access"]),
        Rung(
            testDescription: "handle cached", handle: "h", script: [userReply, accessReply],
            steps: ["authenticate", "access"], outcomes: [.accepted]),
        Rung(
            testDescription: "user token dead", handle: "h", session: "u", script: [deadUser, userReply, accessReply],
            steps: ["access", "authenticate", "access"], outcomes: [.accepted]),
        Rung(
            testDescription: "fresh user token refused: no second login", handle: "h", session: "u",
            script: [deadUser, userReply, deadUser], steps: ["access", "authenticate", "access"], failure: "invalid",
            outcomes: [.accepted]),
        Rung(
            testDescription: "handle dead at access", handle: "h", session: "u",
            script: [deadHandle, handleReply, userReply, accessReply],
            steps: ["access", "register", "authenticate", "access"], outcomes: [.accepted, .accepted]),
        Rung(
            testDescription: "handle dead at authenticate", handle: "h",
            script: [deadHandle, handleReply, userReply, accessReply],
            steps: ["authenticate", "register", "authenticate", "access"],
            outcomes: [.notSent, .accepted, .accepted]),
        Rung(
            testDescription: "new handle refused: registered once only, password spent", handle: "h",
            script: [deadHandle, handleReply, deadHandle], steps: ["authenticate", "register", "authenticate"],
            failure: "invalid", outcomes: [.notSent, .accepted, .unknown], keepsSession: false),
        Rung(
            testDescription: "session without handle", session: "u", script: [handleReply, userReply, accessReply],
            steps: ["register", "authenticate", "access"], outcomes: [.accepted, .accepted]),
        Rung(
            testDescription: "handle dead at the second access", handle: "h", script: [userReply, deadHandle],
            steps: ["authenticate", "access"], failure: "invalid", outcomes: [.accepted], keepsHandle: false),
        Rung(
            testDescription: "wrong password at authenticate", handle: "h", session: "u", script: [deadUser, deadUser],
            steps: ["access", "authenticate"], failure: "rejected", outcomes: [.rejected], keepsSession: false),
    ]

    @Test(arguments: ladder) func `the ladder`(_ rung: Rung) async throws {
        let issuer = ScriptedIssuer(rung.script)
        let environment = MemoryEnvironment(handle: rung.handle, session: rung.session)
        let webgate = try OAMWebGateHandshake(settings())
        let failed = await failure { _ = try await webgate.acquire(wanted, environment: environment.over(issuer)) }
        #expect(failed?.kind == rung.failure)
        #expect(issuer.steps == rung.steps)
        #expect(issuer.isFinished)
        #expect(environment.outcomes == rung.outcomes)
        #expect(environment.isBalanced)
        #expect((environment.heldHandle != nil) == rung.keepsHandle)
        #expect((environment.heldSession != nil) == rung.keepsSession)
    }

    /// The rows of the error table, met while the password is on its way.
    static let refusals: [(ScriptedIssuer.Line, String, AttemptOutcome)] = [
        (deadUser, "rejected", .rejected),
        (.status(401, "{}"), "rejected", .rejected),
        // Of a proxy, a WebGate or a container on the way.
        (.status(401), "invalid", .unknown),
        (.status(401, "<html>"), "invalid", .unknown),
        (.status(401, #"{"message":"client handle and password wrong"}"#), "rejected", .rejected),
        (.status(400, #"{"oicErrorCode":"IDAAS-10001"}"#), "configuration", .notSent),
        (.status(404, "<html>"), "configuration", .notSent),
        (.status(409), "configuration", .notSent),
        (.status(403, #"{"message":"locked"}"#), "denied", .unknown),
        (.status(403), "invalid", .unknown),
        (.status(302), "configuration", .unknown),
        (.status(500), "unavailable", .notSent),
        (.status(503), "unavailable", .notSent),
        (.status(429), "unavailable", .notSent),
        (.ok("<html>login</html>"), "invalid", .unknown),
        (.ok(""), "invalid", .unknown),
        (.ok("{}"), "invalid", .unknown),
        (.ok("[1]"), "invalid", .unknown),
        (.ok(#"{"X-Idaas-Rest-Token-Value":7}"#), "invalid", .unknown),
        (.ok(#"{"X-Idaas-Rest-Token-Value":""}"#), "invalid", .unknown),
        (reply("USERTOKEN", #"a\r\nX-Evil: 1"#), "invalid", .unknown),
        (reply("USERTOKEN", #"a\u0000"#), "invalid", .unknown),
        (reply("USERTOKEN", "ä"), "invalid", .unknown),
        (reply("USERTOKEN", "a b"), "invalid", .unknown),
        (reply("USERTOKEN", #"a\"b"#), "invalid", .unknown),
        (reply("ACCESSTOKEN", "abc"), "invalid", .unknown),
        (.ok(#"{"X-Idaas-Rest-Token-Value":"a","X-Idaas-Rest-Token-Value":"b"}"#), "invalid", .unknown),
        (.ok(#"{"kbaQuestions":["pet?"]}"#), "interaction", .unknown),
        (.fault(IssuerFault(.timedOut, provablyUnsent: false)), "timedOut", .unknown),
        (.fault(IssuerFault(.timedOut, provablyUnsent: true)), "timedOut", .notSent),
        (.fault(IssuerFault(.closed, provablyUnsent: false)), "unavailable", .unknown),
        (.fault(IssuerFault(.refused, provablyUnsent: true)), "unavailable", .notSent),
        (.fault(IssuerFault(.unresolvable, provablyUnsent: true)), "unavailable", .notSent),
        (.fault(IssuerFault(.tls("certificate expired"), provablyUnsent: true)), "unavailable", .notSent),
        (.fault(IssuerFault(.brokenAnswer, provablyUnsent: false)), "invalid", .unknown),
        (.fault(IssuerFault(.answerTooLarge, provablyUnsent: false)), "invalid", .unknown),
    ]

    @Test(arguments: refusals) func `what becomes of a password`(
        _ line: ScriptedIssuer.Line, _ kind: String, _ outcome: AttemptOutcome
    ) async throws {
        let webgate = try OAMWebGateHandshake(settings())
        let issuer = ScriptedIssuer([line])
        let environment = MemoryEnvironment(handle: "h")
        let failed = await failure { _ = try await webgate.acquire(wanted, environment: environment.over(issuer)) }
        #expect(failed?.kind == kind)
        #expect(issuer.steps == ["authenticate"])
        #expect(environment.outcomes == [outcome])
        let said = failed.map { "\($0)" } ?? ""
        #expect(!said.contains("pa\"ss") && !said.contains("Evil") && !said.contains("token expired"))
    }

    @Test(arguments: [
        (ScriptedIssuer.Line.status(403, "{}"), "denied"), (.status(403, "<html>"), "invalid"),
        (.status(400), "configuration"), (.status(404), "configuration"),
        (.status(409), "configuration"), (.status(302), "configuration"), (.status(503), "unavailable"),
        (.ok("<html>"), "invalid"), (reply("USERTOKEN", "a"), "invalid"),
        (.fault(IssuerFault(.timedOut, provablyUnsent: false)), "timedOut"),
    ]) func `an access step that fails spends nothing and drops nothing`(
        _ line: ScriptedIssuer.Line, _ kind: String
    ) async throws {
        let webgate = try OAMWebGateHandshake(settings())
        let issuer = ScriptedIssuer([line])
        let environment = MemoryEnvironment(handle: "h", session: "u")
        let failed = await failure { _ = try await webgate.acquire(wanted, environment: environment.over(issuer)) }
        #expect(failed?.kind == kind)
        #expect(issuer.steps == ["access"] && environment.outcomes.isEmpty && environment.heldSession != nil)
    }

    /// Its user token may be dead: there is one new login, with the handle that is there.
    @Test(arguments: ["", "<html>", "{}"]) func `any 401 to an access step asks for a new user token`(_ body: String)
        async throws
    {
        let webgate = try OAMWebGateHandshake(settings())
        let issuer = ScriptedIssuer([.status(401, body), reply("USERTOKEN", "u2"), reply("ACCESSTOKEN", "a")])
        let environment = MemoryEnvironment(handle: "h", session: "u")
        _ = try await webgate.acquire(wanted, environment: environment.over(issuer))
        #expect(issuer.steps == ["access", "authenticate", "access"] && environment.outcomes == [.accepted])
    }

    @Test func `only the code of a refusal is told`() async throws {
        let webgate = try OAMWebGateHandshake(settings())
        let environment = MemoryEnvironment(handle: "h")
        let failed = await failure {
            _ = try await webgate.acquire(wanted, environment: environment.over(ScriptedIssuer([deadUser])))
        }
        #expect(failed == .credentialRejected(reason: "authenticate: status 401, IDAAS-61002"))
        let again = ScriptedIssuer([userReply])
        let next = await failure { _ = try await webgate.acquire(wanted, environment: environment.over(again)) }
        #expect(next == .quarantined)
        #expect(again.sent.isEmpty)
    }

    @Test func `a code that means the handle is configured`() async throws {
        let webgate = try OAMWebGateHandshake(settings { $0.handleRejectedCodes = ["IDAAS-61002"] })
        let issuer = ScriptedIssuer([deadUser, handleReply, userReply, accessReply])
        _ = try await webgate.acquire(wanted, environment: MemoryEnvironment(handle: "h", session: "u").over(issuer))
        #expect(issuer.steps == ["access", "register", "authenticate", "access"])
    }

    @Test func `an expired or unfit user token is not used`() async throws {
        for session in [
            LayerMaterial(bytes: Secret("u"), obtainedAt: 1, lifetime: 9_999),
            LayerMaterial(bytes: Secret("u\r\n"), obtainedAt: 1, lifetime: nil),
        ] {
            var state = MemoryEnvironment.State()
            state.durables = [.registration: LayerMaterial(bytes: Secret("h"), obtainedAt: 1, lifetime: nil)]
            state.session = session
            let issuer = ScriptedIssuer([userReply, accessReply])
            _ = try await OAMWebGateHandshake(settings()).acquire(
                wanted, environment: MemoryEnvironment(state).over(issuer))
            #expect(issuer.steps == ["authenticate", "access"])
        }
    }

    @Test func `a user token purged after its commit is not used`() async throws {
        var state = MemoryEnvironment.State()
        state.forgetsCommits = true
        let issuer = ScriptedIssuer([reply("USERTOKEN", "u"), accessReply])
        let desktop = try OAMWebGateHandshake(settings { $0.clientAuth = .none })
        let failed = await failure {
            _ = try await desktop.acquire(wanted, environment: MemoryEnvironment(state).over(issuer))
        }
        #expect(failed?.kind == "unavailable")
        #expect(issuer.steps == ["authenticate"])
    }

    @Test func `nothing goes on when a commit is refused`() async throws {
        var state = MemoryEnvironment.State()
        state.refusesCommits = true
        let issuer = ScriptedIssuer([handleReply, userReply])
        let failed = await failure {
            _ = try await OAMWebGateHandshake(settings()).acquire(
                wanted, environment: MemoryEnvironment(state).over(issuer))
        }
        #expect(failed?.kind == "internal")
        #expect(issuer.steps == ["register"])
    }

    @Test(arguments: ["", "a\u{7}b", "line\n"]) func `unfit passwords never leave`(_ password: String) async throws {
        let issuer = ScriptedIssuer([])
        let environment = MemoryEnvironment(handle: "h", password: password)
        let failed = await failure {
            _ = try await OAMWebGateHandshake(settings()).acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed?.kind == "secret")
        #expect(issuer.sent.isEmpty && environment.outcomes.isEmpty)
    }

    @Test func `without a challenge only the session can be had`() async throws {
        let webgate = try OAMWebGateHandshake(settings())
        let none = ScriptedIssuer([])
        let environment = MemoryEnvironment()
        let failed = await failure {
            _ = try await webgate.acquire(
                Wanted(upstreamOrigin: "https://hr.example.com"), environment: environment.over(none))
        }
        #expect(failed == .challengeNeeded)
        #expect(none.sent.isEmpty)
        let issuer = ScriptedIssuer([handleReply, userReply])
        for _ in 0..<2 {
            let trial = try await webgate.tryOut(Wanted(upstreamOrigin: ""), environment: environment.over(issuer))
            #expect(trial?.text.hasPrefix("logged in") == true)
        }
        #expect(issuer.steps == ["register", "authenticate"])
    }

    @Test func `member names match without case when no exact one is there`() async throws {
        let issuer = ScriptedIssuer([
            .ok(#"{"x-idaas-rest-token-type":"ACCESSTOKEN","X-IDAAS-REST-TOKEN-VALUE":"abc"}"#)
        ])
        let grant = try await OAMWebGateHandshake(settings()).acquire(
            wanted, environment: MemoryEnvironment(handle: "h", session: "u").over(issuer))
        #expect(grant.token.text == "abc")
    }

    @Test func `settings that cannot go on the wire are refused`() throws {
        let changes: [(inout OAMWebGateSettings) -> Void] = [
            { $0.username = "" }, { $0.username = "a\nb" }, { $0.clientID = nil }, { $0.clientID = "a:b" },
            { $0.userAgentPrefix = "" }, { $0.userAgentPrefix = "a\r\nb" }, { $0.replayHeader = "a b" },
            { $0.serviceDomain = "a\r\n" }, { $0.paths.access = "../x" }, { $0.paths.register = "a b" },
            { $0.clientAuthHeader = "" }, { $0.challengeScheme = "" }, { $0.contextParam = "a=b" },
        ]
        for change in changes {
            let changed = try settings(change)
            #expect(throws: GrantFailure.self) { try OAMWebGateHandshake(changed) }
        }
    }

    @Test func `user agents`() throws {
        var settings = try settings()
        #expect(settings.userAgent(caller: bytes("curl/8")) == bytes("OIC-Agent/1.0 curl/8"))
        #expect(settings.userAgent(caller: nil) == bytes("OIC-Agent/1.0"))
        settings.userAgentMode = .replace
        #expect(settings.userAgent(caller: bytes("curl/8")) == bytes("OIC-Agent/1.0"))
        settings.userAgentPrefix = "OIC/7"
        #expect(settings.userAgent(caller: nil) == bytes("OIC/7"))
    }
}
