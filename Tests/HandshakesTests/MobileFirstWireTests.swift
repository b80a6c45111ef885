import Octets
import Synchronization
import TLS
import Testing

@testable import Handshakes

/// The calls behind a login that was passed, and what is kept of one: each answer that is none ends the flight with its reason.
@Suite struct MobileFirstWireTests {
    private let wanted = Wanted(scopes: ["read"], upstreamOrigin: "https://mfp.example.com")
    private static let redirect = "https://mfp.example.com/mfp/api/az/v1/authorization/redirect/c-1"
    private static let registered = ScriptedIssuer.Line.answer(
        201, "", [("Location", "/mfp/api/registration/clients/c-1")])
    private static let granted = ScriptedIssuer.Line.ok("{}")
    private static let token = ScriptedIssuer.Line.ok(
        #"{"access_token":"eyJ.a","token_type":"Bearer","expires_in":60}"#)

    private static func redirected(_ query: String, to place: String = redirect) -> ScriptedIssuer.Line {
        .answer(302, "", [("Location", place + query)])
    }

    private func device(_ change: (inout MobileFirstSettings.Device) -> Void = { _ in }) throws -> MobileFirstHandshake
    {
        var device = MobileFirstSettings.Device(application: "com.acme.teller", account: "com.acme.teller/hr")
        device.id = "till-1"
        device.answers = ["Pin", "Badge"].map {
            .init(check: $0, fields: [.init(name: "v", secret: "answers.\($0).v")])
        }
        change(&device)
        return try handshake(.registered(device))
    }

    private func handshake(_ client: MobileFirstSettings.Client) throws -> MobileFirstHandshake {
        let base = try #require(IssuerURL("https://mfp.example.com/mfp/api"))
        return try MobileFirstHandshake(
            MobileFirstSettings(base: base, client: client),
            GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 7, count: $0) }))
    }

    private func environment() -> MemoryEnvironment {
        var state = MemoryEnvironment.State()
        state.secrets = ["answers.Pin.v": "4711", "answers.Badge.v": "12"]
        return MemoryEnvironment(state)
    }

    // MARK: - Registration

    @Test(arguments: [
        (ScriptedIssuer.Line.status(503), "issuer unavailable: register: status 503"),
        (.status(429), "issuer unavailable: register: status 429"),
        (.status(404), "configuration: register: status 404"), (.status(302), "configuration: register: status 302"),
        (.status(204), "issuer answer invalid: register: status 204"),
        (.status(201), "issuer answer invalid: register: status 201: no Location"),
    ])
    func aRegistrationThatIsNoneSaysWhy(line: ScriptedIssuer.Line, said: String) async throws {
        let environment = environment()
        let issuer = ScriptedIssuer([line])
        let failed = await failure {
            _ = try await device().acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed.map { "\($0)" } == said)
        #expect(issuer.isFinished && environment.heldHandle == nil)
    }

    /// A registration that another version left behind is no client; a new one takes its place.
    @Test(
        arguments: [
            nil, ["id": Secret("c-0")], ["key": Secret("x")], ["id": Secret("c-0"), "key": Secret("no key")],
            ["id": Secret(".."), "key": Secret("no key")],
        ] as [[String: Secret]?])
    func aClientThatCannotBeReadIsRegisteredAnew(values: [String: Secret]?) async throws {
        let environment = environment()
        let bytes = values.map { RecipeMaterial.encode(["client": $0]) } ?? Secret("of another time")
        environment.state.withLock {
            $0.durables[.registration] = LayerMaterial(bytes: bytes, obtainedAt: 1, lifetime: nil)
        }
        let issuer = ScriptedIssuer([
            Self.registered, Self.granted, Self.redirected("?code=77"), Self.token,
        ])
        #expect(try await device().acquire(wanted, environment: environment.over(issuer)).token.text == "eyJ.a")
        #expect(issuer.steps == ["register", "preauthorize", "authorize", "token"])
        #expect(issuer.sent[1].body.contains(#""client_id":"c-1""#))
        #expect(environment.heldHandle != bytes)
    }

    // MARK: - Authorization code

    @Test(arguments: [
        (ScriptedIssuer.Line.status(503), "unavailable"), (.status(401), "denied"), (.status(403), "denied"),
        (.status(404), "configuration"), (.ok("{}"), "denied"), (.ok(#"{"code":7}"#), "denied"),
        (.ok(#"{"code":""}"#), "invalid"), (.ok(#"{"code":"a b"}"#), "invalid"), (redirected(""), "invalid"),
        (redirected("?code="), "invalid"), (redirected("?code=a%0Ab"), "invalid"), (redirected("?code=%zz"), "invalid"),
        (redirected("?error=access_denied"), "denied"), (redirected("?error=x&code=77"), "denied"),
        (redirected("?code=77", to: "https://evil.example.com/"), "invalid"), (.status(302), "invalid"),
        (redirected("?code=" + String(repeating: "7", count: 2049)), "invalid"),
    ])
    func withoutACodeNoTokenIsAskedFor(line: ScriptedIssuer.Line, kind: String) async throws {
        let issuer = ScriptedIssuer([Self.registered, Self.granted, line, Self.token])
        let failed = await failure { _ = try await device().acquire(wanted, environment: environment().over(issuer)) }
        #expect(failed?.kind == kind, "\(failed.map { "\($0)" } ?? "a token")")
        #expect(issuer.steps == ["register", "preauthorize", "authorize"])
    }

    @Test(arguments: [redirected("?x&code=77&code=88"), redirected("/?code=77"), .ok(#"{"code":"77"}"#)])
    func aCodeIsExchangedInEveryFormThatServersSend(line: ScriptedIssuer.Line) async throws {
        let issuer = ScriptedIssuer([Self.registered, Self.granted, line, Self.token])
        _ = try await device().acquire(wanted, environment: environment().over(issuer))
        #expect(issuer.sent.last?.body.contains("&code=77&") == true)
    }

    @Test func theConfiguredRedirectIsUsedInBothCalls() async throws {
        let own = "https://app.example.com/done"
        let issuer = ScriptedIssuer([Self.registered, Self.granted, Self.redirected("?code=77", to: own), Self.token])
        _ = try await device { $0.redirectURI = own }.acquire(wanted, environment: environment().over(issuer))
        let member = "redirect_uri=https%3A%2F%2Fapp.example.com%2Fdone"
        #expect(issuer.sent[2].url.hasSuffix(member) && issuer.sent[3].body.contains(member + "&"))
    }

    @Test func moreScopesThanAURLHoldsAreNotAsked() async throws {
        let scopes = (0..<9).map { "\($0)" + String(repeating: "s", count: 1000) }
        let issuer = ScriptedIssuer([Self.registered, Self.granted])
        let failed = await failure {
            _ = try await device().acquire(
                Wanted(scopes: scopes, upstreamOrigin: ""), environment: environment().over(issuer))
        }
        #expect(failed == .configuration(reason: "authorize: too many scopes for a URL") && issuer.isFinished)
        let none = ScriptedIssuer([])
        let noScope = await failure {
            _ = try await device().acquire(
                Wanted(scopes: ["a b"], upstreamOrigin: ""), environment: environment().over(none))
        }
        #expect(noScope == .configuration(reason: "scopes: not a scope") && none.sent.isEmpty)
    }

    // MARK: - Token

    /// The assertion is made anew for every token: no secret of an operator's is to blame.
    @Test(arguments: [
        (401, #"{"error":"invalid_client"}"#, "invalid"), (503, "", "unavailable"),
        (400, #"{"error":"invalid_grant"}"#, "configuration"),
    ])
    func aRefusedAssertionIsNoRefusedSecret(status: Int, body: String, kind: String) async throws {
        let issuer = ScriptedIssuer([
            Self.registered, Self.granted, Self.redirected("?code=77"), .status(status, body),
        ])
        let environment = environment()
        let failed = await failure { _ = try await device().acquire(wanted, environment: environment.over(issuer)) }
        #expect(failed?.kind == kind && issuer.isFinished)
        #expect(environment.heldHandle != nil, "the client is still the server's")
    }

    // MARK: - Attempts

    /// Either all answers are booked or none is: what was booked for a call that is not made is given back.
    @Test func aBookingThatFailsGivesTheOthersBack() async throws {
        let memory = environment()
        let challenged = ScriptedIssuer.Line.answer(
            401, #"{"challenges":{"Pin":null,"Badge":null}}"#, [("WWW-Authenticate", "MFP-Challenge")])
        let issuer = ScriptedIssuer([Self.registered, challenged, Self.granted])
        let environment = WatchedEnvironment(memory.over(issuer), .init(quarantined: ["answers.Badge"]))
        #expect(await failure { _ = try await device().acquire(wanted, environment: environment) } == .quarantined)
        #expect(memory.outcomes == [.notSent] && memory.isBalanced)
        #expect(issuer.steps == ["register", "preauthorize"])
    }

    // MARK: - Logout

    private func session(key: [UInt8]) -> LayerMaterial {
        let client = MobileFirstClient.values(id: "c-1", key: Secret(key))
        return LayerMaterial(
            bytes: RecipeMaterial.encode(["client": client, "checks": ["Pin": Secret([]), "Badge": Secret([])]]),
            obtainedAt: 1, lifetime: nil)
    }

    @Test(arguments: [
        ([ScriptedIssuer.Line.ok(""), .ok("")], Revocation.revoked), ([.status(500), .ok("")], .unconfirmed),
        ([.fault(IssuerFault(.closed, provablyUnsent: true)), .ok("")], .unconfirmed),
        ([.ok(""), .status(403)], .unconfirmed),
    ])
    func aLogoutIsConfirmedByEveryCheck(lines: [ScriptedIssuer.Line], said: Revocation) async throws {
        let issuer = ScriptedIssuer(lines)
        let session = session(key: try SigningKey.makeRSA())
        #expect(try await device().revoke(session, environment: environment().over(issuer)) == said)
        #expect(issuer.steps == ["logout", "logout"], "one refusal does not spare the others")
    }

    @Test func aSessionThatSignsNothingCannotBeEnded() async throws {
        let issuer = ScriptedIssuer([.ok(""), .ok("")])
        let environment = environment().over(issuer)
        let other = session(key: try SigningKey.makeP256())
        #expect(try await device().revoke(other, environment: environment) == .unconfirmed)
        let none = LayerMaterial(bytes: Secret("of another time"), obtainedAt: 1, lifetime: nil)
        #expect(try await device().revoke(none, environment: environment) == .impossible)
        let confidential = try handshake(.confidential(id: "c"))
        #expect(await confidential.revoke(other, environment: environment) == .impossible)
        #expect(issuer.sent.isEmpty)
    }

    /// Checks that still hold are not named again by the server, and are logged out of all the same.
    @Test func theChecksOfTheLoginBeforeAreRemembered() async throws {
        let environment = environment()
        let handshake = try device()
        let challenged = ScriptedIssuer.Line.answer(
            401, #"{"challenges":{"Pin":null}}"#, [("WWW-Authenticate", "MFP-Challenge")])
        let end = [Self.granted, Self.redirected("?code=77"), Self.token]
        _ = try await handshake.acquire(
            wanted, environment: environment.over(ScriptedIssuer([Self.registered, challenged] + end)))
        _ = try await handshake.acquire(wanted, environment: environment.over(ScriptedIssuer(end)))
        let session = try #require(await environment.session())
        let issuer = ScriptedIssuer([.ok("")])
        #expect(await handshake.revoke(session, environment: MemoryEnvironment().over(issuer)) == .revoked)
        #expect(issuer.sent.map { String($0.body.prefix(19)) } == ["security_check=Pin&"])
    }

    // MARK: - Confidential client

    @Test(arguments: ["", "sécret", "a\nb"])
    func aSecretThatIsNoASCIIIsNotSent(secret: String) async throws {
        let environment = environment()
        environment.state.withLock { $0.secrets["client_secret"] = secret }
        let issuer = ScriptedIssuer([Self.token])
        let failed = await failure {
            _ = try await handshake(.confidential(id: "c")).acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed == .secretUnusable(name: "client_secret", reason: "empty, or not ASCII") && issuer.sent.isEmpty)
    }
}
