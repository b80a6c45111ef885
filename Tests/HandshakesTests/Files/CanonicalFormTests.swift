import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct CanonicalFormTests {
    private func form(_ identity: String) -> [UInt8]? {
        Trial(Trial.around(identity: identity)).result.configuration?.identities.first?.canonicalForm
    }

    @Test(arguments: [
        // The place of a secret, a default written down, another spelling, the order of keys, policy.
        "client_secret: file:/x, client_id: c, token_url: \"https://i.example.com/t\"",
        "\(Trial.oauth2), grant: client_credentials, client_auth: client_secret_basic",
        "token_url: \"HTTPS://I.example.com:443/t\", client_id: c, client_secret: env:S",
        "\(Trial.oauth2), allowed_scopes: [a]",
        "\(Trial.oauth2), identity_domain_header: x-user-identity-domain-name",
    ])
    func unchangedBy(oauth2: String) {
        #expect(form("oauth2: {\(Trial.oauth2)}") != nil)
        #expect(form("oauth2: {\(oauth2)}") == form("oauth2: {\(Trial.oauth2)}"))
    }

    @Test(arguments: [
        "token_url: \"https://i.example.com/T\", client_id: c, client_secret: env:S",
        "token_url: \"https://i.example.com/t\", client_id: d, client_secret: env:S",
        "\(Trial.oauth2), client_auth: post", "\(Trial.oauth2), extra: {a: b}", "\(Trial.oauth2), headers: {A: b}",
        "\(Trial.oauth2), identity_domain: x",
    ])
    func changedBy(oauth2: String) {
        #expect(form("oauth2: {\(oauth2)}") != nil)
        #expect(form("oauth2: {\(oauth2)}") != form("oauth2: {\(Trial.oauth2)}"))
    }

    /// Where nothing but the secret says whose the token is.
    @Test(arguments: [
        "static: {value: \"%\"}", "basic: {username: u, password: \"%\"}",
        "oauth2: {\(Trial.oauth2), grant: refresh_token, refresh_token: \"%\"}",
        "oauth2: {\(Trial.oauth2), grant: jwt_bearer, assertion: \"%\"}",
        "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: \"%\"}",
        "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: env:S, actor_token: \"%\", actor_token_type: jwt}",
    ])
    func changedByThePlaceOfASecretThatSaysWhoWeAre(identity: String) {
        func placed(_ place: String) -> [UInt8]? { form(identity.split(separator: "%").joined(separator: place)) }
        #expect(placed("file:/anna") != nil)
        #expect(placed("file:/anna") == placed("file:/anna"))
        #expect(placed("file:/anna") != placed("file:/bert"))
        #expect(placed("literal:anna") == placed("literal:bert"), "a value never counts")
    }

    @Test func partsDoNotRunTogether() {
        #expect(form("oauth2: {\(Trial.oauth2), extra: {a: bc}}") != form("oauth2: {\(Trial.oauth2), extra: {ab: c}}"))
        #expect(form("oauth2: {\(Trial.oauth2), extra: {}}") != nil)
    }

    @Test func nothingOutsideTheHandshakeCounts() {
        let plain = form("oam_webgate: {\(Trial.webgate)}")
        #expect(form("oam_webgate: {\(Trial.webgate)}, token: {persist: false}, scopes: [x]") == plain)
        #expect(form("oam_webgate: {\(Trial.webgate), probe: /x, user_token_ttl: 1800s, paths: {}}") == plain)
        #expect(form("oam_webgate: {\(Trial.webgate), paths: {access: a2}}") != plain)
        #expect(form("oam_webgate: {\(Trial.webgate), paths: {access: /access}}") == plain)
    }
}
