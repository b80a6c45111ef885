import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct ListenerModeTests {
    private let tls = "tls: [{certificate: /c, key: env:K}]"
    private let intercept = "intercept: {ca: /a, hosts: [a.test]}"

    private func errors(_ text: String) -> [String] {
        Trial(Trial.around(top: "listeners: {l: {address: \"127.0.0.1:1\", \(text)}}")).errors
    }

    @Test func whatAModeHasNoUseForIsSaid() {
        #expect(errors("unmatched: tunnel").first?.contains("used only in forward_proxy and transparent") == true)
        #expect(errors(intercept).first?.contains("used only in forward_proxy and transparent") == true)
        #expect(errors("mode: transparent, \(tls)").first?.contains("not used in transparent mode") == true)
        #expect(errors("mode: forward_proxy, \(tls), \(intercept)").first?.contains("not supported yet") == true)
    }

    @Test func aPortIsForAProxysRoute() {
        func load(_ mode: String, _ ports: [String]) -> Trial {
            let routes = ports.map {
                "  - {listen: l, to: \"https://a.test\", use: none, match: {host: a.test\($0)}}\n"
            }
            return Trial("listeners: {l: {address: \"127.0.0.1:1\", mode: \(mode)}}\nroutes:\n" + routes.joined())
        }
        #expect(load("gateway", [", port: 81"]).errors.first?.contains("used only in forward_proxy") == true)
        #expect(load("transparent", [", port: []"]).errors.first?.contains("empty list") == true)
        #expect(load("transparent", [", port: 65536"]).errors.count == 1)
        let proxy = load("forward_proxy", [", port: 81", ", port: [82, 83]", "", ", port: [83, 82]"])
        #expect(proxy.errors == [])
        #expect(proxy.result.configuration?.routes.map(\.proxyPorts) == [[81], [82, 83], [80, 443], [83, 82]])
        #expect(proxy.warnings.map { $0.contains("never reached") } == [true])
    }

    @Test func whatBelongsTogetherPasses() {
        for text in [
            "mode: forward_proxy, unmatched: tunnel, \(intercept)", "mode: transparent, \(intercept)",
            "mode: forward_proxy, \(tls)", tls,
        ] {
            #expect(errors(text) == [])
        }
    }
}
