import Testing

@testable import Configuration

@Suite struct ResourceTemplateTests {
    private func text(_ template: String, _ target: String) throws -> String? {
        try ResourceTemplate(template).text(for: Array(target.utf8))
    }

    @Test(arguments: [
        ("CH1", "/anything", "CH1"),
        ("{path.1}", "/CH1/play", "CH1"),
        ("{path.2}", "//media//CH1?x=1", "CH1"),
        ("urn:{path.1}:{query.c}", "/a%20b?x=1&c=d+e", "urn:a b:d e"),
        ("{path.1}", "/%C3%BC/", "ü"),
        ("<title>{query.c}</title>", "/?c=%3Cx%3E%26%22", "<title>&lt;x&gt;&amp;&quot;</title>"),
        ("{path.1}", "/a&b+c", "a&b+c"),
    ])
    func filled(template: String, target: String, resource: String) throws {
        #expect(try text(template, target) == resource)
    }

    @Test(arguments: [
        ("{path.2}", "/CH1"), ("{path.1}", "/"), ("{query.c}", "/"), ("{query.c}", "/?c"), ("{query.c}", "/?c="),
        // Which of two counts would be the upstream's choice.
        ("{query.c}", "/?c=CH1&c=CH2"), ("{query.c}", "/?c=CH1&%63=CH2"),
        ("{path.1}", "/a%0Ab"), ("{path.1}", "/%FF"), ("{path.1}", "/%4"), ("{path.1}", "/%+1"),
        ("{path.1}", "/%C2%85"),
        ("{path.1}", "/" + String(repeating: "x", count: 257)),
    ])
    func refused(template: String, target: String) throws {
        #expect(try text(template, target) == nil)
    }

    @Test(arguments: [
        "", "{", "}", "{path}", "{path.0}", "{path.17}", "{path.01}", "{header.x}", "{query.}", "a{b", "{query.a b}",
    ])
    func noTemplate(text: String) {
        #expect(throws: ResourceTemplate.Fault.self) { try ResourceTemplate(text) }
    }
}
