import Testing

@testable import Configuration

/// The blocks beside identities, routes and listeners: their keys in the model, and their rules.
@Suite struct WholeFileTests {
    private static let routes = "routes: [{listen: \"127.0.0.1:1\", to: https://u, use: none}]"

    private func load(_ text: String) -> Written { Written(text + "\n" + Self.routes) }

    @Test func includedFilesAreCounted() {
        func isTooMany(_ count: Int) -> Bool {
            load("include: [\((1...count).map { "/gone/\($0)" }.joined(separator: ", "))]").findings
                .contains { $0.hasSuffix("'include' brings more than 256 files") }
        }
        #expect(isTooMany(257) && !isTooMany(256))
    }

    @Test func aPlainFileHasItsDefaults() throws {
        let all = try #require(load("").loaded.configuration)
        #expect(
            all.limits
                == Limits(
                    connections: nil, connectionsPerAddress: nil, headerSize: 65536, targetSize: 8192, bodySize: nil,
                    headTimeout: .seconds(10), minRate: 240, headers: 128, waiters: 10000, replayMemory: 64 << 20,
                    hotCache: 64 << 20, subjects: 10000, newSubjectsPerSecond: 10))
        #expect(all.log == Log(level: .info, format: .json, access: .off))
        #expect(all.audit == nil && all.tracing == nil && all.threads == nil && all.name == nil && all.nat64 == [])
        #expect(all.shutdown == Shutdown(linger: .seconds(5), timeout: .seconds(25), takeover: .seconds(60)))
        #expect(all.store.path == nil && all.store.keys == [] && all.store.shared == nil)
        #expect(all.admin.listen == .tcp(IPAddress(v4: 0x7F00_0001), port: 9901))
        #expect(all.admin.probes == nil && all.admin.metrics == nil && all.admin.socket == nil)
        #expect(all.admin.hosts == [] && all.admin.token == nil && !all.admin.opensStatus && all.admin.isOpenToRead)
    }

    @Test func everyKeyLandsInTheModel() throws {
        let written = load(
            """
            name: n
            threads: 3
            nat64: ["64:ff9b:1::/48", "64:ff9b:2::/96"]
            limits: {connections: 1, connections_per_address: 2, header_size: 3KiB, target_size: 64B, body_size: 5B,
              head_timeout: 6s, min_rate: 7B, headers: 8, waiters: 9, replay_memory: 10B, hot_cache: 11B, subjects: 12,
              new_subjects_per_second: 13}
            log: {level: error, format: text, access: all}
            audit: {path: /a, subject_key: env:K, uses: each, on_trouble: block}
            shutdown: {linger: 1s, timeout: 2s, takeover: 3s}
            store: {path: /s/db, key: [env:A, env:B]}
            admin: {listen: "127.0.0.1:2", probes: "127.0.0.1:3", metrics: "127.0.0.1:4", hosts: [H], token: env:T}
            tracing: {ratio: 2%, endpoint: "https://o", service: v, headers: {X-A: env:H}}
            """)
        #expect(written.findings == [])
        let all = try #require(written.loaded.configuration)
        #expect(all.name == "n" && all.threads == 3 && all.nat64.map(\.prefixLength) == [48, 96])
        #expect(
            all.limits
                == Limits(
                    connections: 1, connectionsPerAddress: 2, headerSize: 3072, targetSize: 64, bodySize: 5,
                    headTimeout: .seconds(6), minRate: 7, headers: 8, waiters: 9, replayMemory: 10, hotCache: 11,
                    subjects: 12, newSubjectsPerSecond: 13))
        #expect(all.log == Log(level: .error, format: .text, access: .all))
        #expect(
            all.audit
                == AuditLog(path: "/a", subjectKey: .environment(name: "K"), uses: .each, onTrouble: .block))
        #expect(all.shutdown == Shutdown(linger: .seconds(1), timeout: .seconds(2), takeover: .seconds(3)))
        #expect(all.store.path == "/s/db" && all.store.keys == [.environment(name: "A"), .environment(name: "B")])
        #expect(all.admin.listen?.description == "127.0.0.1:2" && all.admin.probes?.description == "127.0.0.1:3")
        #expect(all.admin.metrics?.description == "127.0.0.1:4" && all.admin.hosts == ["h"])
        #expect(all.admin.token == .environment(name: "T") && all.admin.socket == "/s/cardea.sock")
        #expect(all.auditMark.line == 8 && all.storeMarks.path.line == 10 && all.storeMarks.key.column == 22)
        #expect(all.tracing?.ratio == 20_000 && all.tracing?.service == "v")
        #expect(all.tracing?.export?.url == "https://o/v1/traces")
        #expect(all.tracing?.export?.headers.map(\.name) == ["X-A"])
    }

    @Test(
        arguments: [
            ("admin: off", nil), ("store: {path: db, key: env:K}", "./cardea.sock"),
            ("store: {path: /a/b/db, key: env:K}", "/a/b/cardea.sock"), ("admin: {socket: /x}", "/x"),
            ("store: {path: /db, key: env:K}\nadmin: {socket: file:/x}", "/x"),
            ("store: {path: /db, key: env:K}\nadmin: off", "/cardea.sock"),
        ] as [(String, String?)])
    func theSocketIsBesideTheStoreUnlessItIsNamed(text: String, socket: String?) throws {
        #expect(try #require(load(text).loaded.configuration).admin.socket == socket)
    }

    @Test func adminMayBeOff() throws {
        let admin = try #require(load("admin: off").loaded.configuration).admin
        #expect(admin.listen == nil && admin.probes == nil && admin.metrics == nil && admin.isOpenToRead)
    }

    private static let notLoopback =
        "the page and /status are refused on 10.0.0.1:2, which is not loopback; "
        + "give 'admin' a 'token', or say open_status: true"
    private static let nat64 =
        "nat64! 'nat64' takes IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits, "
        + "which alone have a place for IPv4 (RFC 6052)"
    private static let target = "target_size! 'target_size' must be at least 64B and at most 'header_size'"
    private static let longPath = "/" + String(repeating: "a", count: 106)

    static let rules: [(text: String, findings: [String])] = [
        ("limits: {header_size: 1KiB, target_size: 64B}", []),
        ("limits: {header_size: 1023B, target_size: 64B}", ["header_size! 'header_size' must be at least 1KiB"]),
        ("limits: {target_size: 63B}", [target]), ("limits: {target_size: 64KiB}", []),
        ("limits: {target_size: 65537B}", [target]), ("limits: {header_size: 2KiB, target_size: 2049B}", [target]),
        ("limits: {header_size: 2KiB}", []),
        ("audit: {uses: each}", ["! 'audit' needs 'path'"]),
        ("shutdown: {linger: 3s, timeout: 2s}", ["timeout! 'timeout' of 'shutdown' must be at least its 'linger'"]),
        ("shutdown: {linger: 2s, timeout: 2s}", []),
        ("shutdown: {linger: 26s}", ["! 'timeout' of 'shutdown' must be at least its 'linger'"]),
        ("store: {path: /s, key: []}", ["key! 'key' of 'store' is an empty list; the first key seals"]),
        ("store: {key: env:K}", ["key? 'key' of 'store' seals nothing without a 'path'"]),
        ("store: {key: env:K, path: /s}", []), ("store: {}", []),
        (
            "store: {path: /s}",
            ["? 'store' has no 'key'; one is made beside the file, so whoever copies the directory has both"]
        ),
        ("nat64: 64:ff9b::/96", []), ("nat64: 64:ff9b::/95", [nat64]), ("nat64: 10.0.0.0/32", [nat64]),
        ("nat64: [\"1::/32\", \"1::/40\", \"1::/48\", \"1::/56\", \"1::/64\", \"1::/96\"]", []),
        ("nat64: [\"1::/72\"]", [nat64]), ("nat64: [\"1::/31\"]", [nat64]),
        ("admin: {listen: \"10.0.0.1:2\"}", ["listen? \(notLoopback)"]),
        ("admin: {listen: \"10.0.0.1:2\", token: env:T}", []),
        (
            "admin: {listen: \"10.0.0.1:2\", open_status: true}",
            ["open_status? 'open_status' shows the page and /status to everybody who reaches 10.0.0.1:2"]
        ),
        ("admin: {listen: \"127.0.0.1:2\", open_status: true}", []),
        ("admin: {probes: \"127.0.0.1:9901\"}", ["probes! 'probes' must not be the address of 'listen'"]),
        ("admin: {metrics: \"127.0.0.1:9901\"}", ["metrics! 'metrics' must not be the address of 'listen'"]),
        (
            "admin: {probes: \"127.0.0.1:3\", metrics: \"127.0.0.1:3\"}",
            ["metrics! 'metrics' must not be the address of 'probes'"]
        ),
        ("admin: {probes: \"127.0.0.1:3\", metrics: \"127.0.0.1:4\"}", []),
        ("admin: {listen: \"127.0.0.1:1\"}", ["listen! 'listen' of 'admin' is the address of listener '127.0.0.1:1'"]),
        ("admin: {probes: \"127.0.0.1:1\"}", ["probes! 'probes' of 'admin' is the address of listener '127.0.0.1:1'"]),
        (
            "admin: {metrics: \"127.0.0.1:1\"}",
            ["metrics! 'metrics' of 'admin' is the address of listener '127.0.0.1:1'"]
        ),
        ("admin: {socket: \(longPath)}", []),
        ("admin: {socket: \(longPath)a}", ["socket! 'socket' must be a path of at most 107 bytes"]),
        (
            "tracing: {headers: {X-A: env:H}, service: s, network: {}}",
            ["headers", "service", "network"].map { "\($0)! '\($0)' in 'tracing' goes only with 'endpoint'" }
        ),
        (
            "tracing: {endpoint: \"http://o\"}",
            [
                "endpoint! 'endpoint' of 'tracing' gets spans in clear text; "
                    + "use https:, or network: {allow_cleartext: true}"
            ]
        ),
        ("tracing: {endpoint: \"http://o\", network: {allow_cleartext: true}}", []),
        ("tracing: {endpoint: \"http://127.0.0.1:4318\"}", []),
        ("tracing: {endpoint: \"https://o?a\"}", ["endpoint! 'endpoint' of 'tracing' must not have a query"]),
        (
            "tracing: {endpoint: \"https://o\", headers: {Content-Type: env:H}}",
            ["headers! 'Content-Type' in 'headers' of 'tracing' is set by the gateway itself"]
        ),
    ]

    @Test(arguments: rules)
    func aBlockHasItsRules(text: String, findings: [String]) {
        #expect(load(text).findings == findings)
    }

    @Test(arguments: [
        ("https://o", "https://o/v1/traces"), ("https://o/", "https://o/v1/traces"), ("https://o/a", "https://o/a"),
        ("https://o/a/", "https://o/a/"),
    ])
    func aCollectorWithoutAPathGetsTheUsualOne(endpoint: String, url: String) {
        #expect(load("tracing: {endpoint: \"\(endpoint)\"}").loaded.configuration?.tracing?.export?.url == url)
    }

    @Test(arguments: [
        ("name: n", ["name! the file needs 'routes'"]),
        ("routes: []", ["routes! 'routes' is empty, so there is nothing to serve"]),
    ])
    func aFileNeedsRoutes(text: String, findings: [String]) {
        #expect(Written(text).findings == findings)
    }

    @Test func anAdminAddressThatIsTakenByDefaultIsToldAtTheListener() {
        let written = Written(
            """
            listeners: {l: {address: "127.0.0.1:9901"}}
            routes: [{listen: l, to: https://u, use: none}]
            """)
        #expect(written.findings == ["l! 'listen' of 'admin' is the address of listener 'l'"])
    }
}
