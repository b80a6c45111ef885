import Synchronization
import Testing

@testable import Handshakes

private let now: Int64 = 1_780_000_000_000

private func handshake(_ change: (inout AdobePassSettings) -> Void = { _ in }) throws -> AdobePassHandshake {
    let base = try #require(IssuerURL("https://sp.example"))
    var settings = AdobePassSettings(
        base: base, serviceProvider: "NORTH1", mvpd: "CableCo", resource: nil,
        quota: CallQuota(origin: base.origin, perSecond: 1, burst: 10, patience: 1))
    settings.device.id = "d"
    settings.domainName = "north.example"
    change(&settings)
    return AdobePassHandshake(
        settings, GrantWorld(wallMilliseconds: { now }, random: { Array(repeating: 7, count: $0) }))
}

private let registered = ScriptedIssuer.Line.answer(201, #"{"client_id":"c-1","client_secret":"s"}"#, [])
private let token = ScriptedIssuer.Line.ok(#"{"access_token":"tkn","expires_in":21600}"#)
private let client = [registered, token]
private let gone = ScriptedIssuer.Line.status(400, #"{"error":"invalid_client"}"#)
private let nobody = ScriptedIssuer.Line.ok(#"{"profiles":{}}"#)
private let somebody = ScriptedIssuer.Line.ok(
    #"{"profiles":{"CableCo":{"notBefore":\#(now - 1000),"notAfter":\#(now + 9000),"type":"regular"}}}"#)

private func session(_ action: String, _ members: String) -> ScriptedIssuer.Line {
    .ok(#"{"actionName":"\#(action)",\#(members)}"#)
}

/// An offer of a code that is good for so long.
private func pending(seconds: Int64, url: String = "/authenticate") -> ScriptedIssuer.Line {
    session("authenticate", #""url":"\#(url)","code":"ABC","notAfter":\#(now + seconds * 1000)"#)
}

private func fault(_ status: Int, action: String, code: String) -> ScriptedIssuer.Line {
    .status(status, #"{"action":"\#(action)","code":"\#(code)"}"#)
}

/// A login at Adobe with an issuer that follows a script, and with a clock that waiting moves.
private struct Scene {
    let issuer: ScriptedIssuer
    let environment: WatchedEnvironment
    let person: WaitingPerson

    init(_ lines: [ScriptedIssuer.Line], loggedIn: Bool = false) {
        issuer = ScriptedIssuer(lines)
        environment = WatchedEnvironment().over(issuer)
        environment.inner.state.withLock {
            $0.secrets["software_statement"] = "a.b.c"
            if loggedIn {
                $0.session = LayerMaterial(bytes: Secret("p"), obtainedAt: 1, lifetime: 1_000_000, isHuman: true)
            }
        }
        person = WaitingPerson(environment)
    }

    @discardableResult
    func login(_ change: (inout AdobePassSettings) -> Void = { _ in }) async throws -> LoginGrant {
        try await handshake(change).login(
            Wanted(upstreamOrigin: ""), dialogue: person, environment: environment)
    }

    func pauses() -> [UInt64] { environment.seen.pauses.map { $0 / 1_000_000 } }
}

@Suite struct AdobePassLoginTests {
    @Test func `a login that was begun elsewhere is taken up by its code`() async throws {
        let scene = Scene(client + [session("resume", #""code":"XYZ""#), pending(seconds: 60), somebody])
        #expect(try await scene.login().material.isHuman && scene.issuer.isFinished)
        #expect(scene.issuer.sent[3].url == "https://sp.example/api/v2/NORTH1/sessions/XYZ")
        #expect(scene.person.prompts.first?.code == "ABC")
    }

    @Test(arguments: [
        ("resume", #""missingParameters":["mvpd","domainName"]"#, "mvpd, domainName"),
        ("retry", #""missingParameters":[]"#, "a parameter"), ("retry", #""code":"ABC""#, "a parameter"),
        ("resume", #""missingParameters":["mv pd"]"#, "a parameter"),
    ])
    func `a parameter that Adobe misses is named`(_ action: String, _ members: String, _ missing: String) async {
        let scene = Scene(client + [session(action, members)])
        let failed = await failure { try await scene.login() }
        #expect(
            failed
                == .configuration(
                    reason: "sessions: Adobe misses \(missing); see mvpd, domain_name and redirect_url"))
    }

    @Test func `a registration that is gone is made anew by a login`() async throws {
        let scene = Scene([registered, gone, registered, token, session("authorize", #""code":"ABC""#), somebody])
        #expect(try await scene.login().material.isHuman && scene.issuer.isFinished)
        #expect(scene.issuer.steps == ["register", "token", "register", "token", "sessions", "profiles"])
        #expect(scene.person.words.last == "somebody has logged in already")
    }

    @Test func `a registration that is gone is told to need a login outside of one`() async throws {
        let scene = Scene([registered, gone], loggedIn: true)
        let failed = await failure {
            _ = try await handshake().acquire(Wanted(upstreamOrigin: ""), environment: scene.environment)
        }
        guard case .credentialRejected(let reason)? = failed else { return _ = Issue.record("\(failed as Any)") }
        #expect(reason.contains("invalid_client") && reason.hasSuffix("a login registers anew"))
    }

    @Test(arguments: [
        ([ScriptedIssuer.Line.status(400, #"{"error":"unapproved_software_statement"}"#)], "rejected"),
        ([registered, .status(503)], "unavailable"),
    ])
    func `a login that gets no client ends as the client's failure`(
        _ lines: [ScriptedIssuer.Line], _ kind: String
    ) async {
        let scene = Scene(lines)
        let failed = await failure { try await scene.login() }
        #expect(failed?.kind == kind && scene.issuer.isFinished && scene.person.prompts.isEmpty)
    }

    @Test(arguments: [(2, [2000]), (7, [3000, 3000, 1000])] as [(Int64, [UInt64])])
    func `a code that nobody enters expires at its own end`(_ life: Int64, _ pauses: [UInt64]) async {
        let scene = Scene(client + [pending(seconds: life), nobody, nobody])
        let failed = await failure { try await scene.login() }
        #expect(failed == .loginExpired && scene.pauses() == pauses)
    }

    @Test(
        arguments: [
            ("https://provider.example/login?x=1", "https://provider.example/login?x=1"),
            ("/login", "https://sp.example/login"), ("http://provider.example/login", nil), ("//evil.example/x", nil),
            ("javascript:x", nil),
        ] as [(String, String?)])
    func `a person is shown only addresses of Adobe or over TLS`(_ url: String, _ shown: String?) async {
        let scene = Scene(client + [pending(seconds: 60, url: url), somebody])
        let failed = await failure { try await scene.login() }
        #expect(scene.person.prompts.map(\.url) == [shown].compactMap(\.self))
        #expect(
            failed
                == (shown == nil
                    ? .issuerAnswerInvalid(reason: "sessions: no code, or no address that can be shown") : nil))
    }

    // MARK: - Errors that say what to do

    @Test func `a call that Adobe wants again is made again after a pause`() async throws {
        let again = fault(503, action: "retry", code: "too_busy")
        let scene = Scene(client + [again, session("authorize", #""code":"ABC""#), somebody])
        #expect(try await scene.login().material.isHuman)
        #expect(scene.pauses() == [500] && scene.issuer.steps.filter { $0 == "sessions" }.count == 2)
    }

    @Test func `a call that Adobe wants again and again is given up`() async {
        let again = fault(503, action: "retry", code: "too_busy")
        let tries = AdobePassSettings.mostTries
        let scene = Scene(client + [ScriptedIssuer.Line](repeating: again, count: tries + 1))
        let failed = await failure { try await scene.login() }
        #expect(failed == .timedOut(step: "sessions, too_busy"))
        #expect(scene.issuer.steps.filter { $0 == "sessions" }.count == tries)
        #expect(scene.pauses() == (0..<tries - 1).map { 500 << UInt64($0) })
    }

    @Test func `a second access token that is refused is a mistake of the set-up`() async {
        let refused = fault(401, action: "application-registration", code: "invalid_access_token")
        let scene = Scene(client + [refused, token, refused])
        let failed = await failure { try await scene.login() }
        #expect(
            failed
                == .configuration(
                    reason:
                        "sessions: status 401, a new access token is refused too, invalid_access_token"))
        #expect(scene.issuer.steps == ["register", "token", "sessions", "token", "sessions"])
    }

    @Test(arguments: [
        (
            fault(400, action: "configuration", code: "unknown_mvpd"),
            GrantFailure.configuration(reason: "sessions: unknown_mvpd")
        ),
        (
            fault(500, action: "none", code: "internal_server_error"),
            .issuerUnavailable(retryAfterSeconds: nil, reason: "sessions: internal_server_error")
        ),
        (fault(400, action: "none", code: "invalid_parameter"), .configuration(reason: "sessions: invalid_parameter")),
        (fault(403, action: "authentication", code: "expired"), .interactionRequired(reason: "sessions: expired")),
    ])
    func `an error's action says whose matter it is`(_ line: ScriptedIssuer.Line, _ said: GrantFailure) async {
        let scene = Scene(client + [line])
        #expect(await failure { try await scene.login() } == said)
    }

    // MARK: - For operators

    @Test func `a server that answers anything is reached, and none that is down`() async throws {
        let scene = Scene([.status(405), .fault(IssuerFault(.refused, provablyUnsent: true))])
        try await handshake().reach(environment: scene.environment)
        #expect(scene.issuer.sent[0].url == "https://sp.example/o/client/token" && scene.issuer.sent[0].method == "GET")
        #expect(await failure { try await handshake().reach(environment: scene.environment) }?.kind == "unavailable")
        #expect(try handshake().redirect == nil)
    }

    @Test func `a preview says why a resource would be denied`() async throws {
        let decisions = ScriptedIssuer.Line.ok(
            #"{"decisions":[{"resource":"A","authorized":false,"error":{"action":"none","code":"not_in_package"}},"#
                + #"{"resource":"B","authorized":false},{"resource":"C","authorized":true}]}"#)
        let scene = Scene(client + [decisions], loggedIn: true)
        let facts = try await handshake { $0.preauthorized = ["A", "B", "C", "D"] }
            .preview(environment: scene.environment)
        #expect(facts.map(\.name) == ["A", "B", "C", "D"])
        #expect(
            facts.map(\.value) == [
                "would be denied: not_in_package", "would be denied", "would be authorized", "not decided",
            ])
    }

    // MARK: - REST API V1

    private static let authn = ScriptedIssuer.Line.ok(
        #"{"requestor":"NORTH1","mvpd":"CableCo","userId":"u","expires":"\#(now + 9000)"}"#)
    private static let permit = ScriptedIssuer.Line.ok(#"{"resource":"R","mvpd":"CableCo"}"#)

    @Test func `a login that there is already needs no code in V1`() async throws {
        let scene = Scene(client + [Self.authn, .status(404)])
        let grant = try await scene.login { $0.generation = .v1 }
        #expect(grant.material.lifetime == 9_000_000_000 && scene.person.prompts.isEmpty)
        #expect(scene.person.words.last == "somebody has logged in already")
    }

    @Test(arguments: [
        (
            [ScriptedIssuer.Line.ok(#"{"resource":"S"}"#)],
            "issuer answer invalid: authorize: no decision on the resource"
        ),
        (
            [permit, .ok(#"{"resource":"S","serializedToken":"m"}"#)],
            "issuer answer invalid: media: a token for another resource"
        ),
        ([permit, .status(403), authn], "denied by policy: authorization_denied"),
        ([permit, .status(500)], "issuer unavailable: media: status 500"),
    ])
    func `a media token of V1 is for the resource that was asked for`(
        _ lines: [ScriptedIssuer.Line], _ said: String
    ) async throws {
        let scene = Scene(client + lines, loggedIn: true)
        let failed = await failure {
            _ = try await handshake { $0.generation = .v1 }.credential(
                for: OneTimeNeed(resource: "R"), environment: scene.environment)
        }
        #expect(failed.map { "\($0)" }?.hasSuffix(said) == true, "\(failed as Any)")
        #expect(scene.issuer.isFinished)
    }

    @Test func `nobody who has not logged in gets a media token of V1`() async throws {
        let scene = Scene(client)
        let failed = await failure {
            _ = try await handshake { $0.generation = .v1 }.credential(
                for: OneTimeNeed(resource: "R"), environment: scene.environment)
        }
        #expect(failed == .interactionRequired(reason: "nobody has logged in at the provider"))
        #expect(scene.issuer.sent.isEmpty)
    }
}
