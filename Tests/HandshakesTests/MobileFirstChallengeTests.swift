import Synchronization
import Testing

@testable import Handshakes

private let wanted = Wanted(scopes: ["read"], upstreamOrigin: "https://mfp.example.com")
private let redirect = "https://mfp.example.com/mfp/api/az/v1/authorization/redirect/"
private let granted = ScriptedIssuer.Line.ok("{}")
private let token = ScriptedIssuer.Line.ok(#"{"access_token":"eyJ.a","token_type":"Bearer","expires_in":60}"#)
private let conflict = ScriptedIssuer.Line.answer(409, "", [("MFP-Conflict", "x")])
private let unknown = ScriptedIssuer.Line.status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#)
private let notice = #""wl_remoteDisableRealm":{"messageType":"NOTIFY","messageId":"m-1","message":"Closed on Sunday"}"#

private func registered(_ id: String = "c-1") -> ScriptedIssuer.Line {
    .answer(201, "", [("Location", "/mfp/api/registration/clients/\(id)")])
}

private func code(_ id: String = "c-1", at place: String? = nil) -> ScriptedIssuer.Line {
    .answer(302, "", [("Location", (place ?? redirect + id) + "?code=77")])
}

private func challenge(_ checks: String) -> ScriptedIssuer.Line {
    .answer(401, #"{"challenges":{\#(checks)}}"#, [("WWW-Authenticate", "MFP-Challenge")])
}

private func handshake(_ client: MobileFirstSettings.Client) throws -> MobileFirstHandshake {
    let base = try #require(IssuerURL("https://mfp.example.com/mfp/api"))
    return try MobileFirstHandshake(
        MobileFirstSettings(base: base, client: client),
        GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 7, count: $0) }))
}

private func device(_ change: (inout MobileFirstSettings.Device) -> Void = { _ in }) throws -> MobileFirstHandshake {
    var device = MobileFirstSettings.Device(application: "com.acme.teller", account: "com.acme.teller/hr")
    device.id = "till-1"
    device.answers = [.init(check: "Pin", fields: [.init(name: "pin", secret: "answers.Pin.pin")])]
    change(&device)
    return try handshake(.registered(device))
}

private func environment(_ lines: [ScriptedIssuer.Line]) -> (WatchedEnvironment, ScriptedIssuer) {
    let issuer = ScriptedIssuer(lines)
    let environment = WatchedEnvironment().over(issuer)
    environment.inner.state.withLock { $0.secrets = ["answers.Pin.pin": "4711", "client_secret": "s"] }
    return (environment, issuer)
}

/// Rounds of challenges and what each costs, and clients that the server does not know.
@Suite struct MobileFirstChallengeTests {
    private func acquire(_ environment: WatchedEnvironment) async throws -> String {
        try await device().acquire(wanted, environment: environment).token.text
    }

    @Test func `a notice is acknowledged, and the operator hears of it`() async throws {
        let (environment, issuer) = environment([registered(), challenge(notice), granted, code(), token])
        #expect(try await acquire(environment) == "eyJ.a" && issuer.isFinished)
        #expect(
            issuer.sent[2].body.hasSuffix(
                #""challengeResponse":{"wl_remoteDisableRealm":{"messageId":"m-1"}}}"#))
        #expect(environment.concerns == ["the server has a notice for users of the application"])
        #expect(environment.inner.outcomes == [])
    }

    @Test(arguments: [#""messageId":"a\u0007b""#, #""messageId":"""#, #""x":1"#])
    func `a notice without a name that can be sent back is the application's end`(_ id: String) async throws {
        let (environment, issuer) = environment([
            registered(), challenge(#""wl_remoteDisableRealm":{"messageType":"NOTIFY",\#(id)}"#),
        ])
        let failed = await failure { _ = try await acquire(environment) }
        #expect(
            failed == .interactionRequired(reason: "preauthorize: the server has disabled the application")
                && issuer.isFinished)
    }

    @Test func `a check that somebody has failed before is told, and answered all the same`() async throws {
        let (environment, _) = environment([
            registered(), challenge(#""Pin":{"errorMsg":"wrong","remainingAttempts":3}"#), granted, code(), token,
        ])
        #expect(try await acquire(environment) == "eyJ.a")
        #expect(environment.concerns == ["somebody has failed before at Pin"])
        #expect(environment.inner.outcomes == [.accepted])
    }

    @Test(arguments: ["1.5", "99999999999999999999999", #""many""#])
    func `a count of attempts that cannot be read is not risked`(_ count: String) async throws {
        let (environment, issuer) = environment([registered(), challenge(#""Pin":{"remainingAttempts":\#(count)}"#)])
        let failed = await failure { _ = try await acquire(environment) }
        #expect(
            failed
                == .credentialRejected(
                    reason: "preauthorize: not answered: how many attempts Pin has left is unreadable"))
        #expect(issuer.isFinished && environment.inner.outcomes == [])
    }

    @Test func `a login ends after five rounds, and an answer that has not left is given back`() async throws {
        let rounds = [challenge(notice), challenge(notice), challenge(notice), challenge(notice)]
        let (environment, issuer) = environment([registered()] + rounds + [challenge(#""Pin":null"#)])
        let failed = await failure { _ = try await acquire(environment) }
        #expect(failed == .interactionRequired(reason: "preauthorize: challenges after 5 rounds"))
        #expect(issuer.isFinished && environment.inner.outcomes == [.notSent] && environment.inner.isBalanced)
    }

    @Test func `an answer that nobody judged for a conflict goes once more`() async throws {
        let pin = challenge(#""Pin":{"remainingAttempts":3}"#)
        let (environment, issuer) = environment([registered(), pin, conflict, pin, granted, code(), token])
        #expect(try await acquire(environment) == "eyJ.a" && issuer.isFinished)
        #expect(environment.inner.outcomes == [.notSent, .accepted])
        #expect(
            issuer.sent.map { $0.body.contains(#"{"pin":"4711"}"#) }
                == [false, false, true, false, true, false, false])
    }

    @Test func `an answer that was taken in spite of a conflict does not go again`() async throws {
        let pin = challenge(#""Pin":{"remainingAttempts":3}"#)
        let (environment, issuer) = environment([registered(), pin, conflict, challenge(notice), pin])
        let failed = await failure { _ = try await acquire(environment) }
        #expect(failed == .credentialRejected(reason: "preauthorize: Pin asks again for what it was given"))
        #expect(issuer.isFinished && environment.inner.outcomes == [.accepted])
    }

    // MARK: - Clients that the server does not know

    @Test(arguments: [
        [registered(), unknown], [registered(), granted, unknown], [registered(), granted, code(), unknown],
    ])
    func `a client that the server has forgotten is registered anew, whichever call says so`(
        _ lines: [ScriptedIssuer.Line]
    ) async throws {
        let (environment, issuer) = environment(lines + [registered("c-2"), granted, code("c-2"), token])
        #expect(try await acquire(environment) == "eyJ.a" && issuer.isFinished)
        #expect(issuer.steps.filter { $0 == "register" }.count == 2)
        #expect(issuer.sent.suffix(3).first?.body.contains(#""client_id":"c-2""#) == true)
    }

    @Test(arguments: [401, 403])
    func `a server that checks who registers is no server for a gateway`(_ status: Int) async throws {
        let (environment, _) = environment([.status(status)])
        guard case .configuration(let reason)? = await failure({ _ = try await acquire(environment) }) else {
            return _ = Issue.record("no configuration")
        }
        #expect(reason.hasPrefix("register: status \(status): ") && reason.contains("use mode: confidential"))
    }

    @Test func `a native application's code comes back to the address of its kind`() async throws {
        let native = "https://mfpredirecturi"
        let (environment, issuer) = environment([registered(), granted, code(at: native), token])
        let handshake = try device {
            $0.platform = "android"
            $0.version = "1.2"
        }
        #expect(try await handshake.acquire(wanted, environment: environment).token.text == "eyJ.a")
        #expect(issuer.sent[2].url.hasSuffix("&redirect_uri=https%3A%2F%2Fmfpredirecturi"))
        #expect(issuer.sent[3].body.contains("&redirect_uri=https%3A%2F%2Fmfpredirecturi&"))
    }

    // MARK: - Confidential client

    @Test(arguments: [([], ""), (["write", "read"], "&scope=read+write")] as [([String], String)])
    func `a confidential client shows its secret and takes a token`(_ scopes: [String], _ member: String)
        async throws
    {
        let (environment, issuer) = environment([token])
        let grant = try await handshake(.confidential(id: "c")).acquire(
            Wanted(scopes: scopes, upstreamOrigin: ""), environment: environment)
        #expect(grant.token.text == "eyJ.a" && grant.lifetime == 60_000_000_000)
        let sent = issuer.sent[0]
        #expect(sent.url == "https://mfp.example.com/mfp/api/az/v1/token" && !sent.carriesPassword)
        // "c:s" in base 64 (RFC 7617).
        #expect(sent.header("Authorization") == "Basic Yzpz")
        #expect(sent.body == "grant_type=client_credentials" + member)
    }

    @Test func `a confidential client whose secret is refused is rejected`() async throws {
        let (environment, _) = environment([.status(401, #"{"error":"invalid_client"}"#)])
        let failed = await failure {
            _ = try await handshake(.confidential(id: "c")).acquire(wanted, environment: environment)
        }
        #expect(failed == .credentialRejected(reason: "token: status 401, invalid_client"))
    }

    @Test func `a token of a confidential client waits for conflicts to pass`() async throws {
        let (environment, issuer) = environment([conflict, conflict, token])
        let grant = try await handshake(.confidential(id: "c")).acquire(wanted, environment: environment)
        #expect(grant.token.text == "eyJ.a" && issuer.isFinished)
        #expect(environment.seen.pauses == [50_000_000, 100_000_000])
    }

    @Test func `every session of a device is ended at its server`() throws {
        #expect(try device().endsSessions && device().inspectedStatuses == [401, 403, 409])
    }
}
