import Testing

@testable import Configuration

/// `store.shared`, as a URL or as a block.
@Suite struct SharedStoreTests {
    private func load(_ shared: String, key: String = ", key: env:K") -> Written {
        Written(
            """
            store: {shared: \(shared)\(key)}
            routes: [{listen: "127.0.0.1:1", to: https://u, use: none}]
            """)
    }

    @Test func everyKeyLandsInTheModel() throws {
        let written = load(
            "{url: \"rediss://h:1/2\", username: u, password: env:P, ca: [system, /ca], "
                + "allow_cleartext: true, format: new}"
        )
        #expect(written.findings == [])
        let shared = try #require(written.loaded.configuration?.store.shared)
        #expect(shared.address == .server(Origin(scheme: .rediss, host: "h", port: 1)) && shared.database == 2)
        #expect(shared.username == "u" && shared.password == .environment(name: "P"))
        #expect(shared.authorities == [.system, .file("/ca")] && shared.allowsCleartext && shared.format == .new)
        #expect(shared.usesTLS && shared.description == "rediss://h:1")
    }

    @Test(arguments: ["\"rediss://h/3\"", "{url: \"rediss://h/3\"}"])
    func aURLAloneIsABlockWithDefaults(text: String) throws {
        let shared = try #require(load(text).loaded.configuration?.store.shared)
        #expect(
            shared == SharedStore(address: .server(Origin(scheme: .rediss, host: "h", port: 6379)), database: 3))
        #expect(shared.authorities == [.system] && !shared.allowsCleartext && shared.format == .both)
    }

    @Test func aSocketIsOneToo() throws {
        let shared = try #require(load("{url: \"unix:/r\", format: new}").loaded.configuration?.store.shared)
        #expect(shared.address == .unix(path: "/r") && !shared.usesTLS && shared.description == "unix:/r")
    }

    @Test(arguments: [
        ("unix:r", "must have an absolute path after unix:"), ("unix:/", "must have an absolute path after unix:"),
        ("unix:/a\\nb", "must not have control characters or line breaks"),
        ("unix:/" + String(repeating: "a", count: 107), "must have a path of at most 107 bytes after unix:"),
    ])
    func aSocketsPathHasTheRulesOfAListeners(url: String, error: String) {
        #expect(load("{url: \"\(url)\", format: new}").findings.contains { $0.contains(error) })
    }

    private static func forged(_ format: String) -> String {
        "'format: \(format)' of 'shared' takes versions and ends that whoever writes to the server can forge; "
            + "say 'format: new' beside 'url' when every gateway of the fleet is upgraded"
    }
    private static let cleartext =
        "'shared' of 'store' goes to redis://h in clear text; use rediss:, or say 'allow_cleartext: true'"

    static let rules: [(shared: String, findings: [String])] = [
        ("{url: \"rediss://h\", format: new}", []), ("\"rediss://h\"", ["shared? \(forged("both"))"]),
        ("{url: \"rediss://h\", format: old}", ["format? \(forged("old"))"]),
        ("\"redis://h\"", ["shared? \(forged("both"))", "shared! \(cleartext)"]),
        ("{url: \"redis://h\", format: new}", ["format! \(cleartext)"]),
        ("{url: \"redis://h\", format: new, allow_cleartext: true}", []),
        ("{url: \"redis://127.0.0.1\", format: new}", []), ("{url: \"unix:/r\", format: new}", []),
        (
            "{format: new}",
            ["! 'shared' of 'store' needs 'url'", "key? 'key' of 'store' seals nothing without a 'path'"]
        ),
        (
            "{url: \"rediss://h\", format: new, username: u}",
            ["username! 'shared' of 'store' needs a 'password' for its 'username'"]
        ),
        ("{url: \"rediss://h\", format: new, password: env:P}", []),
        ("{url: \"rediss://h\", format: new, ca: []}", ["ca! 'ca' is an empty list, so no server could be trusted"]),
        ("{url: \"redis://127.0.0.1\", format: new, ca: /a}", ["ca! 'ca' of 'shared' counts for rediss: only"]),
        ("{url: \"unix:/r\", format: new, ca: /a}", ["ca! 'ca' of 'shared' counts for rediss: only"]),
        ("{url: \"rediss://h\", format: new, ca: /a}", []),
    ]

    @Test(arguments: rules)
    func aServerHasItsRules(shared: String, findings: [String]) {
        #expect(load(shared).findings == findings)
    }

    @Test func aFleetNeedsAKeyOfItsOwn() {
        #expect(
            load("{url: \"rediss://h\", format: new}", key: "").findings
                == ["shared! 'shared' needs a 'key' of the fleet's own"])
    }
}
