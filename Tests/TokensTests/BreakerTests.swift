import Testing

@testable import Tokens

@Suite struct BreakerTests {
    @Test func opensAfterFiveFailuresInARowAndLetsOneTry() throws {
        var breaker = Breaker(seed: 1)
        for _ in 0..<4 { #expect(breaker.failed(retryAfter: nil, at: 0) == nil) }
        breaker.answered()
        for _ in 0..<4 { #expect(breaker.failed(retryAfter: nil, at: 0) == nil) }
        #expect(breaker.ask(at: 0) == .pass)
        let first = breaker.failed(retryAfter: nil, at: 0)
        let wait = try #require(first)
        #expect((Nanoseconds.milliseconds(500)...Backoff.first).contains(wait))
        #expect(breaker.ask(at: 0) == .refuse(wait))
        #expect(breaker.failed(retryAfter: nil, at: 0) == nil, "a call of before")
        #expect(breaker.ask(at: wait) == .pass)
        #expect(breaker.ask(at: wait) == .refuse(.seconds(1)), "one at a time")
        let second = breaker.failed(retryAfter: nil, at: wait)
        let longer = try #require(second)
        #expect(longer >= .seconds(1))
        #expect(breaker.ask(at: wait + longer) == .pass)
        breaker.notSent()
        #expect(breaker.ask(at: wait + longer) == .pass, "the next one tries")
        breaker.answered()
        #expect(!breaker.isOpen && breaker.ask(at: wait + longer) == .pass)
    }

    @Test func itsStateIsTold() throws {
        var breaker = Breaker(seed: 1)
        #expect(breaker.state(at: 0) == .closed && breaker.pauses == 0)
        var pause: Nanoseconds?
        for _ in 0..<Breaker.tolerated { pause = breaker.failed(retryAfter: nil, at: 0) }
        let wait = try #require(pause)
        #expect(breaker.state(at: wait - 1) == .open && breaker.pauses == 1)
        #expect(breaker.state(at: wait) == .halfOpen)
        #expect(breaker.ask(at: wait) == .pass && breaker.state(at: wait) == .halfOpen)
        #expect(breaker.failed(retryAfter: nil, at: wait) != nil)
        #expect(breaker.state(at: wait) == .open && breaker.pauses == 2)
        breaker.answered()
        #expect(breaker.state(at: wait) == .closed && breaker.pauses == 2)
    }

    @Test func aWishOfTheIssuerIsObeyedWithinBounds() {
        var breaker = Breaker(seed: 1)
        for _ in 0..<4 { _ = breaker.failed(retryAfter: nil, at: 0) }
        #expect(breaker.failed(retryAfter: .seconds(100_000), at: 0) == Backoff.retryAfterLimit)
    }

    @Test func whoeverIsRefusedIsToldWhatIsLeftOfThePause() {
        var breaker = Breaker(seed: 1)
        for _ in 0..<5 { _ = breaker.failed(retryAfter: .seconds(20), at: .seconds(100)) }
        #expect(breaker.ask(at: .seconds(100)) == .refuse(.seconds(20)))
        #expect(breaker.ask(at: .seconds(113)) == .refuse(.seconds(7)))
        #expect(breaker.ask(at: .seconds(120) - 1) == .refuse(1))
        #expect(breaker.ask(at: .seconds(120)) == .pass)
    }

    @Test func pausesGrowToHalfAMinute() {
        var breaker = Breaker(seed: 3)
        var now: Instant = 0
        for _ in 0..<4 { _ = breaker.failed(retryAfter: nil, at: now) }
        for _ in 0..<20 {
            #expect(breaker.ask(at: now) == .pass)
            guard let wait = breaker.failed(retryAfter: nil, at: now) else {
                #expect(breaker.isOpen)
                return
            }
            #expect(wait <= Breaker.longest)
            now += wait
        }
    }
}
