import Testing

@testable import Configuration

/// Who may call a route, where it listens, and which of its names are known.
@Suite struct RouteCallerTests {
    private static let open = "listen: \"10.0.0.1:1\""
    private static let listeners = """
        p: {address: "10.0.0.1:2", mode: forward_proxy}, t: {address: "10.0.0.1:3", mode: transparent},
        s: {address: "127.0.0.1:4", tls: [{certificate: /c, key: file:/k}]},
        m: {address: "127.0.0.1:5", tls: [{certificate: /c, key: env:K}, {certificate: /d, key: env:K, client_ca: /a}]}
        """

    private static let nobody =
        "listen! route '10.0.0.1:1' listens on 10.0.0.1:1 and admits nobody in particular; say callers.allow, "
        + "or callers: {unsafe_open: true}"
    private static let place =
        "route? route '10.0.0.1:1' admits callers of 10.0.0.1:1 by their place alone, so a Host other than "
        + "an IP address, a name without a dot, this machine's name or the host of 'to' gets 421; "
        + "name the others in 'hosts', or ask for a 'token' or 'tls_names' in 'callers'"

    /// A finding that points to the whole route has no key before it.
    private func findings(_ route: String) -> [String] {
        Written(route: route, listeners: Self.listeners).findings
            .map { $0.hasPrefix("?") ? "route" + $0 : $0 }
            .filter { !$0.contains("is not opened") }
    }

    @Test func aStubOfATokenEndpointHasCallersToo() {
        #expect(findings("\(Self.open), token_stub: {}").contains(Self.nobody))
        #expect(!findings("\(Self.open), token_stub: {}, callers: {unsafe_open: true}").contains(Self.nobody))
    }

    static let admissions: [(route: String, findings: [String])] = [
        (open, [place, nobody]), ("\(open), callers: {browsers: true}", [place, nobody]),
        ("\(open), callers: local", [place]), ("\(open), callers: {unsafe_open: true}", [place]),
        ("\(open), callers: {allow: 10.0.0.0/8}", [place]), ("\(open), callers: {token: env:T}", []),
        ("\(open), callers: {allow: 10.0.0.0/8}, hosts: h", []), ("\(open), callers: local, hosts: any", []),
        ("\(open), callers: local, match: {host: h}", []), ("", []), ("listen: \"unix:/s\"", []),
        ("callers: {browsers: true}", []),
        ("callers: {allow: []}", ["callers! 'allow' of route '127.0.0.1:1' is empty, so nobody could call"]),
        (
            "callers: {allow: 0.0.0.0/0}",
            [
                "callers? 'allow' of route '127.0.0.1:1' admits every address; "
                    + "callers: {unsafe_open: true} says so plainly"
            ]
        ),
        (
            "callers: {allow: [10.0.0.0/8, \"::/0\"]}",
            [
                "callers? 'allow' of route '127.0.0.1:1' admits every address; "
                    + "callers: {unsafe_open: true} says so plainly"
            ]
        ),
        ("callers: {allow: 0.0.0.0/0, unsafe_open: true}", []), ("callers: {allow: 0.0.0.0/1}", []),
        ("callers: {allow: [\"::/1\", 128.0.0.0/1]}", []),
        (
            "callers: {tls_names: n}",
            [
                "callers! 'tls_names' of route '127.0.0.1:1' never holds on 127.0.0.1:1, "
                    + "which asks for no certificate; give its 'tls' a 'client_ca'"
            ]
        ),
        (
            "listen: s, callers: {tls_names: n}",
            [
                "callers! 'tls_names' of route 's' never holds on 127.0.0.1:4, which asks for no certificate; "
                    + "give its 'tls' a 'client_ca'"
            ]
        ),
        ("listen: m, callers: {tls_names: n}", []),
        ("callers: {unix_users: u}", ["callers! 'unix_users' of route '127.0.0.1:1' never holds on 127.0.0.1:1"]),
        ("listen: \"unix:/s\", callers: {unix_users: u}", []),
        (
            "listen: \"unix:/s\", callers: {allow: 10.0.0.0/8}",
            ["callers! 'allow' of route 'unix:/s' never holds on unix:/s, where callers have no address"]
        ),
        ("listen: \"unix:/s\", callers: {token: env:T}", []),
        ("listen: p, callers: {token: env:T}", []),
        (
            "listen: t, callers: {token: env:T}",
            ["token! 'token' in 'callers' of route 't' has no meaning in transparent mode: callers know of no gateway"]
        ),
        (
            "callers: {token: env:T}, inject: {caller_value: {keep_as: X-K}}",
            ["token! 'token' in 'callers' of route '127.0.0.1:1' would be kept by 'keep_as' and reach the upstream"]
        ),
        ("callers: {token: env:T}, inject: {caller_value: drop}", []),
        ("callers: local, inject: {caller_value: {keep_as: X-K}}", []),
        ("listen: p, match: {port: 8}, callers: local", []), ("listen: t, match: {port: 8}, callers: local", []),
        ("listen: [p, \"127.0.0.1:1\"], match: {port: 8}, callers: local", []),
    ]

    @Test(arguments: admissions)
    func whoIsAdmittedHasItsRules(route: String, findings: [String]) {
        #expect(self.findings(route) == findings)
    }

    static let names: [(text: String, findings: [String])] = [
        ("listen: []", ["listen! 'listen' is an empty list"]),
        ("listen: [\"127.0.0.1:1\", \"127.0.0.1:1\"]", ["! 'listen' names '127.0.0.1:1' twice"]),
        ("listen: [s, s]", ["s! 'listen' names 's' twice"]),
        ("listen: [s, \"127.0.0.1:4\"]", ["! 'listen' names 's' twice"]),
        (
            "listen: sx",
            ["sx! 'listen' names listener 'sx', which is not defined; defined: p, t, s, m; did you mean 's'?"]
        ),
        (
            "listen: front",
            ["front! 'listen' names listener 'front', which is not defined; defined: p, t, s, m"]
        ),
        (
            "listen: 80",
            [
                "80! 'listen' must name the address to listen on: 127.0.0.1:80 for this machine, 0.0.0.0:80 for all"
            ]
        ),
        (
            "use: aa",
            ["use! route '127.0.0.1:1' uses identity 'aa', which is not defined; defined: a, b, c; did you mean 'a'?"]
        ),
        ("use: none", []), ("listen: [s, m, \"127.0.0.1:1\"]", []),
    ]

    @Test(arguments: names)
    func aNameIsOneThatIsKnown(route: String, findings: [String]) {
        let found = self.findings(route).map { $0.hasPrefix("\"") ? String($0.dropFirst()) : $0 }
        #expect(found == findings)
    }

    @Test func aNameThatIsNotThereListsFiftyAndCountsTheRest() {
        func said(_ count: Int) -> String? {
            let all = (1...count).map { "l\($0): {address: \"127.0.0.1:\($0)\"}" }.joined(separator: ", ")
            let written = Written(
                "listeners: {\(all)}\nroutes: [{listen: front, to: https://u, use: none}]")
            return written.loaded.errors.map(\.message).first
        }
        #expect(said(50)?.hasSuffix("defined: \((1...50).map { "l\($0)" }.joined(separator: ", "))") == true)
        #expect(said(52)?.hasSuffix(", l49, l50 and 2 more") == true)
        let none = Written("routes: [{listen: front, to: https://u, use: none}]").loaded.errors.map(\.message)
        #expect(none == ["'listen' names listener 'front', which is not defined; none is defined"])
    }

    @Test func onlyAHundredNamesGetAHint() {
        let routes = (0..<102).map {
            "- {name: r\($0), listen: \"127.0.0.1:1\", match: {path: /\($0)}, to: https://u, use: aa}"
        }
        let written = Written("identities: {a: {pin: {}}}\nroutes:\n" + routes.joined(separator: "\n"))
        let errors = written.loaded.errors.map(\.message)
        #expect(errors.count == 102)
        #expect(errors.prefix(100).allSatisfy { $0.hasSuffix("; did you mean 'a'?") })
        #expect(errors.suffix(2).allSatisfy { $0.hasSuffix("; defined: a") })
    }

    static let needs: [(text: String, errors: [String])] = [
        ("{listen: \"127.0.0.1:1\", to: https://u}", ["route '127.0.0.1:1' needs 'use': an identity, or none"]),
        ("{listen: \"127.0.0.1:1\", use: none}", ["route '127.0.0.1:1' needs 'to'"]),
        ("{to: https://u, use: none}", ["route 'route' needs 'listen'"]),
        ("{to: https://u, use: none, match: {path: /a}}", ["route 'route/a' needs 'listen'"]),
        ("{listen: p, use: none}", ["route 'p' needs 'to'"]),
        ("{listen: p, use: none, match: {host: \"*.h\"}}", ["route 'p' needs 'to'"]),
        ("{listen: t, use: none, match: {host: h}}", ["route 't' needs 'to'"]),
        ("{listen: p, use: none, match: {host: h}}", []),
        (
            "{listen: \"127.0.0.1:1\", token_stub: {}, to: https://u}",
            ["route '127.0.0.1:1' has 'to' beside 'token_stub'"]
        ),
        (
            "{listen: \"127.0.0.1:1\", token_stub: {}, use: none}",
            ["route '127.0.0.1:1' has 'use' beside 'token_stub'"]
        ),
        (
            "{listen: \"127.0.0.1:1\", token_stub: {}, host: caller}",
            ["'host' of route '127.0.0.1:1' has no meaning beside 'token_stub', which forwards nothing"]
        ),
        (
            "{listen: \"127.0.0.1:1\", token_stub: {grants: []}}",
            ["'grants' of route '127.0.0.1:1' is an empty list, so that nothing would be answered"]
        ),
        ("{name: n, listen: \"127.0.0.1:1\", match: {path: /a}, callers: local, token_stub: {}}", []),
    ]

    @Test(arguments: needs)
    func aRouteNeedsWhatItCannotDoWithout(route: String, errors: [String]) {
        let text = """
            listeners:
              p: {address: "127.0.0.1:2", mode: forward_proxy}
              t: {address: "127.0.0.1:3", mode: transparent}
            routes: [\(route)]
            """
        #expect(Written(text).loaded.errors.map(\.message) == errors)
    }

    @Test(arguments: [
        ("{}", "{}", true), ("{path: /a/}", "{path: /a/b}", true), ("{path: /a/b}", "{path: /a/}", false),
        ("{host: h}", "{host: h}", true), ("{host: h}", "{}", false),
        ("{methods: GET}", "{methods: [GET, PUT]}", false),
        ("{methods: [GET, PUT]}", "{methods: GET}", true), ("{headers: {a: b}}", "{headers: {A: b}}", true),
        ("{headers: {a: b}}", "{headers: {a: c}}", false),
    ])
    func aRouteThatIsNeverReachedIsTold(first: String, second: String, isCovered: Bool) {
        let written = Written(
            """
            routes:
            - {name: x, listen: "127.0.0.1:1", match: \(first), to: https://u, use: none}
            - {name: y, listen: "127.0.0.1:1", match: \(second), to: https://u, use: none}
            """)
        let said = "? route 'y' is never reached: route 'x' before it matches everything it matches"
        #expect(written.findings == (isCovered ? [said] : []))
    }

    @Test func aRouteIsReachedByOneListenerOrAnotherPort() {
        func findings(_ first: String, _ second: String) -> [String] {
            Written(
                """
                listeners: {p: {address: "127.0.0.1:9", mode: forward_proxy}}
                routes:
                - {name: x, \(first), use: none}
                - {name: y, \(second), use: none}
                """
            ).loaded.diagnostics.map(\.message).filter { $0.contains("never reached") }
        }
        let told = ["route 'y' is never reached: route 'x' before it matches everything it matches"]
        let (one, two) = ("listen: \"127.0.0.1:1\"", "listen: [\"127.0.0.1:1\", \"127.0.0.1:2\"]")
        #expect(findings("\(one), to: https://u", "\(two), to: https://u") == [])
        #expect(findings("\(two), to: https://u", "\(one), to: https://u") == told)
        #expect(findings("listen: p, match: {host: h, port: 1}", "listen: p, match: {host: h, port: 2}") == [])
        #expect(
            findings("listen: p, match: {host: h, port: [2, 1]}", "listen: p, match: {host: h, port: [1, 2]}") == told)
        #expect(findings("\(one), match: {host: \"-\"}, to: https://u", "\(one), to: https://u") == [])
        #expect(findings("\(one), to: https://u", "\(one), match: {path: x}, to: https://u") == [])
        #expect(findings("\(one), match: 1, to: https://u", "\(one), to: https://u") == [])
    }

    @Test func aNameIsGivenOnce() {
        let written = Written(
            """
            routes:
            - {name: x, listen: "127.0.0.1:1", match: {path: /a}, to: https://u, use: none}
            - {name: x, listen: "127.0.0.1:1", match: {path: /b}, to: https://u, use: none}
            - {name: x, listen: "127.0.0.1:1", match: {path: /c}, to: https://u, use: none}
            """)
        let said = "name! route 'x' is defined twice; first in line 2 of CARDEA_CONFIG_YAML"
        #expect(written.findings == [said, said])
    }

    @Test func defaultsThatHaveNoEffectOnARouteAreNotTold() {
        func findings(_ route: String) -> [String] {
            Written(
                """
                identities: {a: {stamp: {seal: env:S}}}
                defaults: {route: {audience: x, realm: y}}
                routes: [{listen: "127.0.0.1:1", to: https://u, use: none\(route)}]
                """
            ).findings
        }
        #expect(findings("") == [])
        #expect(findings(", realm: z") == ["realm? 'realm' of route '127.0.0.1:1' has no effect with 'use: none'"])
    }
}
