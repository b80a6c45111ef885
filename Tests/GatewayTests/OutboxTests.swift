import Testing

@testable import DataPath
@testable import Gateway
@testable import Keeping

@Suite struct OutboxTests {
    private static func tickets(_ letters: [Outbox.Letter]) -> [[UInt64]] {
        letters.map { letter in
            letter.orders.map { order in
                if case .request(let ticket, _) = order { ticket.number } else { 0 }
            }
        }
    }

    private static func order(_ number: UInt64, _ loop: Int) -> KeeperOrder {
        .request(Ticket(loop: loop, number: number), .pass)
    }

    @Test func oneLetterALoopHasAllOrdersOfATurn() {
        var outbox = Outbox(loops: 3)
        #expect(outbox.add(Self.order(1, 2), for: 2) == .atEndOfTurn)
        #expect(outbox.add(Self.order(2, 0), for: 0) == nil, "the turn's end is called for once")
        #expect(outbox.add(Self.order(3, 2), for: 2) == nil)
        outbox.turnEnded()
        let letters = outbox.takeLetters()
        #expect(letters.map(\.loop) == [0, 2])
        #expect(Self.tickets(letters) == [[2], [1, 3]])
        #expect(outbox.takeLetters().map(\.loop) == [])
        #expect(outbox.add(Self.order(4, 1), for: 1) == .atEndOfTurn, "a new turn is called for anew")
    }

    @Test func aLetterThatCameBackGoesFirst() throws {
        var outbox = Outbox(loops: 1)
        _ = outbox.add(Self.order(1, 0), for: 0)
        outbox.turnEnded()
        outbox.putBack(try #require(outbox.takeLetters().first))
        #expect(outbox.add(Self.order(2, 0), for: 0) == .atEndOfTurn)
        #expect(Self.tickets(outbox.takeLetters()) == [[1, 2]])
    }

    /// Whoever is answered first in a long turn does not wait for its end.
    @Test func aLetterThatHasManyOrdersLeavesAtOnce() {
        var outbox = Outbox(loops: 2)
        _ = outbox.add(Self.order(0, 1), for: 1)
        let said = (1...UInt64(Outbox.most)).map { outbox.add(Self.order($0, 0), for: 0) }
        #expect(said.dropLast().allSatisfy { $0 == nil } && said.last == .now)
        #expect(outbox.takeLetters().map(\.orders.count) == [Outbox.most, 1])
        #expect(outbox.add(Self.order(1, 0), for: 0) == nil, "the turn's end is called for already")
    }

    /// A loop that takes nothing is not asked with each order.
    @Test func aMailboxThatIsFullIsLeftAlone() throws {
        var outbox = Outbox(loops: 1)
        for number in 1...UInt64(Outbox.most) { _ = outbox.add(Self.order(number, 0), for: 0) }
        outbox.putBack(try #require(outbox.takeLetters().first))
        #expect(outbox.add(Self.order(99, 0), for: 0) == nil)
        #expect(outbox.takeLetters().first?.orders.count == Outbox.most + 1)
    }

    @Test func anOrderForNoLoopIsDropped() {
        var outbox = Outbox(loops: 0)
        #expect(outbox.add(Self.order(1, 0), for: 0) == nil)
        #expect(outbox.takeLetters().map(\.loop) == [])
    }
}
