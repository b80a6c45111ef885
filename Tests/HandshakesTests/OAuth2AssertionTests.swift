import Configuration
import Octets
import Synchronization
import TLS
import Testing

@testable import Handshakes

/// RFC 7515 appendix A.3, RFC 8037 appendix A.1.
private let p256 =
    #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI","kid":"ec"}"#
private let ed25519 =
    #"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#

private func handshake(_ change: (inout OAuth2Settings) -> Void) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c\"1")
    settings.clientAuth = .privateKeyJWT
    settings.keys = ["key"]
    change(&settings)
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000_000 }, random: { [UInt8](repeating: 0xFF, count: $0) }))
}

private func environment(_ secrets: [String: String]) -> MemoryEnvironment {
    let environment = MemoryEnvironment()
    environment.state.withLock { $0.secrets.merge(secrets) { $1 } }
    return environment
}

private let good = #"{"access_token":"t","token_type":"Bearer"}"#
private let wanted = Wanted(upstreamOrigin: "https://api.example.com")

/// Header and payload of the assertion in a form.
private func parts(_ body: String) throws -> [String] {
    let assertion = try #require(body.split(separator: "&").first { $0.contains("assertion=ey") }).split(
        separator: "=")[1]
    return try assertion.split(separator: ".").prefix(2).map {
        String(decoding: try #require(Base64.decodeURL(Array($0.utf8))), as: UTF8.self)
    }
}

@Suite struct OAuth2AssertionTests {
    @Test func `a proof of the client`() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        _ = try await handshake { $0.signing.lifetime = 90 }.acquire(
            wanted, environment: environment(["key": p256]).over(issuer))
        let sent = issuer.sent[0]
        #expect(
            sent.body.hasPrefix(
                "grant_type=client_credentials&client_id=c%221&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A"
                    + "client-assertion-type%3Ajwt-bearer&client_assertion=ey"))
        #expect(
            try parts(sent.body) == [
                #"{"alg":"ES256","typ":"JWT","kid":"ec"}"#,
                #"{"iss":"c\"1","sub":"c\"1","aud":"https://idp.example.com/token","jti":"_____________________w","iat":1000000,"exp":1000090}"#,
            ])
        #expect(sent.carriesPassword && sent.header("Authorization") == nil)
    }

    @Test func `each key in turn until one is accepted`() async throws {
        let refused = ScriptedIssuer.Line.status(401, #"{"error":"invalid_client"}"#)
        let oauth = try handshake { $0.keys = ["key", "key 2"] }
        let secrets = ["key": p256, "key 2": ed25519]
        let second = ScriptedIssuer([refused, .ok(good)])
        _ = try await oauth.acquire(wanted, environment: environment(secrets).over(second))
        #expect(try second.sent.map { try parts($0.body)[0].contains("EdDSA") } == [false, true])
        let neither = ScriptedIssuer([refused, refused, .ok(good)])
        let failed = await failure {
            _ = try await oauth.acquire(wanted, environment: environment(secrets).over(neither))
        }
        #expect(failed?.kind == "rejected" && neither.sent.count == 2)
        let other = ScriptedIssuer([.status(400, #"{"error":"invalid_scope"}"#), .ok(good)])
        _ = await failure { _ = try await oauth.acquire(wanted, environment: environment(secrets).over(other)) }
        #expect(other.sent.count == 1)
    }

    /// What may have judged the password ends it; what names the client has judged nobody else.
    @Test(arguments: [
        (ScriptedIssuer.Line.status(401, #"{"error":"IDAAS-62001"}"#), 1, AttemptOutcome.rejected),
        (.status(401, #"{"error":"IDAAS-60001"}"#), 1, .unknown), (.status(401, #"{"error":"denied"}"#), 1, .unknown),
        (.status(401, "{}"), 1, .unknown), (.status(400, #"{"error":"invalid_grant"}"#), 1, .rejected),
        (.status(401, #"{"error":"invalid_client"}"#), 2, .notSent),
        (.status(400, #"{"error":"unauthorized_client"}"#), 2, .notSent),
    ])
    func `a password goes with one key`(_ line: ScriptedIssuer.Line, _ count: Int, _ outcome: AttemptOutcome)
        async throws
    {
        let oauth = try handshake {
            $0.keys = ["key", "key 2"]
            $0.grant = .password(username: "u")
        }
        let issuer = ScriptedIssuer([line, line, line])
        let environment = environment(["key": p256, "key 2": ed25519])
        _ = await failure { _ = try await oauth.acquire(wanted, environment: environment.over(issuer)) }
        #expect(issuer.sent.count == count && environment.outcomes == [outcome] && environment.isBalanced)
    }

    @Test func `an assertion of our own as the grant`() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let oauth = try handshake {
            $0.clientAuth = .none
            $0.grant = .mintedJWT(claims: [NamedValue(name: "sub", value: "u"), NamedValue(name: "x", value: "y")])
            $0.signing.audience = .text("aud")
            $0.signing.keyID = "k"
        }
        _ = try await oauth.acquire(wanted, environment: environment(["key": #"{"keys":[\#(p256)]}"#]).over(issuer))
        #expect(
            try parts(issuer.sent[0].body) == [
                #"{"alg":"ES256","typ":"JWT","kid":"k"}"#,
                #"{"iss":"c\"1","aud":"aud","jti":"_____________________w","iat":1000000,"exp":1000060,"sub":"u","x":"y"}"#,
            ])
    }

    @Test(arguments: [
        "{}", #"{"keys":[]}"#, #"{"kty":"oct","k":"AA"}"#, #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA","d":"AA"}"#,
        #"{"kty":"RSA","n":"AA","e":"AQAB","d":"AA"}"#, "{", "no key", #"{"kty":"OKP","crv":"Ed25519","d":"A A"}"#,
    ]) func `what is no key is not sent`(_ key: String) async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let failed = await failure {
            _ = try await handshake { _ in }.acquire(wanted, environment: environment(["key": key]).over(issuer))
        }
        #expect(failed?.kind == "secret" && issuer.sent.isEmpty)
    }

    @Test func `settings that do not go with the key`() async throws {
        let changes: [(inout OAuth2Settings) -> Void] = [
            { $0.signing.algorithm = "RS256" }, { $0.signing.thumbprint = .sha256 }, { $0.signing.audience = .issuer },
        ]
        for change in changes {
            let failed = await failure {
                _ = try await handshake(change).acquire(
                    wanted, environment: environment(["key": p256]).over(ScriptedIssuer([])))
            }
            #expect(failed?.kind == "configuration")
        }
    }

    @Test func aSharedSecretSignsUnderItsName() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let oauth = try handshake {
            $0.clientAuth = .clientSecretJWT
            $0.signing.keyID = "k1"
            $0.signing.audience = .text("aud")
        }
        let secret = String(repeating: "s", count: 32)
        _ = try await oauth.acquire(wanted, environment: environment(["client_secret": secret]).over(issuer))
        #expect(
            try parts(issuer.sent[0].body) == [
                #"{"alg":"HS256","typ":"JWT","kid":"k1"}"#,
                #"{"iss":"c\"1","sub":"c\"1","aud":"aud","jti":"_____________________w","iat":1000000,"exp":1000060}"#,
            ])
        let jws = try #require(issuer.sent[0].body.split(separator: "=").last).split(separator: ".")
        let mac = keyedHash(key: bytes(secret), bytes("\(jws[0]).\(jws[1])"))
        #expect(jws[2] == Base64.encodeURL(mac))
    }

    @Test func aProofIsForTheIssuerWhereItIsSaidSo() async throws {
        let text = "https://idp.example.com/tenant"
        var settings = OAuth2Settings(.issuer(text, try #require(IssuerURL(text))), clientID: "c")
        settings.clientAuth = .privateKeyJWT
        settings.keys = ["key"]
        settings.signing.audience = .issuer
        let metadata = #"{"issuer":"\#(text)","token_endpoint":"https://idp.example.com/t/token"}"#
        let issuer = ScriptedIssuer([.ok(metadata), .ok(good)])
        _ = try await OAuth2Handshake(settings).acquire(wanted, environment: environment(["key": p256]).over(issuer))
        #expect(try parts(issuer.sent[1].body)[1].contains(#""aud":"\#(text)""#))
    }

    // MARK: - Assertions of our own for a user

    private func minted(_ claims: [NamedValue]) throws -> OAuth2Handshake {
        try handshake {
            $0.clientAuth = .none
            $0.grant = .mintedJWT(claims: claims)
            $0.keys = ["key", "key 2"]
        }
    }

    private let bothKeys = ["key": p256, "key 2": ed25519]

    @Test func anAssertionIsMadeWithTheNextKeyWhereOneIsRefused() async throws {
        let refused = ScriptedIssuer.Line.status(400, #"{"error":"invalid_grant"}"#)
        let second = ScriptedIssuer([refused, .ok(good)])
        _ = try await minted([]).acquire(wanted, environment: environment(bothKeys).over(second))
        #expect(try second.sent.map { try parts($0.body)[0].contains("EdDSA") } == [false, true])
        let neither = ScriptedIssuer([refused, refused])
        let failed = await failure {
            _ = try await minted([]).acquire(wanted, environment: environment(bothKeys).over(neither))
        }
        #expect(failed == .credentialRejected(reason: "token: status 400, invalid_grant") && neither.isFinished)
        // The refusal is of one user among many: our keys may be good for the others.
        let forUser = ScriptedIssuer([refused, refused])
        var asked = wanted
        asked.user = .name("bob")
        let denied = await failure {
            _ = try await minted([]).acquire(asked, environment: environment(bothKeys).over(forUser))
        }
        #expect(denied == .policyDenied(reason: "token: the issuer refuses this subject") && forUser.isFinished)
    }

    @Test(arguments: [
        ([NamedValue](), #""sub":"b\"ob""#, #""sub":"c"#),
        ([NamedValue(name: "upn", value: "{subject}@corp")], #""upn":"b\"ob@corp""#, #""sub":"b"#),
    ])
    func theUserIsNamedOnce(claims: [NamedValue], has: String, hasNot: String) async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        var asked = wanted
        asked.user = .name("b\"ob")
        _ = try await minted(claims).acquire(asked, environment: environment(bothKeys).over(issuer))
        let payload = try parts(issuer.sent[0].body)[1]
        #expect(payload.contains(has) && !payload.contains(hasNot), "\(payload)")
    }

    @Test func withoutAUserNoAssertionIsMadeForOne() async throws {
        let issuer = ScriptedIssuer([.ok(good)])
        let failed = await failure {
            _ = try await minted([NamedValue(name: "sub", value: "{subject}")])
                .acquire(wanted, environment: environment(bothKeys).over(issuer))
        }
        #expect(failed == .configuration(reason: "{subject}: the route has no subject with a name"))
        #expect(issuer.sent.isEmpty)
    }

    /// A 401 with a word of its own may mean the client, so the next key is tried; the word is told.
    @Test func aRefusalInOtherWordsTriesTheNextKey() async throws {
        let odd = ScriptedIssuer.Line.status(401, #"{"error":"odd_word"}"#)
        let issuer = ScriptedIssuer([odd, .ok(good)])
        _ = try await handshake { $0.keys = ["key", "key 2"] }
            .acquire(wanted, environment: environment(bothKeys).over(issuer))
        #expect(issuer.isFinished && issuer.sent.count == 2)
    }
}
