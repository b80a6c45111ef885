import Octets
import Synchronization
import Testing

@testable import Handshakes

/// A login's needs of its issuer, and answers of the issuer that are not taken.
@Suite struct OAuth2LoginRuleTests {
    private static let token = #"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#
    /// The octets of every random value here, so that an answer can name them.
    private static let random = Base64.encodeURL([UInt8](repeating: 0xAB, count: 24))

    private func handshake(
        _ grant: OAuth2Settings.Grant, _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) throws -> OAuth2Handshake {
        var settings = OAuth2Settings(
            .tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
        settings.clientAuth = .none
        settings.grant = grant
        settings.authorizationURL = IssuerURL("https://idp.example.com/authorize")
        settings.deviceAuthorizationURL = IssuerURL("https://idp.example.com/device")
        change(&settings)
        return try OAuth2Handshake(
            settings, GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
    }

    private func login(
        _ handshake: OAuth2Handshake, _ person: ScriptedPerson, _ issuer: ScriptedIssuer, scopes: [String] = []
    ) async throws -> LoginGrant {
        try await handshake.login(
            Wanted(scopes: scopes, upstreamOrigin: ""), dialogue: person, environment: MemoryEnvironment().over(issuer))
    }

    private func answering(_ query: String = "code=x") -> ScriptedPerson {
        ScriptedPerson { _ in ["\(query)&state=\(Self.random)"] }
    }

    // MARK: - Endpoints

    @Test(arguments: [
        (OAuth2Settings.Grant.authorizationCode, "authorization_endpoint"),
        (.deviceCode, "device_authorization_endpoint"),
    ])
    func aLoginNeedsItsEndpoint(grant: OAuth2Settings.Grant, name: String) async throws {
        let issuer = ScriptedIssuer([])
        let handshake = try handshake(grant) {
            $0.authorizationURL = nil
            $0.deviceAuthorizationURL = nil
        }
        let environment = MemoryEnvironment().over(issuer)
        #expect(
            await failure { try await handshake.reach(environment: environment) }
                == .configuration(reason: "the issuer names no \(name)"))
        let person = ScriptedPerson()
        #expect(
            await failure { _ = try await login(handshake, person, issuer) }
                == .configuration(reason: "login: the issuer names no \(name)"))
        #expect(issuer.sent.isEmpty && person.prompts.isEmpty)
    }

    @Test func aTokenEndpointIsThereWhateverItSays() async throws {
        let issuer = ScriptedIssuer([.status(405), .fault(IssuerFault(.timedOut, provablyUnsent: true))])
        let handshake = try handshake(.authorizationCode) { $0.headers = [("X-Tenant", "t")] }
        let environment = MemoryEnvironment().over(issuer)
        try await handshake.reach(environment: environment)
        #expect(issuer.sent.map(\.method) == ["GET"] && issuer.sent[0].header("X-Tenant") == "t")
        #expect(await failure { try await handshake.reach(environment: environment) } == .timedOut(step: "reach"))
    }

    @Test func aGrantOfAMachineTakesNoPerson() async throws {
        let person = ScriptedPerson()
        let failed = await failure { _ = try await login(handshake(.clientCredentials), person, ScriptedIssuer([])) }
        #expect(failed == .configuration(reason: "this grant needs no person") && person.prompts.isEmpty)
    }

    // MARK: - Authorization code

    @Test func anAddressThatNoBrowserTakesIsNotShown() async throws {
        let person = answering()
        let failed = await failure {
            _ = try await login(
                handshake(.authorizationCode) { $0.loginParameters = [("hint", String(repeating: "h", count: 8192))] },
                person, ScriptedIssuer([]))
        }
        #expect(failed == .configuration(reason: "login: the URL would be over 8 KiB") && person.prompts.isEmpty)
    }

    @Test(
        arguments: [
            (nil, false, nil, "http://127.0.0.1/callback"), (nil, false, 7, "http://127.0.0.1:7/callback"),
            ("http://[::1]/cb", false, 7, "http://[::1]:7/cb"),
            ("http://127.0.0.1/cb", false, nil, "http://127.0.0.1/cb"),
            ("http://localhost:80/cb", true, 7, "http://localhost:80/cb"),
            ("https://Edge.example.com/cb", false, 7, "https://Edge.example.com/cb"),
        ] as [(String?, Bool, UInt16?, String)])
    func theRedirectIsSentAsItIsWritten(text: String?, hasPort: Bool, port: UInt16?, sent: String) async throws {
        let person = ScriptedPerson(redirectPort: port) { _ in ["code=x&state=\(Self.random)"] }
        let issuer = ScriptedIssuer([.ok(Self.token)])
        let handshake = try handshake(.authorizationCode) {
            $0.redirectURI = text.flatMap { IssuerURL($0) }
            $0.redirectText = text
            $0.redirectHasPort = hasPort
        }
        _ = try await login(handshake, person, issuer)
        let member = "redirect_uri=" + PercentEncoding.encode(sent) + "&"
        #expect(person.prompts.first?.url.contains(member) == true, "\(person.prompts.map(\.url))")
        #expect(issuer.sent.first?.body.contains(member) == true)
    }

    @Test(arguments: ["code", "code&x=1"])
    func anAnswerWithAnEmptyCodeEndsTheLogin(query: String) async throws {
        let issuer = ScriptedIssuer([.ok(Self.token)])
        let failed = await failure { _ = try await login(handshake(.authorizationCode), answering(query), issuer) }
        #expect(failed == .issuerAnswerInvalid(reason: "login: the answer has no code") && issuer.sent.isEmpty)
    }

    @Test(
        arguments: [
            (#""iss":"https://idp.example.com""#, nil), (#""iss":"https://evil.example.com""#, "of another issuer"),
            (#""sub":"u""#, "of another issuer"),
        ] as [(String, String?)])
    func anIDTokenIsOfTheIssuerThatWasAsked(claim: String, why: String?) async throws {
        let payload = Base64.encodeURL(bytes(#"{"nonce":"\#(Self.random)","aud":"c",\#(claim)}"#))
        let metadata =
            #"{"issuer":"https://idp.example.com","token_endpoint":"https://idp.example.com/token","authorization_endpoint":"https://idp.example.com/a"}"#
        let answer = Self.token.dropLast() + #","id_token":"e30.\#(payload).s"}"#
        let issuer = ScriptedIssuer([.ok(metadata), .ok(String(answer))])
        let url = try #require(IssuerURL("https://idp.example.com"))
        let handshake = try handshake(.authorizationCode) { $0.location = .issuer("https://idp.example.com", url) }
        let failed = await failure { _ = try await login(handshake, answering(), issuer, scopes: ["openid"]) }
        #expect(failed == why.map { .issuerAnswerInvalid(reason: "login: id_token is \($0)") })
        #expect(issuer.isFinished)
    }

    @Test(arguments: [(["offline_access"], ""), (["read"], "; many give one for the scope offline_access")])
    func aLoginWithoutARefreshTokenSaysWhatItIs(scopes: [String], advice: String) async throws {
        let answer = ScriptedIssuer.Line.ok(#"{"access_token":"a.1","token_type":"Bearer","expires_in":60}"#)
        let grant = try await login(
            handshake(.authorizationCode), answering(), ScriptedIssuer([answer]), scopes: scopes)
        #expect(
            grant.remark
                == "the issuer gave no refresh token: this login lasts as long as its access token\(advice)")
        #expect(grant.material.bytes == Secret("a.1") && grant.material.lifetime == 60_000_000_000)
        #expect(grant.material.isHuman && grant.material.refreshToken == nil)
    }

    // MARK: - A login that is its access token

    private func loggedIn(_ lifetime: UInt64?) -> MemoryEnvironment {
        let environment = MemoryEnvironment()
        environment.state.withLock {
            $0.session = LayerMaterial(bytes: Secret("lasting"), obtainedAt: 7, lifetime: lifetime, isHuman: true)
        }
        return environment
    }

    @Test(arguments: [(nil, AccessGrant.longestLifetime), (1_000_000, 1_000_000)] as [(UInt64?, UInt64)])
    func theAccessTokenOfALoginIsUsedWhileItLasts(lifetime: UInt64?, granted: UInt64) async throws {
        let issuer = ScriptedIssuer([])
        let grant = try await handshake(.authorizationCode).acquire(
            Wanted(upstreamOrigin: ""), environment: loggedIn(lifetime).over(issuer))
        #expect(grant.token.text == "lasting" && grant.lifetime == granted && grant.sentAt == 7)
        #expect(issuer.sent.isEmpty)
    }

    @Test func theAccessTokenOfALoginIsGivenUpOnceItWasRefused() async throws {
        let environment = loggedIn(nil).over(ScriptedIssuer([]))
        let wanted = Wanted(challenge: Challenge(resource: "https://u.example.com/"), upstreamOrigin: "")
        let failed = await failure {
            _ = try await handshake(.authorizationCode).acquire(wanted, environment: environment)
        }
        #expect(failed?.kind == "interaction" && environment.heldSession == nil)
    }

    // MARK: - Device code

    private static func offer(_ members: String) -> ScriptedIssuer.Line {
        .ok(#"{"device_code":"d","user_code":"WDJB-MJHT","expires_in":600,\#(members)}"#)
    }

    /// The names of the drafts before RFC 8628, and no interval, which then is five seconds.
    @Test func anOfferInTheWordsOfTheDraftsIsTaken() async throws {
        let issuer = ScriptedIssuer([
            Self.offer(
                #""verification_url":"https://idp.example.com/d","verification_url_complete":"https://idp.example.com/d?c=1""#
            ), .ok(Self.token),
        ])
        let person = ScriptedPerson()
        _ = try await login(handshake(.deviceCode), person, issuer)
        #expect(person.prompts.map(\.url) == ["https://idp.example.com/d"])
        #expect(person.prompts.map(\.completeURL) == ["https://idp.example.com/d?c=1"])
        #expect(person.pauses == [5])
    }

    @Test func aTokenInsteadOfAnOfferIsNotTaken() async throws {
        let issuer = ScriptedIssuer([.status(201, Self.token)])
        let failed = await failure { _ = try await login(handshake(.deviceCode), ScriptedPerson(), issuer) }
        #expect(failed == .issuerAnswerInvalid(reason: "login: status 201"))
    }

    @Test func aDeviceRequestToldOfTheTwoEncodings() async throws {
        let issuer = ScriptedIssuer([.status(401, #"{"error":"invalid_client"}"#)])
        let failed = await failure {
            _ = try await login(handshake(.deviceCode) { $0.clientAuth = .basic }, ScriptedPerson(), issuer)
        }
        #expect(failed?.kind == "rejected")
        #expect(failed.map { "\($0)".hasSuffix("try basic_encoding: raw") } == true, "\(String(describing: failed))")
    }

    // MARK: - Words of refusals

    @Test(arguments: [
        (ScriptedIssuer.Line.status(403, #"{"error":"odd_word"}"#), "denied: token: status 403, unknown error"),
        (.ok(#"{"error":"odd_word"}"#), "invalid: token: status 200, unknown error"),
        (.status(204), "invalid: token: status 204"),
        (.status(503, #"{"error":"invalid_client"}"#), "unavailable: token: status 503"),
    ])
    func aRefusalOutsideTheStandardIsToldByItsStatus(line: ScriptedIssuer.Line, said: String) async throws {
        let failed = await failure {
            _ = try await handshake(.clientCredentials).acquire(
                Wanted(upstreamOrigin: ""), environment: MemoryEnvironment().over(ScriptedIssuer([line])))
        }
        let reason = failed.map { "\($0)".split(separator: ": ", maxSplits: 1).last ?? "" } ?? ""
        #expect("\(failed?.kind ?? ""): \(reason)" == said)
    }

    /// A scheme of a URI may have signs in it (RFC 3986 §3.1).
    @Test func aResourceOfAnySchemeIsAskedFor() async throws {
        let issuer = ScriptedIssuer([.ok(Self.token)])
        _ = try await handshake(.clientCredentials).acquire(
            Wanted(resource: ["x+y-z.1://api"], upstreamOrigin: ""), environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent.first?.body.contains("resource=x%2By-z.1%3A%2F%2Fapi") == true)
        let failed = await failure {
            _ = try await handshake(.clientCredentials).acquire(
                Wanted(resource: ["x_y://api"], upstreamOrigin: ""), environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == "configuration" && issuer.sent.count == 1)
    }

    @Test func aCallersTokenIsExchangedOnlyWhereThereIsOne() async throws {
        var exchange = OAuth2Settings.TokenExchange()
        exchange.subject = .caller
        let issuer = ScriptedIssuer([.ok(Self.token)])
        let failed = await failure {
            _ = try await handshake(.tokenExchange(exchange)).acquire(
                Wanted(upstreamOrigin: ""), environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed == .configuration(reason: "subject_token: the route does not take the caller's own"))
        #expect(issuer.sent.isEmpty)
    }

    // MARK: - Settings that cannot go together

    @Test func whatIsKeptIsForOneIssuer() throws {
        let other = try #require(IssuerURL("https://other.example.com"))
        #expect(throws: GrantFailure.configuration(reason: "allowed_issuers: what this grant keeps is for one issuer"))
        {
            try handshake(.authorizationCode) { $0.allowedIssuers = [("https://other.example.com", other)] }
        }
    }

    @Test(arguments: ["", "state", "hint"])
    func aLoginParameterIsNoneOfTheLoginsOwn(name: String) throws {
        #expect(throws: GrantFailure.self) {
            try handshake(.authorizationCode) { $0.loginParameters = [("hint", "x"), (name, "y")] }
        }
    }

    // MARK: - Revocation and introspection

    @Test func aLoginWithoutARefreshTokenIsRevokedByItsAccessToken() async throws {
        let session = LayerMaterial(bytes: Secret("lasting"), obtainedAt: 1, lifetime: nil, isHuman: true)
        let issuer = ScriptedIssuer([.status(200), .status(400)])
        let handshake = try handshake(.authorizationCode) {
            $0.revocationURL = IssuerURL("https://idp.example.com/revoke")
        }
        let environment = MemoryEnvironment().over(issuer)
        #expect(await handshake.revoke(session, environment: environment) == .revoked)
        #expect(issuer.sent[0].body == "token=lasting&token_type_hint=access_token&client_id=c")
        #expect(await handshake.revoke(session, environment: environment) == .unconfirmed)
        let nothing = LayerMaterial(bytes: Secret([]), obtainedAt: 1, lifetime: nil)
        #expect(await handshake.revoke(nothing, environment: environment) == .impossible)
        #expect(issuer.sent.count == 2)
    }

    @Test func aRevocationThatCannotBeSentIsNotConfirmed() async throws {
        let session = LayerMaterial(bytes: Secret("lasting"), obtainedAt: 1, lifetime: nil, isHuman: true)
        let url = try #require(IssuerURL("https://idp.example.com"))
        let down = try handshake(.authorizationCode) { $0.location = .issuer("https://idp.example.com", url) }
        let issuer = ScriptedIssuer([.status(503)])
        #expect(await down.revoke(session, environment: MemoryEnvironment().over(issuer)) == .unconfirmed)
        let unreadable = try handshake(.authorizationCode) {
            $0.clientAuth = .basic
            $0.revocationURL = IssuerURL("https://idp.example.com/revoke")
        }
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets = [:] }
        let unasked = ScriptedIssuer([.status(200)])
        #expect(await unreadable.revoke(session, environment: environment.over(unasked)) == .unconfirmed)
        #expect(unasked.sent.isEmpty)
    }

    @Test(arguments: [
        (ScriptedIssuer.Line.ok(#"{"active":true}"#), "true"), (.ok(#"{"active":false}"#), "false"),
        (.ok(#"{"active":"true"}"#), "invalid"), (.ok("<html>"), "invalid"), (.status(404), "configuration"),
        (.status(401), "configuration"),
    ])
    func theIssuersWordOnATokenIsTaken(line: ScriptedIssuer.Line, said: String) async throws {
        let issuer = ScriptedIssuer([line])
        let handshake = try handshake(.clientCredentials) {
            $0.introspects = true
            $0.introspectionURL = IssuerURL("https://idp.example.com/introspect")
        }
        var isActive: Bool?
        let failed = await failure {
            isActive = try await handshake.introspect(Secret("t"), environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind ?? isActive.map { "\($0)" } == said)
        #expect(issuer.sent.map(\.body) == ["token=t&token_type_hint=access_token&client_id=c"])
    }

    @Test func withoutAPlaceTheIssuerIsNotAskedAboutATokenOfOurs() async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await handshake(.clientCredentials) { $0.introspects = true }
                .introspect(Secret("t"), environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed == .configuration(reason: "introspection: the issuer names no introspection_endpoint"))
        #expect(issuer.sent.isEmpty)
    }
}
