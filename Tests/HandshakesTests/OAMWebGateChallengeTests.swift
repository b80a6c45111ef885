import HTTP1
import Testing

@testable import Handshakes

private func webgate(_ change: (inout OAMWebGateSettings) -> Void = { _ in }) throws -> OAMWebGateHandshake {
    let service = try #require(IssuerURL("https://oam.example.com/oic"))
    var settings = OAMWebGateSettings(service: service, username: "u", clientID: "c", userAgentPrefix: "OIC")
    change(&settings)
    return try OAMWebGateHandshake(settings)
}

private let url = "https://hr.example.com/rest/a?q=1"

@Suite struct OAMWebGateChallengeTests {
    struct Vector: Sendable {
        var lines: [String]
        var realm: String
        var level: Int?
        var context: String

        init(_ lines: String..., realm: String, level: Int?, context: String) {
            self.lines = lines
            self.realm = realm
            self.level = level
            self.context = context
        }
    }

    @Test(arguments: [
        Vector(#"OAM-Auth realm="WG1:2 /rest/a", request-ctx="e%3D1""#, realm: "WG1", level: 2, context: "e%3D1"),
        Vector(
            #"oam-auth request-ctx="e%3D1" , realm="WG1:2 /rest/a b?x=1:2""#, realm: "WG1", level: 2, context: "e%3D1"),
        Vector(
            #"Basic realm="x, y", OAM-Auth realm="h:7777:3 /p", request-ctx="c""#, realm: "h:7777", level: 3,
            context: "c"),
        Vector(#"OAM-Auth realm="WG1:2/rest", request-ctx="c""#, realm: "WG1", level: 2, context: "c"),
        Vector(#"OAM-Auth realm="odd realm", request-ctx="c""#, realm: "", level: nil, context: "c"),
        Vector(#"OAM-Auth realm = "W:1" ,REQUEST-CTX = abc%20d~"#, realm: "W", level: 1, context: "abc%20d~"),
        Vector(#"OAM-Auth request-ctx="c""#, realm: "", level: nil, context: "c"),
        Vector(#"OAM-Auth realm="W:2 /a", request-ctx="a\"b\\c""#, realm: "W", level: 2, context: #"a"b\c"#),
        Vector("OAM-Auth realm=\"W:2\r\n /a\",\r\n\t request-ctx=\"c\"", realm: "W", level: 2, context: "c"),
        Vector(
            "Negotiate", "Basic realm=\"x\"", "OAM-Auth realm=\"W:2\", request-ctx=\"c\"", realm: "W", level: 2,
            context: "c"),
        Vector(#"OAM-Auth realm="W:2""#, #"request-ctx="c""#, realm: "W", level: 2, context: "c"),
        Vector(
            #"OAM-Auth realm="broken, request-ctx=x"#, #"OAM-Auth realm="W:2", request-ctx="c""#, realm: "W",
            level: 2, context: "c"),
        Vector(
            #"Negotiate YII==, OAM-Auth realm="W:12345 /a", request-ctx="c", x=1"#, realm: "", level: nil,
            context: "c"),
    ]) func `usable challenges`(_ vector: Vector) throws {
        let verdict = try webgate().judge(
            status: 401, wwwAuthenticate: vector.lines.map(bytes), location: nil, requestURL: url)
        #expect(
            verdict
                == .challenged(
                    Challenge(
                        realm: vector.realm, level: vector.level, context: Secret(vector.context), resource: url)))
    }

    @Test(arguments: [
        #"OAM-Auth realm="WG1:2 /a""#,
        #"OAM-Auth realm="a", realm="b", request-ctx="c""#,
        #"OAM-Auth realm="a", request-ctx="c", Request-Ctx="d""#,
        #"OAM-Auth realm="a", request-ctx="c"#,
        #"OAM-Auth realm="a", request-ctx="c\"#,
        #"OAM-Auth realm="a", request-ctx=ab/cd="#,
        #"OAM-Auth realm="a", request-ctx="""#,
        #"OAM-Auth realm="a" request-ctx="c""#,
        "OAM-Auth realm=\"a\", request-ctx=\"c\rd\"",
        "OAM-Auth realm=\"a\", request-ctx=\"c\nd\"",
        "OAM-Auth realm=\"a\", request-ctx=\"c\0\"",
        "OAM-Auth realm=\"a\", request-ctx=\"\\\nc\"",
        "OAM-Auth realm=\"a\", request-ctx=\"ä\"",
        "OAM-Auth",
        "OAM-Auth abc==",
    ]) func `unusable challenges pass and are counted`(_ line: String) throws {
        let verdict = try webgate().judge(status: 401, wwwAuthenticate: [bytes(line)], location: nil, requestURL: url)
        guard case .unusable = verdict else {
            Issue.record("\(verdict)")
            return
        }
    }

    @Test(arguments: [[], ["Basic realm=\"x\""], ["Bearer error=\"invalid_token\""], ["=,\"", ",,,"], ["X OAM-Auth"]])
    func `answers that are no challenge of ours`(_ lines: [String]) throws {
        let verdict = try webgate().judge(
            status: 401, wwwAuthenticate: lines.map(bytes), location: nil, requestURL: url)
        #expect(verdict == .none)
    }

    @Test func `redirects`() throws {
        let login = bytes("https://oam/oam/server/obrareq.cgi?encquery%3DpQ%20agentid%3DHR_WG%20ver%3D1?x")
        func judge(_ source: OAMWebGateSettings.ContextSource, _ location: [UInt8]?) throws -> ChallengeVerdict {
            try webgate { $0.contextSource = source }.judge(
                status: 302, wwwAuthenticate: [], location: location, requestURL: url)
        }
        guard case .misconfigured = try judge(.challenge, login) else { return _ = Issue.record("not misconfigured") }
        for source in [OAMWebGateSettings.ContextSource.redirect, .auto] {
            #expect(
                try judge(source, login)
                    == .challenged(
                        Challenge(
                            realm: "HR_WG", context: Secret("encquery%3DpQ%20agentid%3DHR_WG%20ver%3D1?x"),
                            resource: url)))
            #expect(try judge(source, bytes("/app/home?next=/oam/server/obrareq.cgi")) == .none)
            #expect(try judge(source, nil) == .none)
            guard case .unusable = try judge(source, bytes("/oam/server/obrareq.cgi")) else {
                return _ = Issue.record("no query")
            }
        }
        #expect(try judge(.challenge, bytes("/app/home")) == .none)
        let both = bytes(#"OAM-Auth realm="W:1", request-ctx="c""#)
        let redirectOnly = try webgate { $0.contextSource = .redirect }
        #expect(redirectOnly.judge(status: 401, wwwAuthenticate: [both], location: nil, requestURL: url) == .none)
        #expect(try webgate().judge(status: 403, wwwAuthenticate: [both], location: nil, requestURL: url) == .none)
    }

    @Test(arguments: [
        (302, "/obrareq.cgi", true), (303, "/obrareq.cgi", true), (307, "/obrareq.cgi", true),
        (301, "/obrareq.cgi", false),
        (304, "/obrareq.cgi", false), (308, "/obrareq.cgi", false), (302, "/oam/server/auth_cred_submit", true),
        (302, "/oam/servers/", false), (302, "/obrareq.cgi/x", false), (302, "/", false),
    ])
    func `a redirect of three kinds to either page is a challenge`(_ status: Int, _ path: String, isOne: Bool) throws {
        let verdict = try webgate().judge(
            status: status, wwwAuthenticate: [], location: bytes(path + "?encquery%3Dx"), requestURL: url)
        #expect((verdict != .none) == isOne)
        // An answer of another status never comes so far.
        if isOne { #expect(try webgate().inspectedStatuses.contains(status)) }
        #expect(try webgate().inspectedStatuses.contains(401))
    }

    @Test(arguments: [(0x1F, false), (0x20, true), (0x7E, true), (0x7F, false)] as [(UInt8, Bool)])
    func `the query of a redirect is printable`(_ octet: UInt8, isTaken: Bool) throws {
        let verdict = try webgate { $0.contextSource = .auto }.judge(
            status: 302, wwwAuthenticate: [], location: bytes("/obrareq.cgi?c") + [octet], requestURL: url)
        if case .challenged = verdict { #expect(isTaken) } else { #expect(!isTaken) }
    }

    @Test func `a token bound to its URL is keyed by our own request`() throws {
        let line = bytes(#"OAM-Auth realm="W:1 /evil", request-ctx="c""#)
        let verdict = try webgate { $0.tokenScope = .url }.judge(
            status: 401, wwwAuthenticate: [line], location: nil, requestURL: url)
        guard case .challenged(let challenge) = verdict else { return _ = Issue.record("\(verdict)") }
        #expect(challenge.boundURL == "https://hr.example.com/rest/a")
        #expect(!"\(challenge)".contains("\"c\"") && "\(challenge)".contains("<secret>"))
    }

    @Test(
        arguments: [
            ("a:1", "a", 1, nil), ("a:1 ", "a", 1, ""), (":1 /x", ":1 /x", nil, nil), ("::1/x", ":", 1, "/x"),
            ("a:b:22\t /x", "a:b", 22, "/x"), ("a:1x:2", "a:1x", 2, nil), ("", "", nil, nil), ("a:", "a:", nil, nil),
            ("a b:9999 u:1 /v", "a b", 9999, "u:1 /v"),
        ] as [(String, String, Int?, String?)])
    func `realms`(_ realm: String, _ name: String, _ level: Int?, _ url: String?) {
        let split = OAMRealm(bytes(realm))
        #expect(split.name == bytes(name) && split.level == level && split.url == url.map(bytes))
    }

    @Test func `a realm of colons takes linear time`() {
        // Quadratic behaviour would show here as minutes.
        #expect(OAMRealm(Array(repeating: UInt8(ascii: ":"), count: 500_000)).level == nil)
        let line = Array(repeating: bytes(#"OAM-Auth a="\"#), count: 20_000).flatMap { $0 }
        #expect(AuthChallenge.list([line]).count <= AuthChallenge.mostChallenges)
    }

    @Test func `realms of other bytes never share a name`() {
        #expect([0x57, 0xE4].losslessText != [0x57, 0xC3, 0xA4].losslessText)
    }
}

@Suite struct AuthChallengeTests {
    private func schemes(_ lines: String...) -> [String] {
        AuthChallenge.list(lines.map(bytes)).map { String(decoding: $0.scheme, as: UTF8.self) }
    }

    @Test func `lists of the standard`() throws {
        #expect(schemes(#"Basic realm="a", Bearer realm="b", error="invalid_token""#) == ["Basic", "Bearer"])
        let odd = AuthChallenge.list([bytes(#"Newauth x=1 , , Basic realm="q\"z""#)])
        #expect(odd.count == 2)
        if case .one(let realm) = odd[1]["REALM"] { #expect(realm == bytes(#"q"z"#)) } else { Issue.record("no realm") }
        #expect(schemes(#"DPoP algs="ES256 PS256""#, "Negotiate") == ["DPoP", "Negotiate"])
        #expect(AuthChallenge.list([bytes("Negotiate YII=, Basic realm=x")]).first?.token68 == bytes("YII="))
        #expect(schemes("") == [] && schemes(", ,") == [])
    }

    @Test func `a broken member leaves its neighbours alone`() {
        let list = AuthChallenge.list([bytes(#"A x="1, B", y=/, C z=1, D "q, E""#), bytes("F")])
        #expect(list.map { String(decoding: $0.scheme, as: UTF8.self) } == ["A", "C", "D", "F"])
        #expect(list.map { $0.fault == nil } == [false, true, false, true])
    }
}
