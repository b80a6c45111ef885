import Octets
import TLS
import Testing

@testable import Handshakes

private let wanted = Wanted(scopes: ["write", "read"], upstreamOrigin: "https://mfp.example.com")
private let tokenReply = ScriptedIssuer.Line.ok(
    #"{"access_token":"eyJ.a","token_type":"Bearer","expires_in":60,"scope":"read write"}"#)
private let registered = ScriptedIssuer.Line.answer(201, "", [("Location", "/mfp/api/registration/clients/c-1")])
private let granted = ScriptedIssuer.Line.ok(
    #"{"successes":{"clockSynchronization":{"serverTimeStamp":1600000}}}"#)
private let code = ScriptedIssuer.Line.answer(
    302, "",
    [("Location", "https://mfp.example.com/mfp/api/az/v1/authorization/redirect/c-1?code=7714%2D")])

private let conflict = ScriptedIssuer.Line.answer(409, "", [("MFP-Conflict", "x")])

private func challenge(_ checks: String) -> ScriptedIssuer.Line {
    .answer(401, #"{"challenges":{\#(checks)}}"#, [("WWW-Authenticate", "MFP-Challenge")])
}

private func device(_ change: (inout MobileFirstSettings.Device) -> Void = { _ in }) throws -> MobileFirstHandshake {
    var device = MobileFirstSettings.Device(application: "com.acme.teller", account: "com.acme.teller/hr")
    device.id = "till-1"
    device.answers = [
        .init(check: "Pin", fields: [.init(name: "pin", secret: "answers.Pin.pin")]),
        .init(check: "Badge", fields: [.init(name: "number", secret: "answers.Badge.number")]),
    ]
    change(&device)
    let base = try #require(IssuerURL("https://mfp.example.com/mfp/api"))
    return try MobileFirstHandshake(
        MobileFirstSettings(base: base, client: .registered(device)),
        GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 7, count: $0) }))
}

private func environment(_ journal: Journal = Journal()) -> MemoryEnvironment {
    var state = MemoryEnvironment.State()
    state.secrets = ["answers.Pin.pin": "4711", "answers.Badge.number": "12"]
    return MemoryEnvironment(state, journal: journal)
}

private func members(_ part: Substring) throws -> String {
    String(decoding: try #require(Base64.decodeURL(String(part))), as: UTF8.self)
}

@Suite struct MobileFirstTests {
    @Test func `a device's calls, exactly as the server knows them`() async throws {
        let journal = Journal()
        let issuer = ScriptedIssuer(
            [
                registered, challenge(#""Pin":{"errorMsg":null,"remainingAttempts":3},"Badge":null"#), granted, code,
                tokenReply,
            ],
            journal: journal)
        let environment = environment(journal)
        let grant = try await device().acquire(wanted, environment: environment.over(issuer))
        #expect(grant.token.text == "eyJ.a" && grant.lifetime == 60_000_000_000)
        #expect(grant.grantedScopes == ["read", "write"])

        let base = "https://mfp.example.com/mfp/api/"
        let redirect = "https%3A%2F%2Fmfp.example.com%2Fmfp%2Fapi%2Faz%2Fv1%2Fauthorization%2Fredirect%2Fc-1"
        #expect(
            issuer.sent.map(\.url) == [
                base + "registration/v1/self", base + "preauth/v1/preauthorize", base + "preauth/v1/preauthorize",
                base
                    + "az/v1/authorization?response_type=code&client_id=c-1&scope=read%20write&redirect_uri=\(redirect)",
                base + "az/v1/token",
            ])
        #expect(issuer.sent[1].body == #"{"client_id":"c-1","scope":"read write"}"#)
        #expect(
            issuer.sent[2].body
                == #"{"client_id":"c-1","scope":"read write","challengeResponse":{"Pin":{"pin":"4711"},"Badge":{"number":"12"}}}"#
        )
        #expect(issuer.sent.map(\.carriesPassword) == [true, false, true, false, true])
        // Both marks stand before an answer leaves, and the registration is kept before it is used.
        #expect(
            journal.all == [
                "send register", "commit registration", "send preauthorize", "spend com.acme.teller/hr/Pin",
                "spend com.acme.teller/hr/Badge", "send preauthorize", "settle accepted", "settle accepted",
                "send authorize", "send token", "commit session",
            ])

        let form = issuer.sent[4].body.split(separator: "&").map { $0.split(separator: "=", maxSplits: 1) }
        #expect(
            form.map { String($0[0]) } == [
                "grant_type", "code", "redirect_uri", "client_assertion_type", "client_assertion",
            ]
        )
        #expect(form[1][1] == "7714-" && form[2][1] == redirect)
        let jws = form[4][1].split(separator: ".")
        // Ten minutes ahead of us, as the server said, and in milliseconds.
        #expect(
            try members(jws[1])
                == #"{"iss":"com.acme.teller$web","sub":"c-1","jti":"7714-","aud":"az/v1/token","iat":1600000,"exp":1660000}"#
        )
        #expect(try members(jws[0]).hasSuffix(#","e":"AQAB","kid":"c-1"}}"#))
    }

    @Test(arguments: [false, true])
    func `what a registration says, in both alphabets`(isStandard: Bool) async throws {
        let issuer = ScriptedIssuer([registered])
        let native = try device {
            $0.platform = "android"
            $0.version = "1.2"
            $0.name = "edge"
            $0.usesStandardBase64 = isStandard
        }
        _ = await failure { _ = try await native.acquire(wanted, environment: environment().over(issuer)) }
        let parts = issuer.sent[0].body.split(separator: "\"").filter { $0.utf8.count > 40 }
        #expect(parts.count == 3)
        let decode: (Substring) -> [UInt8]? = { isStandard ? Base64.decode(String($0)) : Base64.decodeURL(String($0)) }
        #expect(
            String(decoding: try #require(decode(parts[1])), as: UTF8.self)
                == #"{"device":{"id":"till-1","platform":"linux","hardware":"server","deviceDisplayName":"edge"},"#
                + #""application":{"id":"com.acme.teller","clientPlatform":"android","version":"1.2"},"attributes":{"sdk_protocol_version":1}}"#
        )
        #expect(!String(decoding: try #require(decode(parts[0])), as: UTF8.self).contains("kid"))
        #expect(decode(parts[2])?.count == 256)
    }

    @Test func `a logout ends each check that was passed, and takes its turn`() async throws {
        let issuer = ScriptedIssuer([registered, challenge(#""Pin":null,"Badge":null"#), granted, code, tokenReply])
        let environment = environment()
        let handshake = try device()
        _ = try await handshake.acquire(wanted, environment: environment.over(issuer))
        let session = try #require(await environment.session())
        let journal = Journal()
        let after = ScriptedIssuer([.ok(""), .ok("")], journal: journal)
        _ = await handshake.revoke(session, environment: MemoryEnvironment(journal: journal).over(after))
        #expect(after.sent.map { String($0.body.prefix(20)) } == ["security_check=Badge", "security_check=Pin&c"])
        let jws = try #require(after.sent[0].body.split(separator: "=").last).split(separator: ".")
        #expect(try members(jws[1]).contains(#""jti":null,"aud":null"#))
        // Nothing is left of it.
        #expect(journal.all == ["send logout", "send logout"])
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var lines: [ScriptedIssuer.Line]
        var kind: String
        var outcomes: [AttemptOutcome]

        init(_ name: String, _ kind: String, _ outcomes: [AttemptOutcome] = [], _ lines: ScriptedIssuer.Line...) {
            testDescription = name
            self.lines = [registered] + lines
            self.kind = kind
            self.outcomes = outcomes
        }
    }

    static let pin = challenge(#""Pin":{"remainingAttempts":3}"#)
    static let canary = "expected-4711-canary"

    @Test(arguments: [
        Case(
            "wrong", "rejected", [.rejected], pin, challenge(#""Pin":{"errorMsg":"\#(canary)","remainingAttempts":2}"#)),
        Case("blocked", "rejected", [.rejected], pin, .status(403, #"{"failures":{"Pin":{"failure":"\#(canary)"}}}"#)),
        Case("another one failed", "rejected", [.unknown], pin, .status(403, #"{"failures":{"Other":"\#(canary)"}}"#)),
        Case("status 222", "rejected", [], .status(222, #"{"failures":{"Pin":"\#(canary)"}}"#)),
        Case("222 without failures", "invalid", [], .status(222, "{}")),
        Case("no answer", "interaction", [], challenge(#""Pin":null,"\#(canary) x":null"#)),
        Case("the app is disabled", "interaction", [], challenge(#""wl_remoteDisableRealm":{"messageType":"BLOCK"}"#)),
        Case("one left", "rejected", [], challenge(#""Pin":{"remainingAttempts":1}"#)),
        Case("one left, as a text", "rejected", [], challenge(#""Pin":{"remainingAttempts":"1"}"#)),
        Case("fewer than none", "rejected", [], challenge(#""Pin":{"remainingAttempts":-1}"#)),
        Case("a count that is none", "rejected", [], challenge(#""Pin":{"remainingAttempts":{}}"#)),
        Case("timed out", "timedOut", [.unknown], pin, .fault(IssuerFault(.timedOut, provablyUnsent: false))),
        Case("closed", "unavailable", [.unknown], pin, .fault(IssuerFault(.closed, provablyUnsent: false))),
        Case("refused", "unavailable", [.notSent], pin, .fault(IssuerFault(.refused, provablyUnsent: true))),
        Case("500 after it", "unavailable", [.unknown], pin, .status(500, canary)),
        Case("429 after it", "unavailable", [.notSent], pin, .status(429)),
        Case("not challenged by a 401", "denied", [], .status(401, #"{"challenges":{"Pin":null}}"#)),
        Case("a 200 that asks", "invalid", [], .ok(#"{"challenges":{"Pin":null}}"#)),
        Case(
            "forgotten twice", "interaction", [], .status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#), registered,
            .status(400, #"{"errorCode":"INVALID_CLIENT_ID","errorMsg":"\#(canary)"}"#)),
        Case("an error code of its own", "configuration", [], .status(400, #"{"errorCode":"\#(canary)"}"#)),
        Case("too many checks", "invalid", [], challenge((0...32).map { #""C\#($0)":null"# }.joined(separator: ","))),
        Case("redirected", "configuration", [.unknown], pin, .status(302)),
        Case("another place", "configuration", [.notSent], pin, .status(404)),
        Case("disabled", "interaction", [], .status(403, #"{"failures":{"wl_remoteDisableRealm":{}}}"#)),
        Case(
            "asked twice", "rejected", [.accepted, .accepted], pin, challenge(#""Badge":null"#),
            challenge(#""Pin":null"#)),
        Case(
            "passed beside a failure", "rejected", [.accepted], pin,
            .status(403, #"{"failures":{"Other":{}},"successes":{"Pin":{}}}"#)),
        Case(
            "forgotten meanwhile", "interaction", [.notSent], pin, .status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#),
            registered, .status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#)),
        Case(
            "forgotten after a conflict", "interaction", [.unknown], pin, conflict,
            .status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#), registered,
            .status(400, #"{"errorCode":"INVALID_CLIENT_ID"}"#)),
        Case(
            "lost after a conflict", "timedOut", [.unknown], pin, conflict,
            .fault(IssuerFault(.timedOut, provablyUnsent: false))),
        Case(
            "conflicts without end", "unavailable", [], conflict, conflict, conflict, conflict, conflict, conflict,
            conflict),
    ])
    func `what ends a login, and what it costs`(_ row: Case) async throws {
        let environment = environment()
        let issuer = ScriptedIssuer(row.lines)
        let said = await failure { _ = try await device().acquire(wanted, environment: environment.over(issuer)) }
        #expect(said?.kind == row.kind, "\(said.map { "\($0)" } ?? "a token")")
        #expect(environment.outcomes == row.outcomes && environment.isBalanced)
        #expect(issuer.isFinished)
        #expect("\(said.map { "\($0)" } ?? "")".contains("4711") == false)
    }

    struct Conflict: Sendable {
        var before: String
        var after: ScriptedIssuer.Line
        var outcomes: [AttemptOutcome]
        var kind: String?
    }

    /// What a bare call says after a conflict tells whether the answer was looked at.
    @Test(arguments: [
        Conflict(before: "3", after: granted, outcomes: [.accepted], kind: nil),
        Conflict(
            before: "3", after: challenge(#""Pin":{"remainingAttempts":2}"#), outcomes: [.rejected], kind: "rejected"),
        Conflict(before: "null", after: challenge(#""Pin":null"#), outcomes: [.unknown], kind: "rejected"),
    ])
    func `after a conflict an answer is not sent again blindly`(_ row: Conflict) async throws {
        let environment = environment()
        let issuer = ScriptedIssuer(
            [
                registered, challenge(#""Pin":{"remainingAttempts":\#(row.before)}"#), conflict, row.after, code,
                tokenReply,
            ])
        let said = await failure { _ = try await device().acquire(wanted, environment: environment.over(issuer)) }
        #expect(said?.kind == row.kind)
        #expect(environment.outcomes == row.outcomes)
        #expect(issuer.sent[3].body.contains("challengeResponse") == false)
    }

    @Test func `a cooldown instead of a reset`() async throws {
        let issuer = ScriptedIssuer([registered, .status(403, #"{"failures":{"Pin":{}}}"#)])
        let said = await failure {
            _ = try await device { $0.cooldown = 90 }.acquire(wanted, environment: environment().over(issuer))
        }
        #expect(said == .issuerUnavailable(retryAfterSeconds: 90, reason: "preauthorize: Pin failed"))
    }

    @Test(arguments: [
        "https://evil.example.com/clients/x", "//evil.example.com/x", "/clients/", "/clients/a%2Fb", "/clients/..", "",
        "http://mfp.example.com/mfp/api/registration/clients/x",
    ])
    func `a registration's place is on the server`(location: String) async throws {
        let issuer = ScriptedIssuer([.answer(201, "", [("Location", location)])])
        let said = await failure { _ = try await device().acquire(wanted, environment: environment().over(issuer)) }
        #expect(said?.kind == "invalid" && issuer.steps == ["register"])
    }

    // MARK: - Judging

    struct Verdict: Sendable {
        var status: Int
        var field: String?
        var method = "GET"
        var verdict: String
    }

    @Test(arguments: [
        Verdict(status: 401, field: "Bearer", verdict: "challenged"),
        Verdict(status: 401, field: #"Bearer error="invalid_token""#, verdict: "challenged"),
        Verdict(status: 401, field: #"Basic realm="x", Bearer error="invalid_token""#, verdict: "challenged"),
        Verdict(status: 401, field: nil, verdict: "none"),
        Verdict(status: 401, field: "Basic realm=\"Bearer\"", verdict: "none"),
        Verdict(status: 403, field: #"Bearer error="insufficient_scope", scope="RegisteredClient a""#, verdict: "a"),
        Verdict(
            status: 403, field: #"Bearer error="insufficient_scope", scope="RegisteredClient a b""#, verdict: "none"),
        Verdict(status: 403, field: #"Bearer error="insufficient_scope", scope="""#, verdict: "none"),
        Verdict(status: 403, field: "Bearer", verdict: "none"),
        Verdict(status: 409, field: "MFP-Conflict", verdict: "conflict"),
        Verdict(status: 409, field: "MFP-Conflict", method: "POST", verdict: "none"),
        Verdict(status: 409, field: nil, verdict: "none"), Verdict(status: 500, field: "Bearer", verdict: "none"),
        Verdict(status: 401, field: #"Bearer error="invalid"#, verdict: "unusable"),
    ])
    func `which answers are challenges`(_ row: Verdict) throws {
        let base = try #require(IssuerURL("https://mfp.example.com/mfp/api"))
        var settings = MobileFirstSettings(base: base, client: .confidential(id: "c"))
        settings.allowedScopes = ["a"]
        var fields: [(name: [UInt8], value: [UInt8])] = []
        if let field = row.field {
            fields = row.status == 409 ? [(bytes(field), bytes("1"))] : [(bytes("www-authenticate"), bytes(field))]
        }
        let verdict = try MobileFirstHandshake(settings).judge(
            UpstreamAnswer(
                status: row.status, fields: fields, requestURL: "https://x/", requestMethod: bytes(row.method)))
        switch verdict {
        case .challenged(let challenge):
            #expect(row.verdict == (row.status == 403 ? "a" : "challenged"))
            #expect(challenge.scopes == (row.status == 403 ? ["RegisteredClient", "a"] : []))
        case .conflict: #expect(row.verdict == "conflict")
        case .none: #expect(row.verdict == "none")
        case .unusable: #expect(row.verdict == "unusable")
        default: Issue.record("\(verdict)")
        }
    }
}
