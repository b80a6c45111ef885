import Testing

@testable import Configuration
@testable import Handshakes

/// What keys of `oam_oauth` mean together, and what they come to.
@Suite struct OAMOAuthConfigurationTests {
    static let c12 = "dialect: 12c, base_url: \"https://o\", identity_domain: D, client_id: c"
    static let sim = "dialect: sim, token_url: \"https://o/t\", identity_domain: D, client_id: c"
    static let idcs = "dialect: idcs, token_url: \"https://o/t\", client_id: c"
    static let web = "dialect: 11g, service_endpoint: \"https://o/s\", client_id: c"
    static let mobile = "\(web), client_type: mobile, username: u, password: env:P"

    static func trial(_ members: String) -> Trial { Trial(Trial.around(identity: "oam_oauth: {\(members)}")) }

    @Test(
        arguments: [
            (
                "dialect: 12c, identity_domain: D, client_id: c, client_secret: env:S",
                "identity 'a' (oam_oauth) needs 'base_url' for 'dialect: 12c'"
            ),
            (
                "dialect: 12c, base_url: \"https://o\", client_id: c, client_secret: env:S",
                "identity 'a' (oam_oauth) needs 'identity_domain'"
            ),
            ("\(c12)", "identity 'a' (oam_oauth) needs 'client_secret' for 'client_auth: basic'"),
            (
                "\(c12), client_secret: env:S, token_url: \"https://o/t\"",
                "'token_url' of identity 'a' (oam_oauth) goes only with 'dialect: sim or idcs'"
            ),
            (
                "\(c12), client_secret: env:S, client_auth: issued_jwt",
                "'client_auth: issued_jwt' of identity 'a' (oam_oauth) goes only with 'dialect: sim or idcs'"
            ),
            (
                "\(idcs), client_secret: env:S, domain_mode: none",
                "'domain_mode' of identity 'a' (oam_oauth) goes only with 'dialect: sim'"
            ),
            (
                "\(sim), client_secret: env:S, grant_case: upper",
                "'grant_case' of identity 'a' (oam_oauth) goes only with 'dialect: 12c'"
            ),
            (
                "\(sim), client_auth: private_key_jwt",
                "identity 'a' (oam_oauth) needs 'key' for 'client_auth: private_key_jwt'"
            ),
            (
                "\(sim), client_secret: env:S, grant: jwt_bearer, username: u",
                "identity 'a' (oam_oauth) needs 'key' for 'grant: jwt_bearer'"
            ),
            (
                "\(sim), client_secret: env:S, key: env:K",
                "'key' of identity 'a' (oam_oauth) is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'user_assertion'"
            ),
            (
                "\(idcs), client_auth: private_key_jwt, key: env:K, assertion: {certificate: /c}",
                "'certificate' of 'assertion' of identity 'a' (oam_oauth) needs 'x5t: true'"
            ),
            (
                "\(idcs), client_auth: private_key_jwt, key: env:K, assertion: {extra_claims: {sub: x}}",
                "'sub' among the claims of identity 'a' (oam_oauth) is set by the gateway"
            ),
            (
                "\(web), client_secret: env:S, device_profile: {a: b}",
                "'device_profile' of identity 'a' (oam_oauth) goes only with 'dialect: 11g' and 'client_type: mobile'"
            ),
            (
                "\(web), client_type: mobile, username: u",
                "identity 'a' (oam_oauth) needs 'password' to register a mobile client"
            ),
            (
                "\(mobile), client_secret: env:S",
                "'client_secret' of identity 'a' (oam_oauth) does not go with 'client_type: mobile': its registration proves it"
            ),
            (
                "\(mobile), grant: oam_credentials",
                "'grant: oam_credentials' of identity 'a' (oam_oauth) needs 'experimental: true': its wire form is not documented"
            ),
            (
                "\(sim), client_secret: env:S, grant: authorization_code",
                "'grant: authorization_code' of identity 'a' (oam_oauth) does not go with 'dialect: sim'"
            ),
            (
                "\(mobile), grant: authorization_code",
                "'grant: authorization_code' of identity 'a' (oam_oauth) does not go with 'client_type: mobile'"
            ),
            (
                "\(c12), client_secret: env:S, redirect_uri: \"http://127.0.0.1/cb\"",
                "'redirect_uri' of identity 'a' (oam_oauth) is used only with 'grant: authorization_code'"
            ),
            (
                "\(c12), client_secret: env:S, grant: authorization_code, login_parameters: {state: x}",
                "'state' in 'login_parameters' of identity 'a' (oam_oauth) is set by the login itself"
            ),
            (
                "\(idcs), client_secret: env:S, grant: authorization_code, client_auth: issued_jwt",
                "'client_auth: issued_jwt' of identity 'a' (oam_oauth) does not go with 'grant: authorization_code'"
            ),
            (
                "\(idcs), client_secret: env:S, introspection_url: \"https://o/i\"",
                "'introspection_url' of identity 'a' (oam_oauth) is used only with 'introspection: true'"
            ),
            (
                "\(sim), client_secret: env:S, introspection: true",
                "'introspection' of identity 'a' (oam_oauth) goes only with 'dialect: 11g or 12c or idcs'"
            ),
            (
                "\(mobile), experimental: true",
                "'experimental' of identity 'a' (oam_oauth) goes only with 'grant: oam_credentials'"
            ),
            (
                "\(c12), client_secret: env:S, extra: {oracle_token_action: delete}",
                "'oracle_token_action' in 'extra' of identity 'a' (oam_oauth) is set by its own key"
            ),
            (
                "dialect: idcs, token_url: \"http://o/t\", client_id: c, client_secret: env:S",
                "'token_url' of identity 'a' (oam_oauth) sends credentials in clear text"
            ),
        ])
    func whatGoesTogether(members: String, complaint: String) {
        let errors = Self.trial(members).errors
        #expect(errors.count == 1, "\(errors)")
        #expect(errors.first?.hasPrefix(complaint) == true, "\(errors)")
    }

    private func settings(_ members: String) throws -> OAuth2Settings {
        let trial = Self.trial(members)
        let configuration = try #require(trial.result.configuration, "\(trial.errors)")
        return try #require(configuration.identities.first?.scheme as? OAMOAuthScheme).settings
    }

    private func tokenURL(_ settings: OAuth2Settings) -> IssuerURL? {
        if case .tokenURL(let url) = settings.location { url } else { nil }
    }

    @Test func theDomainGoesIntoTheQueryOrTheHeader() throws {
        for (place, query, header) in [
            ("header", nil, "D"), ("query", "identityDomain=D", nil), ("both", "identityDomain=D", "D"),
        ]
            as [(String, String?, String?)]
        {
            let oam = try settings("\(Self.c12), client_secret: env:S, domain_in: \(place)")
            #expect(tokenURL(oam)?.path == "/oauth2/rest/token" + (query.map { "?\($0)" } ?? ""))
            #expect(oam.identityDomain == header)
            #expect(oam.identityDomainHeader == "X-OAUTH-IDENTITY-DOMAIN-NAME")
        }
        let odd = try settings(
            "dialect: 12c, base_url: \"https://o/\", identity_domain: \"a b&c\", client_id: c, client_secret: env:S, domain_in: query"
        )
        #expect(tokenURL(odd)?.path == "/oauth2/rest/token?identityDomain=a%20b%26c")
    }

    @Test func aLoginsPageIsTheDialects() throws {
        let login = "client_secret: env:S, grant: authorization_code"
        let places = try [Self.web, Self.c12, Self.idcs].map {
            try settings("\($0), \(login)").authorizationURL?.path
        }
        #expect(places == ["/s/authorize", "/oauth2/rest/authz", "/authorize"])
        let own = try settings("\(Self.c12), \(login), authorization_url: \"https://o/oauth2/rest/authorize\"")
        #expect(own.authorizationURL?.path == "/oauth2/rest/authorize")
        #expect(own.loginParameters.map { "\($0.name)=\($0.value)" } == ["domain=D"])
        #expect(try settings("\(Self.idcs), \(login)").loginParameters.isEmpty)
    }

    @Test func theTenantStandsBeforeTheUserOrInTheHeader() throws {
        let user = "client_secret: env:S, grant: password, username: u, password: env:P"
        let prefixed = try settings("\(Self.sim), \(user), domain_mode: user_prefix")
        #expect(prefixed.grant == .password(username: "D.u") && prefixed.identityDomain == nil)
        let plain = try settings("\(Self.sim), \(user)")
        #expect(plain.grant == .password(username: "u") && plain.identityDomain == "D")
        #expect(plain.identityDomainHeader == "X-USER-IDENTITY-DOMAIN-NAME")
    }

    @Test func ownClaimsTakeThePlaceOfTheDialects() throws {
        let oam = try settings(
            "\(Self.sim), client_auth: private_key_jwt, key: env:K, assertion: {extra_claims: {user.tenant.name: T}}")
        let claims = try #require(oam.oracle).clientClaims
        #expect(claims.count { $0.name == "user.tenant.name" } == 1)
        #expect(claims.contains(NamedValue(name: "user.tenant.name", value: "T")))
        #expect(oam.signing.audience == .text("oauth.idm.oracle.com"))
        #expect(oam.signing.lifetime == 300)
    }

    @Test func anAssertionIsNoPartOfWhoTheClientIs() throws {
        func form(_ members: String) -> [UInt8]? {
            Self.trial(members).result.configuration?.identities.first?.canonicalForm
        }
        let key = "\(Self.idcs), client_auth: private_key_jwt, key: env:K"
        #expect(form(key) != nil)
        #expect(form(key) == form("\(Self.idcs), client_auth: private_key_jwt, key: env:L, assertion: {kid: k}"))
        #expect(form(key) != form("\(Self.sim), client_auth: private_key_jwt, key: env:K"))
    }
}
