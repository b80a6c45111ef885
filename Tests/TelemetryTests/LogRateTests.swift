import Testing

@testable import Telemetry

@Suite struct LogRateTests {
    /// A flood of one kind leaves a few lines, and the next one says how many are missing.
    @Test func aFloodIsBoundedAndCounted() {
        var rate = LogRate()
        var now: UInt64 = 1_000_000_000
        #expect((0..<1000).count { _ in rate.admit(at: now) != nil } == Int(LogRate.burst))
        now += LogRate.interval
        #expect(rate.admit(at: now) == 1000 - Int64(LogRate.burst))
        #expect(rate.admit(at: now) == nil)
        now += LogRate.interval
        #expect(rate.admit(at: now) == 1)
    }

    /// Over an hour of one event each millisecond: what the interval gives, and the burst.
    @Test func theRateHoldsForEver() {
        var rate = LogRate()
        let step: UInt64 = 1_000_000
        let written = (0..<3_600_000).count { rate.admit(at: UInt64($0) * step) != nil }
        #expect(written >= 600 && written <= 600 + Int(LogRate.burst))
    }

    @Test func rareEventsAreAllWritten() {
        var rate = LogRate()
        #expect((0..<100).allSatisfy { rate.admit(at: UInt64($0) * LogRate.interval) == 0 })
        // A clock that goes back harms nothing.
        #expect(rate.admit(at: 0) == 0)
    }
}
