import Testing

@testable import Configuration

/// The keys that every identity may have (`token`, `network`, exchanges, end users) land in the model, and their rules hold.
@Suite struct IdentityRuleTests {
    /// A scheme that says of itself whatever its block says.
    struct Mask: ConfiguredScheme {
        static let key = KeySpec(
            Block(
                name: "mask", description: "A mask.",
                keys: [
                    KeySpec("seal", .secret, "What it is made with."), KeySpec("challenged", .boolean, "C."),
                    KeySpec("probe", .text(.servicePath), "P."), KeySpec("password", .boolean, "P."),
                    KeySpec("person", .boolean, "P."), KeySpec("names_subject", .boolean, "N."),
                    KeySpec("exchanges", .boolean, "E."),
                    KeySpec("subject_token", .either([.secret, .block(Keys.subjectToken)]), "S."),
                    KeySpec("no_scopes", .boolean, "N."), KeySpec("takes_subject", .boolean, "T."),
                ]))
        static var isExchangeable: Bool { true }

        let isChallengeDriven: Bool
        let probe: String?
        let sendsPassword: Bool
        let needsPerson: Bool
        let namesSubject: Bool
        let subjectKey: String?
        let subjectToken: SubjectToken?
        let reasonAgainstScopes: String?
        let takesSubject: Bool

        init(_ keys: BlockReader, of identity: SchemeOwner) {
            isChallengeDriven = keys.boolean("challenged")
            probe = keys.text("probe")
            sendsPassword = keys.boolean("password")
            needsPerson = keys.boolean("person")
            namesSubject = keys.boolean("names_subject")
            subjectToken = keys.subjectToken("subject_token")
            subjectKey = keys.boolean("exchanges") || subjectToken != nil ? "subject_token" : nil
            reasonAgainstScopes = keys.boolean("no_scopes") ? "there are none" : nil
            takesSubject = keys.boolean("takes_subject")
        }

        func reasonAgainst(_ subject: Route.Subject) -> String? { takesSubject ? nil : oneForEverybody }
    }

    private static func load(_ text: String) -> LoadResult {
        Configuration.load(.text(text), schemes: [Mask.self, Written.Pin.self]) { _ in nil }
    }

    /// Loads a file with the identity `a` and a route `r` that uses it.
    private static func load(identity: String, route: String = "", more: String = "") -> LoadResult {
        load(
            """
            identities: {a: {\(identity)}}
            \(more)
            routes: [{name: r, listen: "127.0.0.1:1", to: https://u, use: a\(route)}]
            """)
    }

    private static func found(_ result: LoadResult) -> [String] {
        result.diagnostics.map { "\($0.severity == .error ? "!" : "?") \($0.message)" }
    }

    @Test func aPlainIdentityHasItsDefaults() throws {
        let identity = try #require(Self.load(identity: "mask: {}").configuration?.identities.first)
        #expect(
            identity.token
                == TokenPolicy(
                    refreshAhead: .percent(20), defaultLifetime: .seconds(300), onIssuerFailure: .serveValid,
                    startup: .lazy, loginAttempts: 1, allowLastAttempt: false, negativeFor: .seconds(30),
                    acquireTimeout: .seconds(10), persist: true, connectivity: .auto))
        #expect(identity.network.proxy == nil && identity.network.timeout == .seconds(10))
        #expect(
            identity.network.connections == 64 && !identity.network.allowCleartext && identity.network.resolve == [:])
        #expect(identity.network.tls.authorities == [.system] && identity.scopes == [] && identity.secrets == [])
    }

    @Test func everyKeyLandsInTheModel() throws {
        let identity = try #require(
            Self.load(
                identity: """
                    mask: {seal: env:S}, scopes: [s], token: {refresh_ahead: 7s, default_lifetime: 8s,
                    on_issuer_failure: {serve_expired_for: 9s}, startup: wait, login_attempts: 10,
                    allow_last_attempt: true, negative_for: 11s, acquire_timeout: 12s, persist: false,
                    connectivity: offline},
                    network: {tls: {ca: /ca}, proxy: "http://p", timeout: 13s, connections: 14, allow_cleartext: true,
                    resolve: {H.: [10.0.0.1, "::1"], i: 10.0.0.2}}
                    """
            ).configuration?.identities.first)
        #expect(
            identity.token
                == TokenPolicy(
                    refreshAhead: .before(.seconds(7)), defaultLifetime: .seconds(8),
                    onIssuerFailure: .serveExpired(for: .seconds(9)), startup: .wait, loginAttempts: 10,
                    allowLastAttempt: true, negativeFor: .seconds(11), acquireTimeout: .seconds(12), persist: false,
                    connectivity: .offline))
        #expect(identity.network.tls.authorities == [.file("/ca")])
        #expect(
            identity.network.proxy == OutgoingProxy(host: "p", port: 80) && identity.network.timeout == .seconds(13))
        #expect(identity.network.connections == 14 && identity.network.allowCleartext && identity.scopes == ["s"])
        let one = IPAddress(v4: 0x0A00_0001)
        #expect(
            identity.network.resolve == ["h": [one, IPAddress(v6: 0, 1)], "i": [IPAddress(v4: 0x0A00_0002)]])
        #expect(identity.secrets == [NamedSecretReference("seal", .environment(name: "S"))])
    }

    @Test func defaultsHoldForWhatIsNotWritten() throws {
        let more = "defaults: {token: {startup: wait, persist: false}, network: {timeout: 3s, resolve: {h: 10.0.0.1}}}"
        let identity = try #require(
            Self.load(identity: "mask: {}, token: {persist: true}, network: {connections: 2}", more: more)
                .configuration?.identities.first)
        #expect(identity.token.startup == .wait && identity.token.persist)
        #expect(identity.network.timeout == .seconds(3) && identity.network.connections == 2)
        #expect(identity.network.resolve == ["h": [IPAddress(v4: 0x0A00_0001)]])
    }

    @Test(arguments: [("fail", .fail), ("serve_valid", .serveValid)] as [(String, TokenPolicy.OnIssuerFailure)])
    func aFailureMayEndTheService(word: String, failure: TokenPolicy.OnIssuerFailure) {
        let loaded = Self.load(identity: "mask: {}, token: {on_issuer_failure: \(word)}")
        #expect(loaded.configuration?.identities.first?.token.onIssuerFailure == failure)
    }

    private static let needsProbe = "of identity 'a' needs 'probe': its token comes out of a challenge"

    static let rules: [(identity: String, route: String, found: [String])] = [
        ("mask: {challenged: true}, token: {startup: wait}", "", ["! 'startup: wait' \(needsProbe)"]),
        ("mask: {challenged: true}, token: {startup: required}", "", ["! 'startup: required' \(needsProbe)"]),
        ("mask: {challenged: true}", "", []), ("mask: {}, token: {startup: wait}", "", []),
        ("mask: {challenged: true, probe: p}, token: {startup: wait}", "", []),
        (
            "mask: {}, token: {on_issuer_failure: {}}", "",
            ["! 'on_issuer_failure' of identity 'a' needs 'serve_expired_for'"]
        ),
        ("mask: {}, network: {resolve: {h: []}}", "", ["! 'h' in 'resolve' needs an address"]),
        ("mask: {no_scopes: true}", "", []), ("mask: {no_scopes: true}, scopes: []", ", scopes: []", []),
        (
            "mask: {no_scopes: true}, scopes: [s]", "",
            ["! identity 'a' asks for 'scopes', but there are none"]
        ),
        ("mask: {no_scopes: true}", ", scopes: [s]", ["! route 'r' asks for 'scopes', but there are none"]),
        (
            "mask: {password: true}", "",
            [
                "? identity 'a' sends a password and there is no 'store': after a restart a refused one is tried again"
            ]
        ),
        // End users.
        (
            "mask: {names_subject: true}", "",
            ["! identity 'a' puts {subject} into its requests, so route 'r' needs 'subject'"]
        ),
        (
            "mask: {exchanges: true}", "",
            ["! identity 'a' has no 'subject_token', so route 'r' needs 'subject: from_caller_token'"]
        ),
        ("mask: {subject_token: env:T}", "", []),
        ("mask: {takes_subject: true}", ", callers: local, subject: {from_header: X-U}", []),
        (
            "mask: {takes_subject: true}", ", subject: {from_header: X-U}",
            ["! 'subject' of route 'r' needs 'callers': whoever may name a subject gets its token"]
        ),
        (
            "mask: {}", ", callers: local, subject: {from_header: X-U}",
            ["! 'subject' of route 'r' is not used by identity 'a': 'mask' has one credential for everybody"]
        ),
        (
            "mask: {takes_subject: true}, token: {startup: wait}", ", callers: local, subject: {from_header: X-U}",
            [
                "! identity 'a' has a token per subject on route 'r', so there is none to wait for: "
                    + "'startup' must be lazy"
            ]
        ),
        (
            "mask: {takes_subject: true}", ", callers: local, subject: from_client_certificate",
            [
                "! 'subject: from_client_certificate' of route 'r' never holds on 127.0.0.1:1, "
                    + "which asks for no certificate; give its 'tls' a 'client_ca'"
            ]
        ),
        ("mask: {takes_subject: true}", ", callers: local, subject: from_caller_token", []),
        (
            "mask: {takes_subject: true}", ", callers: {token: env:T}, subject: from_caller_token",
            ["! 'token' in 'callers' of route 'r' stands where 'subject: from_caller_token' is found"]
        ),
        ("mask: {takes_subject: true}", ", callers: {token: env:T}, subject: {from_header: X-U}", []),
        (
            "mask: {takes_subject: true}",
            ", callers: local, subject: from_caller_token, inject: {header: X-T, caller_value: {keep_as: X-K}}",
            ["! 'caller_value' of route 'r' forwards the caller's own token, which 'subject' exchanges and takes out"]
        ),
        (
            "mask: {takes_subject: true}",
            ", callers: local, subject: {from_header: X-U}, inject: {header: X-T, caller_value: {keep_as: x-u}}",
            ["! 'keep_as' of route 'r' is the header that 'subject' takes out"]
        ),
        (
            "mask: {takes_subject: true}",
            ", callers: local, subject: {from_header: X-U}, inject: {header: X-T, caller_value: {keep_as: X-K}}", []
        ),
    ]

    @Test(arguments: rules)
    func anIdentityHasItsRules(identity: String, route: String, found: [String]) {
        #expect(Self.found(Self.load(identity: identity, route: route)) == found)
    }

    @Test(arguments: [("Host", true), ("authorization", true), ("Cookie", true), ("X-User", false)])
    func aSubjectsHeaderIsItsOwn(name: String, isRefused: Bool) {
        let route = ", callers: local, subject: {from_header: \(name)}"
        let said =
            "! 'from_header' of route 'r' cannot be '\(name)'; "
            + "for the caller's own token say subject: from_caller_token"
        #expect(
            Self.found(Self.load(identity: "mask: {takes_subject: true}", route: route)) == (isRefused ? [said] : []))
    }

    @Test func aSubjectNeedsAnIdentity() {
        let loaded = Self.load(identity: "mask: {}", route: ", callers: local, subject: {from_header: X-U}")
        #expect(loaded.errors.count == 1)
        let none = Written(route: "use: none, callers: local, subject: {from_header: X-U}").findings
        let said = "'subject' of route '127.0.0.1:1' needs an identity: with 'use: none' nobody gets a token"
        #expect(none == ["subject! " + said])
        // That the identity is missing is said already.
        let missing = Written(route: "use: front, callers: local, subject: {from_header: X-U}").findings
        #expect(missing.count == 1 && missing.first?.hasPrefix("use! ") == true)
    }

    @Test(arguments: [
        ("{certificate: /c, key: env:K}", false), ("{certificate: /c, key: env:K, client_ca: /a}", true),
        ("{certificate: /c, key: env:K}, {certificate: /d, key: env:K, client_ca: /a}", true),
    ])
    func aSubjectOfACertificateNeedsAListenerThatAsksForOne(tls: String, asks: Bool) {
        let loaded = Self.load(
            """
            identities: {a: {mask: {takes_subject: true}}}
            listeners: {l: {address: "127.0.0.1:1", tls: [\(tls)]}}
            routes: [{listen: l, to: https://u, use: a, callers: local, subject: from_client_certificate}]
            """)
        #expect(loaded.errors.count == (asks ? 0 : 1))
    }

    @Test func aPasswordWithAStoreIsNotToldOf() {
        let more = "store: {path: /s, key: env:K}"
        #expect(Self.found(Self.load(identity: "mask: {password: true}", more: more)) == [])
    }

    @Test func anIdentityIsNotCalledNone() {
        let loaded = Self.load(
            """
            identities: {none: {mask: {}}}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: none}]
            """)
        #expect(Self.found(loaded) == ["! an identity cannot be named 'none': 'use: none' means no identity"])
    }

    @Test func ofTwoHandshakesTheSecondIsPointedTo() {
        let written = Written(
            """
            identities: {d: {pin: {}, stamp: {seal: env:S}}}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: d}]
            """)
        #expect(written.findings == ["pin! identity 'd' has 2 handshakes (stamp, pin); it needs exactly one"])
    }

    static let exchanges: [(identities: String, errors: [String])] = [
        ("a: {mask: {subject_token: {identity: b}}}, b: {mask: {}}", []),
        (
            "a: {mask: {subject_token: {identity: a}}}",
            ["'subject_token' of identity 'a' leads back to the identity itself"]
        ),
        (
            "a: {mask: {subject_token: {identity: b}}}, b: {mask: {subject_token: {identity: a}}}",
            ["'subject_token' of identity 'b' leads back to the identity itself"]
        ),
        (
            """
            a: {mask: {subject_token: {identity: b}}}, b: {mask: {subject_token: {identity: c}}},
            c: {mask: {subject_token: {identity: b}}}, d: {mask: {subject_token: {identity: a}}}
            """, ["'subject_token' of identity 'c' leads back to the identity itself"]
        ),
        (
            """
            a: {mask: {subject_token: {identity: c}}}, b: {mask: {subject_token: {identity: c}}}, c: {mask: {}}
            """, []
        ),
        (
            "a: {mask: {subject_token: {identity: ab}}}, abc: {mask: {}}",
            ["'subject_token' of identity 'a' names identity 'ab', which is not there; did you mean 'a'?"]
        ),
        (
            "a: {mask: {subject_token: {identity: front}}}",
            ["'subject_token' of identity 'a' names identity 'front', which is not there"]
        ),
        (
            "a: {mask: {subject_token: {identity: b}}}, b: {pin: {}}",
            ["'subject_token' of identity 'a' must name an mask identity, not pin"]
        ),
        (
            "a: {mask: {}}, b: {mask: {exchanges: true}}",
            ["identity 'b' needs 'subject_token' for an exchange, or a route with 'subject: from_caller_token'"]
        ),
        (
            "a: {mask: {subject_token: {identity: b}}}, b: {mask: {names_subject: true}}",
            ["'subject_token' of identity 'a' names identity 'b', which has a token per subject"]
        ),
    ]

    @Test(arguments: exchanges)
    func anExchangeHasASourceThatIsNoCircle(identities: String, errors: [String]) {
        let loaded = Self.load(
            """
            identities: {\(identities)}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: a}]
            """)
        #expect(loaded.errors.map(\.message) == errors)
    }

    static let likes: [(first: String, second: String, conflict: String?)] = [
        ("{seal: env:A}", "{seal: env:A}", nil),
        (
            "{seal: env:A}", "{seal: env:B}",
            "identity 'b' differs from 'a' at most in secrets, so both would be served with the token of either; "
                + "use one identity, or the same reference in both"
        ),
        ("{seal: env:A}", "{seal: env:B, probe: x}", nil),
        (
            "{person: true}", "{person: true}",
            "identity 'b' is the same login as 'a': a person's login is kept by what stands in its block, "
                + "and the second would replace the first; use 'a' on both routes"
        ),
        ("{person: true}", "{}", nil),
    ]

    @Test(arguments: likes)
    func twoIdentitiesDifferWhereTheirTokensDo(first: String, second: String, conflict: String?) {
        let loaded = Self.load(
            """
            identities: {a: {mask: \(first)}, b: {mask: \(second)}}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: a}]
            """)
        #expect(loaded.errors.map(\.message) == [conflict].compactMap { $0 })
    }
}
