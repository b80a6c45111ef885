import Testing

@testable import Configuration

/// Numbers with their units: each unit, both ends of each range, and what a number without a unit is told.
@Suite struct UnitTests {
    private func reason(_ body: () throws(TextFault) -> some Any) -> String? {
        do throws(TextFault) {
            _ = try body()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test(arguments: [
        ("0ms", 0), ("1ms", 1), ("1s", 1000), ("1m", 60_000), ("1h", 3_600_000), ("1d", 86_400_000),
        ("366d", 366 * 86_400_000), ("31622400000ms", 366 * 86_400_000), ("8784h", 366 * 86_400_000),
    ])
    func aDurationHasItsLength(text: String, milliseconds: Int) throws {
        #expect(try Units.duration(text) == .milliseconds(milliseconds))
    }

    @Test(arguments: [
        ("31622400001ms", "must be at most 366d"), ("31622401s", "must be at most 366d"),
        ("8785h", "must be at most 366d"), ("9223372036854775807d", "must be at most 366d"),
        ("213503982335d", "must be at most 366d"), ("5", "needs a unit: 5s, 5m"),
        ("5us", "must be a duration such as 500ms, 5s, 15m, 2h or 1d"),
        ("5S", "must be a duration such as 500ms, 5s, 15m, 2h or 1d"),
        ("5 s", "must be a duration such as 500ms, 5s, 15m, 2h or 1d"),
        ("s", "must start with a whole number and end with its unit"),
        ("-5s", "must start with a whole number and end with its unit"),
        ("9223372036854775808s", "must start with a whole number and end with its unit"),
        ("٥s", "must start with a whole number and end with its unit"),
    ])
    func aDurationThatIsNoneIsToldWhy(text: String, reason: String) {
        #expect(self.reason { () throws(TextFault) in try Units.duration(text) } == reason)
    }

    @Test(
        arguments: [
            (.zero, "0ms"), (.milliseconds(1), "1ms"), (.milliseconds(999), "999ms"), (.seconds(1), "1s"),
            (.milliseconds(1001), "1001ms"), (.seconds(59), "59s"), (.seconds(60), "1m"), (.seconds(61), "61s"),
            (.seconds(120), "2m"), (.seconds(3540), "59m"), (.seconds(3600), "1h"), (.seconds(3660), "61m"),
            (.seconds(7200), "2h"), (.seconds(86400), "1d"), (.seconds(90000), "25h"), (.seconds(172_800), "2d"),
        ] as [(Duration, String)])
    func theLeastIsToldInTheLargestUnitThatFits(least: Duration, shown: String) {
        #expect(Units.spelled(least) == shown)
        guard least > .zero else { return }
        #expect(
            reason { () throws(TextFault) in try Units.duration("0s", atLeast: least) } == "must be at least \(shown)")
    }

    @Test func theLeastItselfIsTaken() throws {
        #expect(try Units.duration("100ms", atLeast: .milliseconds(100)) == .milliseconds(100))
        #expect(reason { () throws(TextFault) in try Units.duration("99ms", atLeast: .milliseconds(100)) } != nil)
    }

    @Test(arguments: [
        ("0B", 0), ("1B", 1), ("1KiB", 1 << 10), ("1MiB", 1 << 20), ("1GiB", 1 << 30), ("1024GiB", 1 << 40),
        ("1099511627776B", 1 << 40), ("1073741824KiB", 1 << 40),
    ])
    func aSizeHasItsBytes(text: String, bytes: Int) throws {
        #expect(try Units.size(text) == bytes)
    }

    @Test(arguments: [
        ("1099511627777B", "must be at most 1024GiB"), ("1073741825KiB", "must be at most 1024GiB"),
        ("1048577MiB", "must be at most 1024GiB"), ("5", "needs a unit: 5KiB, 5B"),
        ("5k", "needs a unit of 1024: 5KiB"), ("5K", "needs a unit of 1024: 5KiB"),
        ("5KB", "needs a unit of 1024: 5KiB"),
        ("5kB", "needs a unit of 1024: 5KiB"), ("5m", "needs a unit of 1024: 5MiB"),
        ("5M", "needs a unit of 1024: 5MiB"),
        ("5MB", "needs a unit of 1024: 5MiB"), ("5g", "needs a unit of 1024: 5GiB"),
        ("5G", "needs a unit of 1024: 5GiB"),
        ("5GB", "needs a unit of 1024: 5GiB"), ("5b", "must be a size such as 512B, 64KiB or 1MiB"),
        ("B", "must start with a whole number and end with its unit"),
    ])
    func aSizeThatIsNoneIsToldWhy(text: String, reason: String) {
        #expect(self.reason { () throws(TextFault) in try Units.size(text) } == reason)
    }

    @Test func aRenewalIsAheadByAShareOrByATime() throws {
        #expect(try Units.refreshAhead("1%") == .percent(1))
        #expect(try Units.refreshAhead("90%") == .percent(90))
        #expect(try Units.refreshAhead("1ms") == .before(.milliseconds(1)))
        #expect(try Units.refreshAhead("2m") == .before(.seconds(120)))
        for text in ["0%", "91%"] {
            #expect(reason { () throws(TextFault) in try Units.refreshAhead(text) } == "must be from 1% to 90%")
        }
        #expect(reason { () throws(TextFault) in try Units.refreshAhead("0s") } == "must be at least 1ms")
        let unitless = "needs a unit or a percentage: 7s, 7%"
        #expect(reason { () throws(TextFault) in try Units.refreshAhead("7") } == unitless)
    }

    @Test(arguments: [
        ("0%", 0), ("1%", 10_000), ("100%", 1_000_000), ("0.0001%", 1), ("0.001%", 10), ("0.01%", 100), ("0.1%", 1000),
        ("99.9999%", 999_999), ("100.0%", 1_000_000), ("100.0000%", 1_000_000), ("12.3456%", 123_456),
        ("012%", 120_000),
    ])
    func aShareIsInMillionths(text: String, millionths: Int) throws {
        #expect(try Units.share(text) == millionths)
    }

    @Test(arguments: [
        "", "1", "%", ".5%", "1.%", "0.00001%", "100.0001%", "100.1%", "101%", "-1%", "1.-1%", "1.2.3%", "1%%", "1,5%",
        " 1%", "1.5", "٥%",
    ])
    func whatIsNoShareIsRefused(text: String) {
        let fault = "must be a percentage from 0% to 100%, such as 1% or 0.05%"
        #expect(reason { () throws(TextFault) in try Units.share(text) } == fault)
    }

    @Test(
        arguments: [
            ("0", 0...9, 0), ("9", 0...9, 9), ("10", 0...9, nil), ("5", 6...9, nil), ("6", 6...9, 6), ("", 0...9, nil),
            ("00", 0...9, nil), ("07", 0...9, nil), ("10", 0...10, 10), ("-1", -5...9, nil), ("+1", 0...9, nil),
            ("1:", 0...99, nil), ("1/", 0...99, nil), ("0x1", 0...9, nil), ("1 ", 0...9, nil), ("1.0", 0...9, nil),
            ("123456789012345678", 0...Int.max, 123_456_789_012_345_678), ("1234567890123456789", 0...Int.max, nil),
        ] as [(String, ClosedRange<Int>, Int?)])
    func anIntegerIsPlainDigitsInItsRange(text: String, range: ClosedRange<Int>, value: Int?) {
        #expect((try? Units.integer(text, in: range)) == value)
    }

    @Test(
        arguments: [
            ("true", true), ("on", true), ("yes", true), ("false", false), ("off", false), ("no", false), ("True", nil),
            ("1", nil), ("", nil),
        ] as [(String, Bool?)])
    func aBooleanHasSixWords(text: String, value: Bool?) {
        #expect(Units.boolean(text) == value)
    }
}
