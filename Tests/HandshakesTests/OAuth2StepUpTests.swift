import HTTP1
import Octets
import Testing

@testable import Handshakes

private let origin = "https://api.example.com/"
private let error = "error=\"insufficient_user_authentication\""
private let refused = "the upstream wants its user authenticated in another way (insufficient_user_authentication"

private func handshake(
    _ grant: OAuth2Settings.Grant = .authorizationCode,
    _ stepUp: OAuth2StepUp? = OAuth2StepUp(acrValues: ["a", "b"], leastAge: 60),
    _ change: (inout OAuth2Settings) -> Void = { _ in }
) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
    settings.clientAuth = .none
    settings.grant = grant
    settings.stepUp = stepUp
    settings.authorizationURL = IssuerURL("https://idp.example.com/authorize")
    settings.deviceAuthorizationURL = IssuerURL("https://idp.example.com/device")
    change(&settings)
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 0xAB, count: $0) }))
}

private func wish(_ handshake: OAuth2Handshake, _ lines: [String], status: Int = 401) throws -> StepUpWish? {
    let verdict = handshake.judge(
        status: status, wwwAuthenticate: lines.map { Array($0.utf8) }, location: nil, requestURL: origin)
    guard case .challenged(let challenge) = verdict else { return nil }
    return challenge.stepUp
}

/// The demand of an upstream for another authentication of its user (RFC 9470 section 3): hostile words, and the operator's rule.
@Suite struct OAuth2StepUpChallengeTests {
    /// The parameters of a challenge, and the demand in them; nil: words that cannot be used.
    static let readings: [(String, StepUp?)] = {
        let longest = String(repeating: "x", count: 512)
        let many = (0..<8).map { "v\($0)" }
        return [
            ("", StepUp()), ("acr_values=\"a\"", StepUp(acrValues: ["a"])), ("acr_values=a", StepUp(acrValues: ["a"])),
            ("acr_values=\"a b\"", StepUp(acrValues: ["a", "b"])), ("ACR_Values=\"a\"", StepUp(acrValues: ["a"])),
            ("acr_values=\" a  b \"", StepUp(acrValues: ["a", "b"])),
            ("acr_values=\"a a b a\"", StepUp(acrValues: ["a", "b"])), ("acr_values=\"\"", StepUp()),
            ("acr_values=\"   \"", StepUp()), ("acr_values=\"A a\"", StepUp(acrValues: ["A", "a"])),
            ("acr_values=\"urn:mace:incommon:iap:silver\"", StepUp(acrValues: ["urn:mace:incommon:iap:silver"])),
            (
                "acr_values=\"http://schemas.openid.net/pape/policies/2007/06/multi-factor\"",
                StepUp(acrValues: ["http://schemas.openid.net/pape/policies/2007/06/multi-factor"])
            ),
            ("acr_values=\"a,b=c;d\"", StepUp(acrValues: ["a,b=c;d"])),
            ("acr_values=\"a%20b\"", StepUp(acrValues: ["a%20b"])),
            ("acr_values=\"\\a\"", StepUp(acrValues: ["a"])), ("acr_values=\"!~\"", StepUp(acrValues: ["!~"])),
            ("acr_values=\"\(many.joined(separator: " "))\"", StepUp(acrValues: many)),
            ("acr_values=\"\(many.joined(separator: " ")) v0\"", StepUp(acrValues: many)),
            ("acr_values=\"\(many.joined(separator: " ")) v8\"", nil),
            ("acr_values=\"\(longest)\"", StepUp(acrValues: [longest])), ("acr_values=\"\(longest)y\"", nil),
            ("acr_values=\"\(String(repeating: " ", count: 513))\"", nil), ("acr_values=\"a\tb\"", nil),
            ("acr_values=\"a\\\"b\"", nil), ("acr_values=\"a\\\\b\"", nil), ("acr_values=\"ä\"", nil),
            ("acr_values=\"a\u{A0}b\"", nil), ("acr_values=\"a\u{2028}b\"", nil), ("acr_values=\"a\u{7F}\"", nil),
            ("acr_values=\"a\", acr_values=\"b\"", nil), ("acr_values=\"a\", acr_values=\"a\"", nil),
            ("max_age=0", StepUp(maxAge: 0)), ("max_age=\"300\"", StepUp(maxAge: 300)),
            ("max_age=300", StepUp(maxAge: 300)),
            ("MAX_AGE=7", StepUp(maxAge: 7)), ("max_age=0000000060", StepUp(maxAge: 60)),
            ("max_age=2147483647", StepUp(maxAge: 2_147_483_647)), ("max_age=2147483648", nil),
            ("max_age=00000000060", nil),
            ("max_age=4294967296", nil), ("max_age=18446744073709551616", nil),
            ("max_age=\"\(String(repeating: "9", count: 4000))\"", nil), ("max_age=-1", nil), ("max_age=\"-0\"", nil),
            ("max_age=\"+5\"", nil), ("max_age=5.0", nil), ("max_age=\"5 \"", nil), ("max_age=\" 5\"", nil),
            ("max_age=0x5", nil),
            ("max_age=1e3", nil), ("max_age=\"\"", nil), ("max_age=five", nil), ("max_age=\"٥\"", nil),
            ("max_age=\"5\t\"", nil),
            ("max_age=5, max_age=5", nil), ("max_age=5, acr_values=\"a\"", StepUp(acrValues: ["a"], maxAge: 5)),
            ("max_age=five, acr_values=\"a\"", nil), ("max_age=5, acr_values=\"ä\"", nil),
            ("acr_values=\"a\", max_age=5, scope=\"x\", realm=\"y\"", StepUp(acrValues: ["a"], maxAge: 5)),
        ]
    }()

    @Test(arguments: readings) func `words of others are read or refused, and never half`(
        _ parameters: String, _ demand: StepUp?
    ) throws {
        let list = AuthChallenge.list([Array("Bearer \(error), \(parameters)".utf8)])
        try #require(list.count == 1)
        #expect(StepUp(list[0]) == demand)
    }

    @Test(
        arguments: [
            ("acr_values=\"a\"", StepUp(acrValues: ["a"])), ("acr_values=\"x b a\"", StepUp(acrValues: ["b", "a"])),
            ("acr_values=\"x\"", nil), ("acr_values=\"A\"", nil), ("max_age=60", StepUp(maxAge: 60)),
            ("max_age=59", nil),
            ("max_age=0", nil), ("acr_values=\"a\", max_age=59", nil), ("acr_values=\"x\", max_age=60", nil),
            ("acr_values=\"a\", max_age=3600", StepUp(acrValues: ["a"], maxAge: 3600)), ("", nil),
        ] as [(String, StepUp?)])
    func `the operator says what may be asked for`(_ parameters: String, _ demand: StepUp?) throws {
        let wish = try #require(try wish(handshake(), ["Bearer \(error), \(parameters)"]))
        #expect(wish.login == demand)
        #expect(wish.words.hasPrefix(refused))
        #expect((wish.login == nil) == (wish.words.contains("does not")))
    }

    @Test func `each side of the setting is asked for only where it stands`() throws {
        let values = try handshake(.deviceCode, OAuth2StepUp(acrValues: ["a"]))
        #expect(try wish(values, ["Bearer \(error), max_age=99999"])?.login == nil)
        #expect(try wish(values, ["Bearer \(error), acr_values=a, max_age=99999"])?.login == nil)
        let age = try handshake(.deviceCode, OAuth2StepUp(leastAge: 60))
        #expect(try wish(age, ["Bearer \(error), max_age=61"])?.login == StepUp(maxAge: 61))
        #expect(try wish(age, ["Bearer \(error), acr_values=a"])?.login == nil)
        let none = try wish(handshake(.authorizationCode, nil), ["Bearer \(error), acr_values=\"a b\", max_age=61"])
        #expect(none?.login == nil)
        #expect(
            none?.words == refused + ": acr_values 'a b', max_age 61), which 'step_up' of the identity does not allow")
    }

    @Test func `tokens that come from no person's login are refused in words that say so`() throws {
        for grant in [OAuth2Settings.Grant.clientCredentials, .refreshToken, .password(username: "u")] {
            let wish = try wish(handshake(grant), ["Bearer \(error), acr_values=\"a\""])
            #expect(wish?.login == nil && wish?.words.hasSuffix("tokens come from no person's login") == true)
        }
        let hostile = try wish(handshake(.clientCredentials), ["Bearer \(error), acr_values=\"<ä>\""])
        #expect(hostile?.words == refused + "), in words that cannot be used")
    }

    @Test func `other challenges and other statuses ask for nothing`() throws {
        let plain = try handshake()
        #expect(try wish(plain, ["Bearer error=\"invalid_token\", acr_values=\"a\""]) == nil)
        #expect(try wish(plain, ["Bearer error=insufficient_user_authentication2, acr_values=\"a\""]) == nil)
        #expect(try wish(plain, ["Basic \(error), acr_values=\"a\""]) == nil)
        #expect(try wish(plain, ["Bearer acr_values=\"a\""]) == nil)
        #expect(try wish(plain, []) == nil)
        #expect(try wish(plain, ["Bearer \(error), acr_values=\"a"]) == nil, "a string that does not end")
        for status in [200, 400, 403, 500] {
            #expect(try wish(plain, ["Bearer \(error), acr_values=\"a\""], status: status) == nil)
        }
        #expect(try wish(plain, ["bearer \(error), acr_values=\"a\""])?.login == StepUp(acrValues: ["a"]))
        #expect(try wish(plain, ["Basic realm=\"x\"", "Bearer \(error), acr_values=\"a\""])?.login != nil)
        #expect(try wish(plain, ["Bearer error=\"invalid_token\", Bearer \(error), acr_values=\"a\""])?.login != nil)
        #expect(try wish(plain, ["DPoP \(error), acr_values=\"a\""]) == nil)
        let bound = try handshake { $0.dpop = true }
        #expect(try wish(bound, ["DPoP \(error), acr_values=\"a\""])?.login != nil)
    }

    @Test(
        arguments: [
            (StepUp(acrValues: ["a"]), StepUp(acrValues: ["a"]), StepUp(acrValues: ["a"])),
            (StepUp(acrValues: ["a", "b"]), StepUp(acrValues: ["b", "c"]), StepUp(acrValues: ["b"])),
            (StepUp(acrValues: ["a"]), StepUp(acrValues: ["c"]), StepUp(acrValues: ["a"])),
            (StepUp(), StepUp(acrValues: ["c"], maxAge: 5), StepUp(acrValues: ["c"], maxAge: 5)),
            (StepUp(acrValues: ["a"], maxAge: 9), StepUp(maxAge: 5), StepUp(acrValues: ["a"], maxAge: 5)),
            (StepUp(acrValues: ["a"], maxAge: 5), StepUp(maxAge: 9), StepUp(acrValues: ["a"], maxAge: 5)),
        ])
    func `two demands become one that a login can meet`(_ one: StepUp, _ other: StepUp, _ both: StepUp) {
        var joined = one
        joined.join(other)
        #expect(joined == both)
    }
}

/// The login that meets such a demand (RFC 9470 section 5, OpenID Connect Core).
@Suite struct OAuth2StepUpLoginTests {
    private static let state = "q6urq6urq6urq6urq6urq6urq6urq6ur"

    private static func idToken(_ claims: String) -> String {
        Base64.encodeURL(Array(#"{"alg":"none"}"#.utf8)) + "."
            + Base64.encodeURL(Array(#"{"nonce":"\#(state)","aud":"c"\#(claims)}"#.utf8)) + ".x"
    }

    private func login(
        _ stepUp: StepUp?, claims: String? = nil, _ change: (inout OAuth2Settings) -> Void = { _ in }
    ) async throws -> (grant: LoginGrant?, failure: GrantFailure?, url: String) {
        let token = claims.map { #","id_token":"\#(Self.idToken($0))""# } ?? ""
        let person = ScriptedPerson { _ in ["code=x&state=\(Self.state)"] }
        var wanted = Wanted(scopes: ["openid"], upstreamOrigin: "")
        wanted.stepUp = stepUp
        let handshake = try handshake(.authorizationCode, OAuth2StepUp(acrValues: ["a", "b c"], leastAge: 60), change)
        var grant: LoginGrant?
        let failed = await failure {
            grant = try await handshake.login(
                wanted, dialogue: person,
                environment: MemoryEnvironment().over(
                    ScriptedIssuer([
                        .ok(#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"\#(token)}"#)
                    ])))
        }
        return (grant, failed, person.prompts.first?.url ?? "")
    }

    @Test func `the browser is sent with what was asked for`() async throws {
        let (grant, failed, url) = try await login(
            StepUp(acrValues: ["a"], maxAge: 90), claims: #","acr":"a","iat":100,"auth_time":95"#)
        #expect(failed == nil && url.hasSuffix("&acr_values=a&max_age=90"))
        #expect(grant?.authenticated == Authenticated(acrValues: ["a"], age: 5, isTold: true) && grant?.remark == nil)
        let plain = try await login(nil, claims: "")
        #expect(plain.failure == nil && !plain.url.contains("acr_values") && !plain.url.contains("max_age"))
        #expect(plain.grant?.authenticated == nil)
    }

    @Test func `a wish that is allowed no more is not passed on`() async throws {
        let (grant, failed, url) = try await login(StepUp(acrValues: ["z"]), claims: "")
        #expect(failed == nil && !url.contains("acr_values") && grant?.authenticated == nil)
    }

    @Test func `the operator's own parameters give way, and the smaller age counts`() async throws {
        let own = [("acr_values", "own"), ("max_age", "70"), ("prompt", "login")]
        let asked = try await login(StepUp(acrValues: ["a"], maxAge: 90), claims: #","acr":"a","iat":9,"auth_time":9"#)
        {
            $0.loginParameters = own
        }
        #expect(asked.failure == nil && asked.url.hasSuffix("&prompt=login&acr_values=a&max_age=70"))
        let classOnly = try await login(StepUp(acrValues: ["a"]), claims: #","acr":"a""#) { $0.loginParameters = own }
        #expect(classOnly.failure == nil && classOnly.url.hasSuffix("&max_age=70&prompt=login&acr_values=a"))
        let plain = try await login(nil, claims: "") { $0.loginParameters = own }
        #expect(plain.url.hasSuffix("&acr_values=own&max_age=70&prompt=login"))
    }

    @Test(
        arguments: [
            (#","acr":"a","iat":100,"auth_time":100"#, nil), (#","acr":"a","iat":100,"auth_time":40"#, nil),
            (#","acr":"a","iat":1000,"auth_time":850"#, nil), (#","acr":"a","iat":1000,"auth_time":849"#, "denied"),
            (#","acr":"a","iat":1000,"auth_time":0"#, "denied"), (#","acr":"a","iat":1000,"auth_time":-5"#, "denied"),
            (#","acr":"a","iat":100,"auth_time":5000"#, nil), (#","acr":"a","iat":100.5,"auth_time":99.25"#, nil),
            (#","acr":"a","iat":9223372036854775807,"auth_time":-9223372036854775808"#, "denied"),
            (#","acr":"a","iat":1e300,"auth_time":1"#, "denied"), (#","acr":"a","iat":100"#, "invalid"),
            (#","acr":"a","auth_time":100"#, "invalid"), (#","acr":"a","iat":100,"auth_time":"100""#, "invalid"),
            (#","acr":"a","iat":100,"auth_time":null"#, "invalid"),
            (#","acr":"b","iat":100,"auth_time":100"#, "denied"),
            (#","acr":"","iat":100,"auth_time":100"#, "denied"), (#","acr":"A","iat":100,"auth_time":100"#, "denied"),
            (#","acr":"a b","iat":100,"auth_time":100"#, "denied"),
        ] as [(String, String?)])
    func `what the ID token tells has to be what was asked for`(_ claims: String, _ kind: String?) async throws {
        let (grant, failed, _) = try await login(StepUp(acrValues: ["a"], maxAge: 90), claims: claims)
        #expect(failed?.kind == kind && (grant == nil) == (kind != nil))
        if kind == nil { #expect(grant?.authenticated?.acrValues == ["a"] && grant?.remark == nil) }
    }

    @Test func `an issuer that says nothing of it leaves the word to the upstream`() async throws {
        let said = "the issuer does not say how the person was authenticated: the upstream will judge"
        for claims in [nil, "", #","acr":7"#] {
            let (grant, failed, _) = try await login(StepUp(acrValues: ["a"]), claims: claims)
            #expect(failed == nil && grant?.remark == said && grant?.authenticated?.acrValues == ["a"])
            #expect(grant?.authenticated?.age == nil)
        }
        #expect(try await login(StepUp(maxAge: 90)).grant?.authenticated?.age == 0)
    }

    @Test func `an issuer that cannot meet the demand denies it`() throws {
        let rules = AuthorizationAnswerRules(state: Secret("s"), issuer: nil, mustNameIssuer: false)
        guard case .failed(let failed) = rules.judge("error=unmet_authentication_requirements&state=s") else {
            Issue.record("not the end")
            return
        }
        #expect(failed == .policyDenied(reason: "login: refused, unmet_authentication_requirements"))
    }

    @Test func `a device asks for the same`() async throws {
        let issuer = ScriptedIssuer([
            .ok(#"{"device_code":"d","user_code":"U","verification_uri":"https://i.example.com/d","expires_in":600}"#),
            .ok(
                #"{"access_token":"a","token_type":"Bearer","refresh_token":"r","id_token":"\#(Self.idToken(#","acr":"b""#))"}"#
            ),
        ])
        var wanted = Wanted(scopes: ["openid"], upstreamOrigin: "")
        wanted.stepUp = StepUp(acrValues: ["a"], maxAge: 90)
        let handshake = try handshake(.deviceCode)
        let failed = await failure {
            _ = try await handshake.login(
                wanted, dialogue: ScriptedPerson(), environment: MemoryEnvironment().over(issuer))
        }
        #expect(issuer.sent[0].body == "scope=openid&acr_values=a&max_age=90&client_id=c")
        #expect(!issuer.sent[1].body.contains("acr_values"))
        #expect(failed?.kind == "denied")
    }
}
