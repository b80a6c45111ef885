import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct AllowedIssuersTests {
    private func load(_ issuers: String, _ keys: String = Trial.oauth2) -> Trial {
        Trial(Trial.around(identity: "oauth2: {\(keys), allowed_issuers: [\(issuers)]}"))
    }

    /// Metadata is compared with what is written, so nothing is put right here.
    @Test func theyStayAsTheyAreSpelt() throws {
        let trial = load("\"https://I.example.com/a/\", \"https://i.example.com\"")
        #expect(trial.lines == [])
        let oauth2 = try #require(trial.result.configuration?.identities.first?.scheme as? OAuth2Scheme)
        #expect(oauth2.settings.allowedIssuers.map(\.issuer) == ["https://I.example.com/a/", "https://i.example.com"])
    }

    @Test(arguments: [
        ("http://i.example.com", Trial.oauth2, "sends credentials in clear text"),
        ("https://i.example.com/?x=y", Trial.oauth2, "must not have a query"),
        ("https://i, https://i", Trial.oauth2, "has 'https://i' twice"),
        ("ftp://i", Trial.oauth2, "http"),
        ("https://i", "issuer: https://i, client_id: c, client_secret: env:S", "which is allowed anyway"),
        ("https://i", Trial.oauth2 + ", grant: refresh_token, refresh_token: env:R", "go only with client_credentials"),
        (
            "https://i", "token_url: https://t, client_id: c, client_auth: none, grant: saml2_bearer, assertion: env:A",
            "go only with client_credentials"
        ),
        (
            "https://i", "issuer: https://o, registration: {}, client_auth: basic",
            "do not go with 'registration'"
        ),
    ])
    func oneClearError(issuers: String, keys: String, words: String) {
        let quoted = issuers.split(separator: ", ").map { "\"\($0)\"" }.joined(separator: ", ")
        let errors = load(quoted, keys).errors
        #expect(errors.count == 1 && errors[0].contains(words), "\(errors)")
    }
}
