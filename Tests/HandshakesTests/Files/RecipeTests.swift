import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct RecipeTests {
    /// A sound recipe; `changes` replace one text each.
    static func file(_ changes: [(String, String)] = []) -> String {
        var text = """
            identities:
              a:
                recipe:
                  secrets:
                    password: { value: env:P, to: https://sso.example.com }
                    other: { value: env:O, to: [https://else.example.com, https://u.example.com] }
                  challenge:
                    scheme: In-House
                    take:
                      gate: { param: realm, match: '^([^:]+):' }
                      nonce: { header: X-Nonce, else: "" }
                  key: [gate]
                  steps:
                    - name: login
                      layer: session
                      post: https://sso.example.com/login
                      json: { user: svc, password: "{secret.password}", keep: true, n: 1.5, s: "1" }
                      take: { user: { json: /token }, lifetime: { json: /expires_in, else: 30m } }
                    - name: access
                      post: https://sso.example.com/access?gate={challenge.gate}
                      form: { subject: "{login.user}", url: "{request.url}" }
                      stale: { status: 401 }
                      take: { token: { json: /token } }
                  token: "{access.token}"
                  inject: { value: "In-House {token}" }
            routes: [{ listen: "127.0.0.1:8080", to: "https://u.example.com", use: a }]
            store: { path: /t, key: env:K }
            """
        for (old, new) in changes {
            #expect(text.contains(old), "\(old)")
            text = text.replacing(old, with: new)
        }
        return text
    }

    @Test func aSoundOneIsClean() throws {
        let trial = Trial(Self.file())
        #expect(trial.lines == [])
        let recipe = try #require(trial.result.configuration?.identities.first?.scheme as? RecipeScheme).recipe
        #expect(recipe.isChallengeDriven)
        #expect(recipe.steps.map(\.layer) == [.session, .access])
        #expect(recipe.steps[0].secrets == ["password"])
        #expect(recipe.steps[1].origin == Origin(scheme: .https, host: "sso.example.com", port: 443))
        #expect(recipe.steps[1].target.description == "/access?gate={challenge.gate}")
        guard case .json(.object(let members)) = recipe.steps[0].body else { return _ = Issue.record("no JSON") }
        #expect(members[2].value == .literal("true"))
        #expect(members[3].value == .literal("1.5"))
        #expect(members[4].value == .string(RecipeTemplate(parts: [.text("1")])))
    }

    struct Mistake: Sendable {
        var old: String
        var new: String
        var message: String
        var place: String?
        init(_ old: String, _ new: String, _ message: String, _ place: String? = nil) {
            self.old = old
            self.new = new
            self.message = message
            self.place = place
        }
    }

    static let mistakes = [
        // Names, with place and nearest word.
        Mistake("{secret.password}", "{secret.pasword}", "did you mean 'secret.password'?", "17:42"),
        Mistake("{login.user}", "{logn.user}", "did you mean 'login.user'?", "21:30"),
        Mistake("{challenge.gate}", "x/{challenge.gat}", "did you mean 'challenge.gate'?", "20:56"),
        Mistake(
            "key: [gate]", "key: [gat]", "names 'gat', which 'challenge' does not take; did you mean 'gate'?", "12:13"),
        Mistake("{access.token}", "{zzz}", "names 'zzz', which is not known here; known: access.token"),
        Mistake("{access.token}", "{challenge.gate}", "the token outlives the request"),
        Mistake("svc, password", "\"{challenge.gate}\", password", "what the session layer keeps serves every request"),
        Mistake("svc, password", "\"{access.token}\", password", "not known here"),
        Mistake("{request.url}", "{request.query}", "it is there only with 'sign'"),
        // Templates.
        Mistake("{login.user}", "{login.user | bas64}", "did you mean 'base64'?"),
        Mistake("{login.user}", "{login.user | sha256}", "puts raw bytes into text"),
        Mistake("{login.user}", "{login.user", "has a '{' that is not closed"),
        Mistake("{login.user}", "a}", "has a lone '}'"), Mistake("{login.user}", "{}", "names nothing"),
        Mistake(
            "{login.user}", "{login.user | hmac_sha256(request.url)}",
            "needs a secret, a step's or an earlier signed value as its key"),
        Mistake(
            "{login.user}", "{login.user | jws(secret.other, HS256)}", "signs a received value that is not encoded"),
        Mistake(
            "{login.user}", "{'x' | jws(secret.password, none)}",
            "where one of RS256, PS256, ES256, EdDSA, HS256 is expected"),
        Mistake(
            "form: { subject: \"{login.user}\", url: \"{request.url}\" }", "text: \"<a>{login.user}</a>\"",
            "puts a received value into free text", "21:21"),
        // Places.
        Mistake(
            "{secret.password}", "{secret.other}",
            "sends secret 'other' to https://sso.example.com, which its 'to' does not name"),
        Mistake("{login.user}", "{'x' | hmac_sha256(secret.other)}", "sends secret 'other' to https://sso.example.com"),
        Mistake(
            "\"{access.token}\"", "\"{secret.password}\"",
            "would send secret 'password' of identity 'a' to https://u.example.com"),
        Mistake(
            "https://sso.example.com/login", "https://{identity.name}.example.com/login",
            "scheme, host and port must not be templates"),
        Mistake(
            "https://sso.example.com/login", "https://sso.example.com{identity.name}",
            "scheme, host and port must not be templates"),
        Mistake("https://sso.example.com/login", "http://sso.example.com/login", "in clear text"),
        Mistake("to: https://sso.example.com }", "to: https://sso.example.com/x }", "must be an origin"),
        // Steps.
        Mistake(
            "layer: session", "layer: durable, get: \"https://sso.example.com/\"", "needs exactly one of get, post, put"
        ),
        Mistake("name: access", "name: login", "has two steps named 'login'"),
        Mistake("name: access", "name: challenge", "cannot be named 'challenge'"),
        Mistake("name: access", "{name: access, layer: durable}", "what is kept longer comes first"),
        Mistake("form: {", "json: {a: b}\n          form: {", "has json and form; a body is one of them"),
        Mistake(
            "stale: { status: 401 }", "layer: session",
            "the last step of identity 'a' (recipe) must be on the access layer"),
        Mistake("layer: session", "stale: {status: 401}", "no step before it is on a layer that is kept"),
        Mistake("{ json: /token } }", "{ json: token } }", "must be a JSON pointer"),
        Mistake("else: 30m", "else: soon", "must be seconds or a duration"),
        Mistake(
            "json: /expires_in, else", "json: /expires_in, header: X, else",
            "needs exactly one of json, form, xml, header, cookie"
        ),
        // Challenge, token, inject.
        Mistake("scheme: In-House", "status: 401", "needs 'scheme', 'header' or 'json'"),
        Mistake("scheme: In-House", "header: X-Gate", "takes a 'param', which needs 'scheme'"),
        Mistake("'^([^:]+):'", "'^[^:]+:'", "needs one group"),
        Mistake("In-House {token}", "In-House {token}!", "must end with '{token}'"),
        Mistake("In-House {token}", "In-House", "must end with '{token}'"),
        Mistake("inject: { value", "inject: { header: Host, value", "is a header of the connection itself"),
        Mistake("token: \"{access.token}\"", "sign: {a: b}", "cannot use 'token': there is no 'token'"),
    ]

    @Test(arguments: mistakes.indices)
    func saysWhatIsWrong(index: Int) {
        var mistake = Self.mistakes[index]
        // YAML of one step's keys in flow style where the mistake adds some.
        if mistake.new.hasPrefix("layer: durable, ") {
            mistake.new = "layer: durable\n          get: https://sso.example.com/"
        } else if mistake.new.hasPrefix("{name: access, ") {
            mistake.new = "name: access\n          layer: durable"
        }
        let found = Trial(Self.file([(mistake.old, mistake.new)])).result.errors
        let match = found.first { $0.message.contains(mistake.message) }
        #expect(match != nil, "\(mistake.message)\n\(found)")
        if let place = mistake.place, let match {
            #expect("\(match.mark.line):\(match.mark.column)" == place, "\(match)")
        }
    }

    @Test func aNinthStepIsRefused() {
        let steps = (0..<9).map { "{name: s\($0), get: \"https://i.example.com/\"}" }.joined(separator: ", ")
        let errors = Trial(Trial.around(identity: "recipe: {steps: [\(steps)], token: x}")).errors
        #expect(errors.contains { $0.hasSuffix("has 9 steps; at most 8 are made") })
    }

    @Test func withoutASelectorTokensAreHadAhead() throws {
        let text = Self.file([
            ("scheme: In-House", "status: [401, 403]"), ("gate: { param: realm, match: '^([^:]+):' }", ""),
            ("nonce: { header: X-Nonce, else: \"\" }", ""), ("        take:\n", ""), ("key: [gate]", "key: []"),
            ("?gate={challenge.gate}", ""), (", url: \"{request.url}\"", ""),
        ])
        #expect(Trial(text).errors == [])
        let asking = Self.file([("scheme: In-House", "status: 401")])
        #expect(Trial(asking).errors.contains { $0.contains("tokens are had ahead of requests") })
    }

    // MARK: - Templates

    @Test(arguments: [
        "a{{b}}c", "{secret.p}", "Basic {'svc:' secret.p | base64}", "{('{' uuid '}') | sha256 | hex}",
        "{'x' | hmac_sha256(secret.p) | base64url}", "{secret.p | url | json | xml}", "{\"it's\" now}",
        "{'q' | jws(secret.p, HS256)}",
    ])
    func printedAsWritten(text: String) {
        let scope = RecipeScope(names: ["secret.p": .secret("p"), "uuid": .own(.uuid), "now": .own(.now)])
        let (template, faults) = RecipeTemplateParser.parse(text, in: scope)
        #expect(faults == [])
        #expect(template.description == text)
        let (again, _) = RecipeTemplateParser.parse(template.description, in: scope)
        #expect(again == template)
    }

    @Test func everyFaultIsReported() {
        let (_, faults) = RecipeTemplateParser.parse("{a} {now | b} } {", in: RecipeScope(names: ["now": .own(.now)]))
        #expect(faults.map(\.offset) == [1, 11, 14, 17])
    }

    // MARK: - Digest

    private func form(_ changes: [(String, String)] = []) -> [UInt8]? {
        Trial(Self.file(changes)).result.configuration?.identities.first?.canonicalForm
    }

    @Test func theDigestCountsWhatIsSent() {
        let plain = form()
        #expect(plain != nil)
        // What a recipe does with a secret is not known: it may be all that says who we are.
        #expect(form([("env:P", "env:Q")]) != plain)
        #expect(form([("keep: true", "keep: false")]) != plain)
        #expect(form([("s: \"1\"", "s: 1")]) != plain)
        #expect(form([("user: svc", "user: [svc]")]) != plain)
        #expect(
            form([("user: svc, password: \"{secret.password}\"", "password: \"{secret.password}\", user: svc")])
                == plain)
        #expect(form([("/login", "/logon")]) != plain)
    }

    @Test(arguments: [
        ("/a/0/b~1c~0", ["a", "0", "b/c~"]), ("", []), ("/", [""]), ("/~01", ["~1"]),
    ])
    func pointersAreTakenApart(text: String, tokens: [String]) throws {
        #expect(try JSONPointer(text: text).tokens == tokens)
    }

    @Test(arguments: [
        ("3600", 3600.0), ("90.5", 90.5), ("30m", 1800), ("400d", 0), ("0", 0), ("-5", 0), ("x", 0),
        ("99999999999", 31_536_000),
    ])
    func lifetimes(text: String, seconds: Double) {
        #expect((RecipeLifetime.seconds(text) ?? 0) == seconds)
    }
}
