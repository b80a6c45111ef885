import Configuration
import Octets
import Testing

@testable import Handshakes

/// Bounds of what is read from issuers, upstreams and files: the last value that is taken, and the first that is not.
@Suite struct AnswerBoundTests {
    @Test func `an object may have an empty name first, and 64 KiB`() throws {
        #expect(try Array(AnswerObject(bytes(#"{"":1}"#)).names) == [""])
        let frame = #"{"a":""}"#.utf8.count
        func sized(_ count: Int) -> [UInt8] {
            bytes(#"{"a":""#) + Array(repeating: UInt8(ascii: "x"), count: count - frame) + bytes(#""}"#)
        }
        #expect(try AnswerObject(sized(64 * 1024)).string("a")?.utf8.count == 64 * 1024 - frame)
        #expect(throws: AnswerObject.Fault.tooLarge) { try AnswerObject(sized(64 * 1024 + 1)) }
        _ = try JSONTree(sized(64 * 1024))
        #expect(throws: JSONTree.Fault.tooLarge) { try JSONTree(sized(64 * 1024 + 1)) }
    }

    @Test(arguments: [
        ("i", true), ("invalid_client", true), ("IDAAS-12345", true), (String(repeating: "a", count: 48), true),
        (String(repeating: "a", count: 49), false), ("", false), ("_a", false), ("1a", false), ("a b", false),
        ("a.b", false), ("ä", false),
    ])
    func `a code is a word`(text: String, isCode: Bool) { #expect((text.asErrorCode == text) == isCode) }

    @Test(arguments: [
        ("AB-1", true), ("ABCDEFGH-123456", true), ("A-1", false), ("ABCDEFGHI-1", false), ("AB-", false),
        ("AB-1234567", false), ("A1-1", false), ("AB-1a", false), ("AB-1-2", false), ("AB", false), ("-1", false),
        ("AB--1", false), ("-AB-1", false), ("AB-1-", false),
    ])
    func `a code of Oracle's is letters and a number`(text: String, isCode: Bool) {
        #expect((text.asOracleCode == text) == isCode)
    }

    @Test(
        arguments: [
            (0x1F, false), (0x20, true), (0x21, true), (0x7D, true), (0x7E, true), (0x7F, false),
        ] as [(UInt8, Bool)])
    func `a request context is printable`(octet: UInt8, isTaken: Bool) throws {
        #expect(try isContext([UInt8(ascii: "c"), octet, UInt8(ascii: "c")]) == isTaken)
    }

    @Test func `a request context has 16 KiB`() throws {
        #expect(try isContext([UInt8](repeating: UInt8(ascii: "c"), count: 16 * 1024)))
        #expect(try !isContext([UInt8](repeating: UInt8(ascii: "c"), count: 16 * 1024 + 1)))
    }

    private func isContext(_ context: [UInt8]) throws -> Bool {
        let service = try #require(IssuerURL("https://oam.example.com/oic"))
        let settings = OAMWebGateSettings(service: service, username: "u", clientID: "c", userAgentPrefix: "OIC")
        let line = bytes(#"OAM-Auth realm="W:1", request-ctx=""#) + context + bytes("\"")
        let verdict = try OAMWebGateHandshake(settings).judge(
            status: 401, wwwAuthenticate: [line], location: nil, requestURL: "https://hr.example.com/a")
        if case .challenged = verdict { return true }
        return false
    }

    @Test(arguments: [
        (399, false), (400, true), (403, true), (404, false), (405, false), (406, true), (409, true), (410, false),
        (411, true), (300, false), (299, true),
    ])
    func `a status says that a URL is no token endpoint`(status: Int, isOne: Bool) {
        let answer = IssuerAnswer(status: status, headers: [], body: [], sentAt: 0, overTLS: true)
        #expect(OAuth2Answer(answer).isTokenEndpoint == isOne)
    }

    @Test(
        arguments: [
            (299, "issuer answer invalid"), (300, "configuration"), (399, "configuration"), (404, "configuration"),
            (407, "configuration"), (408, "issuer unavailable"), (409, "configuration"), (424, "configuration"),
            (425, "issuer unavailable"), (426, "configuration"), (428, "configuration"), (429, "issuer unavailable"),
            (430, "configuration"), (499, "configuration"), (500, "issuer unavailable"), (599, "issuer unavailable"),
            (600, "issuer answer invalid"),
        ])
    func `an issuer that cannot serve is told from one that refuses by its status`(status: Int, words: String) {
        let answer = OAuth2Answer(IssuerAnswer(status: status, headers: [], body: [], sentAt: 0, overTLS: true))
        guard case .failure(let failure) = answer.result else { return _ = Issue.record("a grant") }
        #expect("\(failure)".hasPrefix(words + ": "))
    }

    @Test(
        arguments: [
            ("1970-01-01T24:00:00Z", 86_400), ("1970-01-01T25:00:00Z", nil), ("1970-01-01T00:59:00Z", 3540),
            ("1970-01-01T00:60:00Z", nil), ("1970-12-31T00:00:00Z", 31_449_600), ("1970-01-32T00:00:00Z", nil),
            ("1970-00-01T00:00:00Z", nil), ("1970-01-00T00:00:00Z", nil), ("1970-01-01T00:00:00", nil),
            ("1970-01-01T00:00:01.\(String(repeating: "0", count: 19))Z", 1),
            ("1970-01-01T00:00:01.\(String(repeating: "0", count: 20))Z", nil),
        ] as [(String, Int64?)])
    func `an assertion's time is one of the calendar`(time: String, seconds: Int64?) {
        #expect(SAMLTimes.expiry(of: Secret("<a NotOnOrAfter='\(time)'/>")) == seconds)
    }

    @Test func `sixteen times of an assertion are looked at, and 256 KiB of it`() throws {
        func document(_ count: Int) -> String {
            let later = String(repeating: "<c NotOnOrAfter='1970-01-01T00:00:09Z'/>", count: count - 1)
            return "<a>" + later + "<c NotOnOrAfter='1970-01-01T00:00:01Z'/></a>"
        }
        #expect(SAMLTimes.expiry(of: Secret(document(16))) == 1)
        #expect(SAMLTimes.expiry(of: Secret(document(17))) == 9)
        let blank = String(repeating: " ", count: 256 * 1024 - document(1).utf8.count)
        let largest = try #require(Gzip.compress(bytes(document(1) + blank)))
        #expect(SAMLTimes.expiry(of: Secret(Base64.encode(largest))) == 1)
        let larger = try #require(Gzip.compress(bytes(document(1) + blank + " ")))
        #expect(SAMLTimes.expiry(of: Secret(Base64.encode(larger))) == nil)
    }

    @Test func `what a pattern is looked for in has 8 KiB`() throws {
        let take = RecipeTake(name: "t", source: .header("X"), match: try Pattern("^(a)a*$"))
        func value(_ count: Int) throws -> Secret {
            let fields = [(name: "X", value: String(repeating: "a", count: count))]
            return try RecipeAnswer(IssuerAnswer(status: 200, headers: fields, body: [], sentAt: 0, overTLS: true))
                .value(of: take)
        }
        #expect(try value(8 * 1024) == Secret("a"))
        #expect(throws: TextFault.self) { try value(8 * 1024 + 1) }
    }

    @Test func `text of a library is told as far as 120 letters`() {
        let detail = String(repeating: "x", count: 200)
        let failure = GrantFailure(IssuerFault(.tls(detail), provablyUnsent: false), step: "token")
        #expect("\(failure)".utf8.count { $0 == UInt8(ascii: "x") } == 120)
    }

    @Test func `a resource with a query is asked for by the same text or another spelling of its host`() throws {
        let metadata = ResourceMetadata(resource: "https://A.example/x?y", issuers: [])
        let url = try #require(IssuerURL("https://a.example/.well-known/oauth-protected-resource/x?y"))
        #expect(metadata.describes("https://a.example/x?y", readAt: url))
        #expect(!metadata.describes("https://a.example/x?z", readAt: url))
    }

    @Test(
        arguments: [
            ("~", true), ("\u{7F}", false), ("\u{80}", false), ("\u{9F}", false), ("\u{A0}", true), ("\u{1F}", false),
        ])
    func `a property of an SDK has no control character`(character: String, isTaken: Bool) {
        let file = bytes("ApplicationName = a\(character)b\n")
        #expect((try? SDKProperties(file).all.map(\.value)) == (isTaken ? ["a\(character)b"] : nil))
    }

    @Test func `an object is 16 levels deep, and signs within its texts are no levels`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            bytes(String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth))
        }
        _ = try AnswerObject(nested(16))
        #expect(throws: AnswerObject.Fault.tooDeep) { try AnswerObject(nested(17)) }
        let signs = String(repeating: "[{", count: 20)
        for text in [signs, #"\""# + signs, #"\\\""# + signs] {
            #expect(try AnswerObject(bytes(#"{"a":"\#(text)","b":"c"}"#)).string("b") == "c")
        }
        #expect(throws: AnswerObject.Fault.tooDeep) { try AnswerObject(bytes(#"{"a":"\\","b":\#(signs)}"#)) }
    }

    @Test func `blanks stand between all parts of a JSON tree`() throws {
        let tree = try JSONTree(bytes(" { \t\"a\"\r\n:\n[ 1 , 2 ] ,\n\"b\" : 3 } "))
        #expect(try tree.value(at: ["a", "1"])?.scalar == bytes("2"))
        #expect(try tree.value(at: ["b"])?.scalar == bytes("3"))
    }

    @Test(arguments: ["[]", "{\"a\":}"])
    func `a JSON tree is 16 levels deep`(frame: String) throws {
        func nested(_ depth: Int) -> [UInt8] {
            let opening = String(repeating: String(frame.dropLast()), count: depth - 1)
            return bytes(opening + "1" + String(repeating: String(frame.suffix(1)), count: depth - 1))
        }
        _ = try JSONTree(nested(16))
        #expect(throws: JSONTree.Fault.tooDeep) { try JSONTree(nested(17)) }
    }

    @Test func `a JSON tree has 4096 values`() throws {
        func wide(_ count: Int) -> [UInt8] {
            bytes("[" + Array(repeating: "1", count: count - 1).joined(separator: ",") + "]")
        }
        _ = try JSONTree(wide(4096))
        #expect(throws: JSONTree.Fault.tooManyValues) { try JSONTree(wide(4097)) }
    }

    @Test func `the place in a list has four digits`() throws {
        let list = Array(repeating: "1", count: 2000).joined(separator: ",")
        let tree = try JSONTree(bytes(#"{"a":[\#(list)],"":7}"#))
        #expect(try tree.value(at: ["a", "1999"])?.scalar == bytes("1"))
        for place in ["2000", "01999", "", "01", "-1", "+1"] { #expect(try tree.value(at: ["a", place]) == nil) }
        #expect(try tree.value(at: [""])?.scalar == bytes("7"))
    }

    @Test func `what a recipe takes has 32 KiB`() throws {
        func value(_ count: Int) throws -> Secret {
            let fields = [(name: "X", value: String(repeating: "a", count: count))]
            return try RecipeAnswer(IssuerAnswer(status: 200, headers: fields, body: [], sentAt: 0, overTLS: true))
                .value(of: RecipeTake(name: "t", source: .header("X")))
        }
        #expect(try value(32 * 1024) == Secret(String(repeating: "a", count: 32 * 1024)))
        #expect(throws: TextFault.self) { try value(32 * 1024 + 1) }
    }

    @Test func `properties of an SDK have 64 KiB`() throws {
        func sized(_ count: Int) -> [UInt8] {
            let comment = [UInt8](repeating: UInt8(ascii: "x"), count: count - 43)
            return bytes("AuthServerType = HTTPBasicAuthentication\n# ") + comment
        }
        #expect(sized(64 * 1024).count == 64 * 1024)
        #expect(try SDKProperties(sized(64 * 1024)).all.count == 1)
        #expect(throws: SDKProperties.Fault("larger than 64 KiB")) { try SDKProperties(sized(64 * 1024 + 1)) }
    }

    /// The issuer that knows nothing of DPoP would give everybody's token.
    @Test func `a bearer token is taken for a bound one where it names our key`() throws {
        let key = try #require(DPoPKey(try DPoPKey.make()))
        func answer(_ thumbprint: String, type: String = "Bearer") -> OAuth2Answer {
            let claims = Base64.encodeURL(bytes(#"{"cnf":{"jkt":"\#(thumbprint)"}}"#))
            let body = bytes(#"{"access_token":"e30.\#(claims).c2ln","token_type":"\#(type)"}"#)
            return OAuth2Answer(
                IssuerAnswer(status: 200, headers: [], body: body, sentAt: 0, overTLS: true), boundTo: key)
        }
        #expect(try answer(key.thumbprint).grant().tokenType == "DPoP")
        #expect(throws: GrantFailure.self) { try answer("another").grant() }
        #expect(try answer("another", type: "dpop").grant().tokenType == "DPoP")
        #expect(throws: GrantFailure.self) { try answer(key.thumbprint, type: "mac").grant() }
    }
}
