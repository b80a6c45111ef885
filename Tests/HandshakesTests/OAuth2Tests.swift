import Testing

@testable import Handshakes

private func handshake(_ change: (inout OAuth2Settings) -> Void = { _ in }) throws -> OAuth2Handshake {
    let url = try #require(IssuerURL("https://idp.example.com/token?tenant=1"))
    var settings = OAuth2Settings(.tokenURL(url), clientID: "proxy+1")
    change(&settings)
    return try OAuth2Handshake(settings)
}

private let origin = "https://api.example.com"
private let good = #"{"access_token":"abc.DEF-_~+/==","token_type":"bearer","expires_in":3600}"#

private func acquire(
    _ line: ScriptedIssuer.Line, _ wanted: Wanted = Wanted(upstreamOrigin: origin)
) async throws -> AccessGrant {
    try await handshake().acquire(wanted, environment: MemoryEnvironment().over(ScriptedIssuer([line])))
}

@Suite struct OAuth2Tests {
    @Test func `basic authentication encodes id and secret apart`() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let oauth = try handshake {
            $0.extra = [("a b", "ü&")]
            $0.headers = [("X-Tenant", "t")]
            $0.identityDomain = "dom"
        }
        let wanted = Wanted(
            scopes: ["read", "write", "read"], audience: ["https://api"], resource: ["https://a/x", "urn:b"],
            upstreamOrigin: origin)
        let grant = try await oauth.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        #expect(grant.token.text == "abc.DEF-_~+/==")
        #expect(grant.tokenType == "Bearer" && grant.lifetime == 3_600_000_000_000 && grant.sentAt == 5_000)
        #expect(grant.grantedScopes == nil)
        let call = issuer.sent[0]
        #expect(call.step == "token" && call.method == "POST" && !call.carriesPassword)
        #expect(call.url == "https://idp.example.com/token?tenant=1")
        // base64("proxy%2B1:s%3Acret%20%2B")
        #expect(call.header("Authorization") == "Basic cHJveHklMkIxOnMlM0FjcmV0JTIwJTJC")
        #expect(call.header("Content-Type") == "application/x-www-form-urlencoded")
        #expect(call.header("X-Tenant") == "t" && call.header("X-USER-IDENTITY-DOMAIN-NAME") == "dom")
        #expect(
            call.body
                == "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi&resource=https%3A%2F%2Fa%2Fx"
                + "&resource=urn%3Ab&a+b=%C3%BC%26")
    }

    @Test func `raw, post and no client authentication`() async throws {
        let issuer = ScriptedIssuer([.ok(good), .ok(good), .ok(good)])
        let wanted = Wanted(upstreamOrigin: origin)
        let raw = try handshake { $0.basicEncoding = .raw }
        _ = try await raw.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        let post = try handshake { $0.clientAuth = .post }
        _ = try await post.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        let none = try handshake { $0.clientAuth = .none }
        _ = try await none.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        // base64("proxy+1:s:cret +")
        #expect(issuer.sent[0].header("Authorization") == "Basic cHJveHkrMTpzOmNyZXQgKw==")
        #expect(issuer.sent[0].body == "grant_type=client_credentials")
        #expect(issuer.sent[1].header("Authorization") == nil)
        #expect(
            issuer.sent[1].body
                == "grant_type=client_credentials&client_id=proxy%2B1&client_secret=s%3Acret+%2B")
        #expect(issuer.sent[2].body == "grant_type=client_credentials&client_id=proxy%2B1")
    }

    @Test(
        arguments: [
            ("3600", 3_600_000_000_000), (#""3600""#, 3_600_000_000_000), ("1.5", 1_500_000_000), ("null", nil),
            ("1000000000000000000", AccessGrant.longestLifetime), ("1e300", AccessGrant.longestLifetime),
            (#""1000000000000000000000""#, AccessGrant.longestLifetime),
        ] as [(String, UInt64?)])
    func lifetimes(_ text: String, _ lifetime: UInt64?) async throws {
        let grant = try await acquire(.ok(#"{"access_token":"a","token_type":"Bearer","expires_in":\#(text)}"#))
        #expect(grant.lifetime == lifetime)
    }

    @Test func `missing lifetime is unknown`() async throws {
        let grant = try await acquire(.ok(#"{"access_token":"a","token_type":"Bearer"}"#))
        #expect(grant.lifetime == nil)
    }

    @Test func `scopes are kept as granted`() async throws {
        let wanted = Wanted(scopes: ["a", "b"], upstreamOrigin: origin)
        let narrow = try await acquire(
            .answer(201, #"{"access_token":"a","token_type":"BEARER","scope":"b","x":{"y":[1]}}"#, []), wanted)
        #expect(narrow.grantedScopes == ["b"])
        let silent = try await acquire(.ok(#"{"access_token":"a","token_type":"Bearer","scope":""}"#), wanted)
        #expect(silent.grantedScopes == nil)
    }

    static let hostile: [String] = [
        "", " ", "<html><body>login</body></html>", "[]", "null", "{", "{}", "{}x", #"{"access_token":"a"}"#,
        #"{"access_token":7,"token_type":"Bearer"}"#, #"{"access_token":null,"token_type":"Bearer"}"#,
        #"{"access_token":"","token_type":"Bearer"}"#, #"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#,
        #"{"access_token":"a b","token_type":"Bearer"}"#, #"{"access_token":"ä","token_type":"Bearer"}"#,
        #"{"access_token":"a\u0000","token_type":"Bearer"}"#, #"{"access_token":"====","token_type":"Bearer"}"#,
        #"{"access_token":"a","token_type":"mac"}"#, #"{"access_token":"a","token_type":["Bearer"]}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":-1}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":0}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":true}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":"soon"}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":"nan"}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":{}}"#,
        #"{"access_token":"a","token_type":"Bearer","expires_in":1e999}"#,
        #"{"access_token":"a","token_type":"Bearer","scope":["a"]}"#,
        #"{"access_token":"a","token_type":"Bearer","scope":"a\u0001"}"#,
        #"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#,
        #"{"access_token":"a","access\u005ftoken":"b","token_type":"Bearer"}"#,
        #"{"access_token":"a","token_type":"Bearer","x":"# + String(repeating: "[", count: 40)
            + String(repeating: "]", count: 40) + "}",
        #"{"access_token":"a","token_type":"Bearer","x":"# + String(repeating: "[", count: 30_000),
        #"{"access_token":""# + String(repeating: "a", count: 40_000) + #"","token_type":"Bearer"}"#,
        #"{"access_token":"a","token_type":"Bearer"}"# + String(repeating: " ", count: 70_000),
        "{" + (0..<300).map { #""k\#($0)":1"# }.joined(separator: ",") + "}",
    ]

    @Test(arguments: hostile) func `hostile answers give no token`(_ body: String) async throws {
        let failed = await failure { _ = try await acquire(.ok(body)) }
        #expect(failed?.kind == "invalid")
        #expect(!"\(failed as Any)".contains("X: y"))
    }

    @Test(arguments: [
        (400, #"{"error":"invalid_client"}"#, "rejected"), (401, #"{"error":"invalid_client"}"#, "rejected"),
        (200, #"{"error":"invalid_client"}"#, "rejected"), (401, "", "invalid"), (401, "<html>", "invalid"),
        (403, "<html>", "invalid"),
        (401, #"{"error":"IDAAS-62001"}"#, "rejected"),
        (401, #"{"message":"no","oicErrorCode":"IDAAS-62001"}"#, "rejected"),
        (400, #"{"error":"invalid_scope"}"#, "configuration"),
        (401, #"{"error":"invalid_grant"}"#, "configuration"),
        (400, #"{"error":"unauthorized_client","error_description":"secret s:cret +"}"#, "configuration"),
        (400, #"{"error":{"code":"invalid_client","message":"no"}}"#, "rejected"),
        (400, #"{"error":{"message":"some words"}}"#, "configuration"), (400, #"{"error":7}"#, "configuration"),
        (400, #"{"errorCode":"OAM-1","errorDesc":"x"}"#, "configuration"), (400, "garbage", "invalid"),
        (403, #"{"error":"access_denied"}"#, "denied"), (403, "", "invalid"), (404, "<html>", "configuration"),
        (405, "", "configuration"), (301, "", "configuration"), (302, "", "configuration"),
        (307, good, "configuration"),
        (204, "", "invalid"), (206, good, "invalid"), (101, "", "invalid"), (700, "", "invalid"),
        (500, #"{"error":"invalid_client"}"#, "unavailable"), (503, "", "unavailable"), (429, "", "unavailable"),
        (400, #"{"error":"temporarily_unavailable"}"#, "unavailable"), (408, "", "unavailable"),
        (400, #"{"error":"interaction_required"}"#, "interaction"),
    ]) func refusals(_ status: Int, _ body: String, _ kind: String) async throws {
        let failed = await failure { _ = try await acquire(.status(status, body)) }
        #expect(failed?.kind == kind)
        #expect(!"\(failed as Any)".contains("s:cret"))
    }

    @Test func `what an error calls itself is not repeated unless it is a known word`() async throws {
        let failed = await failure { _ = try await acquire(.status(400, #"{"error":"c2VjcmV0"}"#)) }
        #expect(failed == .configuration(reason: "token: status 400, unknown error"))
        let oracle = await failure { _ = try await acquire(.status(400, #"{"error":"IDAAS-10001"}"#)) }
        #expect(oracle == .configuration(reason: "token: status 400, IDAAS-10001"))
    }

    @Test(
        arguments: [
            ("120", nil, 120), (" 7 ", nil, 7), ("0", nil, 0), ("99999", nil, 300), ("99999999999999999999", nil, 300),
            ("-1", nil, nil), ("soon", nil, nil), ("", nil, nil),
            ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:50:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", 60),
            ("Sun Nov  6 08:49:47 1994", "Sun, 06 Nov 1994 08:49:37 GMT", 10),
            ("Fri, 01 Mar 2024 00:00:10 GMT", "Thu, 29 Feb 2024 23:59:50 GMT", 20),
            ("Sun, 06 Nov 1994 08:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Mon, 07 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 300),
            ("Sun, 06 Nov 1994 08:50:37 GMT", nil, nil),
            ("Sun, 99 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", nil),
        ] as [(String, String?, Int?)])
    func `retry-after`(_ value: String, _ date: String?, _ seconds: Int?) async throws {
        var headers = [(name: "retry-after", value: value)]
        if let date { headers.append((name: "DATE", value: date)) }
        let failed = await failure { _ = try await acquire(.answer(503, "", headers)) }
        #expect(failed == .issuerUnavailable(retryAfterSeconds: seconds, reason: "token: status 503"))
    }

    @Test(arguments: [
        (IssuerFault(.timedOut, provablyUnsent: false), "timedOut"),
        (IssuerFault(.refused, provablyUnsent: true), "unavailable"),
        (IssuerFault(.tls("bad \u{1b}[31m\r\n"), provablyUnsent: true), "unavailable"),
        (IssuerFault(.brokenAnswer, provablyUnsent: false), "invalid"),
    ]) func faults(_ fault: IssuerFault, _ kind: String) async throws {
        let failed = await failure { _ = try await acquire(.fault(fault)) }
        #expect(failed?.kind == kind)
        #expect(!"\(failed as Any)".contains("\u{1b}") && !"\(failed as Any)".contains("\n"))
    }

    @Test func `what cannot be sent is not sent`() async throws {
        for wanted in [
            Wanted(scopes: ["a b"], upstreamOrigin: origin), Wanted(scopes: ["\""], upstreamOrigin: origin),
            Wanted(resource: ["/relative"], upstreamOrigin: origin),
            Wanted(resource: ["https://a/#f"], upstreamOrigin: origin),
        ] {
            let issuer = ScriptedIssuer([])
            let failed = await failure {
                _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
            }
            #expect(failed?.kind == "configuration")
            #expect(issuer.sent.isEmpty)
        }
        let changes: [(inout OAuth2Settings) -> Void] = [
            { $0.clientID = "" }, { $0.clientID = "a\n" }, { $0.extra = [("scope", "x")] },
            { $0.extra = [("a", "1"), ("a", "2")] }, { $0.headers = [("Authorization", "x")] },
            { $0.headers = [("X", "a\r\nb")] }, { $0.identityDomain = "a\nb" },
            {
                $0.clientID = "a:b"
                $0.basicEncoding = .raw
            },
        ]
        for change in changes { #expect(throws: GrantFailure.self) { try handshake(change) } }
    }

    @Test func `challenges of bearer`() throws {
        let oauth = try handshake { $0.allowedScopes = ["a", "b"] }
        #expect(oauth.inspectedStatuses == [401, 403])
        #expect(try handshake().inspectedStatuses == [401])
        func judge(_ status: Int, _ line: String) -> ChallengeVerdict {
            oauth.judge(status: status, wwwAuthenticate: [bytes(line)], location: nil, requestURL: "u")
        }
        #expect(
            judge(401, #"Basic realm="x", Bearer error="invalid_token""#)
                == .challenged(Challenge(resource: "u", error: "invalid_token")))
        #expect(judge(401, "") == .challenged(Challenge(resource: "u")))
        #expect(
            judge(403, #"Bearer error="insufficient_scope", scope="b a""#)
                == .challenged(Challenge(resource: "u", scopes: ["a", "b"], error: "insufficient_scope")))
        #expect(judge(403, #"Bearer error="insufficient_scope", scope="evil""#) == .none)
        #expect(judge(403, #"Bearer error="insufficient_scope", scope="b evil a""#) == .none)
        #expect(judge(403, "") == .none && judge(200, "") == .none)
        // Several in one answer: the one that speaks of the token that was sent.
        #expect(
            judge(
                403,
                #"Bearer realm="x", Basic realm="y", Bearer error="insufficient_scope", scope="b", DPoP algs="ES256""#)
                == .challenged(Challenge(resource: "u", scopes: ["b"], error: "insufficient_scope")))
        #expect(
            judge(
                401,
                #"DPoP error="use_dpop_nonce", Bearer error="odd", Bearer error="invalid_token", error_description="a, b""#
            )
                == .challenged(Challenge(resource: "u", error: "invalid_token")))
    }

    @Test func `scopes of a challenge join only if allowed`() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let oauth = try handshake { $0.allowedScopes = ["b"] }
        let challenge = Challenge(resource: "u", scopes: ["b", "evil"])
        _ = try await oauth.acquire(
            Wanted(scopes: ["a"], challenge: challenge, upstreamOrigin: origin),
            environment: MemoryEnvironment().over(issuer))
        #expect(issuer.sent[0].body == "grant_type=client_credentials&scope=a+b")
    }
}
