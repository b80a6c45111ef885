/// A network address in 20 bytes, formatted only when it is written.
public struct LogAddress: Sendable, Equatable {
    /// The address family; `unix` has neither address nor port.
    public enum Family: UInt8, Sendable { case none, ipv4, ipv6, unix }

    /// Says which of the fields below count.
    public var family = Family.none
    /// Host byte order.
    public var port: UInt16 = 0
    /// Network order: the first eight bytes of an IPv6 address; zero for IPv4.
    public var high: UInt64 = 0
    /// The last eight bytes; an IPv4 address stands in the lower half.
    public var low: UInt64 = 0

    /// No address.
    public init() {}

    /// Memberwise.
    public init(family: Family, high: UInt64 = 0, low: UInt64, port: UInt16) {
        self.family = family
        self.high = high
        self.low = low
        self.port = port
    }

    /// `192.0.2.1:80`, `[2001:db8::1]:80`, `unix`, or nothing.
    func write(to line: inout LogLine) {
        switch family {
        case .none: break
        case .unix: line.append("unix")
        case .ipv4:
            for (position, shift) in [24, 16, 8, 0].enumerated() {
                if position > 0 { line.append(".") }
                line.append(decimal: low >> UInt64(shift) & 0xff)
            }
            line.append(":")
            line.append(decimal: UInt64(port))
        case .ipv6:
            line.append("[")
            writeGroups(to: &line)
            line.append("]:")
            line.append(decimal: UInt64(port))
        }
    }

    /// RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups becomes `::`.
    private func writeGroups(to line: inout LogLine) {
        let groups = (0..<8).map { index in
            UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> UInt64(48 - index % 4 * 16))
        }
        var best = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > max(best.count, 1) { best = start..<end }
            start = max(end, start + 1)
        }
        var index = 0
        while index < 8 {
            if index == best.lowerBound, !best.isEmpty {
                line.append("::")
                index = best.upperBound
                continue
            }
            if index > 0, index != best.upperBound || best.isEmpty { line.append(":") }
            line.append(hex: UInt64(groups[index]))
            index += 1
        }
    }
}
