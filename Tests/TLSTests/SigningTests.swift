import Octets
import Testing

@testable import TLS

private func number(_ text: String) throws -> [UInt8] { try #require(Base64.decodeURL(text)) }

@Suite struct SigningTests {
    /// RFC 8037 appendix A.4.
    @Test func `EdDSA as the RFC shows it`() throws {
        let key = try SigningKey(.ed25519(d: number("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")))
        let jws = try JWS.compact(
            header: Array(#"{"alg":"EdDSA"}"#.utf8), payload: Array("Example of Ed25519 signing".utf8)
        ) { try key.sign($0, .edDSA) }
        #expect(
            jws
                == "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6d"
                + "WbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
    }

    /// RFC 7515 appendix A.1.
    @Test func `HS256 as the RFC shows it`() throws {
        let key = try number(
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
        let jws = JWS.compact(
            header: Array("{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}".utf8),
            payload: Array("{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}".utf8)
        ) { input in key.withUnsafeBytes { keyedHash(key: $0, input) } }
        #expect(jws.hasSuffix(".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
    }

    /// RFC 7515 appendix A.3.
    private static let p256 = JWKNumbers.p256(
        x: Base64.decodeURL("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU") ?? [],
        y: Base64.decodeURL("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0") ?? [],
        d: Base64.decodeURL("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI") ?? [])

    @Test func `an algorithm goes with its kind of key only`() throws {
        let key = try SigningKey(Self.p256)
        #expect(key.algorithm == .es256 && key.kind == .p256)
        #expect(try key.sign([1, 2, 3], .es256).count == 64)
        for algorithm in [JWSAlgorithm.rs256, .ps256, .edDSA, .hs256] {
            #expect(throws: TLSFault.self) { try key.sign([1], algorithm) }
        }
        #expect("\(key)" == "SigningKey(p256)")
    }

    @Test func `a public half of another key is found out`() throws {
        guard case .p256(let x, let y, var d) = Self.p256 else { return }
        d[31] ^= 1
        #expect(throws: TLSFault.self) { try SigningKey(.p256(x: x, y: y, d: d)) }
        #expect(throws: TLSFault.self) { try SigningKey(.p256(x: y, y: x, d: d)) }
        #expect(throws: TLSFault.self) { try SigningKey(.ed25519(d: [1, 2])) }
        #expect(throws: TLSFault.self) {
            try SigningKey(.rsa(n: [1], e: [3], d: [1], p: [1], q: [1], dp: [1], dq: [1], qi: [1]))
        }
    }

    @Test func `keys from files`() throws {
        let files = try Certificates.shared.get()
        let plain = try SigningKey(file: files.bytes("client.key"))
        #expect(plain.kind == .p256 && plain.certificate == nil)
        let beside = try SigningKey(file: files.bytes("client.key") + files.bytes("client.pem"))
        #expect(beside.certificate == certificateDER(inPEM: files.bytes("client.pem")) && beside.certificate != nil)
        let encrypted = try SigningKey(file: files.bytes("client.encrypted.key"), password: Array("secret".utf8))
        #expect(encrypted.kind == .p256)
        let archive = try SigningKey(file: files.bytes("client.p12"), password: Array("secret".utf8))
        #expect(archive.certificate == beside.certificate)
    }

    @Test(arguments: ["", "wrong"]) func `a wrong passphrase opens nothing, and is not repeated`(
        _ password: String
    ) throws {
        let files = try Certificates.shared.get()
        for name in ["client.encrypted.key", "client.p12"] {
            let fault = #expect(throws: TLSFault.self) {
                try SigningKey(file: files.bytes(name), password: Array(password.utf8))
            }
            #expect(fault?.kind == .configuration && fault?.message.contains("wrong") == false)
        }
    }

    @Test(arguments: [[], [0x30], [0x30, 0x82], [0x30, 0x03, 1, 2, 3], Array("-----BEGIN PRIVATE KEY-----".utf8)])
    func `what is no key`(_ bytes: [UInt8]) {
        #expect(throws: TLSFault.self) { try SigningKey(file: bytes, password: []) }
    }
}

@Suite struct KeyMakingTests {
    @Test func aKeyOfOurOwnIsReadAgainAndSigns() throws {
        let file = try SigningKey.makeRSA()
        #expect(try SigningKey.makeRSA() != file)
        let key = try SigningKey(file: file)
        let numbers = try #require(key.rsaNumbers)
        #expect(numbers.n.count == 256 && numbers.n[0] >= 0x80 && numbers.e == [1, 0, 1])
        #expect(try key.sign([1, 2, 3], .rs256).count == 256)
    }
}

/// Signatures of RFC 9421: which key signs by which algorithm, and how long what it makes is.
@Suite struct HTTPSigningTests {
    private static let p384 = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD/rFXxHz8/TDDxwfNq
        cexFSABU7B7wyRpj5nscX5uBs5LOsGFmCQ71QYmXGwREa7+hZANiAAQONrkGEYKn
        iE2ybwIIiwd4uF/Qvjm1wyB6tyky8c4v3IL4Y/26dt67BSAPCFYru915ZWCFUs2j
        BgvAgSb19ybHP2rEbMdyTGAE1CPPn855o/IDBAuAUVBFYf3iXgQLhTg=
        -----END PRIVATE KEY-----
        """

    private func signs(_ key: SigningKey, by algorithms: [HTTPSignatureAlgorithm: Int]) throws {
        for algorithm in HTTPSignatureAlgorithm.allCases {
            if let length = algorithms[algorithm] {
                #expect(try key.sign([1, 2, 3], algorithm).count == length)
            } else {
                #expect(throws: TLSFault.self) { try key.sign([1, 2, 3], algorithm) }
            }
        }
        let again = try SigningKey(file: key.der(), of: SigningKey.Kind.ofHTTP)
        #expect(again.kind == key.kind)
    }

    @Test func anRSAKeySignsInTwoWays() throws {
        let key = try SigningKey(file: SigningKey.makeRSA())
        #expect(key.onlyHTTPAlgorithm == nil)
        try signs(key, by: [.rsaPSS: 256, .rsaPKCS1: 256])
    }

    @Test func everyOtherKeySignsInOne() throws {
        let edwards = try SigningKey(.ed25519(d: [UInt8](repeating: 7, count: 32)))
        try signs(edwards, by: [.ed25519: 64])
        let p256 = try SigningKey(file: SigningKey.makeP256())
        try signs(p256, by: [.ecdsaP256: 64])
        let p384 = try SigningKey(file: Array(Self.p384.utf8), of: SigningKey.Kind.ofHTTP)
        try signs(p384, by: [.ecdsaP384: 96])
        #expect(
            [edwards, p256, p384].map(\.onlyHTTPAlgorithm) == [.ed25519, .ecdsaP256, .ecdsaP384]
                && p384.algorithm == nil)
    }

    /// JWTs are not signed on this curve.
    @Test func aCurveIsReadOnlyWhereItSigns() {
        #expect(throws: TLSFault.self) { try SigningKey(file: Array(Self.p384.utf8)) }
    }
}
