import Octets
import Synchronization
import TLS
import Testing

@testable import Handshakes

private let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBdzCCAR2gAwIBAgIUKmlqThGqBgUZDyu2qfNwqMh47q4wCgYIKoZIzj0EAwIw
    ETEPMA0GA1UEAwwGY2xpZW50MB4XDTI2MTEyNzE5NDY1M1oXDTM2MTEyNDE5NDY1
    M1owETEPMA0GA1UEAwwGY2xpZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
    BO3IxBzUgSpeIdUJfpz1XJR7sHmeB+2I3DLuPq6DXRqMs5CPSq8tHGPbvMfCJWsB
    UU1vIf+hiepCgvWscs1fF6NTMFEwHQYDVR0OBBYEFEfIpKgz75KtAAfKpMDFZBaZ
    /OrzMB8GA1UdIwQYMBaAFEfIpKgz75KtAAfKpMDFZBaZ/OrzMA8GA1UdEwEB/wQF
    MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAOGG6GP1VcVhOeNNNTDH0WtNxf425Tg6
    dh8CjddgaO+LAiBnS8TmTK+ZPx+TudSrXYuNcySu82+X98lnqjWeK4GKjA==
    -----END CERTIFICATE-----
    """

/// Encrypted with the words "phrase".
private let encryptedKey = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgZwPv0Pv87ZgICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEGuoF+j+O1H872kzncujI8gEgZA5
    UJdj6MQqv8egffoZ0NHU1h/n3o6OUdk9fz6wcRJpI9UbPal8O6VvtAii1hHLXmO5
    fWiiHe4df/Ac043j8JXooI2m7/rH9HN+YaXN22t83QURZu0/hNVgmJWZlY4y4qrw
    9vK64AoDakq61kE4ipWY+wHVhMJLap6L1UKjtKB81/H9/kcxfBVrih7qawAKwtA=
    -----END ENCRYPTED PRIVATE KEY-----
    """

/// Numbers of an RSA key (RFC 7518 section 6.3), in the order of their names.
private let rsaNumbers = [
    "n": "ri1i3DjJbuw0ZMyC5gkcNWQuZ4CickcJcVowlvYG4As0lFSFod7OoLFP79Q92Q5u6BS1HN8m1nhL6QJFQrTN7xhX4oazJhZS"
        + "i-CkhWsLf_9yIylKzRhdVPy5GYYJDqBLlxPCYJc98wEXMOjYR1xnn5-fLOMudkzZJuG_Hbjnqdd1saFzncfFmPawou3GsgOc"
        + "GUpZrCrYsk_MyFjuO5fFGZTGA0SGh8jvqg4_iQ0YmyW-F8y2vzqf_PXItWxjNr0ANxiyrghWLf1kDErFLz5mSr9vfiT4AT2D"
        + "UZR3BXduGQyLhp87oBjqjKN1tMSMna43WJb4ZOXCPhfbguEjNgMZmw",
    "e": "AQAB",
    "d": "Cm1RI8SKhTIYGN4ICrlfj5qwZHsrk70eRZjpRmryvRWD-kqXuA8HPlDJwPPAbW69w6BUZKa_Q8uZJRkrsvNGo2-eTe3-ajif"
        + "4cZ6_Y8LoIgBpIqOSHo9lsmM_d2A9qKF-USyODzASqc1ZN-A7b9hvLPo6t5WzmI0sG0x7GzrVsbOmSV7EtPII90TuUKubjJF"
        + "Ex_jc7K8c22Ekab2bpyGfsupNQbei5-4BqJJCXidd5C35vE_Bx6DHTuEitXwfmL7_awu80v97czSWXmPV1k5Z4OAJGfh6Iyr"
        + "mG-kHEpFcsQKt917F_7-yMRU3-KycQA0v8JgTuURGxfqdtZDdpfEYQ",
    "p": "37Jvo2FHigTrIPHH4iUoNghM_d6Lmlit5BB0WpwZW0Is21Y8k6ZniQJ0LuAMklvFvNGFwWtnn6fsFBST2YAO6v8zRDoyB1Zs"
        + "oEA2-uvQDw2AsVRLdufwmrt_Qt9gzM6d3ptGiz8BzjP8tnzrD4o5XQleQYvOaJpCadanQXmAWGM",
    "q": "x1RR29_VK2AzQre70L5m3XiWndIA2Um2nY9srxl-V1rEWtyz2MqczUrs9HG8V23oi0euZ34BkzTObd-hCBrD2hoWSQhUYRUR"
        + "0iIKQPXVNrI-5VHpcs1xASKjlqNjYcGGuKumGcV7w2dIHQjPYAmVRuOHL0Lhq6vbsYaYIKtKk2k",
    "dp": "OAFcofMBDjUdCSp_eMcEwkJhxE2rdgEtyCO2fdkHICn5QRDeKblHwq2ymOnPO_VuFFAAxOQ3FWndWUmtmo7NLVinZTWMwPmK"
        + "SLTLDxdrB9nBlqQcILEBNDwtKHj0q1IvhEQr7UDhGtc5NhcgYsuggQKPbqmqC9ZTOlxbk7DvyTE",
    "dq": "ld5tCc96nHlhMUmp2iI-f0hanmC2KKmGt2KOCf02BAIH3nVQd7CnQqeSD5ywSmAl1wrXM5MHJiIvD2dz0P8mwIaauOCdaL0J"
        + "wB-96-eqHszYA12aE6opy_u6WdmRMH_shk7wvTHBg0LVcpccLI4oAbuy-bLksEmwDgMvwGhp0vk",
    "qi": "b3tEr5qlfBFuau2NqqPppoOZ-LNDy8O9EW3_s_r5GAlMRSFbfXCwjqmU3FRS6wOkZVlM1TyBVylSX_3JBZYHExL020xwO3qy"
        + "z1C1BZ5An9Ou7xBNXdHro7tNDMT8_zG8S_kTbgt0znnO6SvdKWW0-cD4slWsf7AqQX1Jf8dGLkI",
]

private func rsa(_ more: String, without: String? = nil) -> String {
    let numbers = rsaNumbers.filter { $0.key != without }.map { #""\#($0.key)":"\#($0.value)""# }
    return #"{"kty":"RSA",\#(more)"# + numbers.joined(separator: ",") + "}"
}

/// RFC 7515 appendix A.3.
private let p256 =
    #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI","kid":"ec"}"#

private let good = ScriptedIssuer.Line.ok(#"{"access_token":"t","token_type":"Bearer"}"#)
private let wanted = Wanted(upstreamOrigin: "https://api.example.com")
private let token = "https://idp.example.com/token"
private let look = "https://idp.example.com/look"

private func handshake(_ change: (inout OAuth2Settings) -> Void = { _ in }) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(.tokenURL(try #require(IssuerURL(token))), clientID: "c")
    settings.clientAuth = .privateKeyJWT
    settings.keys = ["key"]
    change(&settings)
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000_000 }, random: { Array(repeating: 7, count: $0) }))
}

private func environment(_ secrets: [String: String]) -> MemoryEnvironment {
    let environment = MemoryEnvironment()
    environment.state.withLock { $0.secrets.merge(secrets) { $1 } }
    return environment
}

/// A part of the assertion that proves the client.
private func part(_ index: Int, of sent: ScriptedIssuer.Sent) throws -> String {
    let member = try #require(sent.body.split(separator: "&").first { $0.hasPrefix("client_assertion=") })
    let parts = try #require(member.split(separator: "=").last).split(separator: ".")
    return String(decoding: try #require(Base64.decodeURL(Array(parts[index].utf8))), as: UTF8.self)
}

@Suite struct OAuth2KeyFileTests {
    @Test func `an encrypted key is read with its password`() async throws {
        let oauth = try handshake { $0.hasKeyPassword = true }
        let issuer = ScriptedIssuer([good])
        let secrets = ["key": encryptedKey, "key_password": "phrase"]
        _ = try await oauth.acquire(wanted, environment: environment(secrets).over(issuer))
        #expect(try part(0, of: issuer.sent[0]) == #"{"alg":"ES256","typ":"JWT"}"#)
        let unread = ScriptedIssuer([good])
        let failed = await failure {
            let secrets = ["key": encryptedKey, "key_password": "another"]
            _ = try await oauth.acquire(wanted, environment: environment(secrets).over(unread))
        }
        #expect(failed?.kind == "secret" && unread.sent.isEmpty)
    }

    @Test(arguments: [
        (JWTSigning.Thumbprint.sha1, #""x5t":"jmm6DlELryry5JJpl00VCRa19DY""#),
        (.sha256, #""x5t#S256":"qHnjHvgimyrPb-JJuKBRcX878OwJfNN8OOtNri9W4Bo""#),
    ])
    func `a certificate names the key by its thumbprint`(_ thumbprint: JWTSigning.Thumbprint, _ member: String)
        async throws
    {
        let oauth = try handshake {
            $0.signing.hasCertificate = true
            $0.signing.thumbprint = thumbprint
        }
        let issuer = ScriptedIssuer([good])
        let secrets = ["key": p256, "certificate": certificate]
        _ = try await oauth.acquire(wanted, environment: environment(secrets).over(issuer))
        #expect(try part(0, of: issuer.sent[0]) == #"{"alg":"ES256","typ":"JWT","kid":"ec",\#(member)}"#)
    }

    @Test func `a certificate that is none ends the flight before anything is sent`() async throws {
        let oauth = try handshake {
            $0.signing.hasCertificate = true
            $0.signing.thumbprint = .sha256
        }
        let issuer = ScriptedIssuer([good])
        let failed = await failure {
            let secrets = ["key": p256, "certificate": "no certificate"]
            _ = try await oauth.acquire(wanted, environment: environment(secrets).over(issuer))
        }
        #expect(failed == .secretUnreadable(name: "certificate", reason: "no PEM certificate found"))
        #expect(issuer.sent.isEmpty)
    }

    @Test func `an RSA key of a JWK signs by the algorithm that the JWK names`() async throws {
        let issuer = ScriptedIssuer([good])
        let secrets = ["key": rsa(#""alg":"PS256","kid":"rsa","#)]
        _ = try await handshake().acquire(wanted, environment: environment(secrets).over(issuer))
        #expect(try part(0, of: issuer.sent[0]) == #"{"alg":"PS256","typ":"JWT","kid":"rsa"}"#)
    }

    @Test func `a configured algorithm counts before that of the JWK`() async throws {
        let issuer = ScriptedIssuer([good])
        let secrets = ["key": rsa(#""alg":"PS256","#)]
        _ = try await handshake { $0.signing.algorithm = "RS256" }
            .acquire(wanted, environment: environment(secrets).over(issuer))
        #expect(try part(0, of: issuer.sent[0]) == #"{"alg":"RS256","typ":"JWT"}"#)
    }

    @Test(arguments: ["p", "q", "dp", "dq", "qi", "n", "e"])
    func `an RSA key without one of its numbers is refused`(_ name: String) async throws {
        let failed = await failure {
            _ = try await handshake().acquire(
                wanted, environment: environment(["key": rsa("", without: name)]).over(ScriptedIssuer([good])))
        }
        #expect(failed?.kind == "secret")
    }

    /// Some servers look for the name of the endpoint that was called instead of the token endpoint's.
    @Test func `an endpoint beside the token endpoint is shown each proof under both names`() async throws {
        let refused = ScriptedIssuer.Line.status(401)
        let issuer = ScriptedIssuer([good, refused, refused, refused, .ok(#"{"active":true}"#)])
        let oauth = try handshake {
            $0.keys = ["key", "key 2"]
            $0.introspects = true
            $0.introspectionURL = IssuerURL(look)
        }
        let secrets = ["key": p256, "key 2": rsa(#""kid":"rsa","#)]
        #expect(try await oauth.tryOut(wanted, environment: environment(secrets).over(issuer))?.isGood == true)
        let asked = issuer.sent.dropFirst()
        #expect(asked.allSatisfy { $0.url == look } && asked.count == 4)
        #expect(try asked.map { try part(0, of: $0).contains(#""kid":"rsa""#) } == [false, true, false, true])
        #expect(
            try asked.map { try part(1, of: $0).contains(#""aud":"\#(token)""#) } == [true, true, false, false])
        #expect(try asked.suffix(2).allSatisfy { try part(1, of: $0).contains(#""aud":"\#(look)""#) })
    }

    @Test(arguments: [(OAuth2Settings.ClientAuth.clientSecretJWT, 2), (.post, 1)])
    func `a secret that signs proves the client under both names, and one that is shown goes once`(
        _ auth: OAuth2Settings.ClientAuth, _ count: Int
    ) async throws {
        let oauth = try handshake {
            $0.clientAuth = auth
            $0.revocationURL = IssuerURL(look)
        }
        let session = LayerMaterial(bytes: Secret([]), obtainedAt: 1, lifetime: nil, refreshToken: Secret("r"))
        let issuer = ScriptedIssuer([.status(401), .status(401), .status(401)])
        let secrets = ["client_secret": String(repeating: "s", count: 32)]
        let outcome = await oauth.revoke(session, environment: environment(secrets).over(issuer))
        #expect(outcome == .unconfirmed && issuer.sent.count == count)
    }

    @Test func `a server of Oracle that wants a list of audiences gets one`() async throws {
        let issuer = ScriptedIssuer([good])
        let oauth = try handshake {
            $0.oracle = OAMOAuthDialect()
            $0.oracle?.listsAudience = true
        }
        _ = try await oauth.acquire(wanted, environment: environment(["key": p256]).over(issuer))
        #expect(try part(1, of: issuer.sent[0]).contains(#""aud":["\#(token)"],"#))
    }
}
