import Testing

@testable import Handshakes

/// The wire of REST API V1.
@Suite struct AdobePassV1Tests {
    static let now: Int64 = 1_780_000_000_000

    private func handshake() throws -> AdobePassHandshake {
        let base = try #require(IssuerURL("https://v1.example"))
        var settings = AdobePassSettings(
            base: base, serviceProvider: "NORTH1", mvpd: "Cable Co", resource: nil,
            quota: CallQuota(origin: base.origin, perSecond: 1, burst: 10, patience: 1))
        settings.generation = .v1
        settings.domainName = "north.example"
        settings.device.id = "a b&c"
        settings.preauthorized = ["A", "B"]
        return AdobePassHandshake(
            settings, GrantWorld(wallMilliseconds: { Self.now }, random: { Array(repeating: 0x11, count: $0) }))
    }

    private func environment(loggedIn: Bool) -> MemoryEnvironment {
        var state = MemoryEnvironment.State()
        state.secrets["software_statement"] = "a.b.c"
        if loggedIn {
            state.session = LayerMaterial(bytes: Secret("p"), obtainedAt: 1, lifetime: 1_000_000, isHuman: true)
        }
        return MemoryEnvironment(state)
    }

    private static let client: [ScriptedIssuer.Line] = [
        .answer(201, #"{"client_id":"c-1","client_secret":"s"}"#, []),
        .answer(201, #"{"access_token":"tkn","expires_in":21600}"#, []),
    ]
    private static let authn = ScriptedIssuer.Line.ok(
        #"{"requestor":"NORTH1","mvpd":"Cable Co","userId":"u","expires":"\#(now + 9000)"}"#)
    private static let who = "requestor=NORTH1&deviceId=a%20b%26c"

    @Test func aLoginFromNothing() async throws {
        let issuer = ScriptedIssuer(
            Self.client + [
                .status(404, "{}"), .answer(201, #"{"code":"ABC12","expires":\#(Self.now + 60_000)}"#, []),
                .status(404, "{}"), .status(410, "{}"), Self.authn,
                .ok(#"{"updated":1,"encrypted":["zip"],"data":{"userID":"u","zip":"K"}}"#),
            ])
        let person = ScriptedPerson()
        let grant = try await handshake().login(
            Wanted(upstreamOrigin: ""), dialogue: person, environment: environment(loggedIn: false).over(issuer))
        #expect(
            issuer.steps == ["register", "token", "authn", "regcode", "authn", "authn", "authn", "usermetadata"])
        let sent = issuer.sent
        #expect(sent[2].url == "https://v1.example/api/v1/tokens/authn?" + Self.who)
        #expect(sent[3].url == "https://v1.example/reggie/v1/NORTH1/regcode")
        #expect(sent[3].body == "deviceId=a+b%26c&mvpd=Cable+Co&ttl=1800")
        #expect(sent.dropFirst(2).allSatisfy { $0.header("Authorization") == "Bearer tkn" })
        #expect(sent.allSatisfy { $0.header("AP-Device-Identifier") == nil && $0.header("Accept") != nil })
        #expect(
            person.prompts.map(\.url) == [
                "https://v1.example/api/v1/authenticate?reg_code=ABC12&requestor_id=NORTH1&mso_id=Cable%20Co"
                    + "&domain_name=north.example&noflash=true&no_iframe=true&redirect_url=https%3A%2F%2Fnorth.example%2F"
            ])
        #expect(grant.material.lifetime == 9_000_000_000 && grant.material.isHuman)
        #expect(
            try handshake().facts(of: grant.material).map(\.value) == [
                "Cable Co", "regular", "userID, zip (encrypted)",
            ])
    }

    /// A login that never ends is told as one of the year 9999, or of no year at all.
    @Test(arguments: ["253402300799999", "9223372036854775807", "99999999999999999999999999"])
    func whatNeverEndsIsALogin(end: String) async throws {
        let issuer = ScriptedIssuer(
            Self.client + [
                .status(404, "{}"), .answer(201, #"{"code":"ABC12","expires":\#(end)}"#, []),
                .ok(#"{"requestor":"NORTH1","mvpd":"Cable Co","userId":"u","expires":"\#(end)"}"#), .ok("{}"),
            ])
        let grant = try await handshake().login(
            Wanted(upstreamOrigin: ""), dialogue: ScriptedPerson(),
            environment: environment(loggedIn: false).over(issuer))
        #expect(issuer.isFinished && grant.material.lifetime == 10 * 365 * 86_400_000_000_000)
    }

    @Test func aMediaTokenTakesTwoCalls() async throws {
        let issuer = ScriptedIssuer(
            Self.client + [
                .ok(#"{"resource":"<a>&+","mvpd":"Cable Co"}"#),
                .ok(#"{"resource":"<a>&+","serializedToken":"c2lnbmVk+/=="}"#),
            ])
        let token = try await handshake().credential(
            for: OneTimeNeed(resource: "<a>&+"), environment: environment(loggedIn: true).over(issuer)
        ).secret
        #expect(token.withBytes { String(decoding: $0, as: UTF8.self) } == "c2lnbmVk+/==")
        let query = Self.who + "&resource=%3Ca%3E%26%2B"
        #expect(issuer.sent[2].url == "https://v1.example/api/v1/authorize?" + query)
        #expect(issuer.sent[3].url == "https://v1.example/api/v1/tokens/media?" + query)
    }

    @Test(arguments: [
        // A 403 alone: who is logged in says whether it is a denial.
        ([ScriptedIssuer.Line.status(403, "{}"), authn], true), ([.status(403, "{}"), .status(404, "{}")], false),
        ([.status(412, "{}")], false), ([.status(410, "{}")], false),
        ([.answer(403, #"{"action":"authentication","code":"authentication_session_missing"}"#, [])], false),
        ([.answer(403, #"{"action":"none","code":"authorization_denied_by_mvpd"}"#, [])], true),
    ])
    func aDenialIsNotTheEndOfALogin(lines: [ScriptedIssuer.Line], isDenied: Bool) async throws {
        let issuer = ScriptedIssuer(Self.client + lines)
        do throws(GrantFailure) {
            _ = try await handshake(throwing: ()).credential(
                for: OneTimeNeed(resource: "R"), environment: environment(loggedIn: true).over(issuer))
            Issue.record("a token")
        } catch {
            switch error {
            case .policyDenied: #expect(isDenied)
            case .interactionRequired: #expect(!isDenied)
            default: Issue.record("\(error)")
            }
        }
        #expect(issuer.isFinished)
    }

    private func handshake(throwing: Void) throws(GrantFailure) -> AdobePassHandshake {
        do { return try handshake() } catch { throw .internal(reason: "no handshake") }
    }

    @Test func adviceIsOnEachResource() async throws {
        let issuer = ScriptedIssuer(
            Self.client + [.ok(#"{"resources":[{"id":"A","authorized":true},{"id":"B","authorized":false}]}"#)])
        let facts = try await handshake().preview(environment: environment(loggedIn: true).over(issuer))
        #expect(issuer.sent[2].url == "https://v1.example/api/v1/preauthorize?" + Self.who + "&resource=A%2CB")
        #expect(facts.map(\.value) == ["would be authorized", "would be denied"])
    }
}
