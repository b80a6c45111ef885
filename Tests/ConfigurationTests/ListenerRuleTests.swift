import Testing

@testable import Configuration

/// Every key of a listener lands in the model, and its rules hold.
@Suite struct ListenerRuleTests {
    private static let address = "address: \"127.0.0.1:1\""
    private static let place = "listener 'l'"
    private static let leaf = "{certificate: /c, key: file:/k}"

    @Test func aPlainListenerHasItsDefaults() throws {
        let written = Written(listener: Self.address)
        let listener = try #require(written.listener)
        #expect(written.findings == [])
        #expect(listener.name == "l" && listener.address == .tcp(IPAddress(v4: 0x7F00_0001), port: 1))
        #expect(listener.tls == [] && listener.mode == .gateway && listener.unmatched == .refuse)
        #expect(listener.intercept == nil && listener.proxyProtocol == nil && listener.connections == nil)
        #expect(listener.forwardedFrom == [] && listener.http == [.http1, .http2])
        #expect(listener.hosts == ServedHosts(isAny: false, names: []))
        #expect(listener.socket == SocketFile(mode: 0o660, group: nil))
    }

    @Test func everyKeyLandsInTheModel() throws {
        let written = Written(
            listener: """
                \(Self.address), connections: 7, forwarded_from: [10.0.0.0/8], http: ["2"], hosts: [h, any],
                tls: [{certificate: /c, key: file:/k, client_ca: /a, ocsp: /o}, {certificate: /d, key: env:K}],
                proxy_protocol: {versions: [2], from: 10.0.0.0/8}
                """)
        let listener = try #require(written.listener)
        let network = Callers.Network(address: IPAddress(v4: 0x0A00_0000), prefixLength: 8)
        #expect(listener.connections == 7 && listener.forwardedFrom == [network] && listener.http == [.http2])
        #expect(listener.hosts == ServedHosts(isAny: true, names: [.exact("h")]))
        #expect(
            listener.tls == [
                .init(certificate: "/c", key: .file(path: "/k"), clientCA: "/a", ocsp: "/o"),
                .init(certificate: "/d", key: .environment(name: "K"), clientCA: nil, ocsp: nil),
            ])
        #expect(listener.proxyProtocol == .init(versions: [2], from: [network]))
        let both = Written(listener: "\(Self.address), proxy_protocol: {from: [10.0.0.0/8]}").listener
        #expect(both?.proxyProtocol == .init(versions: [1, 2], from: [network]))
    }

    @Test func aProxyMayOpenTLSAndLetTheRestThrough() {
        let listener = Written(
            listener:
                "\(Self.address), mode: forward_proxy, unmatched: tunnel, intercept: {ca: /a, hosts: [h, \"*.x\"]}"
        ).listener
        #expect(listener?.mode == .forwardProxy && listener?.unmatched == .tunnel)
        #expect(listener?.intercept == .init(ca: "/a", hosts: [.exact("h"), .oneLabel(".x")]))
    }

    @Test(
        arguments: [
            ("mode: \"0777\"", 0o777), ("mode: \"000\"", 0), ("mode: \"600\"", 0o600), ("mode: \"0607\"", 0o607),
            ("group: g", 0o660),
        ] as [(String, UInt16)])
    func aSocketHasItsRights(socket: String, mode: UInt16) {
        let written = Written(listener: "address: \"unix:/s\", socket: {\(socket)}")
        #expect(written.findings == [])
        #expect(written.listener?.socket == SocketFile(mode: mode, group: socket == "group: g" ? "g" : nil))
    }

    @Test(arguments: ["66", "00660", "0800", "0668", "1000", "7777", "06/0", "066 ", "rw-", "0o66"])
    func rightsAreThreeOctalDigitsOrFour(mode: String) {
        let written = Written(listener: "address: \"unix:/s\", socket: {mode: \"\(mode)\"}")
        #expect(
            written.findings == [
                "mode! 'mode' in 'socket' of listener 'l' must be permissions in octal, such as \"0660\""
            ])
    }

    static let rules: [(listener: String, findings: [String])] = [
        ("mode: gateway", ["! listener 'l' needs 'address'"]),
        ("\(address), http: []", ["http! 'http' of \(place) is an empty list"]),
        (
            "\(address), mode: forward_proxy, hosts: [h]",
            ["hosts! 'hosts' of \(place) is used only in gateway mode: a proxy's callers name others"]
        ),
        (
            "\(address), mode: transparent, hosts: [any]",
            ["hosts! 'hosts' of \(place) is used only in gateway mode: a proxy's callers name others"]
        ),
        ("\(address), hosts: []", ["hosts! 'hosts' of \(place) is an empty list; leave the key out, or say [any]"]),
        (
            "\(address), socket: {group: g}",
            ["socket! 'socket' of \(place) is used only with an address such as unix:/path"]
        ),
        (
            "\(address), unmatched: tunnel",
            ["unmatched! 'unmatched: tunnel' of \(place) is used only in forward_proxy and transparent mode"]
        ),
        ("\(address), unmatched: refuse", []), ("\(address), mode: transparent, unmatched: tunnel", []),
        ("\(address), tls: [{key: file:/k}]", ["! 'tls' of \(place) needs 'certificate'"]),
        ("\(address), tls: [{certificate: /c}]", ["! 'tls' of \(place) needs 'key'"]),
        (
            "\(address), intercept: {ca: /a, hosts: h}",
            ["intercept! 'intercept' of \(place) is used only in forward_proxy and transparent mode"]
        ),
        (
            "\(address), mode: forward_proxy, intercept: {}",
            ["! 'intercept' of \(place) needs 'ca'", "! 'intercept' of \(place) needs 'hosts'"]
        ),
        ("\(address), proxy_protocol: {}", ["! 'proxy_protocol' of \(place) needs 'from'"]),
        (
            "\(address), mode: transparent, tls: [\(leaf)]",
            [
                "tls! 'tls' of \(place) is not used in transparent mode: "
                    + "callers expect the certificates of the hosts that they mean; use 'intercept'"
            ]
        ),
        (
            "\(address), mode: forward_proxy, tls: [\(leaf)], intercept: {ca: /a, hosts: h}",
            [
                "tls! 'tls' and 'intercept' of \(place) together are not supported yet: "
                    + "TLS inside of TLS; remove one of them"
            ]
        ),
        ("\(address), mode: forward_proxy, tls: [\(leaf)]", []), ("\(address), tls: [\(leaf)]", []),
        ("\(address), mode: forward_proxy, intercept: {ca: /a, hosts: h}", []),
        ("\(address), mode: transparent, intercept: {ca: /a, hosts: h}", []),
    ]

    @Test(arguments: rules)
    func aListenerHasItsRules(listener: String, findings: [String]) {
        #expect(Written(listener: listener).findings == findings)
    }

    @Test func anAddressIsListenedOnOnce() {
        let written = Written(
            """
            listeners: {l: {address: "127.0.0.1:1"}, m: {address: "localhost:1"}, n: {address: "127.0.0.1:1"}}
            routes: [{listen: [l, m, n], to: https://u, use: none}]
            """)
        #expect(
            written.findings == [
                "address! listener 'm' has the address of listener 'l'",
                "address! listener 'n' has the address of listener 'l'",
            ])
    }

    @Test func aPlainAddressIsAListenerOfItsOwn() {
        let written = Written(
            """
            listeners: {l: {address: "127.0.0.1:1"}}
            routes:
            - {listen: ["127.0.0.1:1", "127.0.0.1:2"], match: {path: /a}, to: https://u, use: none}
            - {listen: ["127.0.0.1:2", "127.0.0.1:3"], to: https://u, use: none}
            """)
        #expect(written.loaded.configuration?.listeners.map(\.name) == ["l", "127.0.0.1:2", "127.0.0.1:3"])
        #expect(
            written.loaded.configuration?.routes.map(\.listen) == [
                ["l", "127.0.0.1:2"], ["127.0.0.1:2", "127.0.0.1:3"],
            ])
    }

    @Test func aListenerThatNoRouteNamesIsTold() {
        let written = Written(
            """
            listeners: {l: {address: "127.0.0.1:1"}, m: {address: "127.0.0.1:2"}}
            routes: [{listen: m, to: https://u, use: none}]
            """)
        #expect(
            written.findings == [
                "l? listener 'l' is not opened: no route has it in 'listen'; name it there, or take the listener out"
            ])
    }

    @Test(arguments: [
        ("address: \"10.0.0.1:1\"", "", true), ("address: \"127.0.0.1:1\"", "", false),
        ("address: \"unix:/s\"", "", false), ("address: \"10.0.0.1:1\", hosts: h", "", false),
        ("address: \"10.0.0.1:1\", hosts: any", "", false), ("address: \"10.0.0.1:1\", tls: [\(leaf)]", "", false),
        ("address: \"10.0.0.1:1\", mode: forward_proxy", "", false), ("address: \"10.0.0.1:1\"", "hosts: h, ", false),
        ("address: \"10.0.0.1:1\"", "match: {host: h}, ", false),
        ("address: \"10.0.0.1:1\"", "match: {path: /a}, ", true),
    ])
    func aListenerThatOthersReachNeedsItsNames(listener: String, route: String, isTold: Bool) {
        let written = Written(
            """
            listeners: {l: {\(listener)}}
            routes: [{name: r, \(route)listen: l, to: https://u, use: none, callers: local}]
            """)
        let said = written.findings.filter {
            $0.hasPrefix("? route 'r' admits callers of 10.0.0.1:1 by their place alone")
        }
        #expect(said.count == (isTold ? 1 : 0))
        #expect(written.findings.count == said.count)
    }
}
