import Testing

@testable import HTTP2

/// Too much of what is legal one by one is known by a store for each kind, which time fills again.
@Suite struct FloodGaugeTests {
    /// A stream taken back costs one of 200, of which one comes back every 25 ms; a frame one of 2000, every 2.5 ms.
    enum Kind: CaseIterable {
        case resets, frames

        var capacity: Int { self == .resets ? 200 : 2000 }
        var step: UInt64 { self == .resets ? 25_000_000 : 2_500_000 }

        func admits(_ gauge: inout FloodGauge, _ now: UInt64) -> Bool {
            self == .resets ? gauge.admitReset(now: now) : gauge.admitFrame(now: now)
        }

        /// - Returns: how many are admitted at this time, until one is not.
        func admitted(_ gauge: inout FloodGauge, _ now: UInt64) -> Int {
            var count = 0
            while count < 10_000, admits(&gauge, now) { count += 1 }
            return count
        }
    }

    private static let start: UInt64 = 7_000_000_001

    @Test(arguments: Kind.allCases)
    func `a peer has as many at once as fit, and no more`(kind: Kind) {
        var gauge = FloodGauge()
        #expect(kind.admitted(&gauge, Self.start) == kind.capacity)
        #expect(kind.admitted(&gauge, Self.start) == 0)
    }

    @Test(arguments: Kind.allCases)
    func `time gives one back at each step, and a part of a step counts for the next`(kind: Kind) {
        var gauge = FloodGauge()
        #expect(kind.admitted(&gauge, Self.start) == kind.capacity)
        #expect(kind.admitted(&gauge, Self.start + kind.step - 1) == 0)
        #expect(kind.admitted(&gauge, Self.start + kind.step) == 1)
        #expect(kind.admitted(&gauge, Self.start + 2 * kind.step - 1) == 0)
        #expect(kind.admitted(&gauge, Self.start + 3 * kind.step + kind.step / 2) == 2)
        #expect(kind.admitted(&gauge, Self.start + 4 * kind.step) == 1)
    }

    @Test(arguments: Kind.allCases)
    func `a long rest fills it to the brim and not further`(kind: Kind) {
        let all = UInt64(kind.capacity) * kind.step
        for rest in [all, all + kind.step, 10 * all] {
            var gauge = FloodGauge()
            #expect(kind.admitted(&gauge, Self.start) == kind.capacity)
            #expect(kind.admitted(&gauge, Self.start + rest) == kind.capacity)
            #expect(kind.admitted(&gauge, Self.start + rest + kind.step - 1) == 0)
            #expect(kind.admitted(&gauge, Self.start + rest + kind.step) == 1)
        }
        var gauge = FloodGauge()
        #expect(kind.admitted(&gauge, Self.start) == kind.capacity)
        #expect(kind.admitted(&gauge, Self.start + all - kind.step) == kind.capacity - 1)
    }

    @Test(arguments: Kind.allCases)
    func `what was not spent is still there, but never more than fits`(kind: Kind) {
        var gauge = FloodGauge()
        for _ in 0..<10 { #expect(kind.admits(&gauge, Self.start)) }
        #expect(kind.admitted(&gauge, Self.start + 4 * kind.step) == kind.capacity - 6)
        gauge = FloodGauge()
        #expect(kind.admits(&gauge, Self.start))
        #expect(kind.admitted(&gauge, Self.start + 4 * kind.step) == kind.capacity)
    }

    @Test(arguments: Kind.allCases)
    func `a clock that stands still or goes back gives nothing`(kind: Kind) {
        var gauge = FloodGauge()
        #expect(kind.admitted(&gauge, Self.start) == kind.capacity)
        #expect(kind.admitted(&gauge, Self.start - 100 * kind.step) == 0)
        #expect(kind.admitted(&gauge, Self.start + kind.step) == 1)
    }

    @Test func `streams that are taken back and frames are counted apart`() {
        var gauge = FloodGauge()
        #expect(Kind.resets.admitted(&gauge, Self.start) == 200)
        #expect(Kind.frames.admitted(&gauge, Self.start) == 2000)
        gauge = FloodGauge()
        #expect(Kind.frames.admitted(&gauge, Self.start) == 2000)
        #expect(Kind.resets.admitted(&gauge, Self.start) == 200)
    }

    @Test(arguments: [
        (0, 0), (1023, 0), (1024, 1), (2047, 1), (2048, 2), (1000 * 1024, 1000), (2000 * 1024, 2000), (-4096, 0),
    ])
    func `a KiB that is passed over costs as much as a frame`(bytes: Int, cost: Int) {
        var gauge = FloodGauge()
        let isAdmitted = gauge.admitIgnored(bytes, now: Self.start)
        #expect(isAdmitted && Kind.frames.admitted(&gauge, Self.start) == 2000 - cost)
    }

    @Test func `a refusal costs all that there was`() {
        var gauge = FloodGauge()
        let isAdmitted = gauge.admitIgnored(2001 * 1024, now: Self.start)
        #expect(!isAdmitted && Kind.frames.admitted(&gauge, Self.start) == 0)
        #expect(Kind.resets.admitted(&gauge, Self.start) == 200)
    }

    @Test(arguments: [
        (0, 1), (1, 1), (255, 1), (256, 2), (511, 2), (512, 3), (-512, 1), (16 * 1024, 65), (1 << 30, 2000),
    ])
    func `a body that moves pays for frames, one and another for each 256 octets`(bytes: Int, credit: Int) {
        var gauge = FloodGauge()
        #expect(Kind.frames.admitted(&gauge, Self.start) == 2000 && Kind.resets.admitted(&gauge, Self.start) == 200)
        gauge.moved(bytes)
        #expect(Kind.frames.admitted(&gauge, Self.start) == credit)
        #expect(Kind.resets.admitted(&gauge, Self.start) == 0, "streams that are taken back are not paid for by bodies")
    }
}
