import Configuration
import TLS
import Testing

@testable import Handshakes

/// 2013-05-24T00:00:00Z, the time of AWS's own examples.
private let exampleTime: Int64 = 1_369_353_600

private func signed(
    _ settings: AWSSigV4Settings, _ target: [UInt8], method: String = "GET", host: String,
    _ fields: [(name: String, value: String)] = [], body: [UInt8] = [], token: String? = nil,
    replaced: [(name: String, value: String)] = []
) throws -> [InjectedField] {
    let key = try AWSSigV4AccessKey(
        id: Secret("AKIAIOSFODNN7EXAMPLE"), secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        sessionToken: token.map { Secret($0) })
    var request = RequestToSign(
        method: method, url: "", headers: [("Host", host)] + fields,
        bodyDigest: settings.payload == .signed ? sha256(body) : nil)
    request.target = target
    request.received = fields + replaced
    return try key.encoded.withBytes { (material) throws -> [InjectedField] in
        try AWSSigV4Signer(settings: settings).sign(
            request, with: material, wallSeconds: exampleTime, entropy: []
        ).fields
    }
}

private func text(_ field: InjectedField?) -> String { String(decoding: field?.value ?? [], as: UTF8.self) }

@Suite struct AWSSigV4SignatureTests {
    /// The hash of a body stands in the answers to many requests, and a date in more.
    @Test func theSignatureAndTheSessionTokenAreTheSecrets() throws {
        let key = try AWSSigV4AccessKey(
            id: Secret("AKIAIOSFODNN7EXAMPLE"), secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            sessionToken: Secret("session-token"))
        var request = RequestToSign(
            method: "GET", url: "https://s3.amazonaws.com/", headers: [("Host", "s3.amazonaws.com")],
            bodyDigest: sha256([]))
        func signature() throws -> RequestSignature {
            try key.encoded.withBytes { (material) throws -> RequestSignature in
                try AWSSigV4Signer(settings: AWSSigV4Settings()).sign(
                    request, with: material, wallSeconds: exampleTime, entropy: [])
            }
        }
        #expect(try signature().secrets == [])
        request.namesSecrets = true
        let signed = try signature()
        let digits = try #require(text(signed.fields.first).split(separator: "Signature=").last)
        #expect(digits.count == AWSSigV4Signature.length)
        #expect(signed.secrets == [Secret(String(digits)), Secret("session-token")])
    }

    struct Example: Sendable {
        var settings = AWSSigV4Settings()
        var method = "GET"
        var target: String
        var host: String
        var fields: [String: String] = [:]
        var body = ""
        var token: String?
        var scope: String
        var names = "host;x-amz-content-sha256;x-amz-date"
        var signature: String
    }

    private static let unsigned: AWSSigV4Settings = {
        var settings = AWSSigV4Settings()
        settings.payload = .unsigned
        return settings
    }()

    static let examples = [
        // The first two are AWS's own, of the documentation of S3.
        Example(
            target: "/?lifecycle", host: "examplebucket.s3.amazonaws.com", scope: "us-east-1/s3",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            target: "/?max-keys=2&prefix=J", host: "examplebucket.s3.amazonaws.com", scope: "us-east-1/s3",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        // The others were computed with botocore.
        Example(
            target: "/a/../b//c(d)%2fe%20f", host: "examplebucket.s3.amazonaws.com", scope: "us-east-1/s3",
            signature: "4a988abcd7ec0b4625540493310efcf44409c1e5bf7510d047e7509ff7af4706"),
        Example(
            method: "POST", target: "/v1/./x/../items//%C3%A4?b=2&a=&a&b=1+2",
            host: "abc.execute-api.eu-west-1.amazonaws.com",
            fields: ["content-type": "application/json;  charset=utf-8", "X-Amz-Target": " A , B  C"],
            body: "{\"a\":1}", token: "FwoGZXIvYXdzEXAMPLE", scope: "eu-west-1/execute-api",
            names: "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token;x-amz-target",
            signature: "16d8739534032b8acba75d867cc16240f3e373f4fe5295f91022ecf6923b8b73"),
        Example(
            settings: unsigned, method: "PUT", target: "/key", host: "b.s3.eu-west-1.amazonaws.com:8443",
            scope: "eu-west-1/s3", signature: "6ce1f26ceec6206ff2c4efccc42a0f93f5fc273ad6432928b3eafc077538cb2a"),
    ]

    @Test(arguments: examples)
    func examplesAreSignedAsTheyShouldBe(_ example: Example) throws {
        let fields = try signed(
            example.settings, bytes(example.target), method: example.method, host: example.host,
            example.fields.map { ($0.key, $0.value) }, body: bytes(example.body), token: example.token)
        #expect(
            text(fields.first)
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/\(example.scope)/aws4_request, "
                + "SignedHeaders=\(example.names), Signature=\(example.signature)")
        #expect(text(fields.first { $0.name == "X-Amz-Date" }) == "20130524T000000Z")
        #expect(text(fields.first { $0.name == "X-Amz-Security-Token" }) == example.token ?? "")
        #expect(fields.allSatisfy { AWSSigV4Signer.names.contains($0.name) })
    }

    /// The lines of one name are one value, in their order.
    @Test func linesOfOneNameAreJoined() throws {
        var fields = AWSSigV4Fields()
        for (name, value) in [("X-Amz-B", "  a \t b "), ("x-amz-a", ""), ("X-AMZ-B", "c")] { fields.add(name, value) }
        #expect(String(decoding: fields.canonical, as: UTF8.self) == "x-amz-a:\nx-amz-b:a b,c\n")
        #expect(fields.signedNames == "x-amz-a;x-amz-b")
    }

    @Test func fieldsThatAProxyMayChangeAreNotSigned() {
        for name in [
            "User-Agent", "Connection", "Via", "Accept-Encoding", "X-Amzn-Trace-Id", "Cookie", "Date", "x_amz_a",
        ] {
            #expect(!AWSSigV4Fields.signs(name))
        }
        for name in ["HOST", "Content-Type", "content-md5", "X-Amz-Meta-A"] { #expect(AWSSigV4Fields.signs(name)) }
    }

    @Test(arguments: [
        ("/", "/"), ("", "/"), ("/a/./b", "/a/b"), ("/a/../../b", "/b"), ("/a//b///", "/a/b/"), ("/..", "/"),
        ("/a/..", "/"),
        ("/a/.", "/a"), ("/a/./", "/a/"), ("/%20~*", "/%2520~%2A"), ("/.../..a", "/.../..a"),
        ("/a/../", "/"), ("/%2E%2E/a", "/%252E%252E/a"),
    ])
    func pathsOfMostServicesAreNormalised(path: String, canonical: String) {
        #expect(
            AWSSigV4Path.normalised.canonical(bytes(path)[...]).map { String(decoding: $0, as: UTF8.self) } == canonical
        )
    }

    @Test(arguments: [
        ("/", "/"), ("", "/"), ("/a/./b/..//c", "/a/./b/..//c"), ("/%c3%a4(1)", "/%C3%A4%281%29"),
        ("/%7Ea%2Fb", "/~a/b"),
        ("/a+b", "/a%2Bb"), ("/%zz", nil), ("/%", nil), ("/%4", nil), ("/%25zz", "/%25zz"),
    ])
    func pathsOfS3StayAsTheyAre(path: String, canonical: String?) {
        #expect(
            AWSSigV4Path.asItStands.canonical(bytes(path)[...]).map { String(decoding: $0, as: UTF8.self) } == canonical
        )
    }

    @Test(arguments: [
        ("", ""), ("&&", ""), ("a", "a="), ("=b", "=b"), ("b=1&a=2&a=1&A=3", "A=3&a=1&a=2&b=1"), ("a=b+c", "a=b%20c"),
        ("a=b=c", "a=b%3Dc"), ("p=a/b%2fc", "p=a%2Fb%2Fc"), ("a-=1&a=2", "a=2&a-=1"), ("%zz", nil), ("a=%", nil),
    ])
    func queriesAreSorted(query: String, canonical: String?) {
        #expect(AWSSigV4Query(bytes(query)[...]).map { String(decoding: $0.canonical, as: UTF8.self) } == canonical)
    }

    /// Octets that are no text are signed as they are sent.
    @Test func octetsBeyondASCII() {
        #expect(AWSSigV4Path.normalised.canonical([0x2F, 0xE4, 0xFF]) == bytes("/%E4%FF"))
        #expect(AWSSigV4Path.asItStands.canonical([0x2F, 0xE4, 0x25, 0x45, 0x34]) == bytes("/%E4%E4"))
        #expect(AWSSigV4Query([0x61, 0x3D, 0xE4])?.canonical == bytes("a=%E4"))
    }

    /// A proxy without a tunnel is told the whole URL, and the server behind it the path alone.
    @Test func theFormOfTheTargetDoesNotCount() throws {
        let settings = AWSSigV4Settings(service: "s3", region: "r")
        let plain = try signed(settings, bytes("/a?b=c"), host: "h")
        #expect(try signed(settings, bytes("http://h/a?b=c"), host: "h") == plain)
        #expect(throws: SigningFault.self) { try signed(settings, bytes("*"), host: "h") }
    }
}

@Suite struct AWSSigV4RefusalTests {
    private func fault(
        _ target: String = "/", _ fields: [(name: String, value: String)] = [],
        replaced: [(name: String, value: String)] = []
    ) -> SigningFault? {
        do {
            _ = try signed(AWSSigV4Settings(), bytes(target), host: "sts.amazonaws.com", fields, replaced: replaced)
            return nil
        } catch { return error as? SigningFault }
    }

    @Test func requestsThatBringASignatureOfTheirOwn() {
        for target in ["/?X-Amz-Signature=0", "/?a&x-amz-algorithm", "/?X%2DAmz-Signature"] {
            #expect(fault(target)?.isCallers == true)
        }
        #expect(fault("/?X-Amz-Signature-Of=0&signature=1") == nil)
        for field in [
            ("content-encoding", "AWS-chunked"), ("X-Amz-Decoded-Content-Length", "0"), ("x-amz-trailer", "a"),
        ] {
            #expect(fault("/", [field])?.isCallers == true)
        }
        #expect(
            fault("/", replaced: [("x-amz-content-sha256", "streaming-UNSIGNED-PAYLOAD-TRAILER")])?.isCallers == true)
        #expect(fault("/", replaced: [("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), ("authorization", "a")]) == nil)
    }

    @Test func whatCannotBeSignedAsItIsSent() {
        for target in ["/?%zz", "/%zz", "*", "a"] { #expect(fault(target)?.isCallers == true) }
        #expect(fault("/", [("x-amz-a", "caf\u{FFFD}")])?.isCallers == true)
        #expect(fault("/", [("x-other", "caf\u{FFFD}")]) == nil)
        let many = (0..<2000).map { (name: "x-amz-meta-number-\($0)", value: "") }
        #expect(fault("/", many)?.isCallers == true)
    }

    @Test func aHostThatNamesNoServiceIsAFaultOfTheConfiguration() {
        #expect(throws: SigningFault("the host names no service and region of AWS")) {
            try signed(AWSSigV4Settings(service: "s3"), bytes("/"), host: "storage.example.com")
        }
    }

    @Test func everyDrawnTargetIsSignedOrRefused() throws {
        // The same octets in each run.
        var state: UInt64 = 4
        func draw() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        let settings = AWSSigV4Settings(service: "s3", region: "r")
        let octets = bytes("/%2?&=+.aZ~") + [0, 0x80, 0xFF]
        for round in 0..<5000 {
            let target = [0x2F] + (0..<(round % 40)).map { _ in octets[draw() % octets.count] }
            do {
                let fields = try signed(settings, target, host: "h")
                #expect(fields.allSatisfy { field in field.value.allSatisfy { (0x20...0x7E).contains($0) } })
            } catch let fault as SigningFault { #expect(fault.isCallers) }
        }
    }
}

@Suite struct AWSSigV4KeyTests {
    private static let wanted = Wanted(upstreamOrigin: "https://sts.eu-west-1.amazonaws.com")

    private func acquire(_ secrets: [String: String]) async throws(GrantFailure) -> AccessGrant {
        var state = MemoryEnvironment.State()
        state.secrets = secrets
        var settings = AWSSigV4Settings()
        settings.hasSessionToken = secrets["session_token"] != nil
        return try await AWSSigV4Handshake(settings: settings).acquire(
            Self.wanted, environment: MemoryEnvironment(state).over(ScriptedIssuer([])))
    }

    @Test func theKeyComesBackOutOfItsMaterial() async throws {
        let grant = try await acquire(["access_key_id": "AKIA1", "secret_access_key": "a/b+c", "session_token": "t=/+"])
        let key = try #require(AWSSigV4AccessKey(grant.token))
        #expect((key.id, key.secret.text, key.sessionToken) == ("AKIA1", "a/b+c", "t=/+"))
        #expect(AWSSigV4AccessKey(Secret("x")) == nil)
    }

    @Test func valuesThatFitNoSignatureAreNotSent() async {
        let good = ["access_key_id": "AKIA1", "secret_access_key": "key", "session_token": "token"]
        for (name, value) in [
            ("access_key_id", ""), ("access_key_id", "a/b"), ("access_key_id", "a,b"), ("access_key_id", "a b"),
            ("access_key_id", String(repeating: "a", count: 129)), ("secret_access_key", ""),
            ("secret_access_key", "a\nb"), ("secret_access_key", String(repeating: "a", count: 1025)),
            ("session_token", ""), ("session_token", "a b"), ("session_token", "a\r\nb"),
            ("session_token", String(repeating: "a", count: 16 * 1024 + 1)),
        ] {
            let failed = await failure { _ = try await acquire(good.merging([name: value]) { $1 }) }
            #expect(failed?.kind == "secret", "\(name): \(value.prefix(9))")
        }
    }
}

@Suite struct AWSSigV4EndpointTests {
    @Test(arguments: [
        ("sts.eu-west-1.amazonaws.com", "sts", "eu-west-1"), ("STS.EU-West-1.amazonaws.com:443", "sts", "eu-west-1"),
        ("iam.amazonaws.com", "iam", "us-east-1"), ("sts.amazonaws.com", "sts", "us-east-1"),
        ("s3.amazonaws.com", "s3", "us-east-1"), ("a.b.s3.amazonaws.com", "s3", "us-east-1"),
        ("b.s3.eu-west-1.amazonaws.com", "s3", "eu-west-1"),
        ("b.s3.dualstack.eu-west-1.amazonaws.com", "s3", "eu-west-1"),
        ("b.s3-fips.us-gov-west-1.amazonaws.com", "s3", "us-gov-west-1"),
        ("s3-eu-west-1.amazonaws.com", "s3", "eu-west-1"),
        ("b.s3-accelerate.amazonaws.com", "s3", nil), ("us-east-2.s3.amazonaws.com", "s3", "us-east-1"),
        ("eu-west-1.s3.us-west-2.amazonaws.com", "s3", "us-west-2"),
        ("b.vpce-1-a.s3.eu-west-1.vpce.amazonaws.com", "s3", "eu-west-1"),
        ("s3.cn-north-1.amazonaws.com.cn", "s3", "cn-north-1"),
        ("a1.execute-api.eu-central-1.amazonaws.com", "execute-api", "eu-central-1"),
        ("search-a.eu-west-1.es.amazonaws.com", "es", "eu-west-1"),
        ("a.eu-west-1.aoss.amazonaws.com", "aoss", "eu-west-1"),
        ("a1.lambda-url.eu-west-1.on.aws", "lambda", "eu-west-1"), ("lambda.eu-west-1.api.aws", "lambda", "eu-west-1"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "bedrock", "us-east-1"),
        ("email.eu-west-1.amazonaws.com", "ses", "eu-west-1"),
        ("api.ecr.eu-west-1.amazonaws.com", "ecr", "eu-west-1"),
        ("streams.dynamodb.eu-west-1.amazonaws.com", "dynamodb", "eu-west-1"),
        ("a--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com", nil, "us-east-1"),
        ("pinpoint.eu-west-1.amazonaws.com", "mobiletargeting", "eu-west-1"),
        ("sms-voice.pinpoint.eu-west-1.amazonaws.com", nil, "eu-west-1"),
        ("resource-explorer-2.eu-west-1.amazonaws.com", "resource-explorer-2", "eu-west-1"),
        ("b.s3-website.eu-west-1.amazonaws.com", nil, "eu-west-1"),
        ("data-ats.iot.eu-west-1.amazonaws.com", nil, "eu-west-1"), ("iot.eu-west-1.amazonaws.com", "iot", "eu-west-1"),
        ("a.eu-west-1.elb.amazonaws.com", nil, nil), ("unknown.amazonaws.com", nil, nil), ("amazonaws.com", nil, nil),
        (".amazonaws.com", nil, nil), ("a..eu-west-1.amazonaws.com", nil, nil),
        ("eu-west-1.amazonaws.com", nil, "eu-west-1"),
        ("sts.eu-west-1.amazonaws.com.example.com", nil, nil), ("notamazonaws.com", nil, nil), ("", nil, nil),
        ("[::1]:80", nil, nil),
    ])
    func hosts(host: String, service: String?, region: String?) {
        let found = AWSSigV4Endpoint(host: host)
        #expect((found.service, found.region) == (service, region))
    }

    @Test func settingsComeBeforeTheHost() {
        #expect(AWSSigV4Settings(service: "x").scope(at: "s3.eu-west-1.amazonaws.com") == ("x", "eu-west-1"))
        #expect(AWSSigV4Settings(region: "y").scope(at: "s3.eu-west-1.amazonaws.com") == ("s3", "y"))
        #expect(AWSSigV4Settings(service: "x", region: "y").scope(at: "") == ("x", "y"))
    }
}
