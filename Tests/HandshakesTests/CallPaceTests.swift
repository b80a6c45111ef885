import Testing

@testable import Handshakes

@Suite struct CallPaceTests {
    let second: UInt64 = 1_000_000_000

    private func quota(patience: UInt64 = 10_000_000_000) -> CallQuota {
        CallQuota(origin: "https://a", perSecond: 1, burst: 10, patience: patience)
    }

    @Test func tenAtOnceThenOneASecond() {
        var pace = CallPace()
        let waits = (0..<13).map { _ in pace.take(quota(), at: 5 * second) }
        #expect(waits == Array(repeating: 0, count: 10) + [second, 2 * second, 3 * second])
    }

    @Test func whoWouldWaitTooLongTakesNoTurn() {
        var pace = CallPace()
        for _ in 0..<12 { _ = pace.take(quota(), at: 0) }
        for _ in 0..<100 { #expect(pace.take(quota(patience: 2 * second), at: 0) == nil) }
        // Those that were turned away have used nothing up.
        #expect(pace.take(quota(), at: 0) == 3 * second)
    }

    @Test func itFillsUpAgainAndNoFurther() {
        var pace = CallPace()
        for _ in 0..<10 { _ = pace.take(quota(), at: 0) }
        #expect(pace.take(quota(), at: 4 * second) == 0)
        let waits = (0..<11).map { _ in pace.take(quota(), at: 1000 * second) }
        #expect(waits.prefix(10).allSatisfy { $0 == 0 } && waits.last == second)
    }

    @Test func afterTooMuchNothingLeavesForAWhile() {
        var pace = CallPace()
        pace.turnedAway(quota(), at: 7 * second)
        #expect(pace.take(quota(), at: 7 * second) == second)
        #expect(pace.take(quota(), at: 7 * second) == 2 * second)
    }

    @Test func twoCallsThatBelongTogetherTakeTheirTurnsAtOnce() {
        var pace = CallPace()
        var pair = quota()
        pair.calls = 2
        let waits = (0..<7).map { _ in pace.take(pair, at: 0) }
        #expect(waits == [0, 0, 0, 0, 0, 2 * second, 4 * second])
        #expect(pace.take(quota(), at: 0) == 5 * second)
        pair.patience = 6 * second
        #expect(pace.take(pair, at: 0) == nil)
    }
}
