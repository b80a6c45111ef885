import Testing

@testable import Handshakes

private let token = "https://idp.example.com/token"
private let granted = ScriptedIssuer.Line.ok(#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#)
private let pending = ScriptedIssuer.Line.status(400, #"{"error":"authorization_pending"}"#)

private func handshake(
    _ grant: OAuth2Settings.Grant, _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL(token))), clientID: "c")
    settings.clientAuth = .none
    settings.grant = grant
    settings.deviceAuthorizationURL = IssuerURL("https://idp.example.com/device")
    settings.authorizationURL = IssuerURL("https://idp.example.com/authorize")
    change(&settings)
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
}

private func offer(seconds: Int, interval: Int = 5) -> ScriptedIssuer.Line {
    .ok(
        #"{"device_code":"d","user_code":"U-1","verification_uri":"https://idp.example.com/go","#
            + #""expires_in":\#(seconds),"interval":\#(interval)}"#)
}

/// A login with a code that is entered on another device (RFC 8628), while time passes.
@Suite struct OAuth2DeviceLoginTests {
    private func login(
        _ lines: [ScriptedIssuer.Line], _ wanted: Wanted = Wanted(upstreamOrigin: ""),
        _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) async throws -> (GrantFailure?, WatchedEnvironment, ScriptedIssuer) {
        let issuer = ScriptedIssuer(lines)
        let environment = WatchedEnvironment().over(issuer)
        let person = WaitingPerson(environment)
        let handshake = try handshake(.deviceCode, change)
        let failed = await failure {
            _ = try await handshake.login(wanted, dialogue: person, environment: environment)
        }
        return (failed, environment, issuer)
    }

    @Test(arguments: [(4, [4]), (12, [5, 5, 2])] as [(Int, [UInt64])])
    func `an offer that nobody takes up ends when the issuer said`(_ life: Int, _ seconds: [UInt64]) async throws {
        let (failed, environment, issuer) = try await login([offer(seconds: life), pending, pending, granted])
        #expect(failed == .loginExpired)
        // The offer's life counts from when it was asked for, 5 µs before the clock's first moment.
        #expect(environment.seen.pauses.map { ($0 + 5_000) / 1_000_000_000 } == seconds)
        #expect(issuer.sent.count == seconds.count)
    }

    @Test func `a poll names the resource and the audience as the offer did`() async throws {
        let wanted = Wanted(
            scopes: ["s"], audience: ["https://a"], resource: ["https://api.example.com"], upstreamOrigin: "")
        let (failed, _, issuer) = try await login([offer(seconds: 600), granted], wanted)
        #expect(failed == nil)
        #expect(
            issuer.sent[1].body
                == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d"
                + "&audience=https%3A%2F%2Fa&resource=https%3A%2F%2Fapi.example.com&client_id=c")
    }

    @Test func `a value that names a user without one ends a login before anything is sent`() async throws {
        let (failed, _, issuer) = try await login([offer(seconds: 600)]) { $0.extra = [("x", "{subject}")] }
        #expect(failed == .configuration(reason: "{subject}: the route has no subject with a name"))
        #expect(issuer.sent.isEmpty)
    }

    @Test func `an endpoint that redirects is told by its own name`() async throws {
        let (failed, _, _) = try await login([.status(302)])
        #expect(
            failed
                == .configuration(
                    reason: "login: redirect (302); the URL is not that of the device authorization endpoint"))
    }

    @Test func `an issuer that is down or busy while a person is busy is asked more slowly`() async throws {
        let lost = ScriptedIssuer.Line.fault(IssuerFault(.closed, provablyUnsent: false))
        let slow = ScriptedIssuer.Line.status(400, #"{"error":"slow_down"}"#)
        let (failed, environment, _) = try await login([offer(seconds: 600), lost, .status(503), slow, granted])
        #expect(failed?.kind == nil)
        #expect(environment.seen.pauses.map { $0 / 1_000_000_000 } == [5, 10, 20, 25])
    }
}
