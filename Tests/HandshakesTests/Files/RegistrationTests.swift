import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct RegistrationTests {
    static func file(_ keys: String) -> String { Trial.around(identity: "oauth2: {\(keys)}") }

    static let mistakes: [(keys: String, error: String)] = [
        ("token_url: \"https://i/t\", client_secret: env:S", "needs 'client_id'"),
        ("issuer: \"https://i\", registration: {}, client_id: c", "'client_id' of"),
        ("issuer: \"https://i\", registration: {}, client_secret: env:S", "'client_secret' of"),
        ("token_url: \"https://i/t\", registration: {}", "needs 'url' beside 'token_url'"),
        ("token_url: \"https://i/t\", registration: {url: \"http://i/r\"}", "'url' in 'registration'"),
        ("issuer: \"https://i\", registration: {}, client_auth: private_key_jwt, key: env:K", "does not go with"),
        ("issuer: \"https://i\", registration: {metadata: {grant_types: x}}", "is set by the gateway itself"),
        ("\(Trial.oauth2), introspection_url: \"https://i/x\"", "is used only with 'introspection: true'"),
        ("\(Trial.oauth2), introspection: true", "needs 'introspection_url' beside 'token_url'"),
    ]

    @Test(arguments: mistakes)
    func oneClearError(keys: String, error: String) {
        let errors = Trial(Self.file(keys)).errors
        #expect(errors.count == 1 && errors.first?.contains(error) == true, "\(errors)")
    }

    @Test func itsSecretsAreKnown() {
        let text = "issuer: \"https://i\", registration: {initial_access_token: env:A, software_statement: env:B}"
        let trial = Trial(Self.file(text))
        #expect(trial.errors == [])
        let keys = trial.draft?.identities.first?.secrets.map(\.key)
        #expect(keys == ["initial_access_token", "software_statement"])
    }

    @Test func proofsHaveFieldsOfTheirOwn() {
        let identity = "x: {oauth2: {\(Trial.oauth2), dpop: true}}"
        for route in ["inject: {query: t}", "headers: {set: {DPoP: x}}", "inject: {header: X-Token}"] {
            let errors = Trial(
                "identities: {\(identity)}\nroutes: [{listen: \"127.0.0.1:1\", to: \"https://a.example.com\", use: x, \(route)}]"
            ).errors
            #expect(errors.count == 1, "\(route): \(errors)")
        }
    }
}
