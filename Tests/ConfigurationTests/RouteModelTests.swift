import Testing

@testable import Configuration

/// Every key of a route lands in the model, and what is not written has its default.
@Suite struct RouteModelTests {
    @Test func aPlainRouteHasItsDefaults() throws {
        let written = Written(route: "")
        let route = try #require(written.route)
        #expect(written.findings == [])
        #expect(route.name == "127.0.0.1:1" && route.listen == ["127.0.0.1:1"])
        #expect(route.match == Match(host: nil, path: nil, ports: [], methods: [], headers: []))
        #expect(
            route.to == Upstream(origin: Origin(scheme: .https, host: "u", port: 443), pathPrefix: "", addresses: []))
        #expect(route.use == .identity("a") && route.scopes == [])
        #expect(route.audience == nil && route.resource == nil && route.realm == nil && route.subject == nil)
        #expect(route.inject == .header(name: nil, value: nil, callerValue: .drop))
        #expect(route.headers == HeaderEdits(set: [], remove: []))
        #expect(route.host == .upstream && route.rewrite == Route.Rewrite(stripPrefix: nil, response: true))
        #expect(route.answers == .pass)
        #expect(route.forwarded == nil && route.cacheControl == .private && !route.serverTiming)
        #expect(route.requestID == .pass && route.paths == .strict && route.http == .auto && !route.allowCleartext)
        #expect(
            route.onRejected
                == OnRejected(
                    statuses: nil, methods: nil, replay: .once, maxBody: 1 << 20, largeBody: .pass, final: .problem))
        #expect(
            route.timeouts
                == Route.Timeouts(
                    connect: .seconds(5), response: .seconds(60), idle: .seconds(60), keepAlive: .seconds(60),
                    reuse: .seconds(1), halfClosed: .seconds(1)))
        #expect(
            route.tls
                == ClientTLS(
                    authorities: [.system], identity: nil, serverName: nil, minVersion: .tls12, legacy: false))
        #expect(
            route.proxy == nil && route.health == nil && route.limits == Route.Limits(connections: nil, waiters: 1000))
        #expect(
            route.callers
                == Callers(allow: .local, tlsNames: [], token: nil, unixUsers: [], browsers: false, unsafeOpen: false))
        #expect(route.hosts == ServedHosts(isAny: false, names: []) && route.tokenStub == nil)
    }

    @Test func everyKeyLandsInTheModel() throws {
        let written = Written(
            route: """
                name: r, match: {host: "*.H.x", path: /p/, methods: [GET, PUT], headers: {X-A: b}}, scopes: [s, t],
                audience: au, resource: re, realm: rl, host: caller,
                inject: {header: X-T, value: "T {token}.", caller_value: {keep_as: X-K}},
                headers: {set: {X-S: v}, remove: [X-R, X-Q]}, rewrite: {strip_prefix: /p, response: off},
                forwarded: {fields: both, caller: address}, cache_control: pass, answers: conceal, server_timing: on, request_id: send,
                paths: raw, http: "2", allow_cleartext: true,
                on_rejected: {statuses: [400, 599], methods: [PUT], replay: never, max_body: 2KiB,
                large_body: probe_head, final: pass},
                timeouts: {connect: 1s, response: 2s, idle: 3s, keep_alive: 4s, reuse: 5s, half_closed: 6s},
                tls: {ca: [system, /ca], certificate: /c, key: file:/k, password: env:P, server_name: N,
                min_version: "1.3"},
                addresses: ["h:1", "unix:/s"],
                health: {path: /h, interval: 9s, timeout: 8s, healthy: 7, unhealthy: 6, statuses: [200, 599]},
                limits: {connections: 5, waiters: 6}, hosts: [any, h, "*.x"],
                callers: {allow: [10.0.0.0/8, 127.0.0.1], browsers: true}, to: https://u:8/up/
                """)
        let route = try #require(written.route)
        #expect(route.name == "r" && route.scopes == ["s", "t"])
        #expect(
            route.match
                == Match(
                    host: .oneLabel(".h.x"), path: .prefix("/p/"), ports: [], methods: ["GET", "PUT"],
                    headers: [NamedValue(name: "x-a", value: "b")]))
        #expect(
            route.to
                == Upstream(
                    origin: Origin(scheme: .https, host: "u", port: 8), pathPrefix: "/up",
                    addresses: [.host("h", port: 1), .unix(path: "/s")]))
        #expect(route.audience == "au" && route.resource == "re" && route.realm == "rl" && route.host == .caller)
        #expect(
            route.inject
                == .header(name: "X-T", value: .init(prefix: "T ", suffix: "."), callerValue: .keepAs("X-K")))
        #expect(route.headers == HeaderEdits(set: [NamedValue(name: "X-S", value: "v")], remove: ["X-R", "X-Q"]))
        #expect(route.rewrite == Route.Rewrite(stripPrefix: "/p", response: false))
        #expect(route.forwarded == Route.Forwarded(fields: .both, caller: .address))
        #expect(route.answers == .conceal)
        #expect(route.cacheControl == .pass && route.serverTiming && route.requestID == .send && route.paths == .raw)
        #expect(route.http == .http2 && route.allowCleartext)
        #expect(
            route.onRejected
                == OnRejected(
                    statuses: [400, 599], methods: ["PUT"], replay: .never, maxBody: 2048, largeBody: .probeHead,
                    final: .pass))
        #expect(
            route.timeouts
                == Route.Timeouts(
                    connect: .seconds(1), response: .seconds(2), idle: .seconds(3), keepAlive: .seconds(4),
                    reuse: .seconds(5), halfClosed: .seconds(6)))
        let key = ClientKeyFiles(certificate: "/c", key: .file(path: "/k"), password: .environment(name: "P"))
        #expect(
            route.tls
                == ClientTLS(
                    authorities: [.system, .file("/ca")], identity: key, serverName: "n", minVersion: .tls13,
                    legacy: false))
        #expect(
            route.health
                == Route.Health(
                    path: "/h", interval: .seconds(9), timeout: .seconds(8), healthy: 7, unhealthy: 6,
                    statuses: [200, 599]))
        #expect(route.limits == Route.Limits(connections: 5, waiters: 6))
        #expect(route.hosts == ServedHosts(isAny: true, names: [.exact("h"), .oneLabel(".x")]))
        let networks = [
            Callers.Network(address: IPAddress(v4: 0x0A00_0000), prefixLength: 8),
            Callers.Network(address: IPAddress(v4: 0x7F00_0001), prefixLength: 32),
        ]
        #expect(
            route.callers
                == Callers(
                    allow: .networks(networks), tlsNames: [], token: nil, unixUsers: [], browsers: true,
                    unsafeOpen: false))
    }

    @Test func theHealthOfAPathAloneHasItsDefaults() {
        let health = Written(route: "health: {path: /h}").route?.health
        #expect(
            health
                == Route.Health(
                    path: "/h", interval: .seconds(10), timeout: .seconds(2), healthy: 2, unhealthy: 3, statuses: nil))
        #expect(Written(route: "health: off").route?.health == nil)
        let equal = Written(route: "health: {path: /h, interval: 3s, timeout: 3s}")
        #expect(equal.findings == [] && equal.route?.health?.timeout == .seconds(3))
    }

    @Test func aConnectionIsKeptAsLongAsItMayBeIdle() {
        #expect(Written(route: "timeouts: {idle: 7s}").route?.timeouts.keepAlive == .seconds(7))
        #expect(Written(route: "timeouts: {keep_alive: 8s}").route?.timeouts.idle == .seconds(60))
    }

    @Test(
        arguments: [
            ("subject: {from_header: X-U}, callers: local", .header("X-U")), ("", nil),
        ] as [(String, Route.Subject?)])
    func aSubjectIsRead(route: String, subject: Route.Subject?) {
        // No scheme here takes a subject, so that the model is looked at beside the error.
        var loader = Loader(schemes: [Written.Stamp.self, Written.Pin.self]) { _ in nil }
        let (configuration, _) = loader.load(.text(Written(route: route).text))
        #expect(configuration?.routes.first?.subject == subject)
    }

    @Test(arguments: ["from_client_certificate", "from_caller_token"])
    func aSubjectOfTheCallersOwnIsRead(word: String) {
        var loader = Loader(schemes: [Written.Stamp.self, Written.Pin.self]) { _ in nil }
        let (configuration, _) = loader.load(.text(Written(route: "subject: \(word), callers: local").text))
        #expect(
            configuration?.routes.first?.subject
                == (word == "from_caller_token" ? .callerToken : .clientCertificate))
    }

    @Test func theCredentialMayGoElsewhere() {
        #expect(Written(route: "inject: {query: q}").route?.inject == .query(name: "q"))
        #expect(Written(route: "inject: {cookie: k}").route?.inject == .cookie(name: "k"))
        let header = Written(route: "inject: {header: X-T, caller_value: drop}").route?.inject
        #expect(header == .header(name: "X-T", value: nil, callerValue: .drop))
        let kept = Written(route: "inject: {caller_value: {keep_as: X-K}}").route?.inject
        #expect(kept == .header(name: nil, value: nil, callerValue: .keepAs("X-K")))
    }

    @Test(
        arguments: [
            ("forwarded: on", Route.Forwarded(fields: .standard, caller: .hidden)), ("forwarded: off", nil),
            ("forwarded: {}", Route.Forwarded(fields: .standard, caller: .hidden)),
            ("forwarded: {fields: legacy}", Route.Forwarded(fields: .legacy, caller: .hidden)),
            ("forwarded: {caller: address}", Route.Forwarded(fields: .standard, caller: .address)),
        ] as [(String, Route.Forwarded?)])
    func forwardedIsOffUnlessAskedFor(route: String, forwarded: Route.Forwarded?) {
        #expect(Written(route: route).route?.forwarded == forwarded)
    }

    @Test func methodsOfAReplayAreAllOrAList() {
        #expect(Written(route: "on_rejected: {methods: all}").route?.onRejected.methods == nil)
        #expect(Written(route: "on_rejected: {methods: [GET]}").route?.onRejected.methods == ["GET"])
        #expect(
            Written(route: "on_rejected: {large_body: expect_continue}").route?.onRejected.largeBody == .expectContinue)
    }

    @Test(
        arguments: [
            ("callers: local", .local), ("callers: {unsafe_open: true}", .any), ("callers: {token: env:T}", .any),
            ("callers: {browsers: true}", .local), ("callers: {}", .local),
            (
                "callers: {allow: 10.0.0.0/8, token: env:T}",
                .networks([Callers.Network(address: IPAddress(v4: 0x0A00_0000), prefixLength: 8)])
            ),
        ] as [(String, Callers.Allow)])
    func callersAreLocalUnlessAnotherConditionIsThere(route: String, allow: Callers.Allow) {
        #expect(Written(route: route).route?.callers.allow == allow)
    }

    @Test func namesUsersAndATokenAreConditionsToo() {
        #expect(Written(route: "callers: {token: env:T}").route?.callers.token == .environment(name: "T"))
        let tls = "l: {address: \"127.0.0.1:1\", tls: [{certificate: /c, key: file:/k, client_ca: /a}]}"
        let names = Written(route: "listen: l, callers: {tls_names: n}", listeners: tls).route?.callers
        #expect(names?.tlsNames == ["n"] && names?.allow == .any)
        let users = Written(route: "listen: \"unix:/s\", callers: {unix_users: [u, v]}").route?.callers
        #expect(users?.unixUsers == ["u", "v"] && users?.allow == .any)
        let open = Written(route: "callers: {unsafe_open: true, browsers: true}").route?.callers
        #expect(open?.unsafeOpen == true && open?.browsers == true)
    }

    @Test(
        arguments: [
            ("http://p:8", OutgoingProxy(host: "p", port: 8)), ("off", nil), ("no", nil), ("\"false\"", nil),
            ("{url: \"http://p\", except: [v]}", OutgoingProxy(host: "p", port: 80, except: [.exact("v")])),
            ("{url: \"http://p\", except: [u]}", nil),
            (
                "{url: \"http://p\", username: n, password: env:P}",
                OutgoingProxy(host: "p", port: 80, username: "n", password: .environment(name: "P"))
            ),
        ] as [(String, OutgoingProxy?)])
    func aProxyIsOneUnlessTheUpstreamIsExcepted(proxy: String, wanted: OutgoingProxy?) {
        let written = Written(route: "proxy: \(proxy)")
        #expect(written.findings == [] && written.route?.proxy == wanted)
    }

    @Test func aStubHasALifetimeAndGrants() throws {
        let text = "routes: [{listen: \"127.0.0.1:1\", token_stub: {lifetime: 7s, grants: [password, refresh_token]}}]"
        let stub = Written(text).route
        #expect(stub?.tokenStub == TokenStub(lifetime: .seconds(7), grants: [.password, .refreshToken]))
        #expect(stub?.to == nil && stub?.use == Route.Use.none)
        let plain = Written("routes: [{listen: \"127.0.0.1:1\", token_stub: {}}]").route
        #expect(plain?.tokenStub == TokenStub(lifetime: .seconds(3600), grants: TokenStub.Grant.allCases))
    }

    @Test func aStubTakesCallersAloneFromTheDefaults() {
        let written = Written(
            """
            defaults: {route: {host: caller, callers: {token: env:T}, timeouts: {idle: 1s}}}
            routes: [{listen: "127.0.0.1:1", token_stub: {}}]
            """)
        #expect(written.findings == [])
        #expect(written.route?.callers.token == .environment(name: "T") && written.route?.host == .upstream)
    }

    @Test func aRouteTakesWhatItDoesNotSayFromTheDefaults() {
        let written = Written(
            """
            defaults: {route: {host: caller, use: none, timeouts: {idle: 1s, connect: 2s}}}
            routes: [{listen: "127.0.0.1:1", to: https://u, timeouts: {idle: 3s}}]
            """)
        #expect(written.findings == [] && written.route?.host == .caller)
        #expect(written.route?.timeouts.idle == .seconds(3) && written.route?.timeouts.connect == .seconds(2))
    }

    @Test func scopesOfAnIdentityHoldForRoutesThatNameNone() {
        func scopes(_ route: String) -> [String]? {
            Written(
                """
                identities: {a: {stamp: {seal: env:S}, scopes: [x]}}
                routes: [{listen: "127.0.0.1:1", to: https://u, use: a\(route)}]
                """
            ).route?.scopes
        }
        #expect(scopes("") == ["x"])
        #expect(scopes(", scopes: [y]") == ["y"])
        #expect(scopes(", scopes: []") == [])
    }

    @Test func routesWithoutANameAreNamedByWhereTheyListen() {
        let text = """
            routes:
            - {listen: "127.0.0.1:1", match: {path: /a}, to: https://u, use: none}
            - {listen: "127.0.0.1:1", match: {path: /b, methods: GET}, to: https://u, use: none}
            - {listen: "127.0.0.1:1", match: {path: /b, methods: PUT}, to: https://u, use: none}
            - {name: "127.0.0.1-4", listen: ["127.0.0.1:1", "127.0.0.1:2"], to: https://u, use: none}
            - {listen: ["127.0.0.1:2", "127.0.0.1:3"], match: {path: /b}, to: https://u, use: none}
            - {listen: "127.0.0.1:3", match: {path: /b, methods: GET}, to: https://u, use: none}
            - {listen: "127.0.0.1:1", match: {path: /b, methods: POST}, to: https://u, use: none}
            """
        #expect(
            Written(text).loaded.configuration?.routes.map(\.name)
                == [
                    "127.0.0.1:1/a", "127.0.0.1:1/b", "127.0.0.1:1/b#2", "127.0.0.1-4", "127.0.0.1:2/b",
                    "127.0.0.1:3/b", "127.0.0.1:1/b#3",
                ])
    }

    @Test(
        arguments: [
            ("match: {host: h}", "h", 443), ("match: {host: h, port: 8443}", "h", 8443),
            ("match: {host: h, port: [8443]}", "h", 8443), ("match: {host: h, port: [8443, 9443]}", "h", 443),
            ("match: {host: h}, to: https://o", "o", 443),
        ] as [(String, String, UInt16)])
    func aForwardProxysRouteGoesToItsHost(route: String, host: String, port: UInt16) {
        let written = Written(
            """
            listeners: {l: {address: "127.0.0.1:1", mode: forward_proxy}}
            routes: [{listen: l, use: none, \(route)}]
            """)
        #expect(written.route?.to?.origin == Origin(scheme: .https, host: host, port: port))
        #expect(written.route?.to?.pathPrefix == "" && written.route?.to?.addresses == [])
    }

    @Test func portsOfAProxysRouteAreThoseWrittenOrTheUsual() {
        func ports(_ match: String, to: String = "https://u") -> [UInt16]? {
            Written(
                """
                listeners: {l: {address: "127.0.0.1:1", mode: forward_proxy}}
                routes: [{listen: l, use: none, match: {\(match)}, to: "\(to)"}]
                """
            ).route?.proxyPorts
        }
        #expect(ports("port: [1, 65535]") == [1, 65535])
        #expect(ports("") == [80, 443])
        #expect(ports("", to: "http://u") == [80, 443])
        #expect(ports("", to: "https://u:8") == [80, 443, 8])
    }

    @Test func aRouteRestsOnTheAddressUnlessProofIsAskedFor() {
        #expect(Written(route: "").route?.restsOnAddress == true)
        #expect(Written(route: "callers: {token: env:T}").route?.restsOnAddress == false)
    }
}
