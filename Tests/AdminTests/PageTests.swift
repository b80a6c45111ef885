import FoundationEssentials
import Octets
import TLS
import Testing

@testable import Admin
@testable import DataPath
@testable import Gateway
@testable import Keeping

@Suite struct PageTests {
    @Test func theStyleIsAdmittedByItsDigest() {
        let digest = "sha256-\(Base64.encode(sha256(Array(PageStyle.sheet.source.utf8))))"
        #expect(PageStyle.digest == digest)
        let policy = Page.fields.first { $0.name == "Content-Security-Policy" }?.value ?? ""
        #expect(policy.hasPrefix("default-src 'none'; style-src '\(digest)';"))
        #expect(!policy.contains("unsafe"))
    }

    @Test(arguments: [true, false])
    func theSampleIsWellFormed(refreshes: Bool) throws {
        let page = Page(facts: try sampleFacts(), view: PageView(query: refreshes ? "q=hr&refresh=on" : ""))
        #expect(page.fields.first { $0.name == "Refresh" }?.value == (refreshes ? "10;url=/?q=hr&refresh=on" : nil))
        // A saved page stays what it was.
        #expect(!page.html.contains("http-equiv"))
        try expectWellFormed(page.html)
    }

    @Test(arguments: hostileTexts.indices)
    func hostileTextStaysText(index: Int) throws {
        let html = Page(facts: try facts(saying: hostileTexts[index])).html
        let tags = try expectWellFormed(html)
        // The same elements as with harmless text: nothing became markup.
        let harmless = try expectWellFormed(
            Page(facts: try facts(saying: hostileTexts[index].isEmpty ? "" : "x")).html)
        #expect(tags == harmless)
        #expect(html.utf8.count < 256 * 1024)
        #expect(!html.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    }

    @Test func aQuarantineIsSeenAndTheWayOutSaid() throws {
        let html = Page(facts: try sampleFacts()).html
        #expect(
            html.contains("<strong>payroll</strong> is quarantined. The upstream refused the user name or password."))
        #expect(html.contains("<code>cardea reset payroll</code>"))
        #expect(html.contains("<code>cardea login tv</code>"))
        #expect(html.contains("<title>2 in trouble · Cardea</title>"))
    }

    @Test func saysWhatIsKnownOfATokensLife() throws {
        let html = Page(facts: try sampleFacts()).html
        for text in [
            "10 m 4 s old", "refresh in 1 m 50 s", "expires in 4 m 56 s", "refresh_due", "does not expire",
            "17 waiting", "HR_ADMIN", "level 3",
            "invoices.read invoices.write", "Issuer unavailable: token: status 503 (retry after 2 s).", "48,213",
            "3 d 4 h", "41 replayed, 2 refused again",
            "99.9 %", "no route", "5 restored at start",
        ] {
            #expect(html.contains(text), "\(text)")
        }
    }

    @Test(arguments: [(0, 0, true), (1, 0, false), (0, 5, false)])
    func anAbsentTokenIsNewOnlyWhereThereWasNone(grants: UInt64, restored: Int, isNew: Bool) throws {
        var facts = try sampleFacts()
        facts.status.identities = [identity("search", grants: grants)]
        facts.status.tokens = []
        facts.status.restoredTokens = restored
        let html = Page(facts: facts).html
        #expect(html.contains("No token: nobody has asked for one yet.") == isNew)
        #expect(html.contains("<p class=\"quiet\">No token now.</p>") == !isNew)
    }

    @Test func hasNoScriptAndLoadsNothing() throws {
        let html = Page(facts: try sampleFacts()).html.lowercased()
        for word in [
            "<script", "javascript:", " src=", "@import", "url(", " style=", "<link", "<img", "http-equiv", "onload",
            "onclick", "method=\"post\"",
        ] {
            #expect(!html.contains(word), "\(word)")
        }
        // The search, which asks for this page.
        #expect(html.components(separatedBy: "<form").count == 2)
        #expect(html.contains("<form role=\"search\" method=\"get\" action=\"/\">"))
    }

    @Test func aPageOfThousandsIsBounded() throws {
        var facts = try sampleFacts()
        facts.status.identities = (0..<3000).map { identity("identity-\($0)") }
        facts.status.tokens = (0..<20_000).map {
            token("identity-\($0 % 1000)", age: 10, refresh: 20, expires: UInt64(30 + $0))
        }
        let route = facts.traffic.routes[0]
        facts.traffic.routes = Array(repeating: route, count: 3000)
        facts.trends = Array(repeating: facts.trends[0], count: 3000)
        let html = Page(facts: facts).html
        #expect(html.utf8.count < 1 << 20)
        #expect(html.contains("and 2,900 more identities"))
        #expect(html.contains("and 14 more tokens"))
        #expect(html.contains("and 2,800 more routes"))
        let document = StatusDocument(facts)
        #expect(document.tokens.count == StatusDocument.maximumTokens)
        #expect(document.tokensLeftOut == 19_000)
    }

    @Test func nothingAtAllIsAPageToo() throws {
        var facts = try sampleFacts()
        facts.status = GatewayStatus(identities: [], tokens: [], store: "memory only", restoredTokens: 0, routes: [])
        facts.traffic = GatewayTraffic(routes: [], unrouted: [], callers: -3, lookups: [], glitches: [])
        facts.trends = []
        try expectWellFormed(Page(facts: facts).html)
    }

    // MARK: - Parts

    @Test(arguments: [
        (token("a", age: 10, refresh: 70, expires: 90), 100, 800),
        (token("a", age: 90, refresh: 0, expires: 10), 900, 0),
        (token("a", age: 10, refresh: nil, expires: 10), 500, 1000), (token("a", age: 10), 0, 1000),
        (token("a", age: 0, refresh: 0, expires: 0), 1000, 0),
        (token("a", age: 10, refresh: 500, expires: 10), 500, 1000),
    ])
    func lifeInThousandths(status: TokenStatus, now: Int, refresh: Int) throws {
        let life = try #require(Life(status))
        #expect(life.now == now)
        #expect(life.refresh == refresh)
    }

    @Test func enormousLivesDoNotOverflow() throws {
        var status = token("a", age: 1, refresh: 1, expires: 1)
        status.age = .max
        status.refreshIn = .max
        status.expiresIn = .max
        let life = try #require(Life(status))
        #expect(life.now == 500)
        #expect(life.refresh == 1000)
        #expect(Life(token("a")) == nil)
    }

    @Test(arguments: [
        ("https://hr.example.com:443", "hr.example.com"), ("http://a:80", "http://a"), ("https://a:8443", "a:8443"),
        ("http://a:443", "http://a:443"), ("", ""), ("https://", ""),
    ])
    func shortensOrigins(origin: String, text: String) { #expect(shortOrigin(origin) == text) }

    @Test func sparklinesStayInTheirBox() {
        let wild: [(at: UInt64, value: Double)] = [
            (0, 1), (50, .nan), (60, -4), (100, .infinity), (100, 1e300), (900, 2),
        ]
        for point in Page.points(of: wild, at: 100) {
            #expect((0...120).contains(point.x) && (0...24).contains(point.y))
        }
        #expect(Page.points(of: [(1, 0), (2, 0)], at: 2).allSatisfy { $0.y == 22.5 })
        // From the oldest reading to now, within a minute and ten.
        #expect(Page.points(of: [(0, 1), (150 * second, 1)], at: 300 * second).map(\.x) == [0, 60])
        #expect(Page.points(of: [(990 * second, 1)], at: 1000 * second).map(\.x) == [100])
        #expect(Page.points(of: [(0, 1), (700 * second, 1)], at: 1000 * second).map(\.x) == [60])
    }

    @Test func classesAddUp() {
        let answers = ["101", "200", "2xx", "404", "503", "5xx", "other"].map {
            GatewayTraffic.NamedCount(name: $0, count: 2)
        }
        let classes = Page.classes(of: answers)
        #expect(classes.map(\.name) == ["1xx", "2xx", "4xx", "5xx", "other"])
        #expect(classes.map(\.count) == [2, 4, 2, 4, 2])
    }
}

/// Checks what a browser would otherwise repair in its own way: every element closed in order, attributes quoted, no stray characters.
/// - Returns: the names of all tags, in order.
@discardableResult
func expectWellFormed(_ html: String, _ location: SourceLocation = #_sourceLocation) throws -> [String] {
    let void: Set<String> = ["meta", "!doctype"]
    var names: [String] = []
    var open: [String] = []
    var rest = Array(html.utf8)[...]
    while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
        if open.last != "style" {
            #expect(!rest[..<start].contains(UInt8(ascii: ">")), "stray >", sourceLocation: location)
        }
        var cursor = start + 1
        var quoted = false
        while cursor < rest.endIndex, quoted || rest[cursor] != UInt8(ascii: ">") {
            if rest[cursor] == UInt8(ascii: "\"") { quoted.toggle() }
            #expect(quoted || rest[cursor] != UInt8(ascii: "<"), sourceLocation: location)
            cursor += 1
        }
        try #require(cursor < rest.endIndex, "an unclosed tag", sourceLocation: location)
        let tag = String(decoding: rest[start + 1..<cursor], as: UTF8.self)
        let name = String(tag.prefix { $0 != " " && $0 != "/" || tag.hasPrefix("/") && $0 == "/" })
        names.append(name)
        if name.hasPrefix("/") {
            #expect(open.popLast() == String(name.dropFirst()), "</\(name)", sourceLocation: location)
        } else if !void.contains(name), !tag.hasSuffix("/") {
            open.append(name)
        }
        rest = rest[(cursor + 1)...]
    }
    #expect(open.isEmpty, sourceLocation: location)
    return names
}
