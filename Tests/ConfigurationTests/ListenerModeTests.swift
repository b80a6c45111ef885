import Testing

@testable import Configuration

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

    @Test func whatBelongsTogetherPasses() {
        for text in [
            "mode: forward_proxy, unmatched: tunnel, \(intercept)", "mode: transparent, \(intercept)",
            "mode: forward_proxy, \(tls)", tls,
        ] {
            #expect(errors(text) == [])
        }
    }
}
