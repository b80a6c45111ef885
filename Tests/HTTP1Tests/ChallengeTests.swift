import Testing

@testable import HTTP1

/// A challenge as text: `scheme|token68|name=value,name=value|fault`.
private func shown(_ challenge: AuthChallenge) -> String {
    let parameters = challenge.parameters.map { "\(text($0.name))=\(text($0.value))" }
    let isDoubled = challenge.parameters.contains {
        if case .duplicate = challenge[text($0.name)] { true } else { false }
    }
    let fault =
        switch challenge.fault {
        case .malformed: "M"
        case .unterminatedQuote: "U"
        case .controlCharacter: "C"
        case .tooManyParameters: "T"
        case nil: isDoubled ? "D" : ""
        }
    let token68 = challenge.token68.map { text($0) } ?? ""
    return "\(text(challenge.scheme))|\(token68)|\(parameters.joined(separator: ","))|\(fault)"
}

private func read(_ values: String...) -> [String] { AuthChallenge.list(values.map(octets)).map(shown) }

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
        ("Basic realm= , x=1", ["Basic|realm=|x=1|"]),

        // Malformed: the challenge is marked, the list goes on
        ("Basic realm=\"a\" realm2=\"b\", Bearer realm=c", ["Basic||realm=a|M", "Bearer||realm=c|"]),
        ("Basic realm=\"a\", realm=b, Bearer realm=c", ["Basic||realm=a,realm=b|D", "Bearer||realm=c|"]),
        ("Basic Realm=a, rEALM=b", ["Basic||Realm=a,rEALM=b|D"]),
        ("Basic realm=\"a", ["Basic|||U"]),
        ("Basic realm=\"a\\", ["Basic|||U"]),
        ("Basic realm=\"a\\\"", ["Basic|||U"]),
        ("Basic realm=\"a\0b\"", ["Basic||realm=a\0b|C"]),
        ("Basic realm=\"a\nb\", Bearer x=y", ["Basic||realm=a\nb|C", "Bearer||x=y|"]),
        ("x=1, Basic realm=a", ["Basic||realm=a|"]),
        ("x = 1, Basic realm=a", ["Basic||realm=a|"]),
        ("\"quoted\", Basic realm=a", ["Basic||realm=a|"]),
        ("Basic realm=a, \"junk, more\", Bearer b=c", ["Basic||realm=a|M", "Bearer||b=c|"]),
        ("Basic realm=a,=b, Bearer b=c", ["Basic||realm=a|M", "Bearer||b=c|"]),
        ("Basic@ realm=a, Bearer b=c", ["Basic|||M", "Bearer||b=c|"]),
        ("Basic a b, Bearer b=c", ["Basic|||M", "Bearer||b=c|"]),
        ("Basic a=1, realm=, x=2", ["Basic||a=1,realm=,x=2|M"]), ("Basic a=1, realm=", ["Basic||a=1,realm=|M"]),
        ("Basic a=1, realm=\"\"", ["Basic||a=1,realm=|"]),
        ("Basic realm=\"a\"x, Bearer b=c", ["Basic||realm=a|M", "Bearer||b=c|"]),
        // Control characters are told apart, and the first fault is the one that is kept.
        ("Basic realm=a, \u{1}x, Bearer b=c", ["Basic||realm=a|C", "Bearer||b=c|"]),
        ("Basic\u{1} realm=a, Bearer b=c", ["Basic|||C", "Bearer||b=c|"]),
        ("Basic realm=a\u{1}, Bearer b=c", ["Basic||realm=a|C", "Bearer||b=c|"]),
        ("Basic realm=\"a\\\0\", b=c", ["Basic||realm=a\0,b=c|C"]), ("Basic realm=\"a\tb\"", ["Basic||realm=a\tb|"]),
        ("Basic realm=\"\u{1}\" x, Bearer b=c", ["Basic||realm=\u{1}|C", "Bearer||b=c|"]),
        ("Basic realm=\"\u{7F}\", x", ["Basic||realm=\u{7F}|C", "x|||"]),
        ("Basic a=b x\u{1}, c=d", ["Basic||a=b,c=d|M"]),

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
            ["Basic realm=\"a\"", "Bearer realm=\"b\""],
            ["Basic||realm=a|", "Bearer||realm=b|"]
        ),
        // One list over all lines: a parameter belongs to the challenge before it.
        (
            ["Newauth x=1", "y=2, Basic realm=c"],
            ["Newauth||x=1,y=2|", "Basic||realm=c|"]
        ),
        (["Negotiate", "NTLM"], ["Negotiate|||", "NTLM|||"]),
        (
            ["Basic realm=\"a", "Bearer realm=b"],
            ["Basic|||U", "Bearer||realm=b|"]
        ),
        (["", ",", "Basic"], ["Basic|||"]),
        // Folds are blanks, inside and outside quotes.
        (
            ["OAM-Auth realm=\"WG:2\r\n /rest\",\r\n\trequest-ctx=\"c\""],
            ["OAM-Auth||realm=WG:2 /rest,request-ctx=c|"]
        ),
        (["\r\n OAM-Auth\r\n realm=x\r\n ,\r\n Basic"], ["OAM-Auth||realm=x|", "Basic|||"]),
    ]

    @Test(arguments: fields)
    func readsAllFieldLines(lines: [String], challenges: [String]) throws {
        #expect(AuthChallenge.list(lines.map(octets)).map(shown) == challenges)
    }

    @Test func boundsParametersAndChallenges() throws {
        let many = (0..<65).map { "p\($0)=1" }.joined(separator: ", ")
        let list = AuthChallenge.list([octets("Many \(many), Basic realm=x")])
        #expect(list.count == 2 && list[0].parameters.count == 64 && list[0].fault == .tooManyParameters)
        #expect(text(list[1].scheme) == "Basic")
        let most = (0..<64).map { "p\($0)=1" }.joined(separator: ", ")
        let whole = AuthChallenge.list([octets("Many \(most)")])
        #expect(whole.count == 1 && whole[0].parameters.count == 64 && whole[0].fault == nil)
        #expect(AuthChallenge.list(Array(repeating: octets("Basic"), count: 100)).count == AuthChallenge.mostChallenges)
        let line = Array(repeating: "Basic", count: 63).joined(separator: ", ") + ", Last a=b, Over c=d"
        let full = AuthChallenge.list([octets(line)])
        #expect(full.count == AuthChallenge.mostChallenges)
        #expect(full.last?.scheme == octets("Last") && full.last?.parameters.map(\.name) == [octets("a")])
    }

    @Test func findsParametersInAnyCase() throws {
        let challenge = try #require(AuthChallenge.list([octets("OAM-Auth REALM=\"a\\\\b\", Request-Ctx=c")]).first)
        if case .one(let realm) = challenge["realm"] {
            #expect(realm == octets("a\\b"))
        } else {
            Issue.record("no realm")
        }
        if case .one(let value) = challenge["request-ctx"] { #expect(text(value) == "c") } else { Issue.record("none") }
        if case .absent = challenge["nonce"] {} else { Issue.record("there is a nonce") }
    }

    // MARK: - Schemes that authenticate the connection (RFC 4559 §6)

    @Test(arguments: [
        (["WWW-Authenticate: Negotiate YII="], true), (["Proxy-Authenticate: NTLM TlRM"], true),
        (["WWW-Authenticate: Basic realm=x", "WWW-Authenticate: nTLM TlRM"], true),
        (["WWW-Authenticate: Negotiate a=1"], true), (["WWW-Authenticate: Negotiate \"junk"], true),
        (["WWW-Authenticate: Negotiate", "WWW-Authenticate: NTLM"], false),
        (["WWW-Authenticate: Basic realm=\"NTLM abc\""], false), (["A: NTLM TlRM"], false),
        (Array(repeating: "WWW-Authenticate: Basic", count: 16), false),
        // Past the lines that are read there may be one.
        (Array(repeating: "WWW-Authenticate: Basic", count: 17), true),
    ])
    func dataBindsTheConnection(fields: [String], isBound: Bool) throws {
        let lines = fields.map { "\($0)\r\n" }.joined()
        let bytes = octets("HTTP/1.1 401 Authorization Required\r\n\(lines)Content-Length: 0\r\n\r\n")
        #expect(try parsedResponse(bytes).bindsConnection(in: bytes.span) == isBound)
    }
}
