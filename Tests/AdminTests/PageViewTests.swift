import FoundationEssentials
import Testing

@testable import Admin
@testable import DataPath
@testable import Gateway
@testable import Keeping

/// What stands first, what is folded, what a search and a state leave.
@Suite struct PageViewTests {
    /// The headings of all lines in their order.
    private func names(_ html: String) -> [String] {
        html.components(separatedBy: "<h3").dropFirst().compactMap {
            $0.components(separatedBy: "</h3>").first?.components(separatedBy: ">").last
        }
    }

    private func names(asking query: String) throws -> [String] {
        names(Page(facts: try sampleFacts(), view: PageView(query: query)).html)
    }

    @Test func troubleStandsFirst() throws {
        let routes = ["billing", "hr", "open", "no route"]
        #expect(
            try names(asking: "") == ["tv", "payroll", "billing", "hr", "reports", "archive", "search"] + routes)
    }

    @Test func troubleIsUnfoldedAndEverythingElseFolded() throws {
        var facts = try sampleFacts()
        let html = Page(facts: facts).html
        #expect(html.components(separatedBy: "<details").count == 12)
        #expect(html.components(separatedBy: " open><summary>").count == 3)
        facts.status.identities = (0..<50).map { identity("i\($0)", isQuarantined: true) }
        #expect(
            Page(facts: facts).html.components(separatedBy: " open><summary>").count == Page.maximumUnfolded + 1)
    }

    @Test(arguments: [
        ("q=payroll", ["payroll"]), ("q=PAYROLL", ["payroll"]), ("q=hr_admin", ["hr"]),
        ("q=oauth2+ex", ["tv", "billing", "reports"]), ("q=basic%20payroll", ["payroll"]),
        ("q=api.example", ["billing", "billing"]), ("q=renewal_failing", ["billing", "billing"]),
        ("q=nothing-like-it", []), ("q=+", ["tv"]), ("q=%3Cscript%3E", []), ("q=%FF", ["tv"]),
        ("state=trouble", ["tv", "payroll"]), ("state=warning", ["billing", "billing"]),
        ("state=quarantined", ["payroll"]), ("state=good", ["archive", "hr"]), ("state=idle", ["search", "open"]),
        ("state=nonsense", ["tv"]), ("state=trouble&q=basic", ["payroll"]), ("q=tv&state=good", []),
    ])
    func findsWhatIsAskedFor(query: String, expected: [String]) throws {
        let found = try names(asking: query)
        // One name alone stands for everything.
        if expected == ["tv"] { #expect(found.count == 11) } else { #expect(found == expected) }
    }

    @Test func fewThatWereSearchedForAreUnfolded() throws {
        let html = Page(facts: try sampleFacts(), view: PageView(query: "q=archive")).html
        #expect(html.components(separatedBy: " open><summary>").count == 2)
        #expect(html.contains("does not expire"))
    }

    @Test func whatIsSearchedForStaysText() throws {
        let html = Page(facts: try sampleFacts(), view: PageView(query: "q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"))
            .html
        try expectWellFormed(html)
        #expect(!html.contains("<script"))
        #expect(html.contains("value=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\""))
        #expect(html.contains("No identity is like that.") && html.contains("No route is like that."))
    }

    @Test func aSearchIsBounded() throws {
        let view = PageView(query: "q=" + String(repeating: "a", count: 2000))
        #expect(view.search.count == PageView.maximumSearch)
        #expect(PageView(query: "").address() == "/")
        #expect(view.address(done: "purge").hasPrefix("/?done=purge&q=aaa"))
    }

    @Test func anAddressKeepsWhatWasAsked() {
        let view = PageView(query: "q=a%26b%0D%0Ax%22&state=trouble&refresh=on&done=x")
        #expect(view.address() == "/?q=a%26b%0D%0Ax%22&state=trouble&refresh=on")
        #expect(PageView(query: String(view.address().dropFirst(2))) == view)
        #expect(
            view.returning(from: "/tokens/purge?identity=a")
                == "/tokens/purge?identity=a&q=a%26b%0D%0Ax%22&state=trouble&refresh=on")
        #expect(PageView(query: "state=idle").returning(from: "/reload") == "/reload?state=idle")
        #expect(PageView().returning(from: "/reload") == "/reload")
    }

    @Test func countsByState() throws {
        let html = Page(facts: try sampleFacts(), view: PageView(query: "state=good")).html
        for (word, count) in [("all", 10), ("trouble", 2), ("warning", 2), ("busy", 2), ("good", 2), ("idle", 2)] {
            #expect(html.contains(">\(word) <b>\(count)</b></a>"), "\(word)")
        }
        #expect(html.contains("href=\"/?state=good\" aria-current=\"true\""))
    }

    @Test func aRouteIsInTroubleWithItsIdentityAndItsUpstream() throws {
        var facts = try sampleFacts()
        facts.status.routes[0].identity = "payroll"
        facts.status.upstreams = [
            UpstreamHealthStatus(
                upstream: "http://127.0.0.1:9000", path: nil, addresses: [],
                outage: .init(reason: "connect-refused", ago: 3 * minute))
        ]
        let html = Page(facts: facts).html
        #expect(Array(names(html).suffix(4)) == ["hr", "open", "billing", "no route"])
        #expect(
            html.contains(
                """
                <strong>In trouble:</strong> <a href="#identities">2 of 7 identities</a>, <a href="#routes">2 of 3 routes</a>, \
                <a href="#upstreams">1 upstream</a>.
                """))
        #expect(html.contains(">cannot be reached</span>"))
    }

    @Test func aRouteThatFailedLatelyIsToBeLookedAt() throws {
        var facts = try sampleFacts()
        #expect(!Page(facts: facts).html.contains("5xx lately"))
        facts.trends[0].readings[59].failures = 12
        let html = Page(facts: facts).html
        #expect(html.contains("<span class=\"chip warn\">12 × 5xx lately</span>"))
        #expect(Array(names(html).suffix(4)) == ["hr", "billing", "open", "no route"])
    }

    @Test func withoutTroubleItSaysSo() throws {
        var facts = try sampleFacts()
        facts.status.identities = [identity("archive", "static", grants: 1)]
        facts.status.tokens = facts.status.tokens.filter { $0.identity == "archive" }
        #expect(Page(facts: facts).html.contains("Nothing is in trouble."))
        facts.status.identities[0].login = LoginNeed(word: .soon, expiresIn: 60 * second)
        let html = Page(facts: facts).html
        #expect(html.contains("<strong>To be looked at:</strong> <a href=\"#identities\">1 of 1 identity</a>."))
    }

    // MARK: - What comes next

    @Test(arguments: [
        (IdentityState.fresh, "renewal in 1 m 50 s"), (.refreshDue, "renewal is due, its token expires in 4 m 56 s"),
        (.renewalFailing, "next try in 12 s, its token expires in 4 m 56 s"), (.negative, "next try in 12 s"),
        (.expiredServed, "its expired token is served, next try in 12 s"),
        (.quarantined, "waits for a new secret or a reset"),
        (.loginNeeded, "a person has to log in"), (.acquiring, "a token is on its way"),
        (.idle, "the first request asks for a token"),
    ])
    func saysWhatComesNext(state: IdentityState, words: String) {
        var one = token("a", state: state, age: 600, refresh: 110, expires: 296)
        one.retryIn = 12 * second
        let later = token("a", state: state, age: 1, refresh: 500, expires: 900)
        #expect(IdentityFacts(identity("a"), tokens: [later, one]).nextStep == words)
    }

    @Test func whatNeverExpiresHasNothingAhead() {
        #expect(IdentityFacts(identity("a"), tokens: [token("a", age: 5)]).nextStep == "does not expire")
        var users = token("a", age: nil)
        users.subjects = 12
        #expect(IdentityFacts(identity("a"), tokens: [users]).nextStep == "each user's token has its own times")
    }
}
