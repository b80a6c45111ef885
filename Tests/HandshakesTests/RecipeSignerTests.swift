import Configuration
import Octets
import Synchronization
import Testing

@testable import Handshakes

@Suite struct RecipeSignerTests {
    static let key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

    private func recipe(_ sign: String, _ inject: String) throws -> Recipe {
        let text = """
            identities:
              a:
                recipe:
                  secrets: { key: { value: env:K, to: https://example.amazonaws.com } }
                  sign:
            \(sign)
                  inject:
            \(inject)
            routes: [{ listen: "127.0.0.1:8080", to: "https://example.amazonaws.com", use: a }]
            """
        let result = Configuration.load(.text(text)) { _ in nil }
        #expect(result.errors.map(\.description) == [])
        let recipe = try #require(result.configuration?.identities.first?.scheme as? RecipeScheme).recipe
        return recipe
    }

    /// Signature Version 4 with the fields of AWS's own examples.
    private func aws() throws -> Recipe {
        try recipe(
            """
                    start: "AWS4{secret.key}"
                    day: "{date_basic | hmac_sha256(sign.start)}"
                    region: "{'us-east-1' | hmac_sha256(sign.day)}"
                    service: "{'service' | hmac_sha256(sign.region)}"
                    signing: "{'aws4_request' | hmac_sha256(sign.service)}"
                    scope: "{date_basic}/us-east-1/service/aws4_request"
                    canonical: "{request.method}\\n{request.path}\\n{request.query | canonical_query}\\nhost:{request.host}\\nx-amz-date:{now_basic}\\n\\nhost;x-amz-date\\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
                    to_sign: "AWS4-HMAC-SHA256\\n{now_basic}\\n{sign.scope}\\n{sign.canonical | sha256 | hex}"
                    signature: "{sign.to_sign | hmac_sha256(sign.signing) | hex}"
            """,
            """
                    - { value: "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{sign.scope}, SignedHeaders=host;x-amz-date, Signature={sign.signature}" }
                    - { header: X-Amz-Date, value: "{now_basic}" }
            """)
    }

    private func sign(_ recipe: Recipe, _ request: RequestToSign) throws -> [InjectedField] {
        try signature(recipe, request).fields
    }

    private func signature(_ recipe: Recipe, _ request: RequestToSign) throws -> RequestSignature {
        let material = RecipeMaterial.encode([RecipeSigningHandshake.part: ["key": Secret(Self.key)]])
        return try material.withBytes { bytes in
            try RecipeSigner(recipe: recipe, identity: "a").sign(
                request, with: bytes, wallSeconds: 1_440_938_160, entropy: Array(repeating: 1, count: 16))
        }
    }

    private func secrets(_ recipe: Recipe, named: Bool = true) throws -> [String]? {
        var request = RequestToSign(method: "GET", url: "https://u.example.com/a?b=c")
        request.namesSecrets = named
        return try signature(recipe, request).secrets?.map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// The published examples of 2015-08-30T12:36:00Z.
    @Test(arguments: [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ("GET", "/%E1%88%B4", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    ])
    func publishedExamples(method: String, target: String, signature: String) throws {
        let fields = try sign(
            try aws(), RequestToSign(method: method, url: "https://example.amazonaws.com\(target)"))
        #expect(fields.map(\.name) == ["Authorization", "X-Amz-Date"])
        #expect(
            String(decoding: fields[0].value, as: UTF8.self)
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=host;x-amz-date, Signature=\(signature)")
        #expect(String(decoding: fields[1].value, as: UTF8.self) == "20150830T123600Z")
    }

    /// Answers of a route that conceals are searched for what depends on a secret, and for nothing else.
    @Test func secretsAreNamedAsTheyStandInTheFields() throws {
        let recipe = try recipe(
            """
                    text: "{request.method} {now}"
                    sig: "{sign.text | hmac_sha256(secret.key) | hex}"
                    inner: "k={secret.key} at {now}"
            """,
            """
                    - { header: X-Signature, value: "v1={sign.sig}" }
                    - { header: X-Timestamp, value: "{now}" }
                    - { header: X-Path, value: "{request.path | hex}" }
                    - { header: X-Auth, value: "id=7;key={secret.key};ts={now}" }
                    - { value: "Basic {'svc:' secret.key | base64}" }
                    - { header: Cookie, value: "a={sign.inner}; b={sign.inner | url}" }
                    - { header: X-Hash, value: "{secret.key | sha256 | hex}" }
            """)
        let named = try #require(try secrets(recipe))
        let fields = try sign(recipe, RequestToSign(method: "GET", url: "https://u.example.com/a?b=c")).map {
            String(decoding: $0.value, as: UTF8.self)
        }
        #expect(
            named == [
                String(fields[0].dropFirst("v1=".count)), Self.key,
                Base64.encode(Array("svc:\(Self.key)".utf8)),
                PercentEncoding.encode("k=\(Self.key) at 1440938160"), fields[6],
            ])
        #expect(named.allSatisfy { secret in fields.contains { $0.contains(secret) } })
        #expect(try secrets(recipe, named: false) == [])
    }

    /// A short secret is named where it stands by itself, so that the request is not sent; in a longer text that text is enough.
    @Test func shortSecretsAreNamedWhereTheyStandAlone() throws {
        func secrets(_ value: String) throws -> [String] {
            let recipe = try recipe("        a: \"{request.method}\"", "        { header: X-A, value: \"\(value)\" }")
            let material = RecipeMaterial.encode([RecipeSigningHandshake.part: ["key": Secret("short77")]])
            var request = RequestToSign(method: "GET", url: "https://u/")
            request.namesSecrets = true
            let signature = try material.withBytes { bytes in
                try RecipeSigner(recipe: recipe, identity: "a").sign(
                    request, with: bytes, wallSeconds: 0, entropy: Array(repeating: 1, count: 16))
            }
            return (signature.secrets ?? []).map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
        }
        #expect(try secrets("{sign.a} {secret.key}") == ["short77"])
        #expect(try secrets("{sign.a}{'user:' secret.key | base64}") == [Base64.encode(Array("user:short77".utf8))])
    }

    @Test func aFieldCannotBeBroken() throws {
        let recipe = try recipe(
            "        a: \"{request.header.X-A}\"", "        { header: X-Signed, value: \"{sign.a}\" }")
        func field(_ value: String) throws -> String {
            let request = RequestToSign(method: "GET", url: "https://u/", headers: [("x-a", value), ("X-A", "b")])
            return String(decoding: try sign(recipe, request)[0].value, as: UTF8.self)
        }
        #expect(try field("a") == "a, b")
        #expect(throws: SigningFault.self) { try field("a\r\nX: y") }
        #expect(throws: SigningFault.self) { try field("\u{0}") }
    }

    /// A signature over less than the request is none: without the body, or the secrets, nothing is signed.
    @Test func whatIsMissingIsNotSigned() throws {
        let body = try recipe(
            "        a: \"{request.path} {request.body_sha256 | hex}\"",
            "        { header: X-Signed, value: \"{sign.a}\" }")
        var request = RequestToSign(method: "GET", url: "https://u.example.com?q")
        #expect(throws: SigningFault("sign.a: the body is not at hand")) { try sign(body, request) }
        request.bodyDigest = [0xAB, 0x01]
        #expect(try sign(body, request).map(\.value) == [bytes("/ ab01")])
        #expect(throws: SigningFault("the values to sign with cannot be read")) {
            try bytes("no material").withUnsafeBytes { material in
                try RecipeSigner(recipe: body, identity: "a").sign(
                    request, with: material, wallSeconds: 0, entropy: Array(repeating: 1, count: 16))
            }
        }
    }

    /// A field without a value would be one that says nothing of who asks.
    @Test func anEmptyFieldIsNotSent() throws {
        let recipe = try recipe(
            "        a: \"{request.query}\"", "        { header: X-Signed, value: \"{sign.a}\" }")
        let fault = SigningFault("X-Signed: empty or too long")
        #expect(throws: fault) { try sign(recipe, RequestToSign(method: "GET", url: "https://u.example.com/")) }
        let long = "https://u.example.com/?" + String(repeating: "q", count: TokenAlphabet.longest + 1)
        #expect(throws: fault) { try sign(recipe, RequestToSign(method: "GET", url: long)) }
        #expect(
            try sign(recipe, RequestToSign(method: "GET", url: "https://u.example.com/?q=1")).map(\.value)
                == [bytes("q=1")])
    }

    @Test func anEmptyKeySignsNothing() async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["key"] = "" }
        let failed = await failure {
            _ = try await RecipeSigningHandshake(recipe: try aws(), identity: "a").acquire(
                Wanted(upstreamOrigin: "https://example.amazonaws.com"),
                environment: environment.over(ScriptedIssuer([])))
        }
        #expect(failed == .secretUnreadable(name: "key", reason: "empty"))
    }

    @Test func theKeysStayWithTheirUpstream() async throws {
        let handshake = RecipeSigningHandshake(recipe: try aws(), identity: "a")
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.secrets["key"] = Self.key }
        let issuer = ScriptedIssuer([])
        let away = await failure {
            _ = try await handshake.acquire(
                Wanted(upstreamOrigin: "https://elsewhere.example"), environment: environment.over(issuer))
        }
        #expect(away?.kind == "configuration")
        let grant = try await handshake.acquire(
            Wanted(upstreamOrigin: "https://example.amazonaws.com"), environment: environment.over(issuer))
        #expect(RecipeMaterial.decode(grant.token) == ["secret": ["key": Secret(Self.key)]])
    }

    @Test func laterValuesAreNotKnown() {
        let text = """
            identities:
              a:
                recipe:
                  secrets: { key: { value: env:K, to: https://u.example.com } }
                  sign: { a: "{sign.b}", b: "{now}", c: "{'x' | sha256}", d: "{sign.c}{sign.nope}" }
                  inject: { value: "{sign.c}" }
            routes: [{ listen: "127.0.0.1:8080", to: "https://u.example.com", use: a }]
            """
        let errors = Configuration.load(.text(text)) { _ in nil }.errors.map(\.message)
        #expect(errors.contains { $0.contains("cannot use 'sign.b': only values before it are known") })
        #expect(errors.contains { $0.contains("names 'sign.nope', which is not known here") })
        #expect(errors.contains { $0.contains("'value' in 'inject'") && $0.contains("puts raw bytes into text") })
    }
}
