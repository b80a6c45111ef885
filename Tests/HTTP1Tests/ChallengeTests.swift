import Testing

@testable import HTTP1

/// A challenge as text: `scheme|token68|name=value,name=value|fault`.
private func shown(_ challenge: Challenge, _ bytes: [UInt8]) -> String {
    var parts: [String] = []
    for index in 0..<challenge.parameterCount {
        let parameter = challenge[index]
        let value = text(Challenge.unescaped(parameter, in: bytes.span))
        parts.append("\(text(bytes, parameter.name) ?? "")=\(value)")
    }
    var faults = ""
    if challenge.faults.contains(.malformed) { faults += "M" }
    if challenge.faults.contains(.duplicateParameter) { faults += "D" }
    if challenge.faults.contains(.unterminatedQuote) { faults += "U" }
    if challenge.faults.contains(.controlOctet) { faults += "C" }
    if challenge.faults.contains(.tooManyParameters) { faults += "T" }
    let scheme = text(bytes, challenge.scheme) ?? ""
    let token68 = text(bytes, challenge.token68) ?? ""
    return "\(scheme)|\(token68)|\(parts.joined(separator: ","))|\(faults)"
}

private func read(_ value: String) -> [String] {
    let bytes = octets(value)
    var list = ChallengeList(value: ByteRange(0..<bytes.count))
    var result: [String] = []
    while let challenge = list.next(bytes.span) { result.append(shown(challenge, bytes)) }
    return result
}

private func read(fields: [String]) throws -> [String] {
    let lines = fields.map { "\($0)\r\n" }.joined()
    let bytes = octets("HTTP/1.1 401 Authorization Required\r\n\(lines)Content-Length: 0\r\n\r\n")
    let head = try parsedResponse(bytes)
    var list = ChallengeList(head)
    var result: [String] = []
    while let challenge = list.next(bytes.span) { result.append(shown(challenge, bytes)) }
    return result
}

@Suite struct ChallengeTests {
    static let lists: [(String, [String])] = [
        // RFC 9110 §11.6.1 and its corners
        ("", []),
        (" , ,, ", []),
        (
            "Basic realm=\"a\", Bearer realm=\"b\", error=\"invalid_token\"",
            ["Basic||realm=a|", "Bearer||realm=b,error=invalid_token|"]
        ),
        ("Newauth x=1 , , Basic realm=\"q\\\"z\"", ["Newauth||x=1|", "Basic||realm=q\"z|"]),
        ("DPoP algs=\"ES256 PS256\"", ["DPoP||algs=ES256 PS256|"]),
        ("Negotiate", ["Negotiate|||"]),
        ("Negotiate YII=", ["Negotiate|YII=||"]),
        ("Negotiate YII==, Basic realm=x", ["Negotiate|YII==||", "Basic||realm=x|"]),
        ("NTLM, Negotiate, Basic realm=\"x\"", ["NTLM|||", "Negotiate|||", "Basic||realm=x|"]),
        ("Basic realm = \"a\" ,\tcharset\t=\tUTF-8", ["Basic||realm=a,charset=UTF-8|"]),
        ("Basic , realm=a", ["Basic||realm=a|"]),
        ("Basic realm=\"\"", ["Basic||realm=|"]),
        ("Basic realm=\"a, Bearer realm=b\"", ["Basic||realm=a, Bearer realm=b|"]),
        ("Basic realm=\"\u{E9}\"", ["Basic||realm=\u{E9}|"]),
        ("Scheme a-b.c_d~e+f/g", ["Scheme|a-b.c_d~e+f/g||"]),
        ("Scheme a=b=c, Basic realm=x", ["Scheme||a=b|M", "Basic||realm=x|"]),
        // An `=` at the end is token68, not a parameter without a value.
        ("Basic realm=", ["Basic|realm=||"]),
        ("Basic realm= , x=1", ["Basic|realm=|x=1|M"]),

        // Malformed: the challenge is marked, the list goes on
        ("Basic realm=\"a\" realm2=\"b\", Bearer realm=c", ["Basic||realm=a|M", "Bearer||realm=c|"]),
        ("Basic realm=\"a\", realm=b, Bearer realm=c", ["Basic||realm=a,realm=b|D", "Bearer||realm=c|"]),
        ("Basic Realm=a, rEALM=b", ["Basic||Realm=a,rEALM=b|D"]),
        ("Basic realm=\"a", ["Basic|||U"]),
        ("Basic realm=\"a\\", ["Basic|||U"]),
        ("Basic realm=\"a\\\"", ["Basic|||U"]),
        ("Basic realm=\"a\0b\"", ["Basic||realm=a\0b|C"]),
        ("Basic realm=\"a\nb\", Bearer x=y", ["Basic||realm=a b|C", "Bearer||x=y|"]),
        ("x=1, Basic realm=a", ["Basic||realm=a|"]),
        ("x = 1, Basic realm=a", ["Basic||realm=a|"]),
        ("\"quoted\", Basic realm=a", ["Basic||realm=a|"]),
        ("Basic realm=a, \"junk, more\", Bearer b=c", ["Basic||realm=a|M", "Bearer||b=c|"]),
        ("Basic realm=a,=b, Bearer b=c", ["Basic||realm=a|M", "Bearer||b=c|"]),
        ("Basic@ realm=a, Bearer b=c", ["Bearer||b=c|"]),
        ("Basic a b, Bearer b=c", ["Basic|||M", "Bearer||b=c|"]),

        // OAM (docs/design/wire/oam-webgate.md#challenge)
        (
            "OAM-Auth realm=\"WG1:2 /rest/a\", request-ctx=\"e%3D1\"",
            ["OAM-Auth||realm=WG1:2 /rest/a,request-ctx=e%3D1|"]
        ),
        (
            "oam-auth request-ctx=\"e%3D1\" , realm=\"WG1:2 /rest/a b?x=1:2\"",
            ["oam-auth||request-ctx=e%3D1,realm=WG1:2 /rest/a b?x=1:2|"]
        ),
        (
            "Basic realm=\"x, y\", OAM-Auth realm=\"h:7777:3 /p\", request-ctx=\"c\"",
            ["Basic||realm=x, y|", "OAM-Auth||realm=h:7777:3 /p,request-ctx=c|"]
        ),
        ("OAM-Auth realm=\"WG1:2/rest\", request-ctx=\"c\"", ["OAM-Auth||realm=WG1:2/rest,request-ctx=c|"]),
        ("OAM-Auth realm=\"odd realm\", request-ctx=\"c\"", ["OAM-Auth||realm=odd realm,request-ctx=c|"]),
        ("OAM-Auth realm=\"WG1:2 /a\"", ["OAM-Auth||realm=WG1:2 /a|"]),
        ("OAM-Auth request-ctx=encquery%3Dp_Q-7~.%2B", ["OAM-Auth||request-ctx=encquery%3Dp_Q-7~.%2B|"]),
        ("OAM-Auth request-ctx=ab/c+d==, Basic realm=\"x\"", ["OAM-Auth||request-ctx=ab|M", "Basic||realm=x|"]),
        ("OAM-Auth request-ctx=abc=, Basic realm=\"x\"", ["OAM-Auth||request-ctx=abc|M", "Basic||realm=x|"]),
        ("OAM-Auth realm=\"a\\:2\", request-ctx=\"a\\%3D\"", ["OAM-Auth||realm=a:2,request-ctx=a%3D|"]),
    ]

    @Test(arguments: lists)
    func reads(value: String, challenges: [String]) {
        #expect(read(value) == challenges)
    }

    static let fields: [([String], [String])] = [
        (
            ["WWW-Authenticate: Basic realm=\"a\"", "www-authenticate: Bearer realm=\"b\""],
            ["Basic||realm=a|", "Bearer||realm=b|"]
        ),
        // One list over all lines: a parameter belongs to the challenge before it.
        (
            ["WWW-Authenticate: Newauth x=1", "A: b", "WWW-Authenticate: y=2, Basic realm=c"],
            ["Newauth||x=1,y=2|", "Basic||realm=c|"]
        ),
        (["WWW-Authenticate: Negotiate", "WWW-Authenticate: NTLM"], ["Negotiate|||", "NTLM|||"]),
        (
            ["WWW-Authenticate: Basic realm=\"a", "WWW-Authenticate: Bearer realm=b"],
            ["Basic|||U", "Bearer||realm=b|"]
        ),
        (["WWW-Authenticate:", "WWW-Authenticate: ,", "WWW-Authenticate: Basic"], ["Basic|||"]),
        (["Proxy-Authenticate: Basic realm=a"], []),
        // Folds are blanks, inside and outside quotes.
        (
            ["WWW-Authenticate: OAM-Auth realm=\"WG:2\r\n /rest\",\r\n\trequest-ctx=\"c\""],
            ["OAM-Auth||realm=WG:2 /rest,request-ctx=c|"]
        ),
        (["WWW-Authenticate:\r\n OAM-Auth\r\n realm=x\r\n ,\r\n Basic"], ["OAM-Auth||realm=x|", "Basic|||"]),
    ]

    @Test(arguments: fields)
    func readsAllFieldLines(lines: [String], challenges: [String]) throws {
        #expect(try read(fields: lines) == challenges)
    }

    @Test func boundsParametersAndLines() throws {
        let many = (0..<17).map { "p\($0)=1" }.joined(separator: ", ")
        let bytes = octets("Many \(many), Basic realm=x")
        var list = ChallengeList(value: ByteRange(0..<bytes.count))
        let next = list.next(bytes.span)
        let first = try #require(next)
        #expect(first.parameterCount == 16 && first.faults == .tooManyParameters)
        let after = list.next(bytes.span)
        let second = try #require(after)
        #expect(second.isScheme(octets("BASIC").span, in: bytes.span) == true)

        let head = octets("HTTP/1.1 401 No\r\n" + String(repeating: "WWW-Authenticate: Basic\r\n", count: 17) + "\r\n")
        var long = ChallengeList(try parsedResponse(head))
        var count = 0
        while long.next(head.span) != nil { count += 1 }
        #expect(count == 16 && long.isTruncated)
    }

    @Test func findsParametersInAnyCase() throws {
        let bytes = octets("OAM-Auth REALM=\"a\\\\b\", Request-Ctx=c")
        var list = ChallengeList(value: ByteRange(0..<bytes.count))
        let next = list.next(bytes.span)
        let challenge = try #require(next)
        #expect(challenge.isScheme(octets("oam-auth").span, in: bytes.span) == true)
        let found = challenge.parameter(octets("realm").span, in: bytes.span)
        let realm = try #require(found)
        #expect(realm.isQuoted && realm.isEscaped)
        let copied = written { Challenge.appendUnescaped(realm, in: bytes.span, into: &$0) }
        #expect(copied == octets("a\\b"))
        #expect(challenge.parameter(octets("request-ctx").span, in: bytes.span)?.isQuoted == false)
        #expect(challenge.parameter(octets("nonce").span, in: bytes.span) == nil)
    }
}
