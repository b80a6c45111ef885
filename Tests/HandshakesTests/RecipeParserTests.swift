import Testing

@testable import Handshakes

/// Templates as they are read, alone.
@Suite struct RecipeParserTests {
    private static let scope = RecipeScope(
        names: [
            "secret.p": .secret("p"), "now": .own(.now), "login.user": .step("login", take: "user"),
            "request.path": .request(.path), "sign.a": .signed("a"), "token": .token, "challenge.g": .challenge("g"),
            "request.body_sha256": .request(.bodySHA256),
        ], allowsRequestHeaders: true)

    @Test(arguments: [
        ("{" + String(repeating: "(", count: 4) + "now))))}", "is nested deeper than 4 levels", 5),
        ("{" + String(repeating: "now ", count: 33) + "}", "has more than 32 terms", 1),
        ("{now" + String(repeating: "|hex", count: 9) + "}", "has more than 8 pipes", 37),
        ("a{'abc}", "has a text that is not closed", 2), ("{\"it's}", "has a text that is not closed", 1),
        ("{(now }", "has a '(' that is not closed", 1),
        ("{now +}", "has '+' where a name or a text in quotes is expected", 5),
        ("{now | hmac_sha256}", "needs a key: 'hmac_sha256(secret.NAME)'", 7),
        ("{now | jws}", "needs a key: 'jws(secret.NAME)'", 7),
        ("{now | jws(sign.a, HS256)}", "needs a secret and an algorithm: 'jws(secret.NAME, RS256)'", 11),
        ("{now | jws(secret.p)}", "needs a secret and an algorithm: 'jws(secret.NAME, RS256)'", 11),
        ("{now | jws(secret.p, RS256, a)}", "needs a key's id in quotes: 'jws(secret.NAME, RS256, \"ID\")'", 28),
        ("{now+}", "needs seconds of at most a year behind 'now'", 1),
        ("{now-1x}", "needs seconds of at most a year behind 'now'", 1),
        ("{now+31622401}", "needs seconds of at most a year behind 'now'", 1),
        ("{now | hmac_sha256(secret.p}", "has a '(' that is not closed", 7),
        (String(repeating: "a", count: 16 * 1024 + 1), "is longer than 16 KiB", 0),
    ])
    func whatCannotBeReadIsToldWithItsPlace(text: String, reason: String, offset: Int) {
        let (_, faults) = RecipeTemplateParser.parse(text, in: Self.scope)
        #expect(faults == [RecipeTemplateParser.Fault(reason: reason, offset: offset)])
    }

    /// The bounds themselves are allowed.
    @Test(arguments: [
        "{" + String(repeating: "(", count: 3) + "now)))}", "{" + String(repeating: "now ", count: 32) + "}",
        "{now" + String(repeating: "|hex", count: 8) + "}", String(repeating: "a", count: 16 * 1024),
    ])
    func theBoundsAreAllowed(text: String) {
        #expect(RecipeTemplateParser.parse(text, in: Self.scope).faults == [])
    }

    /// Operators see a template in a trace as it stands in their file.
    @Test(arguments: [
        "{now+540}{now-60}{now+0}", "{now | jws(secret.p, ES256, 'key 7')}", "{now | hmac_sha256(login.user) | hex}",
        "{login.user}/{request.path}", "{request.header.X-A}", "{sign.a | hmac_sha256(sign.a) | hex}", "x {token}",
        "{(request.body_sha256 | base64) 'x'}", "{challenge.g | url}",
    ])
    func everyNameIsPrintedAsWritten(text: String) {
        let (template, faults) = RecipeTemplateParser.parse(text, in: Self.scope)
        #expect(faults == [])
        #expect(template.description == text)
    }

    @Test(arguments: [
        "{request.body_sha256}", "{(request.body_sha256)}", "{('a' | sha256)}", "{(request.body_sha256) 'x'}",
    ])
    func rawBytesInParenthesesAreRaw(text: String) {
        let (_, faults) = RecipeTemplateParser.parse(text, in: Self.scope)
        #expect(faults.map(\.reason) == ["puts raw bytes into text; end with 'hex', 'base64' or 'base64url'"])
        var raw = Self.scope
        raw.allowsRaw = true
        #expect(RecipeTemplateParser.parse(text, in: raw).faults == [])
    }

    @Test(arguments: [("{(login.user)}", true), ("{('x' login.user)}", true), ("{(login.user | xml)}", false)])
    func receivedValuesInParenthesesAreReceived(text: String, isRefused: Bool) {
        var free = Self.scope
        free.isFreeText = true
        let (_, faults) = RecipeTemplateParser.parse(text, in: free)
        #expect(faults.contains { $0.reason.hasPrefix("puts a received value into free text") } == isRefused)
    }

    @Test func namesInParenthesesAreNames() {
        let (template, _) = RecipeTemplateParser.parse("{('x' (secret.p now))}", in: Self.scope)
        #expect(template.names == [.secret("p"), .own(.now)])
        #expect(template.secrets(signed: [:]) == ["p"])
    }
}
