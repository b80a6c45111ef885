/// A whole number that somebody else wrote: an issuer, a server, a header, a file, a row.
///
/// The type has no arithmetic and no order, because the sum of a number from outside and one of ours ends the process where it does not fit. It
/// becomes a number by a range that it has to lie in, or by one that it is clamped to, or as a `TimeSpan` or a `WallTime`, whose arithmetic
/// saturates.
public struct ReceivedNumber: Sendable, Hashable {
    private let value: Int64
    /// False where more was written than 64 bits hold, or a part of one.
    private let isExact: Bool

    /// Any integer of ours or another's. One that does not fit into 64 bits lies in no range and is clamped to the
    /// nearest end.
    public init(_ value: some BinaryInteger) {
        self.value = Int64(clamping: value)
        isExact = Int64(exactly: value) != nil
    }

    /// The whole part of it; nil for what is no number.
    public init?(wholePartOf value: Double) {
        guard !value.isNaN else { return nil }
        let whole = value.rounded(.towardZero)
        // 2^63 itself is a Double and no Int64.
        if let exact = Int64(exactly: whole) {
            self.value = exact
            isExact = true
        } else {
            self.value = whole < 0 ? .min : .max
            isExact = false
        }
    }

    /// Decimal digits behind a minus sign or none, however many; nil for anything else.
    public init?(decimal text: some Collection<UInt8>) {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        var isExact = true
        for octet in digits {
            guard (0x30...0x39).contains(octet) else { return nil }
            let digit = Int64(octet & 0x0F)
            let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) =
                isNegative ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
            if overflow || carry { isExact = false }
            value = isExact ? sum : isNegative ? .min : .max
        }
        self.value = value
        self.isExact = isExact
    }

    /// Decimal digits behind a minus sign or none, however many; nil for anything else.
    public init?(_ text: some StringProtocol) { self.init(decimal: text.utf8) }

    /// The whole part of a JSON number (RFC 8259 §6) as it is written; nil for anything else.
    public init?(json text: some Collection<UInt8>) {
        if let number = ReceivedNumber(decimal: text) {
            self = number
            return
        }
        guard text.count <= 400, text.allSatisfy({ (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }),
            let value = Double(String(decoding: text, as: UTF8.self))
        else { return nil }
        self.init(wholePartOf: value)
    }

    /// The number where it lies in the range, else nil.
    public func within<Number: FixedWidthInteger>(_ range: ClosedRange<Number>) -> Number? {
        guard isExact, let number = Number(exactly: value), range.contains(number) else { return nil }
        return number
    }

    /// The number of the range that is nearest to it.
    public func clamped<Number: FixedWidthInteger>(to range: ClosedRange<Number>) -> Number {
        min(max(Number(clamping: value), range.lowerBound), range.upperBound)
    }
}
