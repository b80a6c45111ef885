import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct CommonMistakeTests {
    private static let whole = """
        identities:
          hr:
            oauth2:
              token_url: https://idp.example.com/t
              client_id: c
              client_secret: env:S
        routes:
          - name: one
            listen: 127.0.0.1:8080
            to: https://hr.example.com
            use: hr

        """

    /// What people write, and where they are told of it: at the mistake, once, with the way to write it.
    @Test(arguments: [
        (
            "client_id: c", "client_id: \"c",
            "5:18 error not valid YAML: the quote that begins here is not closed (line 12: found unexpected end of stream)"
        ),
        (
            "    use: hr", "    realm: \"R\"\n    use hr\n    scopes: [a]",
            "12:5 error not valid YAML: neither a key with ':' behind it nor a value (line 13: could not find expected ':')"
        ),
        (
            "client_id: c", "client_id: [c",
            "5:18 error not valid YAML: the '[' here is not closed (line 6: did not find expected ',' or ']')"
        ),
        (
            "token_url: https", "token_url: x: https",
            "4:19 error not valid YAML: mapping values are not allowed in this context; a value with ': ' in it needs quotes"
        ),
        (
            "      client_id", "     client_id",
            "5:6 error not valid YAML: did not find expected key in the block that begins in line 3; keys that belong together are indented alike"
        ),
        ("use: hr", "use: hr\n    match: {methods: [get]}", "12:23 error 'methods' must be in capitals: GET"),
        (
            "use: hr", "use: hr\n    callers: 10.0.0.0/8",
            "12:5 error 'callers' must be 'local', or a map (allow, tls_names, token, unix_users, …), not '10.0.0.0/8'; write {allow: [10.0.0.0/8]}"
        ),
        (
            "use: hr", "use: hr\n    health: /healthz",
            "12:5 error 'health' must be 'off', or a map (path, interval, timeout, healthy, …), not '/healthz'; write {path: /healthz}"
        ),
        (
            "routes:", "listeners:\n  other: {address: \"127.0.0.1:8081\"}\nroutes:",
            "8:3 warning listener 'other' is not opened: no route has it in 'listen'; name it there, or take the listener out"
        ),
        (
            "routes:", "include: conf.d/none.yaml\nroutes:",
            "7:10 error 'include' of ./conf.d/none.yaml: No such file or directory"
        ),
        (
            "use: hr", "use: hr\n    scopes: read write",
            "12:5 error 'scopes' must be a list, each item a scope, not a single value; write [read, write] (in route 'one')"
        ),
        (
            "use: hr", "use: hr\n    match: /hr",
            "12:5 error 'match' must be a map (host, path, port, methods, …), not a single value; write {path: /hr} (in route 'one')"
        ),
        (
            "routes:", "store: /var/lib/cardea/tokens.db\nroutes:",
            "7:1 error 'store' must be a map (path, key, shared), not a single value; write {path: /var/lib/cardea/tokens.db} (in the file)"
        ),
        (
            "routes:", "timeouts: {response: 30s}\nroutes:",
            "7:1 error unknown key 'timeouts' in the file; it belongs under 'routes'"
        ),
        (
            "listen: 127", "listen: http://127",
            "9:5 error 'listen' must be an address and a port alone, without a scheme and a path: 127.0.0.1:8080"
        ),
        (
            "127.0.0.1:8080", "8080",
            "9:13 error 'listen' must name the address to listen on: 127.0.0.1:8080 for this machine, 0.0.0.0:8080 for all"
        ),
        (
            "routes:", "admin: {listen: 9901}\nroutes:",
            "7:9 error 'listen' must name the address to listen on: 127.0.0.1:9901 for this machine, 0.0.0.0:9901 for all"
        ),
        (
            "routes:", "log: {level: warn}\nroutes:",
            "7:7 error 'level' must be one of debug, info, notice, warning, error, not 'warn'; did you mean 'warning'?"
        ),
        (
            "use: hr", "use: hr\n    inject: {header: A, value: \"x ${token}\"}",
            "12:32 error environment variable 'token' is not set; set it, or give it a default: '${token:-…}'; what is filled in for each request is written '{token}', without '$'"
        ),
        (
            "https://hr.example.com", "${TO}",
            "10:9 error environment variable 'TO' is not set; set it, or give it a default: '${TO:-…}'"
        ),
        (
            "127.0.0.1:8080", "${LISTEN}",
            "9:13 error environment variable 'LISTEN' is not set; set it, or give it a default: '${LISTEN:-…}'"
        ),
        (
            "use: hr", "use: ${USE}",
            "11:10 error environment variable 'USE' is not set; set it, or give it a default: '${USE:-…}'"
        ),
        (
            "use: hr",
            "use: hr\n    match: {path: hr}\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:1\", use: none}",
            "12:13 error 'path' must start with '/'"
        ),
    ])
    func `a common mistake is told once, where it is`(word: String, mistake: String, told: String) {
        let trial = Trial(Self.whole.replacing(word, with: mistake))
        #expect(trial.result.diagnostics.map(\.description) == ["CARDEA_CONFIG_YAML:" + told])
    }

    @Test func `a quote that another one closes much later is told of`() {
        let trial = Trial(
            Self.whole.replacing("client_id: c", with: "client_id: \"c").replacing("use: hr", with: "use: \"hr\""))
        #expect(
            trial.result.diagnostics.map(\.description) == [
                "CARDEA_CONFIG_YAML:11:11 error not valid YAML: did not find expected key in the block that begins in line 4; "
                    + "a quote is opened in line 5 and closed only in line 11"
            ])
    }
}
