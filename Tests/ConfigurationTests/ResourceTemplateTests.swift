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

    @Test(arguments: [
        ("{path.16}", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "16"), ("a{path.1}b{path.2}c", "/x/y", "axbyc"),
        ("{path.1}{path.1}", "/x", "xx"), ("{query.a-b_c.1}", "/?a-b_c.1=x", "x"), ("{query.c}", "/?b=1&c=2&d=3", "2"),
        ("{query.c}", "/?c=1=2", "1=2"), ("{query.c}", "/?%63=x", "x"), ("{query.c}", "/?a?c=1&c=2?", "2?"),
        ("{query.c}", "?c=1", "1"), ("{query.c}", "/?=&c=1", "1"), ("{query.c}", "/?=c=2&c=1", "1"),
        ("{path.1}", "/a=b?c", "a=b"), ("{path.1}", "/%20", " "), ("{path.1}", "/~", "~"),
        ("{path.1}", "/%C2%A0", "\u{A0}"),
        ("{query.c}", "/?c=a+b%2B", "a b+"), ("  <a>{path.1}</a>", "/'%22", "  <a>&apos;&quot;</a>"),
        ("a<{path.1}>", "/&'", "a<&'>"), ("<{path.1}", "/<>&x", "<&lt;&gt;&amp;x"),
    ])
    func filledFromEachPlace(template: String, target: String, resource: String) throws {
        #expect(try text(template, target) == resource)
    }

    @Test(arguments: [
        "/%1F", "/%00", "/%7F", "/%C2%80", "/%C2%9F", "/%80",
    ])
    func aValueHasNoControls(target: String) throws {
        #expect(try text("{path.1}", target) == nil)
    }

    @Test func valuesAndTextsHaveTheirBounds() throws {
        func long(_ count: Int) -> String { String(repeating: "x", count: count) }
        #expect(try text("{path.1}", "/" + long(256)) == long(256))
        #expect(try text("{path.1}", "/" + long(257)) == nil)
        #expect(try text("{query.c}", "/?c=" + long(256)) == long(256))
        #expect(try text("{query.c}", "/?c=" + long(257)) == nil)
        #expect(try text(long(4096), "/") == long(4096))
        #expect(throws: ResourceTemplate.Fault(reason: "is over 4 KiB")) { try ResourceTemplate(long(4097)) }
        let template = long(4000) + "{path.1}"
        #expect(try text(template, "/" + long(96)) == long(4096))
        #expect(try text(template, "/" + long(97)) == nil)
        #expect(throws: Never.self) { try ResourceTemplate("{query.\(long(64))}") }
        #expect(throws: ResourceTemplate.Fault.self) { try ResourceTemplate("{query.\(long(65))}") }
    }

    @Test(arguments: [
        ("", "is empty"), ("a}", "has a brace without its other"), ("{a", "has a brace without its other"),
        ("{path.1}}", "has a brace without its other"), ("}{", "has a brace without its other"),
        ("{}", "knows only {path.1} to {path.16} and {query.name}, not '{}'"),
        ("{path.17}", "knows only {path.1} to {path.16} and {query.name}, not '{path.17}'"),
        ("{path.+1}", "knows only {path.1} to {path.16} and {query.name}, not '{path.+1}'"),
        ("{query.é}", "knows only {path.1} to {path.16} and {query.name}, not '{query.é}'"),
        ("{.path.1}", "knows only {path.1} to {path.16} and {query.name}, not '{.path.1}'"),
        ("{.query.c}", "knows only {path.1} to {path.16} and {query.name}, not '{.query.c}'"),
        ("{query}", "knows only {path.1} to {path.16} and {query.name}, not '{query}'"),
        ("{Path.1}", "knows only {path.1} to {path.16} and {query.name}, not '{Path.1}'"),
        ("{query.a/b}", "knows only {path.1} to {path.16} and {query.name}, not '{query.a/b}'"),
    ])
    func whatIsNoTemplateIsToldWhy(template: String, reason: String) {
        #expect(throws: ResourceTemplate.Fault(reason: reason)) { try ResourceTemplate(template) }
    }
}
