import Testing

@testable import Configuration
@testable import Handshakes

/// What is written stands in the model.
@Suite struct WrittenValueTests {
    @Test(arguments: Keys.identity(Schemes.all).exactlyOneOf) func everyHandshakeIsRead(key: String) {
        #expect(Trial(Trial.around(identity: "\(key): {}")).draft?.identities.first?.scheme.name == key)
    }

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
