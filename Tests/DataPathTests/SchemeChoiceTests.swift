import Testing

@testable import DataPath

/// The choice among a route's identities, as a table: who answers, what is offered, what becomes of it.
struct SchemeChoiceTests {
    private func choice(allowsDowngrade: Bool = false, after earlier: [SchemeChoice] = []) -> SchemeChoice {
        SchemeChoice(
            route: "r", origin: "https://api.test",
            members: ["a", "b", "c"].map { SchemeChoice.Member(identity: $0, schemes: [$0]) },
            allowsDowngrade: allowsDowngrade, after: earlier)
    }

    struct Case: CustomTestStringConvertible {
        let answering: Int?
        let offers: Set<Int>
        let verdict: SchemeChoice.Verdict
        var whenAllowed: SchemeChoice.Verdict?
        var testDescription: String { "\(answering.map(String.init) ?? "nobody") answers, \(offers.sorted()) offered" }
    }

    static let cases = [
        Case(answering: nil, offers: [], verdict: .keep),
        Case(answering: nil, offers: [2], verdict: .choose(2)),
        Case(answering: nil, offers: [1, 2], verdict: .choose(1)),
        Case(answering: 1, offers: [], verdict: .keep),
        Case(answering: 1, offers: [1], verdict: .keep),
        // A stronger one that is offered beside what is taken changes nothing.
        Case(answering: 1, offers: [0, 1, 2], verdict: .keep),
        Case(answering: 1, offers: [0], verdict: .choose(0)),
        Case(answering: 1, offers: [0, 2], verdict: .choose(0)),
        Case(answering: 1, offers: [2], verdict: .refuse(offered: 2), whenAllowed: .choose(2)),
        Case(answering: 0, offers: [1, 2], verdict: .refuse(offered: 1), whenAllowed: .choose(1)),
    ]

    @Test(arguments: cases) func whatAnOfferDoes(_ one: Case) {
        #expect(choice().verdict(answering: one.answering) { one.offers.contains($0) } == one.verdict)
        #expect(
            choice(allowsDowngrade: true).verdict(answering: one.answering) { one.offers.contains($0) }
                == one.whenAllowed ?? one.verdict)
    }

    @Test func nothingIsChosenAtFirst() {
        let choice = choice()
        #expect(choice.position == nil)
        choice.choose(2)
        #expect(choice.position == 2)
        // Also where the operator takes leave of going down.
        #expect(self.choice(allowsDowngrade: true, after: [choice]).position == 2)
    }
}
