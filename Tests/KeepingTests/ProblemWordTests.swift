import FoundationEssentials
import Testing

@testable import DataPath
@testable import Keeping

/// One fact, one name: what a caller reads is what an operator finds.
@Suite struct ProblemWordTests {
    private static func page(_ name: String) throws -> String {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/reference")
        return try String(contentsOf: folder.appending(path: name), encoding: .utf8)
    }

    @Test(arguments: Fault.Kind.allCases)
    func everyProblemIsInTheReference(problem: Fault.Kind) throws {
        #expect(try Self.page("problems.md").contains("<a id=\"\(problem.word)\"></a>"))
        #expect("\(Fault(problem).answer.type)" == problem.word)
        let message = Fault(problem).message(pseudonym: "gate", route: nil, headOnly: false, close: false)
        #expect(String(decoding: message, as: UTF8.self).contains("urn:cardea:problems/\(problem.word)\""))
    }

    @Test func noTwoProblemsHaveOneWord() {
        #expect(Set(Fault.Kind.allCases.map(\.word)).count == Fault.Kind.allCases.count)
    }

    @Test(arguments: IdentityState.allCases)
    func everyStateIsInTheReference(state: IdentityState) throws {
        #expect(try Self.page("states.md").contains("<a id=\"\(state.rawValue)\"></a>"))
    }
}
