import Testing

@testable import Configuration
@testable import Handshakes

/// Mistakes in a recipe beside those of `RecipeTests`, and the signed kind.
@Suite struct RecipeMistakeTests {
    private static let access = "form: { subject: \"{login.user}\", url: \"{request.url}\" }"
    private static let stale = "stale: { status: 401 }"
    private static let in10 = "\n          "

    static let mistakes: [RecipeTests.Mistake] = [
        .init(
            "https://sso.example.com/login", "ftp://sso.example.com/login", "'post' of step 'login' of identity 'a'"),
        .init(access, access + in10 + "headers: { Host: x }", "'Host' in 'headers' of step 'access'"),
        .init(access, access + in10 + "headers: { X-A: a, x-a: b }", "'x-a' in 'headers' of step 'access'"),
        .init("post: https://sso.example.com/login", "get: https://sso.example.com/login", "a GET has no body"),
        .init(
            stale, "accepted: { status: [200, 201] }\(in10)rejected: { status: [201] }",
            "status 201 of step 'access' of identity 'a' (recipe) is 'accepted' and 'rejected'"),
        .init(stale, "stale: { status: 401, match: '^(x)$' }", "'match' in 'stale' of step 'access'"),
        .init(stale, "stale: { json: /x }", "needs 'status'"),
        .init("to: https://sso.example.com }", "to: [] }", "is empty, so it could go nowhere"),
        .init("scheme: In-House", "{scheme: In-House, status: []}", "is empty, so nothing would be one"),
        .init("key: [gate]", "key: [gate, gate]", "'key' of identity 'a' (recipe) names a value twice"),
        .init("{login.user}", "{('x' secret.other)}", "sends secret 'other' to https://sso.example.com"),
    ]

    @Test(arguments: mistakes.indices)
    func saysWhatIsWrong(index: Int) {
        var mistake = Self.mistakes[index]
        if mistake.new.hasPrefix("{scheme") { mistake.new = "scheme: In-House\n        status: []" }
        let found = Trial(RecipeTests.file([(mistake.old, mistake.new)])).errors
        #expect(found.contains { $0.contains(mistake.message) }, "\(mistake.message)\n\(found)")
    }

    @Test func noStepsAreNoRecipe() {
        let errors = Trial(Trial.around(identity: "recipe: {steps: [], token: x}")).errors
        #expect(errors.contains("'steps' of identity 'a' (recipe) is empty"), "\(errors)")
    }

    // MARK: - Signed ones

    private func signed(_ sign: String, _ inject: String, more: String = "", route: String = "") -> [String] {
        let secrets = "secrets: {key: {value: env:K, to: \"https://u.example.com\"}}"
        return Trial(
            Trial.around(identity: "recipe: {\(secrets), sign: \(sign), inject: \(inject)\(more)}", route: route)
        ).errors
    }

    @Test func aSoundSignedOneIsClean() {
        #expect(signed("{a: \"{now | hmac_sha256(secret.key) | hex}\"}", "{value: \"{sign.a}\"}") == [])
        // A value by another name is as little a caller's to form.
        let jws = "b: \"{sign.a | jws(secret.key, HS256)}\""
        let unencoded = "signs a received value that is not encoded; write '(… | json)' around it"
        for value in ["{request.header.x}", "x {request.header.x}", "{(request.header.x) '!'}"] {
            #expect(signed("{a: \"\(value)\", \(jws)}", "{value: \"{sign.b}\"}").contains { $0.hasSuffix(unencoded) })
        }
        let chain = "a: \"{request.header.x}\", c: \"{sign.a}\", b: \"{sign.c | jws(secret.key, HS256)}\""
        #expect(signed("{\(chain)}", "{value: \"{sign.b}\"}").contains { $0.hasSuffix(unencoded) })
        #expect(signed("{a: \"{request.header.x | json}\", \(jws)}", "{value: \"{sign.b}\"}") == [])
        let quoted = "has a caller's value between quotes, which it could end"
        for value in ["{request.header.x}", "{request.query}", "{sign.a}"] {
            let field = "{value: 'A u=\"\(value)\", b=\"c\"'}"
            #expect(signed("{a: \"{request.header.x}\"}", field).contains { $0.contains(quoted) }, "\(value)")
        }
        for value in ["{request.header.x | json}", "{now}", "\" {request.header.x} \"", "{request.method}"] {
            #expect(signed("{a: x}", "{value: 'A u=\"\(value)\", b=\"c\"'}") == [], "\(value)")
        }
    }

    @Test func whatIsSignedHasBounds() {
        let many = "{" + (0..<17).map { "a\($0): x" }.joined(separator: ", ") + "}"
        #expect(signed(many, "{value: x}").contains { $0.hasSuffix("has 17 values; at most 16 are computed") })
        #expect(signed("{}", "{value: x}").contains { $0.hasPrefix("'sign' of ") && $0.hasSuffix(" is empty") })
        let fields = (0..<9).map { "{header: X-\($0), value: x}" }.joined(separator: ", ")
        #expect(signed("{a: x}", "[\(fields)]").contains { $0.hasSuffix("must have 1 to 8 fields") })
        #expect(signed("{a: x}", "[]").contains { $0.hasSuffix("must have 1 to 8 fields") })
    }

    @Test func aSignedFieldIsWrittenOnce() {
        let fields = "[{header: X-A, value: x}, {header: x-a, value: y}]"
        #expect(signed("{a: x}", fields).contains { $0.hasSuffix("has 'x-a' twice") })
    }

    @Test(arguments: ["token: x", "key: [a]", "probe: /x", "attempts: {json: /a}", "challenge: {scheme: X}"])
    func whatIsSignedHasNoToken(key: String) {
        let name = key.prefix { $0 != ":" }
        let errors = signed("{a: x}", "{value: x}", more: ", \(key)")
        #expect(errors.contains("'\(name)' of identity 'a' (recipe) is used only with 'steps'"), "\(errors)")
    }

    @Test(arguments: [
        ("inject: {header: X-B}", "are signed together"), ("headers: {set: {x-sig: b}}", "edits 'x-sig', which"),
        ("headers: {remove: [X-SIG]}", "edits 'X-SIG', which"),
    ])
    func nobodyElseWritesWhatIsSigned(route: String, message: String) {
        let errors = signed("{a: x}", "{header: X-Sig, value: \"{sign.a}\"}", route: route)
        #expect(errors.contains { $0.contains(message) && $0.contains("identity 'a'") }, "\(errors)")
        #expect(signed("{a: x}", "{header: X-Sig, value: \"{sign.a}\"}", route: "headers: {set: {X-C: b}}") == [])
    }

    @Test func aSignedSecretGoesWhereItMay() {
        let errors = Trial(
            Trial.around(
                identity:
                    "recipe: {secrets: {key: {value: env:K, to: \"https://else.example.com\"}}, sign: {a: \"{secret.key}\"}, "
                    + "inject: {value: \"{sign.a}\"}}")
        ).errors
        #expect(errors.contains { $0.contains("would send secret 'key' of identity 'a' to https://u.example.com") })
    }

    // MARK: - Attempts

    /// Steps that send the same secrets are one attempt, and steps that send others are another.
    @Test func eachSetOfSecretsIsOneAttempt() throws {
        let text = RecipeTests.file([
            ("to: [https://else.example.com, https://u.example.com]", "to: https://sso.example.com"),
            ("{login.user}", "{secret.other}"),
            (
                "- name: access",
                "- name: again\n          post: https://sso.example.com/\n          form: { p: \"{secret.password}\" }\n        - name: access"
            ),
        ])
        let identity = try #require(Trial(text).result.configuration?.identities.first)
        let scheme = try #require(identity.scheme as? RecipeScheme)
        #expect(scheme.traits(of: identity).attempts?.map(\.key) == ["other", "password"])
        #expect(scheme.traits(of: identity).attempts?.map(\.secrets) == [["other"], ["password"]])
        #expect(scheme.sendsPassword)
    }
}
