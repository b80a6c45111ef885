import Configuration
import HTTP1
import TLS
import Testing

@testable import Handshakes

private func handshake(
    _ algorithms: [DigestFunction] = DigestFunction.allCases,
    _ protections: [DigestProtection] = [.auth], user: String = "Mufasa", realm: String? = nil, statuses: [Int]? = nil
) throws -> DigestHandshake {
    var settings = DigestSettings(username: user)
    settings.algorithms = algorithms
    settings.protections = protections
    settings.realm = realm
    return try DigestHandshake(settings, statuses: statuses)
}

/// Challenges as fields of one answer.
private func judge(_ lines: [String], _ scheme: DigestHandshake) -> ChallengeVerdict {
    scheme.judge(status: 401, wwwAuthenticate: lines.map(bytes), location: nil, requestURL: "https://a.example/x")
}

private func nonce(_ lines: String..., from scheme: DigestHandshake) throws -> DigestNonce {
    guard case .nonce(let found, _) = judge(lines, scheme) else {
        Issue.record("no nonce in \(lines): \(judge(lines, scheme))")
        throw CancellationError()
    }
    return try #require(found as? DigestNonce)
}

/// The parameters of a credential, as the parser of challenges reads them.
private func told(_ signature: RequestSignature) throws -> AuthChallenge {
    let field = try #require(signature.fields.first)
    #expect(signature.fields.count == 1 && field.name == "Authorization")
    return try #require(AuthChallenge.list([field.value]).first)
}

extension AuthChallenge {
    fileprivate func text(_ name: String) -> String? {
        if case .one(let value) = self[name] { return String(decoding: value, as: UTF8.self) }
        return nil
    }
}

private func sign(
    _ scheme: DigestHandshake, _ nonce: ServerNonce?, password: String = "Circle of Life", method: String = "GET",
    url: String = "https://a.example/dir/index.html", body: [UInt8]? = nil, namesSecrets: Bool = false
) throws -> RequestSignature {
    var request = RequestToSign(method: method, url: url, bodyDigest: body)
    request.namesSecrets = namesSecrets
    request.serverNonce = nonce
    let signer = try #require(scheme.signer)
    return try Secret(password).withBytes { (bytes) throws -> RequestSignature in
        try signer.sign(request, with: bytes, wallSeconds: 0, entropy: Array(repeating: 0xAB, count: 16))
    }
}

@Suite struct DigestResponseTests {
    struct Example: Sendable {
        var text: String
        var family: DigestFunction
        var challenge: (realm: String, nonce: String)
        var password: String
        var counted: (count: String, clientNonce: String)?
        var response: String
    }

    /// RFC 7616 §3.9.1, RFC 2617 §3.5, and the corrected example of RFC 2069 (erratum 749).
    @Test(arguments: [
        Example(
            text: "RFC 7616, MD5", family: .md5,
            challenge: ("http-auth@example.org", "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"),
            password: "Circle of Life", counted: ("00000001", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"),
            response: "8ca523f5e9506fed4657c9700eebdbec"),
        Example(
            text: "RFC 7616, SHA-256", family: .sha256,
            challenge: ("http-auth@example.org", "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"),
            password: "Circle of Life", counted: ("00000001", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"),
            response: "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        Example(
            text: "RFC 2617", family: .md5, challenge: ("testrealm@host.com", "dcd98b7102dd2f0e8b11d0f600bfb0c093"),
            password: "Circle Of Life", counted: ("00000001", "0a4f113b"),
            response: "6629fae49393a05397450978507c4ef1"),
        Example(
            text: "RFC 2069", family: .md5, challenge: ("testrealm@host.com", "dcd98b7102dd2f0e8b11d0f600bfb0c093"),
            password: "CircleOfLife", counted: nil, response: "1949323746fe6a43ef61f9606e7febea"),
    ]) func examples(_ example: Example) throws {
        let challenge = DigestChallenge(
            realm: bytes(example.challenge.realm), nonce: bytes(example.challenge.nonce),
            algorithm: DigestAlgorithm(example.family))
        let response = DigestResponse(
            challenge: challenge, protection: example.counted.map { _ in .auth }, username: bytes("Mufasa"),
            method: bytes("GET"), target: bytes("/dir/index.html"), count: bytes(example.counted?.count ?? ""),
            clientNonce: bytes(example.counted?.clientNonce ?? ""))
        let digests = try #require(Secret(example.password).withBytes { response.digests($0) })
        #expect(String(decoding: digests.response, as: UTF8.self) == example.response, "\(example.text)")
    }

    /// Erratum 4897 of RFC 7616: the hash is SHA-512/256, and not the first half of SHA-512 as printed there.
    @Test func aNameAsAHash() throws {
        let scheme = try handshake(user: "J\u{e4}s\u{f8}n Doe")
        let challenge = #"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="n", userhash=true"#
        let sent = try told(sign(scheme, try nonce(challenge, from: scheme)))
        #expect(sent.text("username") == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(
            sent.text("userhash") == "true" && sent.text("qop") == "auth" && sent.text("algorithm") == "SHA-512-256")
    }
}

@Suite struct DigestChallengeTests {
    private static let plain = #"Digest realm="r", nonce="n", qop="auth""#

    @Test(arguments: [
        ([plain + ", algorithm=MD5", plain + ", algorithm=SHA-256"], "sha-256"),
        (
            [plain + ", algorithm=SHA-256, Digest realm=\"r\", nonce=\"m\", qop=\"auth\", algorithm=SHA-512-256"],
            "sha-512-256"
        ),
        ([plain + ", algorithm=sha-256-SESS, " + plain], "sha-256"),
        ([plain], "md5"),
        (["Basic realm=\"x\", " + plain], "md5"),
        (["Digest realm=\"r", plain + ", algorithm=SHA-256"], "sha-256"),
        ([plain + ", algorithm=SHA-3", plain + ", algorithm=MD5"], "md5"),
    ]) func theStrongestIsTaken(_ lines: [String], _ family: String) throws {
        let scheme = try handshake()
        guard case .nonce(let found, let challenge) = judge(lines, scheme) else {
            Issue.record("none in \(lines)")
            return
        }
        #expect((found as? DigestNonce)?.challenge.algorithm.function.rawValue == family)
        #expect(challenge.resource == "https://a.example/x")
    }

    /// A domain that leads elsewhere is not even read.
    @Test func aDomainIsNoPlace() throws {
        let scheme = try handshake()
        let found = try nonce(Self.plain + ", domain=\"https://evil.example/\"", from: scheme)
        #expect(try told(sign(scheme, found)).text("domain") == nil)
    }

    @Test(arguments: [
        (#"Digest"#, "no nonce"),
        (#"Digest realm="r""#, "no nonce"),
        (#"Digest realm="r", nonce="""#, "no nonce"),
        (#"Digest realm="r", nonce="#, "malformed"),
        (#"Digest realm="r", nonce="n"#, "unterminated quoted string"),
        (#"Digest realm="r", nonce="n\"#, "unterminated quoted string"),
        (#"Digest realm="r" nonce="n""#, "malformed"),
        (#"Digest realm="r",, nonce="n", nonce="m""#, "duplicate nonce"),
        (#"Digest realm="r", REALM="s", nonce="n""#, "duplicate realm"),
        (#"Digest realm="r", nonce="n", qop="auth", qop="auth""#, "duplicate qop"),
        (#"Digest realm="r", nonce="n", algorithm=MD5, algorithm=MD5"#, "duplicate algorithm"),
        (#"Digest realm="r", nonce="n", opaque="a", opaque="b""#, "duplicate opaque"),
        (#"Digest realm="r", nonce="n", stale=true, stale=false"#, "duplicate stale"),
        (#"Digest realm="r", nonce="n", userhash=true, userhash=true"#, "duplicate userhash"),
        (#"Digest realm="r", nonce="n", charset="UTF-8", charset=x"#, "duplicate charset"),
        (#"Digest realm="r", nonce="n", algorithm="""#, "an algorithm that is not known"),
        (#"Digest realm="r", nonce="n", algorithm=SHA-1"#, "an algorithm that is not known"),
        (#"Digest realm="r", nonce="n", algorithm=SHA-256-session"#, "an algorithm that is not known"),
        (#"Digest realm="r", nonce="n", algorithm=MD5sess"#, "an algorithm that is not known"),
        (#"Digest realm="r", nonce="n", algorithm=MD5-sess"#, "a session without qop"),
        (#"Digest realm="r", nonce="n", qop="auth-conf""#, "no qop that is known"),
        (#"Digest realm="r", nonce="n", qop="auth;auth-int""#, "no qop that is known"),
        (#"Digest realm="r", nonce="n", qop="authauth-int""#, "no qop that is known"),
        (#"Digest realm="r", nonce="n", qop="auth-int""#, "offers auth-int alone, which 'qop' does not name"),
        ("Digest realm=\"r\u{1}\", nonce=\"n\"", "control character"),
        ("Digest realm=\"r\", nonce=\"a\u{0}b\"", "control character"),
        ("Digest realm=\"r\", nonce=\"a\u{7F}b\"", "control character"),
        ("Digest realm=\"r\", nonce=\"n\", opaque=\"\u{8}\"", "control character"),
        ("Digest \u{0}", "malformed"),
        (#"Digest realm="r", nonce="n", =x"#, "malformed"),
        (#"Digest nonce"#, "malformed"),
        (#"Digest realm=, nonce="n""#, "malformed"),
        (#"Digest realm="r", nonce="n" x"#, "malformed"),
        (#"Digest realm="r", nonce=n@m"#, "malformed"),
        (#"Digest realm="r", nonce="n"; qop=auth"#, "malformed"),
        (#"Digest bm9uY2U="#, "malformed"),
        (#"Digest realm='r', nonce='n', nonce='m'"#, "duplicate nonce"),
        ("Digest realm=\"\(String(repeating: "r", count: 1025))\", nonce=\"n\"", "realm of more than 1024 bytes"),
        ("Digest realm=\"r\", nonce=\"\(String(repeating: "n", count: 2049))\"", "nonce of more than 2048 bytes"),
        (
            "Digest realm=\"r\", nonce=\"n\", opaque=\"\(String(repeating: "o", count: 2049))\"",
            "opaque of more than 2048 bytes"
        ),
        (
            "Digest realm=\"r\", nonce=\"n\", algorithm=\(String(repeating: "a", count: 65))",
            "algorithm of more than 64 bytes"
        ),
        (
            "Digest realm=\"r\", nonce=\"n\", qop=\"\(String(repeating: "a", count: 257))\"",
            "qop of more than 256 bytes"
        ),
        ("Digest realm=\"r\", nonce=\"n\", stale=\(String(repeating: "t", count: 65))", "stale of more than 64 bytes"),
        (
            "Digest realm=\"r\", nonce=\"n\", charset=\(String(repeating: "t", count: 65))",
            "charset of more than 64 bytes"
        ),
        ("Digest " + (0..<80).map { "a\($0)=b" }.joined(separator: ", "), "too many parameters"),
    ]) func whatCannotBeAnswered(_ line: String, _ reason: String) throws {
        #expect(judge([line], try handshake()) == .unusable(reason: "Digest: \(reason)"))
    }

    @Test(arguments: [
        "", "Basic realm=\"x\"", "Digested realm=\"r\", nonce=\"n\"", "realm=\"Digest\", nonce=\"n\"",
        "Negotiate, NTLM",
    ])
    func whatIsNotForIt(_ line: String) throws {
        #expect(judge([line], try handshake()) == .none)
    }

    @Test func whatIsNotAllowed() throws {
        let md5 = Self.plain
        #expect(
            judge([md5], try handshake([.sha512Truncated256, .sha256]))
                == .unusable(reason: "Digest: offers md5 alone, which 'algorithms' does not name"))
        #expect(
            judge([md5], try handshake(realm: "s"))
                == .unusable(reason: "Digest: another realm than 'realm' names"))
        #expect(
            judge([#"Digest realm="r", nonce="n""#], try handshake([.md5], [.authInt]))
                == .unusable(reason: "Digest: offers no auth-int, which 'qop' asks for"))
        #expect(
            judge([md5], try handshake([.md5], [.authInt]))
                == .unusable(reason: "Digest: offers auth alone, which 'qop' does not name"))
    }

    /// Whatever statuses a route names: without an answer to a 401 nothing can be sent at all.
    @Test func a401IsAlwaysLookedAt() throws {
        #expect(try handshake(statuses: [403]).inspectedStatuses == [401, 403])
        #expect(try handshake(statuses: [401]).inspectedStatuses == [401])
        #expect(try handshake().inspectedStatuses == [401])
        for name in ["", "a:b", "a\nb"] { #expect(throws: GrantFailure.self) { try handshake(user: name) } }
    }
}

@Suite struct DigestSignerTests {
    private static let challenge = #"Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256, opaque="o\"p""#

    @Test func eachUseHasItsNumber() throws {
        let scheme = try handshake()
        let nonce = try nonce(Self.challenge, from: scheme)
        for count in 1...3 {
            let signature = try sign(scheme, nonce)
            #expect(try told(signature).text("nc") == "0000000\(count)")
            #expect(signature.answer?.count == UInt32(count) && signature.answer?.nonce === nonce)
        }
        let sent = try told(sign(scheme, nonce))
        #expect(sent.text("opaque") == #"o"p"# && sent.text("uri") == "/dir/index.html" && sent.text("realm") == "r")
        #expect(sent.text("cnonce") == String(repeating: "ab", count: 16) && sent.text("username") == "Mufasa")
    }

    /// Realm, nonce and target are the server's and the caller's.
    @Test func theResponseIsTheSecret() throws {
        let scheme = try handshake([.sha256])
        let signature = try sign(scheme, try nonce(Self.challenge, from: scheme), namesSecrets: true)
        let response = try #require(try told(signature).text("response"))
        #expect(signature.secrets == [Secret(response)])
        #expect(try sign(scheme, try nonce(Self.challenge, from: scheme)).secrets == [])
    }

    @Test func withoutANonceNothingIsSent() throws {
        let scheme = try handshake()
        let signature = try sign(scheme, nil)
        #expect(signature.fields.isEmpty && signature.answer == nil)
        // Nor with one that this identity may not answer, which another one has left on the connection.
        let other = try nonce(#"Digest realm="r", nonce="n", qop="auth""#, from: scheme)
        #expect(try sign(try handshake([.sha256]), other).fields.isEmpty && other.uses == 0)
    }

    @Test(arguments: [
        ("https://a.example/a/b?c=d", "/a/b?c=d"), ("http://a.example", ""), ("http://a.example?x=/", "?x=/"),
        ("*", "*"),
        ("https://a.example/x://y", "/x://y"),
    ]) func theTargetIsThatOfTheServer(_ url: String, _ target: String) throws {
        let scheme = try handshake()
        #expect(try told(sign(scheme, try nonce(Self.challenge, from: scheme), url: url)).text("uri") ?? "" == target)
    }

    /// The field cannot hold it.
    @Test func aTargetThatIsTooLongIsNotSigned() throws {
        let scheme = try handshake()
        let nonce = try nonce(Self.challenge, from: scheme)
        #expect(throws: SigningFault("the challenge does not fit into a field")) {
            try sign(scheme, nonce, url: "https://a.example/" + String(repeating: "a", count: 33_000))
        }
    }

    @Test func onlyWhatIsCoveredIsHashed() throws {
        let both = try handshake(DigestFunction.allCases, [.auth, .authInt])
        let challenge = #"Digest realm="r", nonce="n", qop="auth,auth-int", algorithm=SHA-256"#
        let covered = try nonce(challenge, from: both)
        let signer = try #require(both.signer)
        #expect(signer.readsBody && signer.bodyHash(answering: covered) == .sha256)
        #expect(signer.bodyHash(answering: nil) == nil)
        #expect(signer.bodyHash(answering: try nonce(Self.challenge, from: both)) == nil)
        let signature = try sign(both, covered, body: [1, 2])
        #expect(try told(signature).text("qop") == "auth-int" && signature.answer?.proof == nil)
        #expect(try told(sign(both, covered, body: [1, 3])).text("response") != told(signature).text("response"))
        let plain = try #require(try handshake().signer)
        #expect(!plain.readsBody)
    }

    private func review(_ fields: String..., after answer: NonceAnswer, _ scheme: DigestHandshake) throws -> NonceReview
    {
        try #require(scheme.signer).review(
            UpstreamAnswer(
                status: 200, fields: fields.map { (bytes("Authentication-Info"), bytes($0)) }, requestURL: "",
                requestMethod: []), to: answer)
    }

    @Test func anAnswerMayNameTheNextNonce() throws {
        let scheme = try handshake()
        let nonce = try nonce(Self.challenge, from: scheme)
        let answer = try #require(try sign(scheme, nonce).answer)
        guard case .next(let next) = try review(#"nextnonce="m", qop=auth"#, after: answer, scheme) else {
            Issue.record("no next nonce")
            return
        }
        #expect(next.uses == 0 && !next.isStale)
        #expect(try told(sign(scheme, next)).text("nonce") == "m" && told(sign(scheme, next)).text("realm") == "r")
        for nothing in [
            "", "qop=auth", #"nextnonce="n""#, #"nextnonce="""#, #"nextnonce="m", nextnonce="o""#, #"nextnonce="m"#,
            "nextnonce=\"\(String(repeating: "m", count: 2049))\"",
        ] {
            guard case .nothing = try review(nothing, after: answer, scheme) else {
                Issue.record("\(nothing)")
                continue
            }
        }
    }

    @Test func aProofIsLookedAt() throws {
        let scheme = try handshake()
        let answer = try #require(try sign(scheme, try nonce(Self.challenge, from: scheme)).answer)
        let proof = String(decoding: try #require(answer.proof), as: UTF8.self)
        #expect(proof.count == 64)
        for (field, isGood) in [
            (proof, true), (proof.uppercased(), true), (String(proof.dropLast()), false),
            (String(proof.reversed()), false), ("", false),
        ] {
            switch try review("rspauth=\"\(field)\"", after: answer, scheme) {
            case .forged: #expect(!isGood, "\(field)")
            default: #expect(isGood, "\(field)")
            }
        }
    }

    /// RFC 7616 §3.4.2: the key of a session is made with the first nonce and the first nonce of ours, also when another one follows.
    @Test func aSessionKeepsItsKey() throws {
        let scheme = try handshake()
        let first = try nonce(#"Digest realm="r", nonce="n", qop="auth", algorithm=MD5-sess"#, from: scheme)
        let answer = try #require(try sign(scheme, first).answer)
        guard case .next(let next) = try review(#"nextnonce="m""#, after: answer, scheme) else {
            Issue.record("no next nonce")
            return
        }
        #expect((next as? DigestNonce)?.session?.nonce == bytes("n"))
        #expect(first.session?.clientNonce == bytes(String(repeating: "ab", count: 16)))
    }
}
