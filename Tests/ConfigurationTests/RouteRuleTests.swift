import Testing

@testable import Configuration

/// Rules between the keys of a route, which no key can check alone: each with a file that breaks it and one beside it that does not.
@Suite struct RouteRuleTests {
    private static let place = "route '127.0.0.1:1'"
    /// The key `keep_as`, in front of the mark of an error.
    private static let keepAs = "keep_as"

    static let credentials: [(route: String, findings: [String])] = [
        (
            "to: http://h",
            ["to! \(place) sends its credential in clear text to h; use https:, or allow_cleartext: true"]
        ),
        ("to: http://h, allow_cleartext: true", []), ("to: http://127.0.0.1:2", []), ("to: http://localhost", []),
        (
            "to: http://127.0.0.1:2, proxy: \"http://p\"",
            ["to! \(place) sends its credential in clear text to 127.0.0.1; use https:, or allow_cleartext: true"]
        ),
        ("to: http://h, use: none", []), ("to: https://h, proxy: \"http://p\"", []),
        (
            "use: none, inject: {query: q}, scopes: [s], audience: a, resource: r, realm: m, cache_control: pass, answers: conceal",
            ["inject", "scopes", "audience", "resource", "realm", "cache_control", "answers"].map {
                "\($0)? '\($0)' of \(place) has no effect with 'use: none'"
            }
        ),
        (
            "use: b, inject: {query: q}, scopes: [s], audience: a, resource: r, realm: m, answers: conceal, cache_control: pass",
            ["inject", "scopes", "audience", "resource", "realm", "answers"].map {
                "\($0)? '\($0)' of \(place) has no effect with a certificate"
            }
        ),
        (
            "use: c",
            ["use! \(place) uses identity 'c', which injects 'Host', a header of the connection itself"]
        ),
        ("use: c, inject: {header: X-T}", []), ("use: c, inject: {query: q}", []), ("use: c, inject: {cookie: k}", []),
        (
            "headers: {set: {authorization: x}}",
            ["headers! 'headers' of \(place) edits 'authorization', which identity 'a' writes"]
        ),
        (
            "headers: {remove: [X-A, X-Written]}",
            ["headers! 'headers' of \(place) edits 'X-Written', which identity 'a' writes"]
        ),
        ("headers: {remove: authorization}, inject: {header: X-T}", []),
        (
            "headers: {remove: x-t}, inject: {header: X-T}",
            ["headers! 'headers' of \(place) edits 'x-t', which identity 'a' writes"]
        ),
        (
            "headers: {set: {Cookie: x}}, inject: {cookie: k}",
            ["headers! 'headers' of \(place) edits 'Cookie', which identity 'a' writes"]
        ),
        (
            "answers: conceal, headers: {set: {accept-encoding: gzip}}",
            ["headers! 'headers' of \(place) sets 'accept-encoding', which 'answers: conceal' decides"]
        ),
        (
            "answers: conceal, headers: {set: {A-IM: gzip}}",
            ["headers! 'headers' of \(place) sets 'A-IM', which 'answers: conceal' decides"]
        ),
        (
            "answers: conceal, inject: {header: Range}",
            ["answers! 'answers' of \(place) is conceal, which decides 'Range', and the credential goes there"]
        ),
        (
            "answers: conceal, inject: {header: authorization, caller_value: {keep_as: If-Range}}",
            ["inject! 'inject' of \(place) keeps what callers send as 'If-Range', which 'answers: conceal' decides"]
        ),
        ("inject: {header: authorization, caller_value: {keep_as: Range}}", []),
        ("answers: conceal, headers: {set: {accept: x}, remove: range}", []),
        ("headers: {set: {accept-encoding: gzip}}", []),
        ("headers: {set: {Cookie: x}}", []), ("headers: {set: {Authorization: x}}, use: none", []),
        ("headers: {set: {Authorization: x}}, inject: {query: q}", []),
    ]

    @Test(arguments: credentials)
    func aCredentialHasItsRules(route: String, findings: [String]) {
        #expect(Set(Written(route: route).findings) == Set(findings))
    }

    private static func forwarded(_ name: String) -> String {
        "headers! 'headers' of \(place) edits '\(name)', which 'forwarded' writes"
    }

    static let fields: [(route: String, findings: [String])] = [
        ("forwarded: on, headers: {remove: Forwarded}", [forwarded("Forwarded")]),
        ("forwarded: on, headers: {set: {forwarded: x}}", [forwarded("forwarded")]),
        ("forwarded: on, headers: {remove: [X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host]}", []),
        ("forwarded: off, headers: {remove: [Forwarded, X-Forwarded-For]}", []),
        ("forwarded: {fields: legacy}, headers: {remove: Forwarded}", []),
        ("forwarded: {fields: legacy}, headers: {remove: X-Forwarded-For}", [forwarded("X-Forwarded-For")]),
        ("forwarded: {fields: legacy}, headers: {remove: x-forwarded-proto}", [forwarded("x-forwarded-proto")]),
        ("forwarded: {fields: legacy}, headers: {set: {X-Forwarded-Host: x}}", [forwarded("X-Forwarded-Host")]),
        ("forwarded: {fields: both}, headers: {remove: Forwarded}", [forwarded("Forwarded")]),
        ("forwarded: {fields: both}, headers: {remove: X-Forwarded-Host}", [forwarded("X-Forwarded-Host")]),
        ("forwarded: {fields: both}, headers: {remove: X-Forwarded-Port}", []),
        (
            "request_id: send, headers: {set: {X-Request-ID: x}}",
            ["headers! 'headers' of \(place) edits 'X-Request-ID', which 'request_id' writes"]
        ),
        (
            "request_id: echo, headers: {remove: x-request-id}",
            ["headers! 'headers' of \(place) edits 'x-request-id', which 'request_id' writes"]
        ),
        ("request_id: send, headers: {remove: x-request-ids}", []), ("headers: {remove: x-request-id}", []),
        ("headers: {set: {traceparent: x}}", []),
        (
            "headers: {set: {Connection: x}}",
            ["set! 'Connection' in 'headers' of \(place) is written by the gateway itself"]
        ),
        (
            "headers: {set: {Host: x}}",
            ["set! 'Host' in 'headers' of \(place) is written by the gateway itself; the Host is set by 'host'"]
        ),
        ("headers: {remove: [X-A, TE]}", ["remove! 'TE' in 'headers' of \(place) is written by the gateway itself"]),
        ("headers: {set: {X-A: x, x-a: y}}", ["set! 'set' of \(place) has 'x-a' twice"]),
        ("headers: {set: {X-A: x, X-B: y}, remove: [X-A]}", []),
    ]

    @Test(arguments: fields)
    func aFieldThatTheGatewayWritesIsNotEdited(route: String, findings: [String]) {
        #expect(Written(route: route).findings == findings)
    }

    @Test(
        arguments: [
            ("tracing: on", "set: {Traceparent: x}", "Traceparent"),
            ("tracing: {}", "set: {tracestate: x}", "tracestate"),
            ("tracing: off", "set: {tracestate: x}", nil), ("tracing: on", "set: {trace: x}", nil),
            ("tracing: on", "remove: [traceparent, tracestate]", nil),
        ] as [(String, String, String?)])
    func aFieldOfTheTraceIsNotSet(tracing: String, edit: String, name: String?) {
        let said = name.map {
            "headers! 'headers' of \(Self.place) sets '\($0)', which 'tracing' writes; "
                + "'remove' alone keeps it from the upstream"
        }
        #expect(Written(route: "headers: {\(edit)}", more: tracing).findings == [said].compactMap { $0 })
    }

    private static func reserved(_ what: String, _ name: String) -> String {
        "\(what) in 'inject' of \(place) must not be '\(name)', which the connection itself uses"
    }

    static let injections: [(route: String, findings: [String])] = [
        ("inject: {header: X-T, query: q}", ["query! 'inject' of \(place) has header and query; it needs one"]),
        ("inject: {cookie: k, query: q}", ["cookie! 'inject' of \(place) has query and cookie; it needs one"]),
        (
            "inject: {query: q, value: \"{token}\"}",
            ["value! 'value' in 'inject' of \(place) goes only with 'header'"]
        ),
        (
            "inject: {cookie: k, caller_value: drop}",
            ["caller_value! 'caller_value' in 'inject' of \(place) goes only with 'header'"]
        ),
        ("inject: {value: \"{token}\"}", []), ("inject: {header: X-T, value: \"{token}\"}", []),
        (
            "inject: {header: Upgrade}",
            ["header! " + reserved("'header'", "Upgrade")]
        ),
        (
            "inject: {caller_value: {keep_as: Expect}}",
            ["\(keepAs)! " + reserved("'keep_as'", "Expect")]
        ),
        (
            "inject: {caller_value: {keep_as: AUTHORIZATION}}",
            ["\(keepAs)! 'keep_as' of \(place) is the header that carries the credential"]
        ),
        (
            "inject: {header: X-T, caller_value: {keep_as: x-t}}",
            ["\(keepAs)! 'keep_as' of \(place) is the header that carries the credential"]
        ),
        ("inject: {header: X-T, caller_value: {keep_as: Authorization}}", []),
        ("inject: {caller_value: {}}", ["! 'caller_value' of \(place) needs 'keep_as'"]),
    ]

    @Test(arguments: injections)
    func aCredentialGoesToOnePlace(route: String, findings: [String]) {
        #expect(Written(route: route).findings == findings)
    }

    static let parts: [(route: String, findings: [String])] = [
        ("rewrite: {strip_prefix: \"/a?b\"}", ["strip_prefix! 'strip_prefix' of \(place) must not have a query"]),
        ("rewrite: {strip_prefix: /a}", []),
        (
            "health: {path: /h, interval: 1s}",
            ["interval! 'timeout' in 'health' of \(place) must not be longer than its 'interval'"]
        ),
        (
            "health: {path: /h, interval: 1s, timeout: 1001ms}",
            ["timeout! 'timeout' in 'health' of \(place) must not be longer than its 'interval'"]
        ),
        ("health: {path: /h, interval: 1s, timeout: 1s}", []), ("health: {path: /h, timeout: 10s}", []),
        ("health: {interval: 9s}", ["! 'health' of \(place) needs 'path'"]),
        (
            "health: {path: /h, statuses: []}",
            [
                "statuses! 'statuses' in 'health' of \(place) is an empty list, so no answer would be good; "
                    + "name them, such as [200], or leave the key out for 200 to 299"
            ]
        ),
        (
            "on_rejected: {statuses: [], methods: []}",
            [
                "statuses! 'statuses' in 'on_rejected' of \(place) is an empty list, "
                    + "so no answer would refuse the credential; name them, such as [401], or leave the key out",
                "methods! 'methods' in 'on_rejected' of \(place) is an empty list; say replay: never, or methods: all",
            ]
        ),
        ("hosts: []", ["hosts! 'hosts' of \(place) is an empty list; leave the key out, or say [any]"]),
        ("addresses: []", ["addresses! 'addresses' of \(place) is an empty list"]),
        (
            "proxy: \"http://p\", addresses: [\"h:1\"]",
            ["proxy! 'addresses' of \(place) has no meaning behind a 'proxy', which does the connecting"]
        ),
        ("proxy: {url: \"http://p\", except: [u]}, addresses: [\"h:1\"]", []), ("proxy: off, addresses: [\"h:1\"]", []),
        ("match: {port: []}", ["port! 'port' in 'match' of \(place) is an empty list, so no request would match"]),
        (
            "match: {port: 80}",
            [
                "port! 'port' in 'match' of \(place) is used only in forward_proxy and transparent mode; "
                    + "a listener's own port is in 'listen'"
            ]
        ),
        ("tls: {key: file:/k}", ["key! 'key' in 'tls' goes only with 'certificate'"]),
        ("tls: {password: file:/k}", ["password! 'password' in 'tls' goes only with 'certificate'"]),
        ("tls: {ca: []}", ["ca! 'ca' is an empty list, so no server could be trusted"]),
        ("tls: {legacy: true}", ["legacy? 'legacy: true' accepts ciphers and keys that are no longer safe"]),
        (
            "proxy: {url: \"http://p\", username: n}",
            ["proxy! 'proxy' of \(place) needs both 'username' and 'password', or neither"]
        ),
        (
            "proxy: {url: \"http://p\", password: env:P}",
            ["proxy! 'proxy' of \(place) needs both 'username' and 'password', or neither"]
        ),
        (
            "proxy: {url: \"http://p\", username: \"a:b\", password: env:P}",
            ["username! 'username' in 'proxy' of \(place) must not have a colon (RFC 7617)"]
        ),
        ("proxy: {except: [u]}", ["! 'proxy' of \(place) needs 'url'"]),
        (
            "proxy: \"https://p\"",
            ["proxy! 'proxy' of \(place) must be an http: URL; TLS to the server runs through it end to end"]
        ),
        ("proxy: \"http://p/a\"", ["proxy! 'proxy' of \(place) must not have a path or a query"]),
        ("proxy: {url: \"http://p?a\"}", ["url! 'proxy' of \(place) must not have a path or a query"]),
    ]

    @Test(arguments: parts)
    func aPartOfARouteHasItsRules(route: String, findings: [String]) {
        #expect(Written(route: route).findings == findings)
    }

    @Test(arguments: [
        ("http://127.0.0.1:1", "127.0.0.1:1", true), ("http://127.0.0.1:2", "127.0.0.1:1", false),
        ("http://127.0.0.2:1", "127.0.0.1:1", false), ("http://localhost:1", "127.0.0.1:1", true),
        ("http://127.0.0.2:1", "0.0.0.0:1", true), ("http://127.0.0.2:2", "0.0.0.0:1", false),
        ("https://10.0.0.1:1", "0.0.0.0:1", false), ("http://[::1]:1", "[::]:1", true),
        ("http://[::1]:1", "[::1]:1", true),
        ("https://[::2]:1", "[::]:1", false), ("https://10.0.0.1:1", "10.0.0.1:1", true),
        ("https://h:1", "127.0.0.1:1", false),
        ("https://0.0.0.0:1", "127.0.0.1:1", false), ("https://0.0.0.0:1", "0.0.0.0:1", true),
    ])
    func aRouteDoesNotLeadToItsOwnListener(to: String, listen: String, isLoop: Bool) {
        let callers = "callers: {token: env:T}"
        let written = Written(route: "to: \"\(to)\", listen: \"\(listen)\", use: none, \(callers)")
        #expect(written.findings == (isLoop ? ["to! 'to' of route '\(listen)' is its own listener \(listen)"] : []))
        // Where connections go elsewhere, what the name says does not count.
        let elsewhere = Written(
            route: "to: \"\(to)\", listen: \"\(listen)\", use: none, \(callers), addresses: [\"h:9\"]")
        #expect(elsewhere.findings == [])
        #expect(Written(route: "to: \"\(to)\", listen: \"unix:/s\", use: none, \(callers)").findings == [])
    }
}
