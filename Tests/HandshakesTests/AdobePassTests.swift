import Testing

@testable import Handshakes

@Suite struct AdobePassTests {
    static let now: Int64 = 1_780_000_000_000

    private func handshake(_ change: (inout AdobePassSettings) -> Void = { _ in }) throws -> AdobePassHandshake {
        let base = try #require(IssuerURL("https://sp.example"))
        var settings = AdobePassSettings(
            base: base, serviceProvider: "NORTH1", mvpd: "CableCo", resource: nil,
            quota: CallQuota(origin: base.origin, perSecond: 1, burst: 10, patience: 1))
        settings.domainName = "north.example"
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

    private static let registered = ScriptedIssuer.Line.answer(
        201, #"{"client_id":"c-1","client_secret":"s+/1","client_id_issued_at":1}"#, [])
    private static let token = ScriptedIssuer.Line.answer(
        201, #"{"id":"x","access_token":"tkn","created_at":1780000000000,"expires_in":21600}"#, [])

    private static func profile(from: Int64 = now - 1000, until: Int64 = now + 9000) -> ScriptedIssuer.Line {
        .ok(
            #"{"profiles":{"CableCo":{"notBefore":\#(from),"notAfter":\#(until),"issuer":"CableCo","type":"regular","attributes":{"userID":{"value":"u-77","state":"plain"},"zip":{"value":"K","state":"enc"}}}}}"#
        )
    }

    private static func session(_ members: String) -> ScriptedIssuer.Line { .ok("{\(members)}") }

    private static let pending = session(
        #""actionName":"authenticate","actionType":"interactive","url":"/api/v2/authenticate/NORTH1/ABC","code":"ABC","notAfter":"1780000100000""#
    )

    // MARK: - Login

    /// A login that never ends is told as one of the year 9999, or of no year at all.
    @Test(arguments: ["253402300799999", "9223372036854775807", "99999999999999999999999999"])
    func whatNeverEndsIsALogin(end: String) async throws {
        let session =
            #""actionName":"authenticate","url":"/api/v2/authenticate/NORTH1/ABC","code":"ABC","notAfter":\#(end)"#
        let profile =
            #"{"profiles":{"CableCo":{"notBefore":-9223372036854775808,"notAfter":\#(end),"type":"regular"}}}"#
        let issuer = ScriptedIssuer([Self.registered, Self.token, Self.session(session), .ok(profile)])
        let grant = try await handshake().login(
            Wanted(upstreamOrigin: ""), dialogue: ScriptedPerson(),
            environment: environment(loggedIn: false).over(issuer))
        #expect(issuer.isFinished && grant.material.lifetime == 10 * 365 * 86_400_000_000_000)
    }

    /// A login of ten years is a grant of one.
    @Test func aGrantIsBelievedNoLongerThanAnyOther() async throws {
        let profile = #"{"profiles":{"CableCo":{"notBefore":0,"notAfter":253402300799999,"type":"regular"}}}"#
        let issuer = ScriptedIssuer([Self.registered, Self.token, .ok(profile)])
        let grant = try await handshake().acquire(
            Wanted(upstreamOrigin: ""), environment: environment().over(issuer))
        #expect(issuer.isFinished && grant.lifetime == AccessGrant.longestLifetime)
    }

    @Test(arguments: ["-1", "-9223372036854775808", "0"])
    func whatHasEndedIsNone(end: String) async throws {
        let profile = #"{"profiles":{"CableCo":{"notBefore":0,"notAfter":\#(end),"type":"regular"}}}"#
        let issuer = ScriptedIssuer([
            Self.registered, Self.token, Self.session(#""actionName":"authorize""#), .ok(profile),
        ])
        await #expect(throws: GrantFailure.self) {
            _ = try await handshake().login(
                Wanted(upstreamOrigin: ""), dialogue: ScriptedPerson(),
                environment: environment(loggedIn: false).over(issuer))
        }
        #expect(issuer.isFinished)
    }

    @Test func aLoginFromNothing() async throws {
        let issuer = ScriptedIssuer([
            Self.registered, Self.token, Self.pending, .ok(#"{"profiles":{}}"#), .status(503, "busy"), Self.profile(),
        ])
        let person = ScriptedPerson()
        let grant = try await handshake().login(
            Wanted(upstreamOrigin: ""), dialogue: person, environment: environment(loggedIn: false).over(issuer))
        #expect(issuer.isFinished)
        #expect(issuer.steps == ["register", "token", "sessions", "profiles", "profiles", "profiles"])
        let sent = issuer.sent
        #expect(sent[0].body == #"{"software_statement":"a.b.c"}"# && sent[0].carriesPassword)
        #expect(sent[1].body == "grant_type=client_credentials&client_id=c-1&client_secret=s%2B%2F1")
        #expect(sent[2].body == "mvpd=CableCo&domainName=north.example&redirectUrl=https%3A%2F%2Fnorth.example%2F")
        #expect(sent[3].url == "https://sp.example/api/v2/NORTH1/profiles/code/ABC")
        // fingerprint and the base64 of 11111111-1111-4111-9111-111111111111
        #expect(
            sent[2].header("AP-Device-Identifier") == "fingerprint MTExMTExMTEtMTExMS00MTExLTkxMTEtMTExMTExMTExMTEx")
        #expect(sent[2].header("Authorization") == "Bearer tkn" && sent[0].header("Authorization") == nil)
        #expect(sent.allSatisfy { $0.header("X-Device-Info") != nil })
        #expect(person.prompts.map(\.url) == ["https://sp.example/api/v2/authenticate/NORTH1/ABC"])
        #expect(person.prompts.first?.code == "ABC" && person.pauses == [3, 3, 3])
        #expect(person.prompts.first?.deadline == 10_000 + 100_000_000_000)
        #expect(grant.material.isHuman && grant.material.lifetime == 9_000_000_000)
        let facts = try handshake().facts(of: grant.material)
        #expect(facts.map(\.value) == ["CableCo", "regular", "userID, zip (encrypted)"])
    }

    @Test(arguments: [
        // No longer than from its beginning to its end, however far our clock is behind.
        (now + 50_000, now + 60_000, 10_000), (now - 5, now + 1, 1),
    ])
    func aLoginLastsAsLongAsItSays(from: Int64, until: Int64, milliseconds: Int) async throws {
        let issuer = ScriptedIssuer([
            Self.registered, Self.token, Self.session(#""actionName":"authorize","actionType":"direct""#),
            Self.profile(from: from, until: until),
        ])
        let grant = try await handshake().login(
            Wanted(upstreamOrigin: ""), dialogue: ScriptedPerson(),
            environment: environment(loggedIn: false).over(issuer))
        #expect(grant.material.lifetime == UInt64(milliseconds) * 1_000_000)
    }

    @Test(arguments: [
        #""actionName":"authenticate","url":"/x","code":"A B""#,
        #""actionName":"authenticate","url":"/x","code":"../..""#,
        #""actionName":"authenticate","url":"/x""#, #""actionName":"authenticate","code":"ABC""#,
        #""actionName":"authenticate","url":"http://sp.example/x","code":"ABC""#,
        #""actionName":"authenticate","url":"javascript:x","code":"ABC""#, #""actionName":"other","code":"ABC""#,
        #""actionName":7"#, "",
    ])
    func anAnswerThatCannotBeShownEndsTheLogin(members: String) async throws {
        let issuer = ScriptedIssuer([Self.registered, Self.token, Self.session(members)])
        let person = ScriptedPerson()
        let why = await failure {
            _ = try await handshake().login(
                Wanted(upstreamOrigin: ""), dialogue: person, environment: environment(loggedIn: false).over(issuer))
        }
        guard case .issuerAnswerInvalid = why else {
            Issue.record("\(String(describing: why))")
            return
        }
        #expect(person.prompts.isEmpty)
    }

    // MARK: - Media tokens

    private func decide(_ answer: ScriptedIssuer.Line) async throws -> (Secret?, GrantFailure?) {
        let issuer = ScriptedIssuer([Self.registered, Self.token, answer])
        var token: Secret?
        let why = await failure {
            token = try await handshake().credential(
                for: OneTimeNeed(resource: "CH\"1"), environment: environment().over(issuer)
            ).secret
        }
        #expect(issuer.sent.last?.body == #"{"resources":["CH\"1"]}"#)
        return (token, why)
    }

    private static func decision(_ members: String, resource: String = #"CH\"1"#) -> ScriptedIssuer.Line {
        .ok(#"{"decisions":[{"resource":"\#(resource)",\#(members)}]}"#)
    }

    @Test func aPermitBringsItsToken() async throws {
        let (token, why) = try await decide(
            Self.decision(#""authorized":true,"token":{"serializedToken":"PHNp+/=="}"#))
        #expect(token == Secret("PHNp+/==") && why == nil)
    }

    @Test(arguments: [
        #""authorized":true"#, #""authorized":true,"token":{}"#, #""authorized":true,"token":{"serializedToken":""}"#,
        #""authorized":true,"token":{"serializedToken":"a\r\nX: y"}"#,
        #""authorized":true,"token":{"serializedToken":"a b"}"#,
        #""authorized":true,"token":{"serializedToken":7}"#,
        #""authorized":"true","token":{"serializedToken":"a"}"#, #""token":{"serializedToken":"a"}"#,
    ])
    func aPermitWithoutATokenThatCanBeSentIsNone(members: String) async throws {
        let (token, why) = try await decide(Self.decision(members))
        guard case .issuerAnswerInvalid? = why, token == nil else {
            Issue.record("\(String(describing: why))")
            return
        }
    }

    @Test func aDecisionOnAnotherResourceIsNone() async throws {
        let (token, why) = try await decide(
            Self.decision(#""authorized":true,"token":{"serializedToken":"a"}"#, resource: "CH2"))
        guard case .issuerAnswerInvalid? = why, token == nil else {
            Issue.record("\(String(describing: why))")
            return
        }
    }

    @Test(arguments: [
        (
            #"{"action":"none","code":"authorization_denied_by_mvpd"}"#,
            GrantFailure.policyDenied(reason: "authorization_denied_by_mvpd")
        ),
        (#"{"action":"none","code":"<script>"}"#, .policyDenied(reason: "unnamed_error")),
        (#"{"action":"none","code":"invalid_integration"}"#, .configuration(reason: "authorize: invalid_integration")),
        (#"{"action":"authentication","code":"new_code"}"#, .interactionRequired(reason: "authorize: new_code")),
        ("{}", .policyDenied(reason: "authorization_denied")),
    ])
    func aDenialSaysWhy(error: String, wanted: GrantFailure) async throws {
        let (_, why) = try await decide(Self.decision(#""authorized":false,"error":\#(error)"#))
        #expect(why == wanted)
    }

    @Test func withoutALoginNobodyIsAsked() async throws {
        let issuer = ScriptedIssuer([])
        let why = await failure {
            _ = try await handshake().credential(
                for: OneTimeNeed(resource: "CH1"), environment: environment(loggedIn: false).over(issuer))
        }
        #expect(why == .interactionRequired(reason: "nobody has logged in at the provider"))
        #expect(issuer.sent.isEmpty)
    }

    @Test func theLoginThatTheServerHasForgottenIsForgotten() async throws {
        let issuer = ScriptedIssuer([
            Self.registered, Self.token,
            .status(403, #"{"action":"authentication","code":"authenticated_profile_expired","status":403}"#),
        ])
        let environment = environment()
        _ = await failure {
            _ = try await handshake().credential(
                for: OneTimeNeed(resource: "CH1"), environment: environment.over(issuer))
        }
        #expect(environment.heldSession == nil)
    }

    @Test func twoThrottledCallsAreEnough() async throws {
        let page = ScriptedIssuer.Line.status(429, "<html>")
        let issuer = ScriptedIssuer([Self.registered, page, page, Self.token])
        let why = await failure {
            _ = try await handshake().credential(
                for: OneTimeNeed(resource: "CH1"), environment: environment().over(issuer))
        }
        #expect(why == .issuerUnavailable(retryAfterSeconds: 1, reason: "token: throttled, status 429"))
        #expect(issuer.steps == ["register", "token", "token"])
    }
}
