import Testing

@testable import DataPath

/// The checks of one address, in virtual time.
@Suite struct HealthRecordTests {
    private static let second: UInt64 = 1_000_000_000
    private let plan = HealthPlan(
        path: "/", host: "h", interval: 10 * second, timeout: second, healthy: 2, unhealthy: 3, statuses: nil)

    /// Runs checks as they become due until `outcomes` are used up, and says when each began and what was then said.
    private func run(_ outcomes: [Bool], chances: [Double] = [0.5]) -> [(began: UInt64, healthy: Bool, turned: Bool)] {
        var record = HealthRecord(plan, at: 0, chance: 0)
        return outcomes.enumerated().map { index, isGood in
            let now = record.nextDue
            #expect(record.isDue(at: now) && (now == 0 || !record.isDue(at: now - 1)))
            record.began(plan, at: now, chance: chances[index % chances.count])
            #expect(!record.isDue(at: .max), "one check at a time")
            let turned = record.ended(plan, isGood ? .fit : .unfit("status 503"), at: now)
            return (now, record.isHealthy, turned)
        }
    }

    @Test func turnsOverAfterEnoughInARow() {
        let found = run([true, false, false, false, false, true, true, true])
        #expect(found.map(\.healthy) == [true, true, true, false, false, false, true, true])
        #expect(found.map(\.turned) == [false, false, false, true, false, false, true, false])
    }

    @Test func anOutcomeBetweenBeginsTheRowAnew() {
        #expect(!run([false, false, true, false, false, true, false, false]).contains { !$0.healthy })
        let ill = run([false, false, false, true, false, true, false, true, true])
        #expect(ill.map(\.healthy) == [true, true, false, false, false, false, false, false, true])
    }

    @Test func isDueFromTheBeginningOfTheLastOneWithATenthEitherWay() {
        let times = run([true, true, true, true], chances: [0, 1, 0.5]).map(\.began)
        #expect(times == [0, 9 * Self.second, 20 * Self.second, 30 * Self.second])
    }

    @Test func beginsWithinASecondOrTheInterval() {
        #expect(HealthRecord(plan, at: 5, chance: 1).nextDue == 5 + Self.second)
        var quick = plan
        quick.interval = Self.second / 10
        #expect(HealthRecord(quick, at: 5, chance: 1).nextDue == 5 + Self.second / 10)
        #expect(HealthRecord(plan, at: 5, chance: 0).nextDue == 5)
    }

    @Test func countsAndKeepsTheReason() {
        var record = HealthRecord(plan, at: 0, chance: 0)
        record.began(plan, at: 0, chance: 0.5)
        _ = record.ended(plan, .unfit("connection refused"), at: 7)
        #expect(record.lastFailure == "connection refused" && record.checks == 1 && record.failures == 1)
        #expect(record.lastFailureAt == 7)
        record.began(plan, at: record.nextDue, chance: 0.5)
        _ = record.ended(plan, .fit, at: 9)
        #expect(record.lastFailure == nil && record.checks == 2 && record.failures == 1)
    }

    @Test func aCheckThatShowsNothingStandsNeitherForNorAgainst() {
        var record = HealthRecord(plan, at: 0, chance: 0)
        for outcome in [.unfit("a"), .unknown, .unfit("b"), .unknown, .unknown, .unfit("c")] as [HealthProbe.Outcome] {
            #expect(record.isHealthy)
            record.began(plan, at: record.nextDue, chance: 0.5)
            let turned = record.ended(plan, outcome, at: record.nextDue)
            #expect(turned == !record.isHealthy && record.isDue(at: record.nextDue))
        }
        #expect(!record.isHealthy && record.checks == 3 && record.lastFailure == "c")
    }

    @Test func whatIsGoodIsConfigured() {
        #expect([200, 204, 299, 301, 401, 503].map { plan.isGood($0) } == [true, true, true, false, false, false])
        var other = plan
        other.statuses = [401]
        #expect(other.isGood(401) && !other.isGood(200))
    }
}
