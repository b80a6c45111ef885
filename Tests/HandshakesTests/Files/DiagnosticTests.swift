import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct DiagnosticTests {
    /// Keys at the wrong level, and by their names elsewhere.
    @Test(arguments: [
        (
            "scopes: [a], client_id: c", "",
            "unknown key 'scopes' in identity 'me' (oauth2); it stands one level up, beside 'oauth2'"
        ),
        (
            "scope: [a], client_id: c", "",
            "unknown key 'scope' in identity 'me' (oauth2); did you mean 'scopes', which stands one level up, beside 'oauth2'?"
        ),
        ("client_id: c", "token_url: x", "unknown key 'token_url' in identity 'me'; it belongs under 'oauth2'"),
        ("client_id: c", "oauth: {}", "unknown key 'oauth' in identity 'me'; here it is called 'oauth2'"),
    ])
    func `a key that stands elsewhere is shown its place`(inside: String, beside: String, message: String) {
        let trial = Trial("identities: {me: {oauth2: {\(inside)}\(beside.isEmpty ? "" : ", " + beside)}}")
        #expect(trial.errors.contains(message), "\(trial.errors)")
    }

    @Test func `a route's key by the name that others give it`() {
        let trial = Trial("routes: [{listen: 127.0.0.1:1, upstream: \"http://127.0.0.1:2\", use: none}]")
        #expect(
            trial.errors.contains { $0.contains("unknown key 'upstream'") && $0.contains("here it is called 'to'") })
    }

    @Test func tenMistakesGiveTenErrors() {
        let trial = Trial(
            """
            identities:
              hr:
                oam_webgate:
                  service: https://oam.example.com/s
                  user_agent_prefix: OIC
                  client_id: c
                  username: u
                  pasword: file:/x
              billing:
                oauth2:
                  token_url: http://idp.example.com/t
                  client_id: c
                  client_secret: hunter2
                token:
                  refresh_ahead: 20
                  refresh_ahead: 20%
            routes:
              - name: one
                listen: 127.0.0.1:8080
                to: https://user:hunter3@hr.example.com
                use: h
              - name: old
                listen: 0.0.0.0:8081
                to: https://api.example.com
                use: billing
                timeouts: [5s]
              - listen: nowhere
                to: https://api.example.com
            store: {path: /t, key: env:K}
            """)
        #expect(
            trial.result.errors.map(\.description)
                == [
                    "8:7 error unknown key 'pasword' in identity 'hr' (oam_webgate); did you mean 'password'?",
                    "11:7 error 'token_url' of identity 'billing' (oauth2) sends credentials in clear text; use https:, or network: {allow_cleartext: true}",
                    "13:7 error 'client_secret' must be a reference: file:, env:, credential: or exec: (literal: for trials)",
                    "15:7 error 'refresh_ahead: 20' needs a unit or a percentage: 20s, 20%",
                    "16:7 error 'refresh_ahead' is given twice; first in line 15",
                    "20:5 error 'to' must not have a user or password in the URL; credentials go into an identity",
                    "21:5 error route 'one' uses identity 'h', which is not defined; defined: hr, billing; did you mean 'hr'?",
                    "23:5 error route 'old' listens on 0.0.0.0:8081 and admits nobody in particular; say callers.allow, or callers: {unsafe_open: true}",
                    "26:5 error 'timeouts' must be a map (connect, response, idle, keep_alive, …), not a list (in route 'old')",
                    "27:5 error route 'route' needs 'use': an identity, or none",
                    "27:13 error 'listen' names listener 'nowhere', which is not defined; defined: 127.0.0.1:8080, 0.0.0.0:8081",
                ].map { "CARDEA_CONFIG_YAML:" + $0 })
        #expect(trial.result.configuration == nil)
        #expect(!trial.result.diagnostics.description.contains("hunter"))
    }

    @Test(arguments: [
        ("identites", "identities"), ("route", "routes"), ("treads", "threads"), ("sandobx", "sandbox"),
        ("Store", "store"), ("secretfiles", "secret_files"),
    ])
    func nearestWord(wrong: String, right: String) {
        let trial = Trial(Trial.around(top: "\(wrong): 1"))
        #expect(trial.errors == ["unknown key '\(wrong)' in the file; did you mean '\(right)'?"])
    }

    @Test func farWordsListWhatIsKnown() {
        let trial = Trial(Trial.around(top: "log: {zzzzzz: 1}"))
        #expect(trial.errors == ["unknown key 'zzzzzz' in 'log'; known: level, format, access"])
    }

    @Test(arguments: [
        ("threads: two", "'threads: two' must be a whole number from 1 to 256"),
        ("threads: 010", "'threads: 010' must be a whole number from 1 to 256"),
        ("threads: [1]", "'threads' must be a whole number from 1 to 256, not a list (in the file)"),
        ("threads:", "'threads' must be a whole number from 1 to 256, not nothing (in the file)"),
        ("shutdown: {linger: 5}", "'linger: 5' needs a unit: 5s, 5m"),
        ("shutdown: {linger: 5 s}", "'linger: 5 s' must be a duration such as 500ms, 5s, 15m, 2h or 1d"),
        ("shutdown: {linger: -5s}", "'linger: -5s' must start with a whole number and end with its unit"),
        ("shutdown: {timeout: 999999999999d}", "'timeout: 999999999999d' must be at most 366d"),
        ("shutdown: {linger: 30s}", "'timeout' of 'shutdown' must be at least its 'linger'"),
        ("limits: {header_size: 64}", "'header_size: 64' needs a unit: 64KiB, 64B"),
        ("limits: {header_size: 64K}", "'header_size: 64K' needs a unit of 1024: 64KiB"),
        ("log: {level: verbose}", "'level' must be one of debug, info, notice, warning, error, not 'verbose'"),
        ("log: {access: eror}", "'access' must be one of off, errors, all, not 'eror'; did you mean 'errors'?"),
        ("admin: no", "'admin' must be 'off', or a map (listen, probes, socket, hosts, …), not 'no'"),
        ("admin: {metrics: 127.0.0.1:8080}", "'metrics' of 'admin' is the address of listener '127.0.0.1:8080'"),
        ("admin: {metrics: 127.0.0.1:9901}", "'metrics' must not be the address of 'listen'"),
        ("admin: {probes: 127.0.0.1:1, metrics: 127.0.0.1:1}", "'metrics' must not be the address of 'probes'"),
        ("admin: {listen: 127.0.0.1:8080}", "'listen' of 'admin' is the address of listener '127.0.0.1:8080'"),
        (
            "store: {path: /x, key: secret}",
            "'key' must be a reference: file:, env:, credential: or exec: (literal: for trials)"
        ),
        ("include: [/nonexistent.yaml]", "'include' of /nonexistent.yaml: No such file or directory"),
        ("<<: {threads: 1}", "'<<' is not supported; shared settings go under 'defaults'"),
    ])
    func topErrors(line: String, message: String) {
        #expect(Trial(Trial.around(top: line)).errors == [message])
    }

    @Test(arguments: [
        ("addresses: []", "'addresses' of route '127.0.0.1:8080' is an empty list"),
        ("match: {path: hr/}", "'path' must start with '/'"),
        ("match: {path: /hr/*}", "'path' takes no '*': a path that ends in '/' is a prefix"),
        ("match: {path: /a/../b}", "'path' must not have '//', '.' or '..' segments, or an encoded slash"),
        ("match: {host: \"a.*.x\"}", "'host' may have '*' only as its whole first label: *.example.com"),
        ("match: {methods: [\"GET POST\"]}", "'methods' must be a method such as GET"),
        ("inject: {value: Bearer}", "'value' must have '{token}' exactly once"),
        (
            "inject: {header: Host}",
            "'header' in 'inject' of route '127.0.0.1:8080' must not be 'Host', which the connection itself uses"
        ),
        (
            "headers: {set: {Content-Length: 1}}",
            "'Content-Length' in 'headers' of route '127.0.0.1:8080' is written by the gateway itself"
        ),
        (
            "headers: {set: {authorization: x}}",
            "'headers' of route '127.0.0.1:8080' edits 'authorization', which identity 'a' writes"
        ),
        ("headers: {set: {X-A: \"a\\nb\"}}", "'set' must be a header value of printable ASCII characters"),
        ("on_rejected: {statuses: [200]}", "'statuses: 200' must be a whole number from 400 to 599"),
        ("timeouts: {connect: 0s}", "'connect: 0s' must be at least 1ms"),
        ("callers: {allow: [10.0.0.1/8]}", "'allow' has bits set beyond its 8; write the block's first address"),
        ("callers: {allow: []}", "'allow' of route '127.0.0.1:8080' is empty, so nobody could call"),
        ("callers: {unix_users: [a]}", "'unix_users' of route '127.0.0.1:8080' never holds on 127.0.0.1:8080"),
        ("tls: {ca: []}", "'ca' is an empty list, so no server could be trusted"),
        ("tls: {min_version: 1.1}", "'min_version' must be one of 1.2, 1.3, not '1.1'"),
        ("scopes: [\"a b\"]", "'scopes' must be one scope, without spaces; several are a list"),
        ("http: 1.0", "'http' must be one of auto, 1.1, 2, not '1.0'"),
    ])
    func routeErrors(keys: String, message: String) {
        #expect(Trial(Trial.around(route: keys)).errors == [message])
    }

    @Test(arguments: [
        (
            "static: {value: env:V, header: Connection}",
            "route '127.0.0.1:8080' uses identity 'a', which injects 'Connection', a header of the connection itself"
        ),
        (
            "static: {value: env:V}, basic: {username: u, password: env:P}",
            "identity 'a' has 2 handshakes (static, basic); it needs exactly one"
        ),
        (
            "scopes: [x]",
            "identity 'a' needs exactly one handshake: \(Trial.schemes.joined(separator: ", "))"
        ),
        ("static: {}", "identity 'a' (static) needs 'value'"),
        (
            "basic: {username: \"a:b\", password: env:P}",
            "'username' of identity 'a' (basic) must not have a colon (RFC 7617)"
        ),
        ("oauth2: {client_id: c, client_secret: env:S}", "identity 'a' (oauth2) needs 'token_url' or 'issuer'"),
        (
            "oauth2: {token_url: \"https://i/t\", client_id: c}",
            "identity 'a' (oauth2) needs 'client_secret' for 'client_auth: basic'"
        ),
        (
            "oauth2: {\(Trial.oauth2), password: env:P}",
            "'password' of identity 'a' (oauth2) is not used by 'grant: client_credentials'"
        ),
        (
            "oauth2: {issuer: \"https://i/?x\", client_id: c, client_secret: env:S}",
            "'issuer' of identity 'a' (oauth2) must not have a query"
        ),
        (
            "oauth2: {\(Trial.oauth2), issuer: \"https://i\"}",
            "identity 'a' (oauth2) has 'issuer' and 'token_url'; it needs one of them"
        ),
        (
            "oauth2: {token_url: \"https://i/t\", client_id: c, client_auth: tls}",
            "identity 'a' (oauth2) needs 'network: {tls: {certificate: …}}' for 'client_auth: tls'"
        ),
        (
            "oauth2: {token_url: \"http://127.0.0.1/t\", client_id: c, client_auth: tls}, network: {tls: {certificate: /c}}",
            "'client_auth: tls' of identity 'a' (oauth2) needs an https: token_url"
        ),
        (
            "oauth2: {\(Trial.oauth2), key: env:K}",
            "'key' of identity 'a' (oauth2) is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'assertion'"
        ),
        (
            "oauth2: {token_url: \"https://i/t\", client_id: c, client_auth: private_key_jwt, key: []}",
            "'key' of identity 'a' (oauth2) is an empty list; the first key signs"
        ),
        (
            "oauth2: {\(Trial.oauth2), key_password: env:K}",
            "'key_password' of identity 'a' (oauth2) opens no 'key'"
        ),
        (
            "oauth2: {\(Trial.oauth2), signing: {lifetime: 20s}}",
            "'signing' of identity 'a' (oauth2) has nothing to sign"
        ),
        (
            "oauth2: {\(Trial.oauth2), client_auth: client_secret_jwt, signing: {lifetime: 2h}}",
            "'lifetime' of 'signing' of identity 'a' (oauth2) must be at most 1h"
        ),
        (
            "oauth2: {\(Trial.oauth2), client_auth: client_secret_jwt, signing: {audience: issuer}}",
            "'audience: issuer' of identity 'a' (oauth2) needs 'issuer'"
        ),
        (
            "oauth2: {\(Trial.oauth2), client_auth: client_secret_jwt, signing: {certificate: /c}}",
            "'certificate' of 'signing' of identity 'a' (oauth2) needs 'thumbprint'"
        ),
        (
            "oauth2: {\(Trial.oauth2), client_auth: client_secret_jwt, signing: {algorithm: RS512}}",
            "'algorithm' must be one of auto, RS256, PS256, ES256, EdDSA, not 'RS512'"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: jwt_bearer, key: env:K, claims: {aud: x}}",
            "'aud' in 'claims' of identity 'a' (oauth2) is set by the gateway; see 'signing'"
        ),
        (
            "oauth2: {\(Trial.oauth2), claims: {sub: x}}",
            "'claims' of identity 'a' (oauth2) are used only with 'grant: jwt_bearer' and 'key', without 'assertion'"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: refresh_token}",
            "identity 'a' (oauth2) needs 'refresh_token' for 'grant: refresh_token'"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: saml2_bearer, username: u, assertion: env:A}",
            "'username' of identity 'a' (oauth2) is not used by 'grant: saml2_bearer'"
        ),
        (
            "oauth2: {token_url: \"https://i/t\", client_id: c, client_secret: env:S, client_auth: none}",
            "'client_secret' of identity 'a' (oauth2) is not sent with 'client_auth: none'"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: {identity: b}}",
            "'subject_token' of identity 'a' names identity 'b', which is not there; did you mean 'a'?"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: {identity: a}}",
            "'subject_token' of identity 'a' leads back to the identity itself"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: env:T, subject_token_type: acces}",
            "'subject_token_type' of identity 'a' (oauth2) must be access_token, refresh_token, id_token, saml1, saml2, jwt, or a URI"
        ),
        (
            "oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: env:T, actor_token: env:A}",
            "'actor_token' and 'actor_token_type' of identity 'a' (oauth2) go together"
        ),
        (
            "oauth2: {\(Trial.oauth2), extra: {scope: x}}",
            "'scope' in 'extra' of identity 'a' (oauth2) is set by its own key"
        ),
        (
            "oauth2: {\(Trial.oauth2), allowed_scopes: [r]}, scopes: [w]",
            "identity 'a' asks for scope 'w', which 'allowed_scopes' of identity 'a' does not have"
        ),
        (
            "oauth2: {\(Trial.oauth2), client_auth: post, basic_encoding: raw}",
            "'basic_encoding' of identity 'a' (oauth2) is used only with 'client_auth: basic'"
        ),
        (
            "oam_webgate: {\(Trial.webgate)}, token: {startup: wait}",
            "'startup: wait' of identity 'a' needs 'probe': its token comes out of a challenge"
        ),
        (
            "oam_webgate: {service: \"https://i/s\", client_id: c, username: u, password: env:S}",
            "identity 'a' (oam_webgate) needs 'user_agent_prefix'"
        ),
        (
            "oam_webgate: {\(Trial.webgate), paths: {access: \"https://x/y\"}}",
            "'access' must be a path below the service"
        ),
        (
            "static: {value: env:V}, token: {login_attempts: 0}",
            "'login_attempts: 0' must be a whole number from 1 to 10"
        ),
        ("static: {value: env:V}, network: {resolve: {h: x}}", "'resolve' must be an IP address"),
    ])
    func identityErrors(identity: String, message: String) {
        #expect(Trial(Trial.around(identity: identity)).errors.first == message)
    }

    @Test func clearTextNeedsToBeAskedFor() {
        let plain = { (to: String, keys: String) in
            Trial(
                "identities: {a: {static: {value: env:V}}}\nroutes: [{listen: \"127.0.0.1:1\", to: \"\(to)\", use: a\(keys)}]"
            )
        }
        #expect(plain("http://u.example.com", "").errors.count == 1)
        #expect(plain("http://u.example.com", ", allow_cleartext: true").errors == [])
        #expect(plain("http://127.0.0.1:99", "").errors == [])
        #expect(plain("http://[::1]:99", "").errors == [])
        #expect(plain("http://localhost:99", "").errors == [])
        #expect(plain("http://localhost.example.com", "").errors.count == 1)
        #expect(plain("http://127.0.0.1.example.com", "").errors.count == 1)
    }

    @Test(arguments: [
        "ftp://u", "https://u/?a", "https://u/#f", "https://a@u", "https://", "u.example.com", "https://u:0",
        "https://u:65536", "https://u/a/../b", "https://u/a%2fb", "https://u u", "https://0177.1", "https://[1.2.3.4]",
        "https://::1", "https://-u", "https://u..x",
    ])
    func notAnOrigin(to: String) {
        let trial = Trial("routes: [{listen: \"127.0.0.1:1\", to: \"\(to)\", use: none}]")
        #expect(trial.errors.count == 1)
        #expect(trial.errors.first?.hasPrefix("'to' ") == true)
    }

    @Test func everyoneIsAdmittedOnlyInSoManyWords() {
        let on = { (listen: String, callers: String) in
            Trial("routes: [{listen: \"\(listen)\", to: \"https://u\", use: none\(callers)}]").errors.count
        }
        #expect(on("0.0.0.0:80", "") == 1)
        #expect(on("[::]:80", "") == 1)
        #expect(on("10.0.0.1:80", ", callers: {browsers: true}") == 1)
        #expect(on("10.0.0.1:80", ", callers: local") == 0)
        #expect(on("10.0.0.1:80", ", callers: {unsafe_open: true}") == 0)
        #expect(on("10.0.0.1:80", ", callers: {allow: 10.0.0.0/8}") == 0)
        #expect(on("unix:/x", "") == 0)
        #expect(on("unix:/x", ", callers: {unix_users: [me]}") == 0)
        #expect(on("unix:/x", ", callers: {allow: [10.0.0.0/8]}") == 1)
        #expect(on("[::1]:80", "") == 0)
    }

    @Test func routesThatAreNeverReachedWarn() {
        let trial = Trial(
            """
            routes:
              - {name: a, listen: "127.0.0.1:1", match: {path: /x/}, to: "https://u", use: none}
              - {name: b, listen: "127.0.0.1:1", match: {path: /x/y, methods: [GET]}, to: "https://u", use: none}
              - {name: c, listen: ["127.0.0.1:1", "127.0.0.1:2"], match: {path: /x/}, to: "https://u", use: none}
              - {name: d, listen: "127.0.0.1:1", match: {path: /x}, to: "https://u", use: none}
            """)
        #expect(trial.lines == ["3 route 'b' is never reached: route 'a' before it matches everything it matches"])
    }

    /// A route is reached if it is on one of its listeners, whichever earlier routes cover it on the others.
    @Test func everyListenerOfAnUnreachedRouteIsCovered() {
        let trial = Trial(
            """
            routes:
              - {name: a, listen: "127.0.0.1:1", match: {path: /x/}, to: "https://u", use: none}
              - {name: b, listen: ["127.0.0.1:2", "127.0.0.1:1"], match: {path: /x/y/}, to: "https://u", use: none}
              - {name: c, listen: ["127.0.0.1:1", "127.0.0.1:2"], match: {path: /x/y/z}, to: "https://u", use: none}
              - {name: d, listen: ["127.0.0.1:2", "127.0.0.1:1"], match: {path: /x/y/z}, to: "https://u", use: none}
            """)
        #expect(
            trial.lines == [
                "4 route 'c' is never reached: route 'b' before it matches everything it matches",
                "5 route 'd' is never reached: route 'a' before it matches everything it matches",
            ])
    }

    /// A file without its `include` lacks every name: each is reported, at a size and with an effort that many thousands bear.
    @Test func manyMissingNamesGiveMessagesOfBoundedSize() throws {
        let names = (0..<80).map { "identity\($0)" }
        let trial = Trial(
            "identities: {\(names.map { "\($0): {static: {value: env:V}}" }.joined(separator: ", "))}\n"
                + "routes: [\((0..<120).map { "{name: r\($0), listen: unix:/s\($0), to: \"https://u\", use: idenity7}" }.joined(separator: ", "))]"
        )
        #expect(trial.errors.count == 120)
        let first = try #require(trial.errors.first)
        #expect(first.contains("defined: identity0, identity1") && first.contains("identity49 and 30 more"))
        #expect(first.hasSuffix("; did you mean 'identity7'?"))
        #expect(trial.errors.count { $0.contains("did you mean") } == 100)
    }

    @Test func namesAreUnique() {
        let routes = (1...2).map { "{name: a, listen: \"127.0.0.1:\($0)\", to: \"https://u\", use: none}" }
        #expect(
            Trial("routes: [\(routes.joined(separator: ", "))]").errors.first?.hasPrefix("route 'a' is defined twice")
                == true)
        let made = (1...2).map { _ in "{listen: \"127.0.0.1:1\", to: \"https://u\", use: none}" }
        #expect(
            Trial("routes: [\(made.joined(separator: ", "))]").result.configuration?.routes.map(\.name) == [
                "127.0.0.1:1", "127.0.0.1:1#2",
            ])
    }

    @Test(arguments: [
        (
            "on_rejected: {statuses: []}",
            "'statuses' in 'on_rejected' of route '127.0.0.1:8080' is an empty list, so no answer would refuse the credential; name them, such as [401], or leave the key out"
        ),
        (
            "on_rejected: {methods: []}",
            "'methods' in 'on_rejected' of route '127.0.0.1:8080' is an empty list; say replay: never, or methods: all"
        ),
        (
            "health: {path: /h, statuses: []}",
            "'statuses' in 'health' of route '127.0.0.1:8080' is an empty list, so no answer would be good; name them, such as [200], or leave the key out for 200 to 299"
        ),
    ])
    func emptyListsThatWouldMeanSomethingElse(route: String, error: String) {
        #expect(Trial(Trial.around(route: route)).errors == [error])
    }

    @Test func aRouteToItsOwnListener() {
        let to = { (listen: String, to: String) in
            Trial("routes: [{listen: \"\(listen)\", to: \"\(to)\", use: none, callers: local}]").errors.count
        }
        #expect(to("127.0.0.1:80", "http://localhost") == 1)
        #expect(to("0.0.0.0:80", "http://127.0.0.1") == 1)
        #expect(to("127.0.0.1:80", "http://127.0.0.1:81") == 0)
        #expect(to("127.0.0.1:80", "http://10.0.0.1") == 0)
    }

    @Test func warnings() {
        #expect(Trial(Trial.around(identity: "static: {value: literal:x}")).warnings.count == 1)
        #expect(Trial(Trial.around(identity: "basic: {username: u, password: env:P}")).warnings.count == 1)
        #expect(Trial(Trial.around(top: "store: {path: /x}")).warnings.count == 1)
        #expect(Trial(Trial.around(route: "tls: {legacy: true}")).warnings.count == 1)
    }
}
