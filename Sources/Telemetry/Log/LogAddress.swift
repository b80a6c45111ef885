internal import Glibc

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

    /// The address without its port: `192.0.2.1`, `2001:db8::1`, `unix`, or nothing.
    func writeHost(to line: inout LogLine) {
        switch family {
        case .none: break
        case .unix: line.append("unix")
        case .ipv4: writeOctets(to: &line)
        case .ipv6: writeGroups(to: &line)
        }
    }

    /// `192.0.2.1:80`, `[2001:db8::1]:80`, `unix`, or nothing.
    func write(to line: inout LogLine) {
        switch family {
        case .none: break
        case .unix: line.append("unix")
        case .ipv4:
            writeOctets(to: &line)
            line.append(":")
            line.append(decimal: UInt64(port))
        case .ipv6:
            line.append("[")
            writeGroups(to: &line)
            line.append("]:")
            line.append(decimal: UInt64(port))
        }
    }

    private func writeOctets(to line: inout LogLine) {
        for (position, shift) in [24, 16, 8, 0].enumerated() {
            if position > 0 { line.append(".") }
            line.append(decimal: low >> UInt64(shift) & 0xff)
        }
    }

    /// In the usual form (RFC 5952).
    private func writeGroups(to line: inout LogLine) {
        var words = (high.bigEndian, low.bigEndian)
        withUnsafeTemporaryAllocation(byteCount: Int(INET6_ADDRSTRLEN), alignment: 1) { text in
            let start = text.assumingMemoryBound(to: CChar.self).baseAddress
            guard inet_ntop(AF_INET6, &words, start, socklen_t(text.count)) != nil else { return }
            line.append(escaped: text.prefix { $0 != 0 })
        }
    }
}
