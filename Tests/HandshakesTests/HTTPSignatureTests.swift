import Configuration
import Octets
import TLS
import Testing

@testable import Handshakes

/// Keys and messages of RFC 9421, appendix B.
private enum Published {
    static let created: Int64 = 1_618_884_473
    static let body = #"{"hello": "world"}"#
    static let ed25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
        -----END PRIVATE KEY-----
        """
    static let shared = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="

    static var request: RequestToSign {
        RequestToSign(
            method: "POST", url: "https://example.com/foo?param=Value&Pet=dog",
            headers: [
                ("Host", "example.com"), ("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
                ("Content-Type", "application/json"), ("Content-Length", "18"),
            ])
    }

    static func message() throws -> HTTPSignatureMessage {
        let digest = try #require(HashFunction.sha512.hash(Array(body.utf8)))
        return try HTTPSignatureMessage(request, contentDigest: HTTPContentDigest.sha512.value(digest))
    }

    static func base(_ names: [String], _ key: String, nonce: String? = nil, tag: String? = nil) throws
        -> HTTPSignatureBase
    {
        let components = try names.map { try #require(HTTPSignatureComponent($0), "\($0)") }
        return try HTTPSignatureBase(
            components, of: message(),
            HTTPSignatureParameters(created: created, keyID: key, nonce: nonce, tag: tag))
    }

    static func signature(_ base: HTTPSignatureBase, secrets: [String: String], shared: Bool = false) async throws
        -> String
    {
        let token = try await handshake(shared: shared).acquire(
            Wanted(upstreamOrigin: "https://u"),
            environment: MemoryEnvironment(MemoryEnvironment.State(secrets: secrets))
        ).token
        let key = try #require(HTTPSignatureKey(token))
        return Base64.encode(try key.sign(base.octets, ProofKeys()))
    }

    static func handshake(shared: Bool = false) -> HTTPSignatureHandshake {
        var settings = HTTPSignatureSettings()
        settings.isShared = shared
        settings.sharedKeyForm = shared ? .base64 : .text
        return HTTPSignatureHandshake(settings)
    }
}

extension MemoryEnvironment.State {
    fileprivate init(secrets: [String: String]) {
        self.init()
        self.secrets = secrets
    }
}

private func text(_ octets: [UInt8]) -> String { String(decoding: octets, as: UTF8.self) }

/// The vectors of RFC 9421, appendix B.
@Suite struct HTTPSignatureVectorTests {
    @Test func minimal() throws {
        let base = try Published.base([], "test-key-rsa-pss", nonce: "b3k2pp5k7z-50gnwp.yemd")
        #expect(
            text(base.octets)
                == #""@signature-params": ();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd""#
        )
    }

    /// A query parameter of its own is nothing that the gateway signs; its line stands in the base as any other does.
    @Test func selective() throws {
        var base = try Published.base(["@authority", "content-digest"], "test-key-rsa-pss", tag: "header-example")
        base.lines.append(
            HTTPSignatureBase.Line(identifier: bytes(#""@query-param";name="Pet""#), value: bytes("dog")))
        #expect(
            text(base.octets) == """
                "@authority": example.com
                "content-digest": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:
                "@query-param";name="Pet": dog
                "@signature-params": ("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"
                """)
    }

    @Test func full() throws {
        let names = [
            "date", "@method", "@path", "@query", "@authority", "content-type", "content-digest", "content-length",
        ]
        #expect(
            text(try Published.base(names, "test-key-rsa-pss").octets) == """
                "date": Tue, 20 Apr 2021 02:07:55 GMT
                "@method": POST
                "@path": /foo
                "@query": ?param=Value&Pet=dog
                "@authority": example.com
                "content-type": application/json
                "content-digest": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:
                "content-length": 18
                "@signature-params": ("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"
                """)
    }

    @Test func sharedSecret() async throws {
        let base = try Published.base(["date", "@authority", "content-type"], "test-shared-secret")
        #expect(
            text(base.input) == #"("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#)
        let signature = try await Published.signature(base, secrets: ["shared_key": Published.shared], shared: true)
        #expect(signature == "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=")
    }

    @Test func edwardsCurve() async throws {
        let names = ["date", "@method", "@path", "@authority", "content-type", "content-length"]
        let base = try Published.base(names, "test-key-ed25519")
        let signature = try await Published.signature(base, secrets: ["key": Published.ed25519])
        #expect(
            signature == "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==")
    }

    /// Lines of one field are one value (B.4).
    @Test func transformed() async throws {
        let request = RequestToSign(
            method: "GET", url: "https://example.org/demo?name1=Value1&Name2=value2",
            headers: [("Host", "example.org"), ("Accept", " application/json "), ("ACCEPT", "*/*")])
        let base = try HTTPSignatureBase(
            [.derived(.method), .derived(.path), .derived(.authority), .field("accept")],
            of: HTTPSignatureMessage(request, contentDigest: nil),
            HTTPSignatureParameters(created: Published.created, keyID: "test-key-ed25519"))
        let signature = try await Published.signature(base, secrets: ["key": Published.ed25519])
        #expect(
            signature == "ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==")
    }

    /// RFC 9530, appendix B.
    @Test func digests() throws {
        let body = try #require(HashFunction.sha256.hash(bytes("{\"hello\": \"world\"}\n")))
        #expect(
            text(HTTPContentDigest.sha256.value(body)) == "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")
        let nothing = try #require(HashFunction.sha256.hash([]))
        #expect(HTTPContentDigest.sha256.isOfBody(body) && !HTTPContentDigest.sha256.isOfBody(nothing))
        #expect(
            text(HTTPContentDigest.sha256.value(nothing)) == "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
    }
}

@Suite struct HTTPSignatureComponentTests {
    private func value(
        _ name: String, target: String = "/", host: String = "example.com", url: String = "https://example.com/",
        headers: [(name: String, value: String)] = []
    ) throws -> String? {
        var request = RequestToSign(method: "get", url: url, headers: [("host", host)] + headers)
        request.target = bytes(target)
        let component = try #require(HTTPSignatureComponent(name))
        return try HTTPSignatureMessage(request, contentDigest: nil).value(of: component).map(text)
    }

    @Test(arguments: [
        ("@method", "/", "get"), ("@scheme", "/", "https"), ("@path", "/a/./b//%7e", "/a/./b//%7e"), ("@path", "", "/"),
        ("@path", "/a?b", "/a"), ("@query", "/a", "?"), ("@query", "/a?", "?"), ("@query", "/a?b=?c+%20", "?b=?c+%20"),
        ("@target-uri", "/a?b", "https://example.com/a?b"), ("@target-uri", "", "https://example.com/"),
        // A proxy is told the whole URL.
        ("@path", "http://example.com/a?b", "/a"), ("@target-uri", "http://example.com?b", "https://example.com/?b"),
    ])
    func derived(name: String, target: String, expected: String) throws {
        #expect(try value(name, target: target) == expected)
    }

    @Test(arguments: [
        ("EXAMPLE.com", "https", "example.com"), ("example.com:443", "https", "example.com"),
        ("example.com:80", "https", "example.com:80"), ("example.com:80", "http", "example.com"),
        ("[2001:DB8::1]:443", "https", "[2001:db8::1]"),
    ])
    func authorities(host: String, scheme: String, expected: String) throws {
        #expect(try value("@authority", host: host, url: "\(scheme)://x/") == expected)
    }

    @Test func fields() throws {
        #expect(try value("x-a") == nil)
        #expect(try value("x-a", headers: [("X-A", "")]) == "")
        #expect(
            try value("x-a", headers: [("X-A", " \ta  b\t "), ("x-b", "c"), ("x-a", ""), ("X-a", "d")]) == "a  b, , d")
    }

    @Test(arguments: [
        ("@path", "/\u{E4}", ""), ("@query", "/a?\u{7F}", ""), ("x-a", "/", "\u{E4}"), ("x-a", "/", "a\u{1}"),
    ])
    func whatNoBaseCanHave(name: String, target: String, field: String) {
        #expect(throws: SigningFault.self) { try value(name, target: target, headers: [("x-a", field)]) }
    }

    @Test func aTargetThatIsNoPathIsNotSigned() {
        #expect(throws: SigningFault.self) { try value("@method", target: "*") }
    }

    @Test(arguments: [
        "", "@", "@status", "@Method", "X-A", "a b", "connection", "transfer-encoding", "signature", "signature-input",
        "expect", "host", "te", "\u{E4}", String(repeating: "a", count: 65),
    ])
    func whatIsNoComponent(name: String) { #expect(HTTPSignatureComponent(name) == nil) }
}

@Suite struct HTTPSignatureSignerTests {
    private func sign(
        _ settings: HTTPSignatureSettings = HTTPSignatureSettings(), headers: [(name: String, value: String)] = [],
        received: [(name: String, value: String)] = [], body: String = "", asked: HTTPSignatureRequest? = nil,
        isProbe: Bool = false
    ) throws -> RequestSignature {
        let key = try HTTPSignatureKey(shared: Secret("shared"))
        var request = RequestToSign(
            method: "POST", url: "http://example.com/a", headers: [("Host", "example.com")] + headers,
            bodyDigest: settings.digest.function.hash(bytes(body)))
        request.received = received
        request.serverNonce = asked
        request.isProbe = isProbe
        return try key.encoded.withBytes { (material) throws -> RequestSignature in
            try HTTPSignatureSigner(settings: settings).sign(
                request, with: material, wallSeconds: 1000, entropy: [UInt8](repeating: 0xFF, count: 16))
        }
    }

    private func input(_ signature: RequestSignature) -> String {
        text(signature.fields.first { $0.name == "Signature-Input" }?.value ?? [])
    }

    @Test func theMinimum() throws {
        let signature = try sign()
        #expect(input(signature) == #"cardea=("@method" "@authority" "@path" "@query");created=1000"#)
        #expect(signature.fields.map(\.name) == ["Signature-Input", "Signature"] && signature.answer == nil)
        let withBody = try sign(body: "x")
        #expect(input(withBody) == #"cardea=("@method" "@authority" "@path" "@query" "content-digest");created=1000"#)
        #expect(withBody.fields.map(\.name) == ["Signature-Input", "Signature", "Content-Digest"])
    }

    @Test func everyParameter() throws {
        var settings = HTTPSignatureSettings()
        settings.keyID = "k"
        settings.expires = 5
        settings.saysAlgorithm = true
        settings.sendsNonce = true
        settings.tag = #"t"\"#
        settings.label = "l"
        #expect(
            input(try sign(settings))
                == #"l=("@method" "@authority" "@path" "@query");created=1000;expires=1005;keyid="k";alg="hmac-sha256";nonce="_____________________w";tag="t\"\\""#
        )
    }

    @Test func aWishIsFulfilledOnce() throws {
        let wish = HTTPSignatureWish(label: "w", components: [.field("x-a"), .field("x-b")], nonce: "n")
        let asked = HTTPSignatureRequest(wish)
        let signature = try sign(
            headers: [("X-A", "1")], received: [("Signature", "v=:AA==:"), ("signature-input", "v=()")], asked: asked)
        let own = #"("@method" "@authority" "@path" "@query" "x-a");created=1000;nonce="n""#
        #expect(input(signature) == "v=(), w=\(own)")
        #expect(signature.answer?.nonce === asked && signature.answer?.count == 1)
        // The label of a signature that the caller has made stays the caller's.
        let beside = try sign(
            headers: [("X-A", "1")], received: [("Signature", "w=:AA==:"), ("signature-input", "w=()")],
            asked: HTTPSignatureRequest(wish))
        #expect(input(beside) == "w=(), cardea=\(own)")
    }

    /// A request that is sent before the body cannot be held against it.
    @Test func aProbeIsNotHeldAgainstADigest() throws {
        let told = [(name: "Content-Digest", value: "sha-256=:AAAA:")]
        #expect(throws: SigningFault.self) { try sign(received: told, body: "x") }
        _ = try sign(received: told, isProbe: true)
    }

    @Test func signaturesThatLeaveNoRoom() {
        let long = (0..<8).map { (name: "Signature", value: "s\($0)=:\(String(repeating: "A", count: 5000)):") }
        let fault = #expect(throws: SigningFault.self) { try sign(received: long) }
        #expect(fault?.isCallers == true)
    }

    @Test func aKeyThatCannotBeRead() {
        let signer = HTTPSignatureSigner(settings: HTTPSignatureSettings())
        let material = bytes("not a key")
        #expect(throws: SigningFault.self) {
            try material.withUnsafeBytes {
                try signer.sign(RequestToSign(method: "GET", url: "http://x/"), with: $0, wallSeconds: 0, entropy: [])
            }
        }
    }
}

@Suite struct HTTPSignatureKeyTests {
    private func key(
        _ secrets: [String: String], _ change: (inout HTTPSignatureSettings) -> Void = { _ in }
    ) async throws -> HTTPSignatureKey {
        var settings = HTTPSignatureSettings()
        change(&settings)
        let grant = try await HTTPSignatureHandshake(settings).acquire(
            Wanted(upstreamOrigin: "https://u"),
            environment: MemoryEnvironment(MemoryEnvironment.State(secrets: secrets)))
        return try #require(HTTPSignatureKey(grant.token))
    }

    @Test func aKeySaysItsAlgorithm() async throws {
        let found = try await key(["key": Published.ed25519])
        #expect(found.algorithm == .ed25519 && found.id == nil)
        let jwk =
            #"{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","kid":"of-the-file"}"#
        #expect(try await key(["key": jwk]).id == "of-the-file")
        let shared = try await key(["shared_key": "s"]) { $0.isShared = true }
        #expect(shared.algorithm == .hmac)
    }

    @Test(arguments: [
        (["key": Published.ed25519], "ecdsa-p256-sha256"), (["key": "no key"], "auto"), (["shared_key": ""], "shared"),
        (["shared_key": "%%"], "base64"),
        (
            ["key": #"{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","kid":"ä"}"#],
            "auto"
        ),
    ])
    func whatCannotSign(secrets: [String: String], form: String) async {
        let failed = await failure {
            _ = try await key(secrets) { settings in
                settings.isShared = form == "shared" || form == "base64"
                settings.sharedKeyForm = form == "base64" ? .base64 : .text
                settings.algorithm = HTTPSignatureAlgorithm(rawValue: form)
            }
        }
        #expect(failed?.kind == "secret" || failed?.kind == "unreadable", "\(String(describing: failed))")
    }

    @Test func noSecretShows() async throws {
        let found = try await key(["shared_key": "hunter2"]) { $0.isShared = true }
        #expect(!"\(found)".contains("hunter2") && !String(reflecting: found).contains("hunter2"))
    }
}
