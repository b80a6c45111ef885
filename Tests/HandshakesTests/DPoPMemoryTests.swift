import Numbers
import Testing

@testable import Handshakes

/// Memory of proofs: the issuer's clock, nonces by origin, and keys that a loop has read.
@Suite struct DPoPMemoryTests {
    private func handshake() throws -> OAuth2Handshake {
        var settings = OAuth2Settings(
            .tokenURL(try #require(IssuerURL("https://idp.example.com/token"))), clientID: "c")
        settings.clientAuth = .none
        settings.dpop = true
        return try OAuth2Handshake(
            settings, GrantWorld(wallMilliseconds: { 1_000_000 }, random: { Array(repeating: 7, count: $0) }))
    }

    @Test func `a proof goes by the issuer's clock once it is known`() async throws {
        let issuer = ScriptedIssuer([
            .answer(
                200, #"{"access_token":"a","token_type":"DPoP"}"#, [("Date", "Thu, 01 Jan 1970 01:16:40 GMT")]),
            .ok(#"{"access_token":"a","token_type":"DPoP"}"#),
        ])
        let oauth = try handshake()
        let environment = MemoryEnvironment().over(issuer)
        for _ in 0..<2 { _ = try await oauth.acquire(Wanted(upstreamOrigin: ""), environment: environment) }
        let times = try issuer.sent.map { sent in
            let proof = try #require(sent.header("DPoP"))
            let claims = try #require(JWTPayload.object(Secret(proof)))
            guard case .integer(let time)? = claims["iat"] else { return Int64(-1) }
            return time.clamped(to: Int64.min...Int64.max)
        }
        #expect(times == [1000, 4600])
        #expect(oauth.signer?.fieldNames == ["Authorization", "DPoP"])
    }

    @Test func `a key that a loop has read is not read again`() throws {
        let key = try #require(DPoPKey(try DPoPKey.make()))
        let keys = ProofKeys()
        var request = RequestToSign(method: "GET", url: "https://api.example.com/a")
        request.keys = keys
        func sign(_ material: String) throws -> [InjectedField] {
            try bytes(material).withUnsafeBytes {
                try DPoPSigner(clock: DPoPClock()).sign(request, with: $0, wallSeconds: 5, entropy: [1]).fields
            }
        }
        _ = try sign(BoundToken.encode(Secret("t1"), boundTo: key).text)
        // Only a remembered key can sign where the material has none.
        #expect(try sign("\(key.thumbprint) !! t2")[0].value == bytes("DPoP t2"))
    }

    @Test func `nonces of eight origins are remembered, and more begin anew`() throws {
        let memory = OAuth2ProofMemory()
        func answer(_ nonce: String) -> IssuerAnswer {
            IssuerAnswer(status: 200, headers: [("DPoP-Nonce", nonce)], body: [], sentAt: 0, overTLS: true)
        }
        let urls = (0..<9).compactMap { IssuerURL("https://\($0).example.com/t") }
        for (index, url) in urls.prefix(8).enumerated() { memory.learn(answer("n\(index)"), from: url, wall: 0) }
        memory.learn(answer("again"), from: urls[3], wall: 0)
        #expect(memory.nonce(of: urls[0]) == "n0" && memory.nonce(of: urls[3]) == "again")
        memory.learn(answer("n8"), from: urls[8], wall: 0)
        #expect(memory.nonce(of: urls[8]) == "n8" && memory.nonce(of: urls[0]) == nil)
    }
}
