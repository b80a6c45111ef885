import Numbers
import Octets
import Testing

@testable import Handshakes

/// Odd spellings of what issuers send: each is read as what it is, or as nothing.
@Suite struct AnswerFormatTests {
    private func retryAfter(_ value: String, date: String? = "Sun, 06 Nov 1994 08:49:37 GMT") -> Int? {
        var headers = [(name: "Retry-After", value: value)]
        if let date { headers.append((name: "Date", value: date)) }
        return IssuerAnswer(status: 503, headers: headers, body: [], sentAt: 0, overTLS: true).retryAfter
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:50:37 GMT and a good deal more", "Sun, xx Nov 1994 08:50:37 GMT",
        "Sun, 06 Nov 19941 08:50:37 GMT", "Sun, 06 Nov 1994 08:50:37 CET", "Sun, 06 Nop 1994 08:50:37 GMT",
        "Sun Nop  6 08:50:37 1994", "Sun Nov  x 08:50:37 1994", "Sun Nov  6 08:50:37 1994x",
        "Sun Nov  6 08:50:37 19945",
        "Sun, 06 Nov 1994 08:50 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 24:50:37 GMT",
        "Sun, 32 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1969 08:50:37 GMT", "06 Nov 1994",
    ])
    func `a date that is none asks for no pause`(_ value: String) {
        #expect(retryAfter(value) == nil)
        #expect(retryAfter("Sun, 06 Nov 1994 08:50:37 GMT", date: value) == nil)
        #expect(retryAfter("Sun, 06 Nov 1994 08:50:37 GMT") == 60)
    }

    @Test func `a body that is no UTF-8 is no JSON`() {
        #expect(throws: AnswerObject.Fault.notJSON) { try AnswerObject(bytes(#"{"a":""#) + [0xFF] + bytes(#""}"#)) }
        #expect(throws: AnswerObject.Fault.notJSON) { try AnswerObject(bytes(#"{"a":"b}"#)) }
    }

    @Test(arguments: [
        #""\u12""#, #""\u12g4""#, #""\ud83d""#, #""\ud83dx""#, #""\ud83d\u0041""#, #""\udc00""#, #""\udc00\udc00""#,
        #""\x""#,
    ])
    func `an escape that is none is no JSON`(_ text: String) {
        #expect(throws: JSONTree.Fault.notJSON) { try JSONTree(bytes(#"{"a":\#(text)}"#)) }
    }

    @Test(arguments: [(#"\ud800\udc00"#, "\u{10000}"), (#"\udbff\udfff"#, "\u{10FFFF}"), (#"\ue000"#, "\u{E000}")])
    func `the first and the last pair of halves are characters`(_ escape: String, _ character: String) throws {
        #expect(try JSONTree(bytes(#"{"a":"\#(escape)"}"#)).text(["a"]) == character)
    }

    private func jwt(_ claims: String) -> Secret {
        Secret("e30.\(Base64.encodeURL(bytes(claims))).c2ln")
    }

    @Test func `a token's times may be fractions, and are of no use without an end`() {
        let times = JWTTimes(jwt(#"{"exp":1500.75,"iat":1.25e3}"#))
        #expect(times?.expires == 1500 && times?.issued == 1250)
        #expect(JWTTimes(jwt(#"{"exp":"1500","iat":1}"#)) == nil && JWTTimes(jwt(#"{"iat":1}"#)) == nil)
        #expect(JWTTimes(Secret("opaque")) == nil && JWTTimes(Secret("a.b")) == nil)
    }

    @Test func `a token's own end counts where its issuer tells none`() throws {
        let secret = jwt(#"{"exp":1500,"iat":1250}"#)
        let token = secret.withBytes { String(decoding: $0, as: UTF8.self) }
        func grant(_ more: String) throws -> AccessGrant {
            let body = bytes(#"{"access_token":"\#(token)","token_type":"Bearer"\#(more)}"#)
            return try OAuth2Answer(IssuerAnswer(status: 200, headers: [], body: body, sentAt: 0, overTLS: true))
                .result.get()
        }
        let silent = try grant("")
        #expect(silent.lifetime == nil && silent.statedTimes?.issued == 1250 && silent.statedTimes?.expires == 1500)
        let told = try grant(#","expires_in":60"#)
        #expect(told.lifetime != nil && told.statedTimes == nil)
    }

    @Test(arguments: [
        ("https://[::ffff:192.0.2.1]/x", "::ffff:192.0.2.1", 443), ("http://[2001:DB8::1]:8080", "2001:db8::1", 8080),
    ])
    func `an address of six is read with its parts`(_ text: String, _ host: String, _ port: Int) throws {
        let url = try #require(IssuerURL(text))
        #expect(url.host == host && url.port == port && url.authority.hasPrefix("[\(host)]"))
    }

    @Test(arguments: [
        "https://[::1", "https://[1234]/", "https://[::g]/", "https://[::1]x/", "https://[::1]:0/", "https://h:/",
        "https:///x", "https://h/%4", "https://h/a b", "https://h/../x", "https://h/#x",
    ])
    func `a URL with an odd part is none`(_ text: String) { #expect(IssuerURL(text) == nil) }

    @Test func `a query is added behind the one that is there`() throws {
        let bare = try #require(IssuerURL("https://h/p"))
        #expect(bare.adding(query: "a=1").adding(query: "b=2").path == "/p?a=1&b=2")
    }
}
