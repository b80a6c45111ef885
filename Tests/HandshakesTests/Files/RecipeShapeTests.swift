import Testing

@testable import Configuration
@testable import Handshakes
@testable import Tokens

/// Values of a recipe that have another shape than their key: each is told at its place, and nothing else is.
@Suite struct RecipeShapeTests {
    static let mistakes: [RecipeTests.Mistake] = [
        .init("post: https://sso.example.com/login", "post: [https://sso.example.com/login]", "'post'"),
        .init("form: { subject: \"{login.user}\", url: \"{request.url}\" }", "form: [a, b]", "'form'"),
        .init("to: https://sso.example.com }", "to: [[https://sso.example.com]] }", "'to'"),
        .init("to: https://sso.example.com }", "to: no-url }", "'to'"),
        .init("token: { json: /token } }\n      token:", "token: json }\n      token:", "'token'"),
        .init("gate: { param: realm,", "gate: { param: [realm],", "'param'"),
        .init("nonce: { header: X-Nonce,", "nonce: { header: [X-Nonce],", "'header'"),
        .init("nonce: { header: X-Nonce,", "nonce: { cookie: [c],", "'cookie'"),
        .init("inject: { value: \"In-House {token}\" }", "inject: { header: [a], value: \"{token}\" }", "'header'"),
        .init("user: svc,", "user: {login.user},", "is a map to YAML; write \"{login.user}\" in quotes"),
    ]

    @Test(arguments: mistakes.indices) func `a value of another shape is told once`(_ index: Int) {
        let mistake = Self.mistakes[index]
        let found = Trial(RecipeTests.file([(mistake.old, mistake.new)])).errors
        #expect(found.contains { $0.contains(mistake.message) }, "\(found)")
        #expect(found.count <= 2, "\(found)")
    }

    @Test func `a member without a value is null in JSON`() throws {
        let trial = Trial(RecipeTests.file([("keep: true,", "keep: ,")]))
        #expect(trial.lines == [])
        let recipe = try #require(trial.result.configuration?.identities.first?.scheme as? RecipeScheme).recipe
        guard case .json(.object(let members)) = recipe.steps[0].body else { return _ = Issue.record("no JSON") }
        #expect(members[2].value == .literal("null"))
    }

    @Test func `a recipe that waits for no challenge has its tokens ahead of requests`() throws {
        let steps = "steps: [{name: s, get: \"https://s.example.com/\", take: {t: {json: /t}}}], token: \"{s.t}\""
        let trial = Trial(Trial.around(identity: "recipe: {\(steps)}"))
        let identity = try #require(trial.result.configuration?.identities.first, "\(trial.lines)")
        let traits = try #require(identity.scheme as? any Scheme).traits(of: identity)
        #expect(traits.kind == .proactive && traits.account == nil && identity.scheme.carrier == "Authorization")
        let waiting = try #require(Trial(RecipeTests.file()).result.configuration?.identities.first)
        #expect(try #require(waiting.scheme as? any Scheme).traits(of: waiting).kind == .challengeDriven)
    }

    @Test func `a proxy's route has no one upstream whose name a secret would need`() {
        let recipe =
            "recipe: {secrets: {key: {value: env:K, to: \"https://u.example.com\"}}, sign: {a: \"{now | hmac_sha256(secret.key) | hex}\"}, inject: {value: \"{sign.a}\"}}"
        let sound = Trial(Trial.around(identity: recipe))
        let stub = Trial(
            Trial.around(identity: recipe).replacing("to: \"https://u.example.com\", use: a", with: "use: a"))
        #expect(sound.errors == [])
        #expect(stub.errors.allSatisfy { !$0.contains("secret 'key'") } && stub.errors.count == 1, "\(stub.errors)")
    }
}
