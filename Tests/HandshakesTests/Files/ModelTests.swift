import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct ModelTests {
    @Test func everyDefault() throws {
        let loaded = Trial(Trial.around(identity: "oauth2: {\(Trial.oauth2)}")).result.configuration
        let configuration = try #require(loaded)
        #expect(
            configuration.limits
                == Limits(
                    connections: nil, connectionsPerAddress: nil, headerSize: 65536, targetSize: 8192, bodySize: nil,
                    headTimeout: .seconds(10), minRate: 240, headers: 128, waiters: 10000,
                    replayMemory: 64 << 20, hotCache: 64 << 20, subjects: 10000, newSubjectsPerSecond: 10))
        #expect(configuration.log == Log(level: .info, format: .json, access: .off))
        #expect(configuration.shutdown == Shutdown(linger: .seconds(5), timeout: .seconds(25)))
        #expect(configuration.store == Store(path: nil, keys: [], shared: nil))
        #expect(
            configuration.admin
                == Admin(
                    listen: .tcp(IPAddress(v4: 0x7f00_0001), port: 9901), probes: nil, metrics: nil, socket: nil,
                    hosts: [], token: nil, opensStatus: false))
        #expect(configuration.name == nil)
        #expect(configuration.threads == nil)
        #expect(configuration.sandbox)
        #expect(configuration.secretFiles == .warn)

        let identity = try #require(configuration.identity(named: "a"))
        #expect(
            identity.token
                == TokenPolicy(
                    refreshAhead: .percent(20), defaultLifetime: .seconds(300), onIssuerFailure: .serveValid,
                    startup: .lazy,
                    loginAttempts: 1, allowLastAttempt: false, negativeFor: .seconds(30), acquireTimeout: .seconds(10),
                    persist: true, connectivity: .auto))
        let tls = ClientTLS(
            authorities: [.system], identity: nil, serverName: nil, minVersion: .tls12,
            legacy: false)
        #expect(
            identity.network
                == Network(
                    tls: tls, proxy: nil, timeout: .seconds(10), connections: 64, allowCleartext: false, resolve: [:]))
        let oauth2 = try #require(identity.scheme as? OAuth2Scheme).settings
        #expect(oauth2.grant == .clientCredentials)
        #expect(oauth2.clientAuth == .basic)
        #expect(oauth2.basicEncoding == .form)
        #expect(oauth2.allowedScopes == nil)
        #expect(oauth2.identityDomainHeader == "X-USER-IDENTITY-DOMAIN-NAME")
        #expect(!oauth2.dpop)

        let route = try #require(configuration.routes.first)
        #expect(route.name == "127.0.0.1:8080")
        #expect(route.listen == ["127.0.0.1:8080"])
        let match = route.match
        #expect(
            match.host == nil && match.path == nil && match.ports.isEmpty && match.methods.isEmpty
                && match.headers.isEmpty)
        #expect(
            route.to
                == Upstream(
                    origin: Origin(scheme: .https, host: "u.example.com", port: 443), pathPrefix: "", addresses: []))
        #expect(route.inject == .header(name: nil, value: nil, callerValue: .drop))
        #expect(route.host == .upstream)
        #expect(route.rewrite == .init(stripPrefix: nil, response: true))
        #expect(route.forwarded == nil && route.cacheControl == .private && !route.serverTiming)
        #expect(route.paths == .strict)
        #expect(
            route.onRejected
                == OnRejected(
                    statuses: nil, methods: nil, replay: .once, maxBody: 1 << 20, largeBody: .pass, final: .problem))
        #expect(
            route.timeouts
                == .init(
                    connect: .seconds(5), response: .seconds(60), idle: .seconds(60), keepAlive: .seconds(60),
                    reuse: .seconds(1), halfClosed: .seconds(1)))
        #expect(route.tls == tls)
        #expect(route.http == .auto)
        #expect(!route.allowCleartext)
        #expect(
            route.callers
                == Callers(
                    allow: .local, tlsNames: [], token: nil, unixUsers: [], browsers: false, unsafeOpen: false))
        let listener = try #require(configuration.listeners.first { $0.name == "127.0.0.1:8080" })
        #expect(listener.mode == .gateway)
        #expect(listener.unmatched == .refuse)
        #expect(listener.http == [.http1, .http2])
    }

    @Test func everyDefaultOfAWebgate() throws {
        let trial = Trial(Trial.around(identity: "oam_webgate: {\(Trial.webgate)}"))
        let identity = try #require(trial.result.configuration?.identities.first)
        let scheme = try #require(identity.scheme as? OAMWebGateScheme)
        let settings = scheme.settings
        #expect(settings.userAgentPrefix == "P" && settings.userAgentMode == .prepend)
        #expect(settings.contextSource == .challenge && settings.challengeScheme == "OAM-Auth")
        #expect(settings.contextParam == "request-ctx" && settings.replayHeader == "Authorization")
        #expect(settings.replayPrefix == "OAM-Auth " && settings.tokenScope == .webgate)
        #expect(settings.resourceURL == .upstream && settings.resourceSuffix == "" && settings.stripCookies)
        #expect(settings.service.description == "https://i.example.com/s")
        #expect(settings.paths.register == "register" && settings.paths.authenticate == "authenticate")
        #expect(settings.paths.access == "access" && settings.serviceDomain == "MobileServiceDomain")
        #expect(settings.serviceDomainHeader == "X-IDAAS-SERVICEDOMAIN" && settings.clientAuth == .uidPassword)
        #expect(settings.clientAuthHeader == "X-Idaas-Rest-Authorization" && settings.clientID == "c")
        #expect(settings.deviceClaims.isEmpty && settings.userTokenType == "USERTOKEN")
        #expect(settings.userTokenTTL == 1800 * 1_000_000_000 && settings.restVersion == nil)
        #expect(settings.handleRejectedCodes.isEmpty && settings.handleRejectedPhrases.isEmpty)
        #expect(settings.username == "u" && scheme.probe == nil)
        #expect(identity.secrets == [NamedSecretReference("password", .environment(name: "S"))])
        #expect(identity.token.defaultLifetime == .seconds(900))
        #expect(identity.scheme.isChallengeDriven)
        let own = Trial(
            Trial.around(identity: "oam_webgate: {\(Trial.webgate)}", top: "defaults: {token: {default_lifetime: 7m}}"))
        #expect(own.result.configuration?.identities.first?.token.defaultLifetime == .seconds(420))
    }

    @Test func scalarsAreWhatTheirKeySays() throws {
        let trial = Trial(
            """
            name: 1.10
            threads: "4"
            identities:
              no:
                oauth2: {token_url: https://i/t, client_id: 0123, client_secret: env:S, extra: {a: yes, b: 1e3, c: null, d: ""}}
            routes:
              - {listen: "127.0.0.1:1", to: https://u, use: no, http: 1.1, scopes: [on, 0x10, ~], match: {headers: {X-A: true}}}
            """)
        let configuration = try #require(trial.result.configuration)
        #expect(configuration.name == "1.10")
        #expect(configuration.threads == 4)
        let oauth2 = try #require(configuration.identity(named: "no")?.scheme as? OAuth2Scheme).settings
        #expect(oauth2.clientID == "0123")
        #expect(oauth2.extra.map(\.value) == ["yes", "1e3", "null", ""])
        #expect(configuration.routes.first?.use == .identity("no"))
        #expect(configuration.routes.first?.scopes == ["on", "0x10", "~"])
        #expect(configuration.routes.first?.http == .http1)
        #expect(configuration.routes.first?.match.headers == [NamedValue(name: "x-a", value: "true")])
    }

    @Test func defaultsMergeMapsAndReplaceLists() throws {
        let trial = Trial(
            """
            defaults:
              token: {refresh_ahead: 30s, on_issuer_failure: {serve_expired_for: 2m}}
              network: {timeout: 3s, tls: {ca: [system, /a], min_version: 1.3}}
              route: {listen: "127.0.0.1:1", scopes: [x, y], timeouts: {connect: 1s, idle: 2s}, headers: {set: {A: 1}}}
            identities:
              a:
                static: {value: env:V}
                token: {persist: false}
                network: {tls: {ca: /b}}
              b:
                static: {value: env:V}
                token: {on_issuer_failure: fail}
            routes:
              - {name: r, to: https://u, use: a, scopes: [z], timeouts: {idle: 9s}, headers: {set: {B: 2}}, match: {path: /r/}}
              - {name: s, to: https://u, use: b}
            """)
        let configuration = try #require(trial.result.configuration)
        let (a, b) = (configuration.identities[0], configuration.identities[1])
        #expect(a.token.refreshAhead == .before(.seconds(30)))
        #expect(a.token.onIssuerFailure == .serveExpired(for: .seconds(120)))
        #expect(!a.token.persist)
        #expect(b.token.onIssuerFailure == .fail)
        #expect(a.network.timeout == .seconds(3))
        #expect(a.network.tls.authorities == [.file("/b")])
        #expect(a.network.tls.minVersion == .tls13)
        #expect(b.network.tls.authorities == [.system, .file("/a")])
        let (r, s) = (configuration.routes[0], configuration.routes[1])
        #expect(r.scopes == ["z"])
        #expect(s.scopes == ["x", "y"])
        #expect(
            r.timeouts
                == .init(
                    connect: .seconds(1), response: .seconds(60), idle: .seconds(9), keepAlive: .seconds(9),
                    reuse: .seconds(1), halfClosed: .seconds(1)))
        #expect(Set(r.headers.set.map(\.name)) == ["A", "B"])
        #expect(configuration.listeners.count == 1)
    }

    @Test func aMistakeInDefaultsIsReportedOnce() {
        let trial = Trial(
            """
            defaults: {route: {timeouts: {connect: 5}}, token: {persit: true}}
            identities: {a: {static: {value: env:V}}, b: {static: {value: env:V}}}
            routes:
              - {listen: "127.0.0.1:1", to: https://u, use: a}
              - {listen: "127.0.0.1:2", to: https://u, use: b}
            """)
        #expect(trial.errors.count == 2)
    }

    @Test func listenersAreSharedByAddressAndName() throws {
        let trial = Trial(
            """
            listeners: {front: {address: "127.0.0.1:1", forwarded_from: [10.0.0.0/8, "fd00::/8"]}}
            routes:
              - {listen: "localhost:1", match: {path: /a}, to: https://u/x/, use: none}
              - {listen: [front, "[::1]:2", unix:/run/s], to: "https://U.example.com.:8443/y", use: none, addresses: ["10.0.0.1:1", "h:2", unix:/p]}
            """)
        let configuration = try #require(trial.result.configuration)
        #expect(configuration.listeners.map(\.name) == ["front", "[::1]:2", "unix:/run/s"])
        #expect(configuration.routes[0].listen == ["front"])
        #expect(configuration.routes[0].to?.pathPrefix == "/x")
        #expect(configuration.routes[1].listen == ["front", "[::1]:2", "unix:/run/s"])
        #expect(configuration.routes[1].to?.origin.description == "https://u.example.com:8443")
        #expect(configuration.routes[1].to?.addresses.map(\.description) == ["10.0.0.1:1", "h:2", "unix:/p"])
        #expect(configuration.listeners[0].forwardedFrom.map(\.description) == ["10.0.0.0/8", "fd00::/8"])
    }

    @Test func adminAndStore() throws {
        let off = Trial(Trial.around(top: "admin: off\nstore: {path: /var/x/t.db, key: [env:A, env:B]}"))
        let configuration = try #require(off.result.configuration)
        #expect(configuration.admin.listen == nil)
        #expect(configuration.admin.socket == "/var/x/cardea.sock")
        #expect(configuration.store.keys == [.environment(name: "A"), .environment(name: "B")])
    }
}
