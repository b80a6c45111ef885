import Testing

@testable import DataPath

@Suite struct WaitingLineTests {
    private final class Member: Waiter {
        let name: Int
        var waitingIndex: Int?
        init(_ name: Int) { self.name = name }
    }

    /// Against a plain list, with members that come, are served, and leave from anywhere.
    @Test func firstComeFirstServed() {
        var line = WaitingLine<Member>()
        var plain: [Member] = []
        for name in 0..<5000 {
            switch Int.random(in: 0..<5) {
            case 0, 1, 2:
                let member = Member(name)
                line.append(member)
                plain.append(member)
            case 3:
                if let first = line.first { line.remove(first) }
                if !plain.isEmpty { plain.removeFirst() }
            default:
                guard let index = plain.indices.randomElement() else { continue }
                line.remove(plain.remove(at: index))
            }
            #expect(line.count == plain.count && line.first === plain.first && line.isEmpty == plain.isEmpty)
        }
        while let first = line.first {
            #expect(first.name == plain.removeFirst().name && first.waitingIndex != nil)
            line.remove(first)
            #expect(first.waitingIndex == nil)
        }
        #expect(plain.isEmpty)
    }

    @Test func whoDoesNotWaitCannotLeave() {
        var line = WaitingLine<Member>()
        let (one, other) = (Member(1), Member(2))
        line.append(one)
        line.remove(other)
        line.remove(one)
        line.remove(one)
        #expect(line.isEmpty && line.first == nil)
    }

    /// All served in their order; all gone, the last first; one that waits for long while others come and go.
    @Test(arguments: ["served", "gone", "between"])
    func eachWaiterIsMovedAFewTimes(way: String) {
        var line = WaitingLine<Member>()
        let members = (0..<10_000).map { Member($0) }
        switch way {
        case "served":
            for member in members { line.append(member) }
            while let first = line.first { line.remove(first) }
        case "gone":
            for member in members { line.append(member) }
            for member in members.reversed() { line.remove(member) }
        default:
            line.append(members[0])
            for member in members.dropFirst() {
                line.append(member)
                line.remove(member)
            }
            #expect(line.first === members[0] && line.count == 1)
        }
        #expect(line.moves <= 2 * members.count)
    }
}
