import FoundationEssentials
import Testing

@testable import Admin
@testable import Keeping

/// An identity's last day on the page: drawn, and told in words.
@Suite struct PageDayTests {
    private let quarter = IdentityDay.quarter
    private let now: UInt64 = 5000 * IdentityDay.quarter + 5 * minute

    /// A day in which this happened so many quarters before the last one.
    private func day(_ events: [(back: UInt64, event: IdentityDay.Event, times: Int)], known: UInt64 = .max)
        -> DayStatus
    {
        var status = DayStatus()
        status.at = now
        status.known = known
        for (back, event, times) in events.sorted(by: { $0.back > $1.back }) {
            for _ in 0..<times { status.day.note(event, at: now - back * quarter) }
        }
        return status
    }

    private func facts(_ day: DayStatus, age: UInt64 = 3 * 86_400 * second) throws -> SiteFacts {
        var facts = try sampleFacts()
        facts.age = age
        facts.status.identities[0].day = day
        return facts
    }

    private func words(_ html: String) -> String {
        String(
            html.components(separatedBy: "<figcaption>").dropFirst().first?.components(separatedBy: "</figcaption>")
                .first ?? "")
    }

    private func told(_ day: DayStatus, age: UInt64 = 3 * 86_400 * second) throws -> String {
        var facts = try facts(day, age: age)
        facts.status.identities = [facts.status.identities[0]]
        let html = Page(facts: facts).html
        try expectWellFormed(html)
        return words(html)
    }

    @Test func sumsAndTimes() throws {
        let text = try told(
            day([
                (0, .failure, 2), (1, .failure, 1), (9, .failure, 4), (0, .grant, 1), (40, .grant, 30), (3, .replay, 5),
            ]))
        #expect(text.contains("31 granted, 7 failed, 5 replayed."))
        #expect(text.contains("Failed: 3 in the last 20 m, 4 between 2 h 20 m and 2 h 5 m ago."))
        #expect(!text.contains("Nothing is known"))
        #expect(text.contains("<b>Next:</b> renewal is due, expiry in 2 m 20 s."))
    }

    @Test func aNewProcessSaysWhatItCannotKnow() throws {
        let text = try told(day([(0, .grant, 1)]), age: 3 * 3600 * second + 240 * second)
        #expect(text.contains("Nothing is known of the time before 3 h 4 m ago, when this process began."))
        #expect(try told(day([(0, .failure, 2)]), age: 8 * second).contains("Failed: 2 in the last 8 s."))
        let late = try told(day([(0, .grant, 1)], known: 7 * minute))
        #expect(late.contains("Nothing is known of the time before 7 m ago, when it came into the configuration."))
    }

    @Test(arguments: [
        (0, 1), (4, 1), (5, 1), (6, 2), (20, 2), (21, 3), (1439, 96), (1425, 96), (1424, 96), (100_000, 96),
    ])
    func drawsWhatCanBeKnown(minutes: UInt64, quarters: Int) {
        #expect(DayFacts(day([], known: minutes * minute), age: .max).knownQuarters == quarters)
    }

    @Test func quartersThatFollowEachOtherAreOne() {
        let facts = DayFacts(
            day([(95, .failure, 1), (94, .failure, 1), (3, .failure, 1), (1, .failure, 1)]), age: .max)
        #expect(
            facts.spells(.failed) == [
                .init(count: 1, began: 20 * minute, ended: 5 * minute),
                .init(count: 1, began: 50 * minute, ended: 35 * minute),
                .init(count: 2, began: 1430 * minute, ended: 1400 * minute),
            ])
        #expect(facts.spells(.granted).isEmpty)
        let runs = Page.runs([nil, 3, 3, nil, 3, 4, 4] as [Int?])
        #expect(runs.map(\.value) == [3, 3, 4] && runs.map(\.start) == [1, 4, 5] && runs.map(\.length) == [2, 1, 2])
    }

    @Test func manyFailuresAreToldShortly() throws {
        let failures = (0..<40).map { (number: Int) -> (back: UInt64, event: IdentityDay.Event, times: Int) in
            (back: UInt64(2 * number + 1), event: .failure, times: 3)
        }
        let text = try told(day(failures))
        #expect(text.contains("120 failed") && text.contains(", others earlier."))
        #expect(text.components(separatedBy: "between").count == Page.maximumSpells + 1)
    }

    /// A failure hides nothing else, and nothing hides a failure.
    @Test func theLineShowsTheWorst() throws {
        let html = Page(facts: try facts(day([(0, .failure, 1), (0, .grant, 9), (2, .replay, 1), (1, .grant, 1)]))).html
        #expect(html.contains("<rect class=\"failed\" x=\"95\" width=\"1\" height=\"10\"/>"))
        #expect(html.contains("<rect class=\"granted\" x=\"94\" width=\"1\" height=\"10\"/>"))
        #expect(html.contains("<rect class=\"replayed\" x=\"93\" width=\"1\" height=\"10\"/>"))
        #expect(html.contains("<rect class=\"track\" x=\"0\" width=\"96\" y=\"0\" height=\"10\"/>"))
    }

    /// What cannot be known is a line that is thinner than the track.
    @Test func anEmptyDayIsNoBrokenPicture() throws {
        let html = Page(facts: try facts(day([]), age: 20 * second)).html
        #expect(html.contains("<rect class=\"unknown\" width=\"96\" y=\"4\" height=\"1\"/>"))
        #expect(html.contains("<rect class=\"track\" x=\"95\" width=\"1\" y=\"0\" height=\"10\"/>"))
    }

    @Test func theWorstDayIsBounded() throws {
        var facts = try sampleFacts()
        let restless = day(
            (0..<96).map { (back: Int) -> (back: UInt64, event: IdentityDay.Event, times: Int) in
                (back: UInt64(back), event: back.isMultiple(of: 2) ? .failure : .grant, times: back % 5 + 1)
            })
        facts.status.identities = (0..<3000).map { number in
            var one = identity("identity-\(number)", isQuarantined: true)
            one.day = restless
            return one
        }
        let html = Page(facts: facts).html
        #expect(html.utf8.count < 2 << 20, "\(html.utf8.count)")
        try expectWellFormed(html)
    }

    @Test func whatIsAheadStandsInItsOrder() {
        var soon = token("a", age: 600, refresh: 110, expires: 296)
        soon.retryIn = 12 * second
        var users = token("a", age: 1, refresh: 1, expires: 2)
        users.subjects = 3
        var status = identity("a")
        status.login = LoginNeed(word: .good, expiresIn: 3 * 86_400 * second)
        let facts = IdentityFacts(status, tokens: [token("a", age: 1, refresh: 500, expires: 900), users, soon])
        #expect(
            facts.ahead == ["next try in 12 s", "renewal in 1 m 50 s", "expiry in 4 m 56 s", "end of its login in 3 d"])
        #expect(IdentityFacts(identity("a"), tokens: [token("a", age: 5)]).ahead.isEmpty)
    }
}
