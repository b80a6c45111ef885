import Testing

@testable import DataPath

@Suite struct ProxyRestTests {
    @Test func itGrowsWithEachRefusal() {
        let rest = ProxyRest()
        var now: UInt64 = 1_000
        #expect(rest.left(at: now) == nil)
        for minutes: UInt64 in [2, 4, 8, 16, 32, 60, 60] {
            rest.noteRefusal(at: now)
            // Attempts that were under way with the first one.
            rest.noteRefusal(at: now + 1)
            #expect(rest.left(at: now) == minutes * 60_000_000_000)
            now += minutes * 60_000_000_000
            #expect(rest.left(at: now - 1) == 1 && rest.left(at: now) == nil)
        }
    }

    @Test func itBeginsAnewAfterALongTimeOrWhenItIsEnded() {
        let rest = ProxyRest()
        rest.noteRefusal(at: 0)
        rest.noteRefusal(at: ProxyRest.first)
        #expect(rest.left(at: ProxyRest.first) == 2 * ProxyRest.first)
        rest.end()
        #expect(rest.left(at: ProxyRest.first) == nil)
        rest.noteRefusal(at: 0)
        let later = 2 * ProxyRest.longest + 1
        rest.noteRefusal(at: later)
        #expect(rest.left(at: later) == ProxyRest.first)
        rest.noteRefusal(at: .max)
        #expect(rest.left(at: .max) == nil)
    }
}
