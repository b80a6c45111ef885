import Octets
import Synchronization
import TLS
import Testing

@testable import Handshakes

private let wanted = Wanted(upstreamOrigin: "https://api.example.com")
private let bound = #"{"access_token":"t","token_type":"DPoP"}"#

private func handshake(_ grant: OAuth2Settings.Grant = .clientCredentials) throws -> OAuth2Handshake {
    var settings = OAuth2Settings(
        .tokenURL(try #require(IssuerURL("https://idp.example.com/token?x=1"))), clientID: "c")
    settings.grant = grant
    settings.dpop = true
    return try OAuth2Handshake(
        settings, GrantWorld(wallMilliseconds: { 1_000_000_000 }, random: { [UInt8](repeating: 7, count: $0) }))
}

private func lacksNonce(_ nonce: String) -> ScriptedIssuer.Line {
    .answer(400, #"{"error":"use_dpop_nonce"}"#, [("DPoP-Nonce", nonce)])
}

private func claims(_ sent: ScriptedIssuer.Sent) throws -> AnswerObject {
    let proof = try #require(sent.header("DPoP"))
    return try #require(JWTPayload.object(Secret(proof)))
}

@Suite struct DPoPTests {
    @Test func `the token request is proven and the token goes with its key`() async throws {
        let environment = MemoryEnvironment()
        let issuer = ScriptedIssuer([.ok(bound), .ok(bound)])
        let handshake = try handshake()
        let grant = try await handshake.acquire(wanted, environment: environment.over(issuer))
        let proof = try claims(issuer.sent[0])
        #expect(proof.string("htu") == "https://idp.example.com/token" && proof.string("htm") == "POST")
        #expect(proof.string("ath") == nil && proof.string("nonce") == nil)
        let material = try #require(grant.material)
        let next = try await handshake.acquire(wanted, environment: environment.over(issuer))
        #expect(next.material == material)
        let signer = try #require(handshake.signer)
        let request = RequestToSign(method: "GET", url: "https://api.example.com/a?b#c")
        let fields = try material.withBytes { bytes throws(SigningFault) in
            try signer.sign(request, with: bytes, wallSeconds: 5, entropy: [1, 2, 3]).fields
        }
        #expect(fields.map(\.name) == ["Authorization", "DPoP"])
        #expect(fields[0].value == Array("DPoP t".utf8))
        let sent = try #require(JWTPayload.object(Secret(fields[1].value)))
        #expect(sent.string("htu") == "https://api.example.com/a")
        #expect(sent.string("ath") == Base64.encodeURL(sha256(Array("t".utf8))))
    }

    @Test func `a nonce is put in once and kept`() async throws {
        let issuer = ScriptedIssuer([lacksNonce("n1"), .ok(bound), .ok(bound)])
        let handshake = try handshake()
        let environment = MemoryEnvironment()
        for _ in 0..<2 { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) }
        #expect(try issuer.sent.map { try claims($0).string("nonce") } == [nil, "n1", "n1"])
    }

    @Test func `a server that is never content is asked twice`() async throws {
        let issuer = ScriptedIssuer([lacksNonce("n1"), lacksNonce("n2"), .ok(bound)])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == "configuration" && issuer.sent.count == 2)
    }

    @Test func `the same nonce again is no reason to ask again`() async throws {
        let issuer = ScriptedIssuer([lacksNonce("n"), .ok(bound), lacksNonce("n"), .ok(bound)])
        let handshake = try handshake()
        _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer))
        _ = await failure { _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer)) }
        #expect(issuer.sent.count == 3)
    }

    @Test(arguments: ["", "a b", "a\"b", String(repeating: "n", count: 1025)])
    func `what is no nonce does not get into a proof`(nonce: String) async throws {
        let issuer = ScriptedIssuer([lacksNonce(nonce), .ok(bound)])
        _ = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(issuer.sent.count == 1)
    }

    @Test func `a password that was not judged for want of a nonce is one attempt`() async throws {
        let journal = Journal()
        let environment = MemoryEnvironment(journal: journal)
        let issuer = ScriptedIssuer([lacksNonce("n"), .ok(bound)], journal: journal)
        _ = try await handshake(.password(username: "u")).acquire(wanted, environment: environment.over(issuer))
        #expect(journal.all.filter { $0.hasPrefix("spend") } == ["spend u"])
        #expect(environment.outcomes == [.accepted])
    }

    @Test func `a token that nobody bound is refused`() async throws {
        let issuer = ScriptedIssuer([.ok(#"{"access_token":"t","token_type":"Bearer"}"#)])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: MemoryEnvironment().over(issuer))
        }
        #expect(failed?.kind == "invalid")
    }

    @Test func `a key that cannot be read is replaced`() async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock {
            $0.durables[.proofKey] = LayerMaterial(bytes: Secret("garbage"), obtainedAt: 1, lifetime: nil)
        }
        let grant = try await handshake().acquire(
            wanted, environment: environment.over(ScriptedIssuer([.ok(bound)])))
        #expect(grant.material != nil)
        let kept = await environment.durable(.proofKey)
        #expect(kept.flatMap { DPoPKey($0.bytes) } != nil)
    }

    @Test func `a nonce of the upstream is a challenge of its own`() throws {
        let field = Array(#"Bearer realm="api", DPoP algs="ES256", error="use_dpop_nonce""#.utf8)
        let verdict = try handshake().judge(
            status: 401, wwwAuthenticate: [field], location: nil, requestURL: "https://api.example.com/")
        guard case .challenged(let challenge) = verdict else { return _ = Issue.record("no challenge") }
        #expect(challenge.error == Challenge.wantsNonce)
    }

    // MARK: - The signer

    private func sign(_ material: String, _ keys: ProofKeys? = nil) throws -> [InjectedField] {
        var request = RequestToSign(method: "GET", url: "https://api.example.com/a")
        request.keys = keys
        return try bytes(material).withUnsafeBytes { material in
            try DPoPSigner(clock: DPoPClock()).sign(request, with: material, wallSeconds: 5, entropy: [1]).fields
        }
    }

    /// A token without its key is not sent at all: no server would take it, and the log says what is wrong.
    @Test(arguments: [
        ("token", "the token has no key"), ("thumbprint key", "the token has no key"),
        ("thumbprint bm8ga2V5 token", "the key of the token cannot be read"),
        ("thumbprint !! token", "the key of the token cannot be read"),
    ])
    func aTokenWithoutItsKeyIsNotSent(material: String, why: String) {
        #expect(throws: SigningFault(why)) { try sign(material) }
        #expect(throws: SigningFault(why)) { try sign(material, ProofKeys()) }
    }

    /// Each token is proven with its own key, however many a loop has read, and a name that is not the key's own stands for none.
    @Test func everyTokenKeepsItsKeyAmongMany() throws {
        let keys = ProofKeys()
        var materials: [String] = []
        var thumbprints: [String] = []
        for index in 0..<66 {
            let key = try #require(DPoPKey(try DPoPKey.make()))
            thumbprints.append(key.thumbprint)
            materials.append(BoundToken.encode(Secret("t\(index)"), boundTo: key).text)
        }
        for _ in 0..<2 {
            for (index, material) in materials.enumerated() {
                let fields = try sign(material, keys)
                #expect(fields[0].value == bytes("DPoP t\(index)"))
                #expect(try thumbprint(fields[1]) == thumbprints[index])
            }
        }
        let parts = materials[1].split(separator: " ")
        let unknown = "another \(parts[1]) t"
        #expect(try thumbprint(try sign(unknown, keys)[1]) == thumbprints[1])
    }

    private func thumbprint(_ proof: InjectedField) throws -> String {
        let header = try #require(Base64.decodeURL(Array(proof.value.prefix { $0 != UInt8(ascii: ".") })))
        let text = String(decoding: header, as: UTF8.self)
        let start = try #require(text.firstRange(of: #"{"crv""#)).lowerBound
        return Base64.encodeURL(sha256(Array(text[start...].dropLast().utf8)))
    }

    /// A few seconds are no skew, and more than a day is nonsense.
    @Test(
        arguments: [
            (1000, 1000, 0), (1003, 1000, 0), (1004, 1000, 4), (996, 1000, -4), (88_401, 1000, 0),
            (87_400, 1000, 86_400),
            (.max, -1, 0),
        ] as [(Int64, Int64, Int64)])
    func theClockOfTheIssuerIsLearned(issuer: Int64, wall: Int64, ahead: Int64) {
        let clock = DPoPClock()
        clock.learn(issuerTime: issuer, wall: wall)
        #expect(clock.ahead == ahead && clock.issuersTime(7) == 7 + ahead)
    }
}
