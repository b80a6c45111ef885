import Testing

@testable import Configuration
@testable import Handshakes

/// Settings that are sound each and make no sense together, each with the one error that says so.
@Suite struct SettingMistakeTests {
    static func listener(_ keys: String, more: String = "") -> String {
        """
        listeners: {a: {address: "127.0.0.1:1"\(keys)}\(more)}
        identities: {a: {static: {value: env:V}}}
        routes: [{listen: a, to: "https://u.example.com", use: a}]
        """
    }

    static let mistakes: [(text: String, error: String)] = [
        (listener("", more: ", b: {address: \"127.0.0.1:1\"}"), "has the address of listener 'a'"),
        (Trial.around(route: "inject: {header: X, query: y}"), "it needs one"),
        (Trial.around(route: "inject: {query: y, value: \"{token}\"}"), "goes only with 'header'"),
        (Trial.around(route: "headers: {set: {X-A: 1, x-a: 2}}"), "has 'x-a' twice"),
        (Trial.around(route: "headers: {set: {Host: h}}"), "the Host is set by 'host'"),
        (Trial.around(route: "rewrite: {strip_prefix: \"/a?b\"}"), "'strip_prefix' of"),
        (Trial.around(route: "health_check: {path: /h, interval: 1s, timeout: 2s}"), "timeout"),
        (
            Trial.around(top: "store: {path: /s/t.db, shared: {url: \"redis://127.0.0.1\"}}"),
            "needs a 'key' of the fleet's own"
        ),
        (
            Trial.around(top: "store: {path: /s/t.db, key: env:K, shared: {url: \"rediss://h\", username: u}}"),
            "needs a 'password' for its 'username'"
        ),
        (
            Trial.around(top: "store: {path: /s/t.db, key: env:K, shared: {url: \"redis://127.0.0.1\", ca: /c.pem}}"),
            "'ca' of 'shared' counts for rediss: only"
        ),
        (Trial.around(top: "limits: {header_size: 512B}"), "'header_size' must be at least 1KiB"),
        (Trial.around(top: "limits: {target_size: 63B}"), "'target_size' must be at least 64B"),
        (Trial.around(top: "limits: {header_size: 2KiB, target_size: 3KiB}"), "at most 'header_size'"),
        (
            Trial.around(top: "admin: {listen: \"127.0.0.1:9\", probes: \"127.0.0.1:9\"}"),
            "'probes' must not be the address of 'listen'"
        ),
        (
            Trial.around(top: "admin: {socket: /\(String(repeating: "s", count: 107))}"),
            "'socket' must be a path of at most 107 bytes"
        ),
        (
            "identities: {none: {static: {value: env:V}}}\nroutes: [{listen: \"127.0.0.1:1\", to: \"https://u\", use: none}]",
            "an identity cannot be named 'none'"
        ),
        (
            "routes: [{listen: \"127.0.0.1:1\", to: \"https://u.example.com\", use: none, subject: {from_header: X-User}, callers: {allow: [\"10.0.0.0/8\"]}}]",
            "with 'use: none' nobody gets a token"
        ),
    ]

    @Test(arguments: mistakes)
    func oneErrorSaysIt(text: String, error: String) {
        let errors = Trial(text, environment: ["V": "v"]).errors
        #expect(errors.contains { $0.contains(error) }, "\(errors)")
        #expect(errors.count == 1, "\(errors)")
    }
}
