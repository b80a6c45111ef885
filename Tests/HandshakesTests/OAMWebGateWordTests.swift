import Testing

@testable import Handshakes

private let server = "https://oam.example.com"
private let challenge = Challenge(
    realm: "HR_WG", level: 2, context: Secret("encquery%3D1"), resource: "https://hr.example.com/a")
private let atUpstream = Wanted(challenge: challenge, upstreamOrigin: "https://hr.example.com")

private func reply(_ type: String, _ value: String) -> ScriptedIssuer.Line {
    .ok(#"{"X-Idaas-Rest-Token-Type":"\#(type)","X-Idaas-Rest-Token-Value":"\#(value)"}"#)
}

/// Answers of Mobile and Social's REST service that bring no token.
@Suite struct OAMWebGateWordTests {
    private func webgate(_ change: (inout OAMWebGateSettings) -> Void = { _ in }) throws -> OAMWebGateHandshake {
        let service = try #require(IssuerURL("\(server)/rest"))
        var settings = OAMWebGateSettings(
            service: service, username: "u", clientID: "c", userAgentPrefix: "OIC")
        change(&settings)
        return try OAMWebGateHandshake(settings)
    }

    private func refused(
        _ lines: [ScriptedIssuer.Line], _ environment: MemoryEnvironment,
        _ change: (inout OAMWebGateSettings) -> Void = { _ in }
    ) async throws -> GrantFailure? {
        let webgate = try webgate(change)
        return await failure {
            _ = try await webgate.acquire(atUpstream, environment: environment.over(ScriptedIssuer(lines)))
        }
    }

    @Test(arguments: [
        (#"{"KBAQuestions":[]}"#, "interaction"), (#"{"securityQuestion":"x"}"#, "interaction"),
        (#"{"challengeType":"x"}"#, "interaction"), (#"{"x":1}"#, "invalid"),
    ])
    func `a service that asks a question needs a person`(_ body: String, _ kind: String) async throws {
        let environment = MemoryEnvironment()
        #expect(try await refused([.ok(body)], environment)?.kind == kind)
        #expect(environment.outcomes == [.unknown])
    }

    @Test(arguments: [204, 700]) func `an answer that says nothing may have judged the password`(_ status: Int)
        async throws
    {
        let environment = MemoryEnvironment()
        #expect(try await refused([.status(status)], environment)?.kind == "invalid")
        #expect(environment.outcomes == [.unknown])
    }

    @Test func `a registration that is refused for its client is a mistake of the set-up`() async throws {
        let environment = MemoryEnvironment()
        let failed = try await refused([.status(401, #"{"error":"invalid_client"}"#)], environment)
        guard case .configuration(let reason)? = failed else { return _ = Issue.record("\(failed as Any)") }
        #expect(reason.hasPrefix("register: ") && reason.hasSuffix(": the client is not known"))
        #expect(environment.outcomes == [.unknown])
    }

    @Test func `a client that proves nothing and is refused has its login made anew once`() async throws {
        let issuer = ScriptedIssuer([
            .status(401, #"{"error":"invalid_client"}"#), reply("USERTOKEN", "u1"), reply("ACCESSTOKEN", "a1"),
        ])
        let bare = try webgate {
            $0.clientAuth = .none
            $0.clientID = nil
        }
        let environment = MemoryEnvironment(session: "u0").over(issuer)
        #expect(try await bare.acquire(atUpstream, environment: environment).token.text == "a1")
        #expect(issuer.steps == ["access", "authenticate", "access"] && environment.heldSession?.text == "u1")
    }

    @Test(arguments: [
        ("https://oam/oam/server/obrareq.cgi?", true), ("https://oam/oam/server/obrareq.cgi?a%0Ab\u{01}", true),
        ("https://oam/oam/server/obrareq.cgi", true), ("https://oam/oam/server/obrareq.cgi?x=1", false),
    ])
    func `a redirect to the login page without a context that can be sent is no challenge`(
        _ location: String, _ isUnusable: Bool
    ) throws {
        let webgate = try webgate { $0.contextSource = .redirect }
        let verdict = webgate.judge(
            status: 302, wwwAuthenticate: [], location: bytes(location), requestURL: "https://hr.example.com/a")
        switch verdict {
        case .unusable: #expect(isUnusable)
        case .challenged(let challenge): #expect(!isUnusable && challenge.realm == "")
        default: Issue.record("\(verdict)")
        }
    }
}
