import Testing

@testable import Configuration
@testable import Handshakes

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

    @Test(arguments: [
        ("admin: {listen: \"0.0.0.0:9901\"}", "the page and /status are refused"),
        ("admin: {listen: \"0.0.0.0:9901\", open_status: true}", "to everybody who reaches"),
        ("admin: {listen: \"0.0.0.0:9901\", token: env:T}", nil), ("admin: {open_status: true}", nil),
    ])
    func anOpenPageIsTold(top: String, warning: String?) {
        let trial = Trial(Trial.around(top: top))
        #expect(trial.errors == [])
        #expect(trial.warnings.count == (warning == nil ? 0 : 1))
        if let warning { #expect(trial.warnings.first?.contains(warning) == true) }
    }

    @Test func aSocketHasRights() {
        func load(_ listener: String) -> Trial {
            Trial(
                "listeners: {l: {\(listener)}}\nroutes:\n  - {listen: l, to: \"http://127.0.0.1:1\", use: none}\n")
        }
        let unix = "address: \"unix:/run/x.sock\""
        #expect(load(unix).result.configuration?.listeners[0].socket.mode == 0o660)
        let told = load(unix + ", socket: {mode: \"0666\", group: web}").result.configuration?.listeners[0].socket
        #expect(told == SocketFile(mode: 0o666, group: "web"))
        for mode in ["rw", "0999", "1777", "66"] {
            #expect(load(unix + ", socket: {mode: \"\(mode)\"}").errors.first?.contains("octal") == true)
        }
        #expect(load("address: \"127.0.0.1:2\", socket: {mode: \"0600\"}").errors.count == 1)
    }

    @Test func aTranslatorHasAPlaceForIPv4() {
        #expect(Trial(Trial.around(top: "nat64: \"64:ff9b:1:fffe::/96\"")).errors == [])
        for text in ["10.0.0.0/8", "64:ff9b::/44"] {
            #expect(Trial(Trial.around(top: "nat64: [\"\(text)\"]")).errors.first?.contains("RFC 6052") == true)
        }
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
