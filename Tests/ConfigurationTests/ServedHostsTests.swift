import Testing

@testable import Configuration

/// `hosts`, and who is told that it is missing.
@Suite struct ServedHostsTests {
    static func load(_ route: String, listener: String = "") -> Trial {
        Trial(
            """
            identities:
              a: {static: {value: env:V}}
            listeners:
              l: {address: "0.0.0.0:8080"\(listener.isEmpty ? "" : ", " + listener)}
            routes:
              - {listen: l, to: "https://u.example.com", use: a, \(route)}
            """)
    }

    @Test(arguments: [
        ("callers: local", "", true), ("callers: {allow: [10.0.0.0/8]}", "", true),
        ("callers: {unsafe_open: true}", "", true),
        ("callers: local, hosts: gw.example", "", false), ("callers: local, hosts: [any]", "", false),
        ("callers: local", "hosts: [\"*.example\"]", false), ("callers: {token: env:T}", "", false),
        ("callers: {unsafe_open: true, token: env:T}", "", false),
        ("callers: local, match: {host: gw.example}", "", false),
        ("callers: local", "tls: [{certificate: /c, key: file:/k}]", false),
        ("callers: local", "mode: transparent", false),
    ])
    func aListenerBeyondLoopbackIsTold(route: String, listener: String, isTold: Bool) {
        let trial = Self.load(route, listener: listener)
        #expect(trial.errors == [])
        #expect(trial.warnings.contains { $0.contains("by their place alone") } == isTold)
    }

    @Test func loopbackIsNotTold() {
        #expect(Trial(Trial.around()).warnings == [])
        #expect(Trial(Trial.around(route: "hosts: gw.example")).warnings == [])
    }

    @Test func whatCannotBeMeantIsRefused() {
        #expect(Self.load("callers: local, hosts: []").errors.contains { $0.contains("empty list") })
        #expect(!Self.load("callers: local, hosts: [\"gw.example:80\"]").errors.isEmpty)
        #expect(Self.load("callers: local", listener: "mode: forward_proxy, hosts: [a.example]").errors.count == 1)
    }
}
