import Testing

@testable import Configuration
@testable import Handshakes

/// Rules of single schemes that a file has to keep, and the words in which a mistake is told.
@Suite struct SchemeRuleTests {
    private static let adobe = "service_provider: N, mvpd: M, software_statement: env:S"
    private static let hub = "base_url: \"https://h.example.com\", backend_id: b"
    private static let exchange = "\(hub), method: token_exchange, third_party_token: env:T"
    private static let token = "exchange_endpoint: auth_token, client_id: c"
    private let world = GrantWorld(wallMilliseconds: { 0 }, random: { Array(repeating: 7, count: $0) })
    private static let media = "inject: {header: X-Adobe-Authorization}"

    private static func trial(_ scheme: String, _ members: String, route: String = "", top: String = "") -> Trial {
        Trial(Trial.around(identity: "\(scheme): {\(members)}", route: route, top: top))
    }

    struct Rule: Sendable {
        let scheme: String
        let members: String
        let route: String
        let complaint: String
        init(_ scheme: String, _ members: String, route: String = "", _ complaint: String) {
            (self.scheme, self.members, self.route, self.complaint) = (scheme, members, route, complaint)
        }
    }

    static let rules = [
        Rule(
            "adobe_pass", "\(adobe), resource: r, preauthorize: [a, b, c, d, e, f]", route: media,
            "'preauthorize' of identity 'a' (adobe_pass) has more than 5 resources, which Adobe refuses"),
        Rule(
            "adobe_pass", "\(adobe), resource: \"{path.zero}\"", route: media,
            "'resource' of identity 'a' (adobe_pass) "),
        Rule(
            "adobe_pass", "\(adobe), resource: r", route: "\(media), on_rejected: {large_body: probe_head}",
            "would spend a token that is good for one request"),
        Rule(
            "mobile_hub", "\(hub), method: basic_user, username: \"a:b\", password: env:P",
            "'username' of identity 'a' (mobile_hub) must not have a colon (RFC 7617)"),
        Rule(
            "mobile_hub",
            "\(hub), method: oauth_client, generation: classic, token_url: \"https://t.example.com\", client_id: c, client_secret: env:S",
            "identity 'a' (mobile_hub) needs 'identity_domain' for 'generation: classic'"),
        Rule(
            "mobile_hub", "\(hub), method: basic_anonymous, anonymous_key: env:K",
            route: "subject: {from_header: X-User}", "'subject'"),
        Rule(
            "mobile_hub", "\(hub), method: token_exchange", route: "subject: {from_header: X-User}",
            "it exchanges the caller's own token; say subject: from_caller_token"),
        Rule(
            "oam_oauth",
            "dialect: sim, token_url: \"https://o/t\", identity_domain: D, client_id: c, client_secret: env:S, grant: jwt_bearer, user_assertion: env:U, user_claims: {x: y}",
            "'user_claims' of identity 'a' (oam_oauth) is not used by 'grant: jwt_bearer'"),
    ]

    @Test(arguments: rules.indices) func `a mistake is told in words of the scheme`(_ index: Int) {
        let rule = Self.rules[index]
        let errors = Self.trial(rule.scheme, rule.members, route: rule.route).errors
        #expect(errors.contains { $0.contains(rule.complaint) }, "\(errors)")
    }

    @Test(arguments: [
        "\(exchange), \(token), client_auth: form", "\(exchange), \(token), client_auth: form, client_secret: env:S",
    ])
    func `an exchange whose client is named in the form needs no secret`(_ members: String) throws {
        let trial = Self.trial("mobile_hub", members)
        #expect(trial.lines == [])
        let identity = try #require(trial.result.configuration?.identities.first)
        #expect(throws: Never.self) {
            try #require(identity.scheme as? any Scheme).handshake(of: identity, statuses: nil, world)
        }
    }

    @Test func `an exchange without a grant type and a token of its own is sound`() {
        let consumer = "client_auth: assertion, token_url: \"https://t.example.com\", client_secret: env:S"
        #expect(Self.trial("mobile_hub", "\(Self.exchange), \(Self.token), \(consumer), grant_type: none").lines == [])
    }

    // MARK: - A fleet and keys of its own

    private static let shared = """
        store: {path: /var/lib/cardea/t.db, key: env:K, shared: "rediss://r.example.com"}
        """

    private static func bound(_ members: String, top: String = "") -> Trial {
        trial(
            "oauth2", "token_url: https://i.example.com/t, client_id: c, client_auth: none, dpop: true, \(members)",
            top: top)
    }

    @Test func `a login that is bound to a gateway's key does not go with a fleet's one refresh token`() {
        let refresh = "grant: refresh_token, refresh_token: env:R"
        let errors = Self.bound(refresh, top: Self.shared).errors
        #expect(
            errors.contains {
                $0.contains("'dpop' does not go with 'store.shared'") && $0.contains("one refresh token")
            },
            "\(errors)")
        #expect(!Self.bound(refresh).errors.contains { $0.contains("store.shared") })
    }

    @Test func `a person's login that is bound to a gateway's key is told to be needed once for each`() {
        let login = "grant: authorization_code, authorization_url: https://i.example.com/a"
        let trial = Self.bound(login, top: Self.shared)
        #expect(trial.errors == [])
        #expect(
            trial.warnings.contains { $0.hasSuffix("each gateway of the fleet needs its own 'cardea login'") },
            "\(trial.warnings)")
        #expect(!Self.bound(login).warnings.contains { $0.contains("cardea login") })
    }

    @Test func `statuses of a route are the ones by which its token is refused`() throws {
        let trial = Self.trial("oauth2", Trial.oauth2, route: "on_rejected: {statuses: [403]}")
        let identity = try #require(trial.result.configuration?.identities.first)
        let handshake = try #require(identity.scheme as? any Scheme).handshake(
            of: identity, statuses: [403], world)
        #expect(handshake.inspectedStatuses == [403])
        #expect(
            handshake.judge(status: 403, wwwAuthenticate: [], location: nil, requestURL: "u")
                == .challenged(Challenge(resource: "u")))
        #expect(handshake.judge(status: 401, wwwAuthenticate: [], location: nil, requestURL: "u") == .none)
    }

    // MARK: - URLs

    /// The file's rules admit some URLs that no call can go to: such an identity is refused whole and calls nobody.
    @Test(arguments: [
        ("oauth2", "token_url: \"https://i.example.com/a/../t\", client_id: c, client_secret: env:S"),
        ("oauth2", "issuer: \"https://i.example.com/a/../t\", client_id: c, client_secret: env:S"),
        ("mobilefirst", "base: \"https://i.example.com/a/../t\", client_id: c, client_secret: env:S"),
        (
            "mobile_hub",
            "base_url: \"https://h.example.com/a/../t\", backend_id: b, method: basic_anonymous, anonymous_key: env:K"
        ),
        (
            "oam_oauth",
            "dialect: sim, token_url: \"https://o.example.com/a/../t\", identity_domain: D, client_id: c, client_secret: env:S"
        ),
        (
            "oam_oauth",
            "dialect: 12c, base_url: \"https://o.example.com/a/../t\", identity_domain: D, client_id: c, client_secret: env:S"
        ),
        (
            "oam_oauth",
            "dialect: 12c, base_url: \"https://o.example.com/\(String(repeating: "a", count: 4070))\", identity_domain: D, client_id: c, client_secret: env:S"
        ),
    ])
    func `a URL that cannot be called makes no handshake`(_ scheme: String, _ members: String) async throws {
        let draft = try #require(Self.trial(scheme, members).draft)
        let identity = try #require(draft.identities.first)
        let failed = await failure {
            _ = try #require(identity.scheme as? any Scheme).handshake(of: identity, statuses: nil, world)
        }
        #expect(failed.map { "\($0)" }?.contains("not a URL") == true)
    }

    // MARK: - MobileFirst

    private static let device = "base: https://m.example.com/mfp/api, mode: registered, application: app"

    @Test func `two confidential clients that differ in their secrets are told to be one`() {
        func clients(_ one: String, _ two: String) -> [String] {
            Trial(
                """
                identities:
                  a: {mobilefirst: {base: "https://m.example.com/mfp/api", client_id: c, client_secret: env:\(one)}}
                  b: {mobilefirst: {base: "https://m.example.com/mfp/api", client_id: c, client_secret: env:\(two)}}
                routes:
                  - {listen: "127.0.0.1:8080", to: "https://u.example.com", use: a}
                  - {listen: "127.0.0.1:8081", to: "https://u.example.com", use: b}
                """
            ).errors
        }
        let told = clients("S", "T")
        #expect(told.count == 1 && told[0].contains("would be served with the token of either"), "\(told)")
        #expect(clients("S", "S") == [])
    }

    @Test func `the last attempt of a check is spent only where the operator allows it`() throws {
        func handshake(_ identityKeys: String) throws -> MobileFirstHandshake {
            let members = "mobilefirst: {\(Self.device), answers: {Pin: {pin: env:P}}}\(identityKeys)"
            let trial = Trial(Trial.around(identity: members, top: "store: {path: /var/lib/cardea/t.db, key: env:K}"))
            let identity = try #require(trial.result.configuration?.identities.first, "\(trial.errors)")
            let scheme = try #require(identity.scheme as? any Scheme)
            return try #require(
                try scheme.handshake(of: identity, statuses: nil, world) as? MobileFirstHandshake)
        }
        func least(_ handshake: MobileFirstHandshake) -> Int? {
            guard case .registered(let device) = handshake.settings.client else { return nil }
            return device.leastAttempts
        }
        #expect(try least(handshake("")) == 2)
        #expect(try least(handshake(", token: {allow_last_attempt: true}")) == 1)
    }
}
