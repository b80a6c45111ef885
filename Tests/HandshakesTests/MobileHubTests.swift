import Octets
import TLS
import Testing

@testable import Handshakes

private let wanted = Wanted(upstreamOrigin: "https://acme.mobile.example")
private let now: Int64 = 1_800_000_000

private func jwt(expires: Int64?, issued: Int64? = nil) -> String {
    let claims = [("exp", expires), ("iat", issued)].compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
    return [#"{"alg":"RS256"}"#, "{\(claims.joined(separator: ","))}", "signature"]
        .map { Base64.encodeURL(Array($0.utf8)) }.joined(separator: ".")
}

private func handshake(_ method: MobileHubSettings.Method) throws -> MobileHubHandshake {
    let base = try #require(IssuerURL("https://acme.mobile.example:8443"))
    var settings = MobileHubSettings(base: base, backendID: "backend-1", method: method)
    if case .exchange = method { settings.extraHeaders = [("encode", "xml")] }
    return try MobileHubHandshake(
        settings, GrantWorld(wallMilliseconds: { now * 1000 }, random: { Array(repeating: 7, count: $0) }))
}

private func exchange(
    _ endpoint: MobileHubSettings.Exchange.Endpoint = .sso,
    _ subject: OAuth2Settings.TokenExchange.Subject = .secret,
    _ change: (inout MobileHubSettings.Exchange) -> Void = { _ in }
) throws -> MobileHubHandshake {
    var exchange = MobileHubSettings.Exchange(endpoint: endpoint, subject: subject)
    change(&exchange)
    return try handshake(.exchange(exchange))
}

private func consumer() throws -> OAuth2Settings {
    var settings = OAuth2Settings(
        .tokenURL(try #require(IssuerURL("https://idcs.example/oauth2/v1/token"))), clientID: "app")
    settings.basicEncoding = .raw
    return settings
}

private func environment(_ secrets: [String: String]) -> MemoryEnvironment {
    var state = MemoryEnvironment.State()
    state.secrets = secrets
    return MemoryEnvironment(state)
}

private func failure(_ work: () async throws -> AccessGrant) async -> GrantFailure? {
    do {
        _ = try await work()
        return nil
    } catch { return error as? GrantFailure }
}

@Suite struct MobileHubTests {
    @Test func `an exchange at the single sign-on endpoint, exactly as the server knows it`() async throws {
        let token = jwt(expires: now + 60)
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1","expires_in":"21600"}"#)])
        let grant = try await exchange().acquire(
            wanted, environment: environment(["third_party_token": token]).over(issuer))
        #expect(grant.token.text == "mobile.1" && grant.lifetime == 21_600_000_000_000 && grant.notAfter == nil)
        let sent = try #require(issuer.sent.first)
        #expect(sent.method == "GET" && sent.body.isEmpty)
        #expect(sent.url == "https://acme.mobile.example:8443/mobile/platform/sso/exchange-token?format=json")
        #expect(sent.header("Authorization") == "Bearer \(token)")
        #expect(sent.header("Oracle-Mobile-Backend-ID") == "backend-1" && sent.header("encode") == "xml")
    }

    @Test func `a form at the token endpoint, exactly as RFC 7578 has it`() async throws {
        let token = jwt(expires: now + 60)
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1","token_type":"bearer","expires_in":60}"#)])
        let proof = MobileHubSettings.Exchange.ClientProof.form(id: "app", hasSecret: true)
        _ = try await exchange(.token(proof)).acquire(
            wanted, environment: environment(["third_party_token": token, "client_secret": "s:cret +"]).over(issuer))
        let sent = try #require(issuer.sent.first)
        let boundary = Base64.encodeURL(Array(repeating: 7, count: 24))
        #expect(sent.url == "https://acme.mobile.example:8443/mobile/platform/auth/token" && sent.method == "POST")
        #expect(sent.header("Content-Type") == "multipart/form-data; boundary=\(boundary)")
        #expect(sent.header("Authorization") == nil)
        func part(_ name: String, _ value: String) -> String {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
        }
        #expect(
            sent.body == part("grant_type", MobileHubSettings.Exchange.jwtBearer) + part("assertion", token)
                + part("client_id", "app") + part("client_secret", "s:cret +") + "--\(boundary)--\r\n")
    }

    @Test func `the scope of a backend keeps its port, and nothing stands in between`() async throws {
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"a","token_type":"Bearer","refresh_token":"r"}"#)])
        let scope = MobileHubSettings.scope(ofBase: "https://acme.mobile.example:443")
        let environment = environment(["client_secret": "s:cret +"])
        _ = try await handshake(.consumer(consumer(), scope: scope)).acquire(
            wanted, environment: environment.over(issuer))
        #expect(
            issuer.sent.first?.body
                == "grant_type=client_credentials&scope=https%3A%2F%2Facme.mobile.example%3A443urn%3Aopc%3Aresource%3Aconsumer%3A%3Aall"
        )
        #expect(issuer.sent.first?.header("Authorization") == "Basic " + Base64.encode(Array("app:s:cret +".utf8)))
        #expect(environment.heldSession == nil)
    }

    @Test func `a document is compressed before it is encoded`() async throws {
        let document = "<Assertion><Conditions NotOnOrAfter='2030-01-02T03:04:05Z'/>\n</Assertion>"
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1"}"#)])
        let grant = try await exchange(.sso, .secret) { $0.format = .samlXML }
            .acquire(wanted, environment: environment(["third_party_token": document]).over(issuer))
        let sent = try #require(issuer.sent.first?.header("Authorization")?.dropFirst("Bearer ".count))
        let packed = try #require(Base64.decode(String(sent)))
        #expect(packed.prefix(3) == [0x1F, 0x8B, 8])
        #expect(Gzip.decompress(packed, upTo: 1 << 16) == Array(document.utf8))
        // Nothing is said of the token's life: the usual one, but not beyond the assertion's.
        #expect(grant.lifetime == 21_600_000_000_000 && grant.notAfter == 1_893_553_445)
    }

    @Test(arguments: [
        (jwt(expires: now + 60, issued: now), now, now + 60),
        (jwt(expires: (now + 60) * 1000, issued: now * 1000), now, now + 60),
    ])
    func `a token tells its own end where the answer does not`(token: String, issued: Int64, expires: Int64)
        async throws
    {
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"\#(token)"}"#)])
        let grant = try await exchange().acquire(
            wanted, environment: environment(["third_party_token": "opaque"]).over(issuer))
        #expect(grant.lifetime == nil && grant.statedTimes?.issued == issued && grant.statedTimes?.expires == expires)
    }

    @Test func `a token of a caller is not made to last`() async throws {
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1","expires_in":21600}"#)])
        var asked = wanted
        asked.user = .token(Secret(jwt(expires: now + 60)))
        let grant = try await exchange(.sso, .caller).acquire(asked, environment: environment([:]).over(issuer))
        #expect(grant.notAfter == now + 60)
    }

    @Test func `what is over by its own words is not sent`() async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            try await exchange().acquire(
                wanted, environment: environment(["third_party_token": jwt(expires: now)]).over(issuer))
        }
        #expect(failed?.word == .secretUnusable && issuer.sent.isEmpty)
    }

    @Test(arguments: [401, 403])
    func `a refusal of what still stands in the file is final`(status: Int) async throws {
        let issuer = ScriptedIssuer([.status(status, "whatever")])
        let failed = await failure {
            try await exchange().acquire(
                wanted, environment: environment(["third_party_token": "opaque"]).over(issuer))
        }
        #expect(failed == .credentialRejected(reason: "exchange: status \(status)") && issuer.isFinished)
    }

    @Test func `the consumer's own refusal is none of the token`() async throws {
        let issuer = ScriptedIssuer([.status(400, #"{"error":"invalid_request","error_description":"opaque"}"#)])
        let failed = await failure {
            try await exchange(.token(.basic(id: "app"))).acquire(
                wanted, environment: environment(["third_party_token": "opaque", "client_secret": "x"]).over(issuer))
        }
        #expect(failed == .configuration(reason: "token: status 400, invalid_request") && issuer.isFinished)
    }

    @Test func `trouble is met twice more, a stated pause is kept`() async throws {
        let own = try exchange()
        let patient = ScriptedIssuer([
            .status(503), .fault(IssuerFault(.timedOut, provablyUnsent: false)), .ok(#"{"access_token":"mobile.1"}"#),
        ])
        let secrets = environment(["third_party_token": "opaque"])
        _ = try await own.acquire(wanted, environment: secrets.over(patient))
        #expect(patient.isFinished)
        let stated = ScriptedIssuer([.answer(503, "", [("Retry-After", "60")])])
        let failed = await failure { try await own.acquire(wanted, environment: secrets.over(stated)) }
        #expect(failed?.word == .issuerUnavailable && stated.sent.count == 1)
    }

    @Test func aCallersTokenIsExchangedOnlyWhereThereIsOne() async throws {
        let issuer = ScriptedIssuer([.status(401)])
        let own = try exchange(.sso, .caller)
        let environment = environment([:]).over(issuer)
        let none = await failure { try await own.acquire(wanted, environment: environment) }
        #expect(none == .configuration(reason: "third_party_token: the route does not take the caller's own"))
        #expect(issuer.sent.isEmpty)
        var asked = wanted
        asked.user = .token(Secret(jwt(expires: now + 60)))
        let refused = await failure { try await own.acquire(asked, environment: environment) }
        #expect(refused == .policyDenied(reason: "exchange: the backend refuses this subject"))
    }

    @Test func aRefusedTokenOfAnotherIdentityIsADenial() async throws {
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1"}"#), .status(403)])
        let own = try exchange(.sso, .identity("other"))
        let environment = WatchedEnvironment(environment([:]).over(issuer), .init(otherToken: "other.1"))
        #expect(try await own.acquire(wanted, environment: environment).token.text == "mobile.1")
        let refused = await failure { try await own.acquire(wanted, environment: environment) }
        #expect(refused == .policyDenied(reason: "exchange: status 403"), "no secret of ours is to blame")
        #expect(issuer.sent.map { $0.header("Authorization") } == ["Bearer other.1", "Bearer other.1"])
    }

    /// A token's file may be rotated at any moment: the new token is tried once, and its own refusal is final.
    @Test(arguments: [(ScriptedIssuer.Line.ok(#"{"access_token":"mobile.2"}"#), false), (.status(401), true)])
    func aTokenThatWasRotatedMeanwhileIsTriedOnce(line: ScriptedIssuer.Line, isRefused: Bool) async throws {
        let issuer = ScriptedIssuer([.status(401), line])
        let memory = environment(["third_party_token": "old"]).over(issuer)
        let rotated = WatchedEnvironment(memory, .init(latest: ["third_party_token": "new"]))
        let failed = await failure { try await exchange().acquire(wanted, environment: rotated) }
        #expect(failed == (isRefused ? .credentialRejected(reason: "exchange: status 401") : nil))
        #expect(issuer.sent.map { $0.header("Authorization") } == ["Bearer old", "Bearer new"])
    }

    /// A packed assertion goes as it is, and no grant is believed to outlive it.
    @Test func aPackedAssertionIsSentAsItIs() async throws {
        let document = "<a NotOnOrAfter='2030-01-02T03:04:05Z'/>"
        let packed = Base64.encode(try #require(Gzip.compress(Array(document.utf8))))
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"mobile.1"}"#)])
        let grant = try await exchange(.sso, .secret) { $0.format = .samlPacked }
            .acquire(wanted, environment: environment(["third_party_token": packed]).over(issuer))
        #expect(issuer.sent.first?.header("Authorization") == "Bearer " + packed)
        #expect(grant.notAfter == 1_893_553_445)
    }

    @Test(arguments: [
        (MobileHubSettings.Exchange.Format.samlXML, "no document"), (.samlXML, ""), (.jwt, ""), (.jwt, "a b"),
        (.samlXML, "<" + String(repeating: "a", count: SAMLTimes.largest)),
        (.jwt, String(repeating: "a", count: 40_000)),
    ])
    func whatIsNotOfItsFormatIsNotSent(format: MobileHubSettings.Exchange.Format, token: String) async throws {
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            try await exchange(.sso, .secret) { $0.format = format }
                .acquire(wanted, environment: environment(["third_party_token": token]).over(issuer))
        }
        #expect(failed?.word == .secretUnusable && issuer.sent.isEmpty)
    }

    @Test(arguments: [
        #"{"access_token":"a b"}"#, #"{"access_token":""}"#, #"{"access_token":"a","token_type":"mac"}"#,
        #"{"access_token":7}"#, "{}", "<html>",
    ])
    func anExchangedTokenThatCannotBeSentIsNone(body: String) async throws {
        let issuer = ScriptedIssuer([.ok(body)])
        let failed = await failure {
            try await exchange().acquire(
                wanted, environment: environment(["third_party_token": "opaque"]).over(issuer))
        }
        #expect(failed?.word == .issuerAnswerInvalid && issuer.isFinished)
    }

    @Test(arguments: [
        ("", "encode", "xml"), ("a\nb", "encode", "xml"), ("b", "Authorization", "x"), ("b", "a b", "x"),
        ("b", "oracle-mobile-backend-id", "x"), ("b", "encode", "a\nb"),
    ])
    func whatCannotBePutOnTheWireIsRefused(backend: String, name: String, value: String) throws {
        let base = try #require(IssuerURL("https://acme.mobile.example"))
        var settings = MobileHubSettings(base: base, backendID: backend, method: .anonymousKey)
        settings.extraHeaders = [(name, value)]
        #expect(throws: GrantFailure.self) { try MobileHubHandshake(settings) }
        settings.backendID = "b"
        settings.extraHeaders = [("encode", "xml")]
        _ = try MobileHubHandshake(settings)
    }

    @Test(arguments: ["", "Basic abc", "abc def", "abc\r\n"])
    func `an anonymous key that cannot be one is not used`(key: String) async throws {
        let failed = await failure {
            try await handshake(.anonymousKey).acquire(
                wanted, environment: environment(["anonymous_key": key]).over(ScriptedIssuer([])))
        }
        #expect(failed?.word == .secretUnusable)
    }
}

@Suite struct SAMLTimesTests {
    @Test(
        arguments: [
            ("<a NotOnOrAfter=\"1970-01-01T00:00:00Z\"/>", 0),
            ("<a NotOnOrAfter = '2000-02-29T23:59:59.999Z'/>", 951_868_799),
            ("<a NotOnOrAfter='2026-11-22T02:15:00Z'/><b NotOnOrAfter='2026-11-22T01:15:00Z'/>", 1_795_310_100),
            ("<a NotOnOrAfter='soon'/><b NotOnOrAfter='2026-11-22T01:15:00Z'/>", 1_795_310_100),
            ("<a NotOnOrAfter='2026-13-22T01:15:00Z'/>", nil), ("<a NotOnOrAfter='2026-11-22T01:15:00+01:00'/>", nil),
            ("<a NotOnOrAfter NotOnOrAfter='1970-01-01T00:00:01Z'/>", 1),
            ("<a NotOnOrAfter=1970 NotOnOrAfter='1970-01-01T00:00:01Z'/>", 1),
            ("<a NotOnOrAfter='20x6-11-22T01:15:00Z'/>", nil), ("<a NotOnOrAfter='2026/11/22T01:15:00Z'/>", nil),
            ("<a NotOnOrAfter=", nil), ("NotOnOrAfter='2026-11-22T01:15:00Z'", nil), ("<a/>", nil), ("", nil),
        ] as [(String, Int64?)])
    func `the earliest end counts`(document: String, expiry: Int64?) {
        #expect(SAMLTimes.expiry(of: Secret(document)) == expiry)
        if document.first == "<" {
            #expect(SAMLTimes.expiry(of: Secret(Base64.encode(Array(document.utf8)))) == expiry)
        }
    }

    @Test func `octets that stand for more than they should are not expanded`() throws {
        let large = [UInt8](repeating: UInt8(ascii: "<"), count: SAMLTimes.largest + 1)
        let packed = try #require(Gzip.compress(large))
        #expect(packed.count < 2048)
        #expect(Gzip.decompress(packed, upTo: large.count) == large)
        #expect(Gzip.decompress(packed, upTo: large.count - 1) == nil)
        #expect(Gzip.decompress(Array(packed.dropLast(9)), upTo: large.count) == nil)
        #expect(Gzip.decompress([1, 2, 3], upTo: 100) == nil && Gzip.decompress([], upTo: 100) == nil)
        #expect(SAMLTimes.expiry(of: Secret(Base64.encode(packed))) == nil)
    }
}
