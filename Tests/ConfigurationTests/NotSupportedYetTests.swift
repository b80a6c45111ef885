import Testing

@testable import Configuration

@Suite struct NotSupportedYetTests {
    struct Case: Sendable {
        var entry: String
        var text: String
        init(_ entry: String, _ text: String) {
            self.entry = entry
            self.text = text
        }
        static func oauth2(_ entry: String, _ keys: String) -> Case {
            Case("oauth2." + entry, Trial.around(identity: "oauth2: {\(keys)}"))
        }
        static func route(_ entry: String, _ keys: String) -> Case { Case(entry, Trial.around(route: keys)) }
        static func listener(_ entry: String, _ keys: String) -> Case {
            Case("listener." + entry, Trial.around(top: "listeners: {l: {address: \"127.0.0.1:1\", \(keys)}}"))
        }
    }

    static let cases: [Case] =
        [
        ]

    @Test(arguments: cases)
    func oneClearError(example: Case) {
        let errors = Trial(example.text).errors
        let key = example.entry.split(separator: ".", maxSplits: 1)[1].replacing("=", with: ": ")
        #expect(errors.count == 1)
        #expect(errors.first?.hasPrefix("'\(key)' is not supported yet") == true)
    }

    @Test func everyEntryHasACase() { #expect(Set(Self.cases.map(\.entry)) == NotSupportedYet.entries) }

    @Test func everyEntryNamesSomethingReal() {
        var names: Set<String> = []
        for (block, spec) in Keys.configuration.everyKey { names.insert("\(block.name).\(spec.name)") }
        for entry in NotSupportedYet.entries {
            #expect(names.contains(String(entry.prefix { $0 != "=" })), "\(entry)")
        }
        for entry in CanonicalForm.excluded { #expect(names.contains(entry), "\(entry)") }
    }

    /// The values are read all the same, so that turning a feature on needs nothing here.
    @Test func valuesStandInTheModel() throws {
        let route = try #require(
            Trial(
                Trial.around(
                    route:
                        "http: 2, proxy: \"http://p:1\", subject: {from_header: X-User}, rewrite: {strip_prefix: /x}, "
                        + "inject: {cookie: t}, callers: {tls_names: [n], token: env:T}"
                )
            ).draft?.routes.first)
        #expect(route.http == .http2)
        #expect(route.proxy?.host == "p")
        #expect(route.subject == .header("X-User"))
        #expect(route.rewrite == .init(stripPrefix: "/x", response: true))
        #expect(route.inject == .cookie(name: "t"))
        #expect(route.callers.tlsNames == ["n"])
        #expect(route.callers.allow == .any)
        let listener = try #require(
            Trial(
                Trial.around(
                    top: """
                        listeners:
                          l: {address: "[::1]:1", mode: forward_proxy, unmatched: tunnel, http: [2],
                              tls: [{certificate: /c, key: env:K, ocsp: /o}], intercept: {ca: /a, hosts: ["*.x"]},
                              proxy_protocol: {versions: [2], from: [10.0.0.0/8]}}
                        """)
            ).draft?.listeners.first)
        #expect(listener.mode == .forwardProxy)
        #expect(listener.unmatched == .tunnel)
        #expect(listener.http == [.http2])
        #expect(listener.tls.first?.ocsp == "/o")
        #expect(listener.intercept?.hosts == [.oneLabel(".x")])
        #expect(listener.proxyProtocol?.versions == [2])
    }
}
