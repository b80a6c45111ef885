import Testing

@testable import DataPath
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
        #expect(outbox.add(Self.order(1, 2), for: 2) == true)
        #expect(outbox.add(Self.order(2, 0), for: 0) == false, "the turn's end is called for once")
        #expect(outbox.add(Self.order(3, 2), for: 2) == false)
        outbox.turnEnded()
        let letters = outbox.takeLetters()
        #expect(letters.map(\.loop) == [0, 2])
        #expect(Self.tickets(letters) == [[2], [1, 3]])
        #expect(outbox.takeLetters().map(\.loop) == [])
        #expect(outbox.add(Self.order(4, 1), for: 1) == true, "a new turn is called for anew")
    }

    @Test func aLetterThatCameBackGoesFirst() throws {
        var outbox = Outbox(loops: 1)
        _ = outbox.add(Self.order(1, 0), for: 0)
        outbox.turnEnded()
        outbox.putBack(try #require(outbox.takeLetters().first))
        #expect(outbox.add(Self.order(2, 0), for: 0) == true)
        #expect(Self.tickets(outbox.takeLetters()) == [[1, 2]])
    }

    @Test func ordersAreCountedUntilTheyAreTaken() throws {
        var outbox = Outbox(loops: 2)
        for number in 0..<5 as Range<UInt64> {
            _ = outbox.add(Self.order(number, Int(number % 2)), for: Int(number % 2))
        }
        #expect(outbox.count == 5)
        let letters = outbox.takeLetters()
        #expect(outbox.count == 0)
        outbox.putBack(try #require(letters.first))
        #expect(outbox.count == 3)
        #expect(outbox.add(Self.order(9, 0), for: 0) == false, "the turn's end is called for already")
    }

    @Test func anOrderForNoLoopIsDropped() {
        var outbox = Outbox(loops: 0)
        #expect(outbox.add(Self.order(1, 0), for: 0) == false)
        #expect(outbox.takeLetters().map(\.loop) == [])
    }
}
