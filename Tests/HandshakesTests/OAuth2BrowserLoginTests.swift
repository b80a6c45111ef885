import Octets
import TLS
import Testing

@testable import Handshakes

private let token = "https://idp.example.com/token"
private let granted = ScriptedIssuer.Line.ok(#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#)

private func handshake(
    _ grant: OAuth2Settings.Grant, _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL(token))), clientID: "c")
    settings.clientAuth = .none
    settings.grant = grant
    settings.authorizationURL = IssuerURL("https://idp.example.com/authorize")
    change(&settings)
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
}

/// A login in a browser (RFC 6749 section 4.1): what the address says, and which answers are taken.
@Suite struct OAuth2BrowserLoginTests {
    private static let random = "q6urq6urq6urq6urq6urq6urq6urq6ur"

    private func login(
        _ lines: [ScriptedIssuer.Line], _ query: String = "code=x&state=\(random)", scopes: [String] = [],
        port: UInt16? = 8765, _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) async throws -> (GrantFailure?, ScriptedPerson, ScriptedIssuer) {
        let issuer = ScriptedIssuer(lines)
        let person = ScriptedPerson(redirectPort: port) { _ in [query] }
        let handshake = try handshake(.authorizationCode, change)
        let failed = await failure {
            _ = try await handshake.login(
                Wanted(scopes: scopes, upstreamOrigin: ""), dialogue: person,
                environment: MemoryEnvironment().over(issuer))
        }
        return (failed, person, issuer)
    }

    @Test func `a code is bound to the key that its token will be bound to`() async throws {
        let (failed, person, issuer) = try await login([
            .ok(#"{"access_token":"a","token_type":"DPoP","refresh_token":"r"}"#)
        ]) { $0.dpop = true }
        #expect(failed == nil)
        let url = try #require(person.prompts.first?.url)
        let thumbprint = try #require(url.split(separator: "&").first { $0.hasPrefix("dpop_jkt=") }).dropFirst(9)
        let proof = try #require(issuer.sent[0].header("DPoP"))
        let header = try #require(Base64.decodeURL(Array(proof.utf8.prefix { $0 != UInt8(ascii: ".") })))
        let text = String(decoding: header, as: UTF8.self)
        let start = try #require(text.firstRange(of: #"{"crv""#)).lowerBound
        #expect(thumbprint == Base64.encodeURL(sha256(Array(text[start...].dropLast().utf8))))
    }

    @Test func `a browser comes back to a loopback of six as it is written, at the port that listens`() async throws {
        let (failed, person, issuer) = try await login([granted]) {
            $0.redirectURI = IssuerURL("http://[::1]/done")
            $0.redirectText = "http://[::1]/done"
        }
        #expect(failed == nil)
        let address = "redirect_uri=http%3A%2F%2F%5B%3A%3A1%5D%3A8765%2Fdone"
        #expect(person.prompts.first?.url.contains(address + "&") == true && issuer.sent[0].body.contains(address))
    }

    @Test func `a login for openid without an ID token is taken`() async throws {
        let (failed, person, _) = try await login([granted], scopes: ["openid"])
        #expect(failed == nil && person.prompts.first?.url.contains("&nonce=") == true)
    }

    @Test func `an answer of more than 8 KiB is refused unread, and the wait goes on`() async throws {
        let long = "code=x&state=\(Self.random)&x=" + String(repeating: "a", count: 8192)
        let (failed, person, issuer) = try await login([granted], long)
        #expect(failed == .loginExpired && issuer.sent.isEmpty)
        #expect(person.refusals == ["the answer is over 8 KiB"])
    }

    private static let own = "https://own.example.com"

    private func atIssuer(_ query: String, namesItself: Bool) async throws -> GrantFailure? {
        let own = Self.own
        let url = try #require(IssuerURL(own))
        let metadata = ScriptedIssuer.Line.ok(
            #"{"issuer":"\#(own)","token_endpoint":"\#(own)/t","authorization_endpoint":"\#(own)/a","#
                + #""authorization_response_iss_parameter_supported":\#(namesItself)}"#)
        return try await login([metadata, granted], "code=x&state=\(Self.random)\(query)") {
            $0.location = .issuer(own, url)
        }.0
    }

    @Test(
        arguments: [
            ("&iss=https%3A%2F%2Fown.example.com", true, nil), ("&iss=https%3A%2F%2Fown.example.com", false, nil),
            ("", false, nil), ("", true, "login: the answer does not name its issuer (iss)"),
            ("&iss=https%3A%2F%2Fevil.example", true, "login: the answer is of another issuer (iss)"),
            ("&iss=https%3A%2F%2Fevil.example", false, "login: the answer is of another issuer (iss)"),
        ] as [(String, Bool, String?)])
    func `an answer of another issuer brings no code`(_ query: String, _ namesItself: Bool, _ reason: String?)
        async throws
    {
        let failed = try await atIssuer(query, namesItself: namesItself)
        #expect(failed == reason.map { .issuerAnswerInvalid(reason: $0) })
    }

    @Test func `an issuer whose metadata was read is reached`() async throws {
        let own = Self.own
        let url = try #require(IssuerURL(own))
        let issuer = ScriptedIssuer([
            .ok(#"{"issuer":"\#(own)","token_endpoint":"\#(own)/t","authorization_endpoint":"\#(own)/a"}"#)
        ])
        try await handshake(.authorizationCode) { $0.location = .issuer(own, url) }
            .reach(environment: MemoryEnvironment().over(issuer))
        #expect(issuer.steps == ["discovery"])
    }
}
