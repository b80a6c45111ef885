internal import Numbers
internal import Octets

/// Durations, sizes and percentages. A number never goes without its unit.
package enum Units {
    /// No setting is longer.
    static let longest = Duration.seconds(366 * 86400)

    package static func duration(_ text: String, atLeast least: Duration = .zero) throws(TextFault) -> Duration {
        let (number, unit) = try split(text)
        let milliseconds: Int64
        switch unit {
        case "ms": milliseconds = 1
        case "s": milliseconds = 1000
        case "m": milliseconds = 60_000
        case "h": milliseconds = 3_600_000
        case "d": milliseconds = 86_400_000
        case "": throw TextFault("needs a unit: \(number)s, \(number)m")
        default: throw TextFault("must be \(ValueType.duration(atLeast: least).expectation)")
        }
        let (product, overflow) = number.multipliedReportingOverflow(by: milliseconds)
        guard !overflow, .milliseconds(product) <= longest else { throw TextFault("must be at most 366d") }
        guard .milliseconds(product) >= least else { throw TextFault("must be at least \(spelled(least))") }
        return .milliseconds(product)
    }

    /// Bytes, at most 1 TiB.
    static func size(_ text: String) throws(TextFault) -> Int {
        let (number, unit) = try split(text)
        let shift: Int64
        switch unit {
        case "B": shift = 0
        case "KiB": shift = 10
        case "MiB": shift = 20
        case "GiB": shift = 30
        case "": throw TextFault("needs a unit: \(number)KiB, \(number)B")
        case "k", "K", "KB", "kB": throw TextFault("needs a unit of 1024: \(number)KiB")
        case "m", "M", "MB": throw TextFault("needs a unit of 1024: \(number)MiB")
        case "g", "G", "GB": throw TextFault("needs a unit of 1024: \(number)GiB")
        default: throw TextFault("must be \(ValueType.size.expectation)")
        }
        let (product, overflow) = number.multipliedReportingOverflow(by: 1 << shift)
        guard !overflow, product <= 1 << 40 else { throw TextFault("must be at most 1024GiB") }
        return Int(product)
    }

    static func refreshAhead(_ text: String) throws(TextFault) -> TokenPolicy.RefreshAhead {
        let (number, unit) = try split(text)
        switch unit {
        case "%":
            guard (1...90).contains(number) else { throw TextFault("must be from 1% to 90%") }
            return .percent(Int(number))
        case "": throw TextFault("needs a unit or a percentage: \(number)s, \(number)%")
        default: return .before(try duration(text, atLeast: .milliseconds(1)))
        }
    }

    /// A percentage with at most four decimals, in millionths of the whole.
    static func share(_ text: String) throws(TextFault) -> Int {
        let fault = TextFault("must be a percentage from 0% to 100%, such as 1% or 0.05%")
        guard text.last == "%" else { throw fault }
        let parts = text.dropLast().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let decimals = parts.count > 1 ? parts[1] : "0"
        guard let whole = parts.first, (1...4).contains(decimals.utf8.count), whole.utf8.allSatisfy(\.isDigit),
            decimals.utf8.allSatisfy(\.isDigit), let percent = ReceivedNumber(whole)?.within(0...100),
            let rest = ReceivedNumber(decimals + String(repeating: "0", count: 4 - decimals.utf8.count))?.within(
                0...9999)
        else { throw fault }
        let share = percent * 10_000 + rest
        guard share <= 1_000_000 else { throw fault }
        return share
    }

    /// Decimal digits only: no sign, no leading zero, nothing that YAML would read as another base.
    package static func integer(_ text: String, in range: ClosedRange<Int>) throws(TextFault) -> Int {
        let digits = text.utf8
        let isPlain = !digits.isEmpty && digits.count <= 18 && digits.allSatisfy { (0x30...0x39).contains($0) }
        guard isPlain, digits.count == 1 || digits.first != 0x30, let value = ReceivedNumber(text)?.within(range) else {
            throw TextFault("must be \(ValueType.integer(range).expectation)")
        }
        return value
    }

    static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true", "on", "yes": true
        case "false", "off", "no": false
        default: nil
        }
    }

    private static func split(_ text: String) throws(TextFault) -> (Int64, String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = ReceivedNumber(digits)?.within(0...Int64.max) else {
            throw TextFault("must start with a whole number and end with its unit")
        }
        return (number, String(text.dropFirst(digits.count)))
    }

    static func spelled(_ duration: Duration) -> String {
        let milliseconds = duration.wholeNanoseconds / 1_000_000
        for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] as [(String, Int64)]
        where milliseconds > 0 && milliseconds % length == 0 {
            return "\(milliseconds / length)\(unit)"
        }
        return "\(milliseconds)ms"
    }
}
