import Testing

@testable import Handshakes

private let own = "https://own.example.com"
private let first = "https://first.example.net"
private let second = "https://second.example.net"

private func handshake(_ change: (inout OAuth2Settings) -> Void = { _ in }) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.issuer(own, try #require(IssuerURL(own))), clientID: "c")
    change(&settings)
    return try OAuth2Handshake(settings)
}

private let allowed = [first, second].compactMap { text in IssuerURL(text).map { (issuer: text, url: $0) } }

private func discovery(_ issuer: String, _ more: String = "") -> ScriptedIssuer.Line {
    .ok(#"{"issuer":"\#(issuer)","token_endpoint":"\#(issuer)/token"\#(more)}"#)
}

private let token = ScriptedIssuer.Line.ok(#"{"access_token":"t0","token_type":"Bearer"}"#)
private let wanted = Wanted(upstreamOrigin: "https://api.example.com")

/// The questions of `check --live`.
@Suite struct OAuth2InquiryTests {
    @Test func `every allowed issuer has to answer as itself`() async throws {
        let oauth = try handshake { $0.allowedIssuers = allowed }
        let good = ScriptedIssuer([discovery(first), discovery(second), discovery(own)])
        #expect(try await oauth.inquire(environment: MemoryEnvironment().over(good)) == [])
        #expect(good.isFinished)
    }

    @Test func `an allowed issuer that calls itself something else is told by name`() async throws {
        let oauth = try handshake { $0.allowedIssuers = allowed }
        let bad = ScriptedIssuer([discovery(first), discovery(first), .status(404)])
        let failed = await failure { _ = try await oauth.inquire(environment: MemoryEnvironment().over(bad)) }
        guard case .configuration(let reason)? = failed else {
            Issue.record("\(failed as Any)")
            return
        }
        #expect(reason.hasPrefix("allowed_issuers: \(second): ") && reason.contains("metadata of another issuer"))
    }

    @Test func `endpoints that are written down and not the metadata's are told`() async throws {
        let written = try #require(IssuerURL(own + "/mine"))
        let oauth = try handshake {
            $0.revocationURL = written
            $0.introspectionURL = written
            $0.authorizationURL = written
        }
        let issuer = ScriptedIssuer([
            discovery(own, #","revocation_endpoint":"\#(own)/theirs","introspection_endpoint":"\#(own)/mine""#)
        ])
        #expect(
            try await oauth.inquire(environment: MemoryEnvironment().over(issuer))
                == ["'revocation_url' is not what the issuer's metadata names, \(own)/theirs, which counts"])
    }

    @Test func `an identity with a token endpoint alone asks nobody for metadata`() async throws {
        let url = try #require(IssuerURL(own + "/token"))
        let oauth = try handshake {
            $0.location = .tokenURL(url)
            $0.revocationURL = url
        }
        let issuer = ScriptedIssuer([])
        #expect(try await oauth.inquire(environment: MemoryEnvironment().over(issuer)) == [] && issuer.sent.isEmpty)
    }

    @Test func `an explanation names the issuers that metadata may lead to`() throws {
        #expect(
            try handshake { $0.allowedIssuers = allowed }.explanation
                == ["the API's metadata may lead to another issuer: \(first), \(second)"])
        #expect(try handshake().explanation == [])
    }

    private func tried(
        _ lines: [ScriptedIssuer.Line], _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) async throws -> (LiveTrial?, ScriptedIssuer) {
        let issuer = ScriptedIssuer(lines)
        let oauth = try handshake {
            $0.introspects = true
            change(&$0)
        }
        return (try await oauth.tryOut(wanted, environment: MemoryEnvironment().over(issuer)), issuer)
    }

    private static let withIntrospection = discovery(own, #","introspection_endpoint":"\#(own)/look""#)

    @Test(arguments: [true, false])
    func `a trial tells whether the issuer calls the new token active`(_ isActive: Bool) async throws {
        let (trial, issuer) = try await tried([Self.withIntrospection, token, .ok(#"{"active":\#(isActive)}"#)])
        #expect(
            trial?.text == "token obtained, and the issuer calls it \(isActive ? "active" : "inactive")"
                && trial?.isGood == isActive)
        #expect(issuer.sent.last?.url == own + "/look")
        #expect(issuer.sent.last?.body.hasPrefix("token=t0&token_type_hint=access_token") == true)
    }

    @Test func `a trial without introspection says nothing beside the token`() async throws {
        let (trial, issuer) = try await tried([discovery(own), token]) { $0.introspects = false }
        #expect(trial == nil && issuer.isFinished)
    }

    @Test(
        arguments: [
            ([discovery(own), token], "configuration"), ([withIntrospection, token, .status(404)], "configuration"),
            ([withIntrospection, token, .ok(#"{"active":"yes"}"#)], "invalid"),
        ] as [([ScriptedIssuer.Line], String)])
    func `an issuer that does not say whether a token is active fails the trial`(
        _ lines: [ScriptedIssuer.Line], _ kind: String
    ) async throws {
        let failed = await failure { _ = try await tried(lines) }
        #expect(failed?.kind == kind)
    }

    @Test func `metadata that cannot be read again is used for a day`() async throws {
        let issuer = ScriptedIssuer([discovery(own), token, .status(503), token, .status(503)])
        let oauth = try handshake()
        let environment = WatchedEnvironment().over(issuer)
        _ = try await oauth.acquire(wanted, environment: environment)
        environment.pass(seconds: 3_600)
        _ = try await oauth.acquire(wanted, environment: environment)
        #expect(issuer.steps == ["discovery", "token", "discovery", "token"])
        environment.pass(seconds: 23 * 3_600)
        let failed = await failure { _ = try await oauth.acquire(wanted, environment: environment) }
        #expect(failed?.kind == "unavailable" && issuer.isFinished)
    }
}
