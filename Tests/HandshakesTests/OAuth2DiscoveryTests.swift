import Synchronization
import Testing

@testable import Handshakes

private func handshake(
    _ issuer: String = "https://idp.example.com/tenant", _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.issuer(issuer, try #require(IssuerURL(issuer))), clientID: "c")
    change(&settings)
    return try OAuth2Handshake(settings)
}

private let wanted = Wanted(upstreamOrigin: "https://api.example.com")
private let token = ScriptedIssuer.Line.ok(#"{"access_token":"t","token_type":"Bearer"}"#)

private func metadata(
    _ issuer: String = "https://idp.example.com/tenant", _ endpoint: String = "https://idp.example.com/t/token",
    more: String = ""
) -> ScriptedIssuer.Line {
    .ok(#"{"issuer":"\#(issuer)","token_endpoint":"\#(endpoint)","scopes_supported":["a"]\#(more)}"#)
}

@Suite struct OAuth2DiscoveryTests {
    @Test func `read once, between host and path first`() async throws {
        let issuer = ScriptedIssuer([metadata(), token, token])
        let oauth = try handshake { $0.headers = [("X-Tenant", "t")] }
        _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(
            issuer.sent.map(\.url) == [
                "https://idp.example.com/.well-known/oauth-authorization-server/tenant",
                "https://idp.example.com/t/token", "https://idp.example.com/t/token",
            ])
        #expect(issuer.sent[0].method == "GET" && issuer.sent[0].header("X-Tenant") == "t")
        #expect(issuer.sent[0].header("Authorization") == nil && issuer.sent[0].body.isEmpty)
    }

    @Test(
        arguments: [
            .status(404), .status(302), .ok("<html>"), .ok("{}"), metadata("https://idp.example.com"),
        ] as [ScriptedIssuer.Line]) func `the next well-known place`(_ first: ScriptedIssuer.Line) async throws
    {
        let issuer = ScriptedIssuer([first, .status(404), metadata(), token])
        _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(
            issuer.sent.dropLast().map(\.url) == [
                "https://idp.example.com/.well-known/oauth-authorization-server/tenant",
                "https://idp.example.com/.well-known/openid-configuration/tenant",
                "https://idp.example.com/tenant/.well-known/openid-configuration",
            ])
    }

    @Test(
        arguments: [
            ([.status(404), .status(404), .status(404)], "configuration"), ([.status(503)], "unavailable"),
            ([.fault(IssuerFault(.refused, provablyUnsent: true))], "unavailable"),
            ([metadata("https://idp.example.com/tenant/"), .status(404), .status(404)], "invalid"),
            ([metadata("https://evil.example.com"), .status(404), .status(404)], "invalid"),
            ([metadata("https://idp.example.com/tenant", "http://idp.example.com/t")], "invalid"),
            ([metadata("https://idp.example.com/tenant", "http://127.0.0.1/t")], "invalid"),
            ([metadata("https://idp.example.com/tenant", "https://u:p@idp.example.com/t")], "invalid"),
            ([metadata("https://idp.example.com/tenant", "file:///etc/passwd")], "invalid"),
            ([.ok(#"{"issuer":"https://idp.example.com/tenant"}"#)], "invalid"),
            ([.ok(#"{"issuer":"https://idp.example.com/tenant","token_endpoint":7}"#)], "invalid"),
        ] as [([ScriptedIssuer.Line], String)])
    func `metadata that is not believed`(_ lines: [ScriptedIssuer.Line], _ kind: String) async throws {
        let issuer = ScriptedIssuer(lines)
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == kind && issuer.isFinished)
        #expect(!"\(failed as Any)".contains("evil"))
    }

    @Test func `endpoints may be elsewhere over TLS`() async throws {
        let issuer = ScriptedIssuer([
            metadata("https://idp.example.com/tenant", "https://login.example.net//oauth/token?x=1"), token,
        ])
        _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[1].url == "https://login.example.net//oauth/token?x=1")
    }

    @Test func `a document as OAM nests it`() async throws {
        let issuer = ScriptedIssuer([
            .ok(
                #"{"configuration":{},"openid-configuration":{"issuer":"https://idp.example.com/tenant","token_endpoint":"https://idp.example.com/oauth2/rest/token","scopes_supported":["a"]}}"#
            ), token,
        ])
        _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[1].url == "https://idp.example.com/oauth2/rest/token")
    }

    /// What the transport says of its security decides, not what the URL looks like.
    @Test func `clear text bounds what may be named`() throws {
        func endpoints(
            _ issuer: String, _ endpoint: String, verified: Bool, cleartext: Bool
        ) throws -> IssuerURL {
            let rules = OAuth2MetadataRules(
                issuer: issuer, url: try #require(IssuerURL(issuer)), allowsCleartext: cleartext,
                prefersMutualTLS: false)
            let body = #"{"issuer":"\#(issuer)","token_endpoint":"\#(endpoint)"}"#
            return try OAuth2Endpoints(Array(body.utf8), rules, isVerified: verified).token
        }
        let local = "http://127.0.0.1:9"
        #expect(throws: Never.self) { try endpoints(local, "http://localhost:8/t", verified: true, cleartext: false) }
        #expect(throws: Never.self) { try endpoints(local, "https://idp/t", verified: true, cleartext: false) }
        #expect(throws: OAuth2MetadataFault.self) {
            try endpoints(local, "http://idp/t", verified: true, cleartext: false)
        }
        #expect(throws: Never.self) { try endpoints("http://idp", "http://idp/t", verified: false, cleartext: true) }
        #expect(throws: OAuth2MetadataFault.self) {
            try endpoints("http://idp", "http://other/t", verified: false, cleartext: true)
        }
        #expect(throws: OAuth2MetadataFault.self) {
            try endpoints("http://idp", "https://other/t", verified: false, cleartext: true)
        }
    }

    @Test func `aliases for mutual TLS only where it is used`() throws {
        let issuer = "https://idp.example.com"
        let body =
            #"{"issuer":"\#(issuer)","token_endpoint":"\#(issuer)/t","revocation_endpoint":"\#(issuer)/r","mtls_endpoint_aliases":{"token_endpoint":"https://mtls.example.com/t"}}"#
        for (prefers, token) in [(true, "https://mtls.example.com/t"), (false, "https://idp.example.com/t")] {
            let rules = OAuth2MetadataRules(
                issuer: issuer, url: try #require(IssuerURL(issuer)), allowsCleartext: false, prefersMutualTLS: prefers)
            let endpoints = try OAuth2Endpoints(Array(body.utf8), rules, isVerified: true)
            #expect(endpoints.token.description == token)
            #expect(endpoints.revocation?.description == "https://idp.example.com/r")
        }
    }

    @Test func `a moved endpoint is looked up again`() async throws {
        let issuer = ScriptedIssuer([
            metadata(), .status(404), metadata("https://idp.example.com/tenant", "https://idp.example.com/new"), token,
        ])
        let oauth = try handshake()
        _ = await failure { _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer)) }
        _ = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent.last?.url == "https://idp.example.com/new")
    }

    @Test func places() {
        func places(_ text: String) -> [String] { IssuerURL(text)?.metadataURLs.map(\.description) ?? [] }
        #expect(
            places("https://h/") == [
                "https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration",
            ])
        #expect(places("https://h/a/b/").first == "https://h/.well-known/oauth-authorization-server/a/b")
    }
}
