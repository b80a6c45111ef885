import Numbers
import Testing

/// What others write as a number, and what becomes of it: nothing here may trap.
@Suite struct ReceivedNumberTests {
    @Test(
        arguments: [
            ("0", 0), ("7", 7), ("-7", -7), ("007", 7), ("9223372036854775807", .max), ("-9223372036854775808", .min),
        ] as [(String, Int64)])
    func digitsAreANumber(text: String, number: Int64) {
        #expect(ReceivedNumber(text)?.within(Int64.min...Int64.max) == number)
    }

    @Test(arguments: ["", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "--1", "١", "1-", "\u{0}"])
    func anythingElseIsNone(text: String) {
        #expect(ReceivedNumber(text) == nil)
    }

    @Test(
        arguments: [
            ("9223372036854775808", .max), ("-9223372036854775809", .min),
            ("99999999999999999999999999999999999", .max),
            ("-99999999999999999999999999999999999", .min), ("92233720368547758070", .max),
        ] as [(String, Int64)])
    func whatIsTooLargeLiesInNoRange(text: String, nearest: Int64) throws {
        let number = try #require(ReceivedNumber(text))
        #expect(number.within(Int64.min...Int64.max) == nil)
        #expect(number.clamped(to: Int64.min...Int64.max) == nearest)
    }

    @Test func aRangeIsKept() {
        #expect(ReceivedNumber(10).within(1...10) == 10)
        #expect(ReceivedNumber(11).within(1...10) == nil)
        #expect(ReceivedNumber(-1).within(0...UInt16.max) == nil)
        #expect(ReceivedNumber(65_536).within(0...UInt16.max) == nil)
        #expect(ReceivedNumber(65_536).clamped(to: 1...UInt16.max) == .max)
        #expect(ReceivedNumber(-5).clamped(to: 1...UInt16.max) == 1)
        #expect(ReceivedNumber(UInt64.max).within(0...UInt64.max) == nil)
    }

    @Test(
        arguments: [
            (0.0, 0), (1.9, 1), (-1.9, -1), (1e300, .max), (-1e300, .min), (.infinity, .max), (-.infinity, .min),
            (0x1p63, .max), (-0x1p63, .min),
        ] as [(Double, Int64)])
    func aFractionHasAWholePart(value: Double, whole: Int64) {
        #expect(ReceivedNumber(wholePartOf: value)?.clamped(to: Int64.min...Int64.max) == whole)
    }

    @Test func whatIsNoNumberHasNone() { #expect(ReceivedNumber(wholePartOf: .nan) == nil) }
}

@Suite struct TimeSpanTests {
    static let numbers: [Int64] = [
        .min, -1, 0, 1, 1000, 100_000_000_000_000, 253_402_300_799_999, 9_223_372_036_854, .max - 1, .max,
    ]
    static let units: [TimeSpan.Unit] = [.nanoseconds, .microseconds, .milliseconds, .seconds]

    @Test(arguments: numbers, units)
    func everyNumberIsASpan(number: Int64, unit: TimeSpan.Unit) {
        let span = TimeSpan(ReceivedNumber(number), unit)
        #expect(span <= .longest && (number > 0 || span == .zero))
        // A moment plus a span is a moment still.
        #expect(!UInt64(Int64.max).addingReportingOverflow(span.nanoseconds).overflow)
        #expect(span + .longest == .longest && .longest * UInt64.max == .longest && span - .longest == .zero)
    }

    @Test func sumsAndProductsAreThoseOfNumbers() {
        let second = TimeSpan(1, .seconds)
        #expect((second + second).milliseconds == 2000)
        #expect((second * 90).seconds == 90)
        #expect((second - TimeSpan(1, .milliseconds)).nanoseconds == 999_000_000)
        #expect(second - second * 2 == .zero)
        // Whose low 64 bits are those of a short time.
        #expect(second * (1 << 55) == .longest && TimeSpan(3, .milliseconds) * (1 << 58) == .longest)
        #expect(TimeSpan(ReceivedNumber(Int64(1) << 55), .seconds) == .longest)
    }

    @Test(
        arguments: [
            (0.5, 500_000_000), (-1, 0), (.nan, 0), (.infinity, TimeSpan.longest.nanoseconds),
            (1e300, TimeSpan.longest.nanoseconds),
        ] as [(Double, UInt64)])
    func secondsMayHaveAFraction(seconds: Double, nanoseconds: UInt64) {
        #expect(TimeSpan(seconds: seconds).nanoseconds == nanoseconds)
    }

    @Test(arguments: numbers, numbers)
    func everyTwoMomentsHaveASpan(end: Int64, now: Int64) {
        let (end, now) = (WallTime(milliseconds: end), WallTime(milliseconds: now))
        #expect(end.left(at: now) == .zero || end > now)
        #expect((now + end.left(at: now)).milliseconds <= WallTime.range.upperBound)
        #expect(end + .longest >= end)
    }

    @Test func aMomentOfSecondsIsOfMilliseconds() {
        #expect(WallTime(seconds: ReceivedNumber(1_700_000_000)).milliseconds == 1_700_000_000_000)
        #expect(WallTime(seconds: ReceivedNumber(Int64.max)).milliseconds == 253_402_300_799_000)
        #expect(WallTime(milliseconds: 5000).left(at: WallTime(milliseconds: 2000)) == TimeSpan(3, .seconds))
    }
}
