import Glibc

extension IPAddress: CustomStringConvertible {
    /// Reads dotted IPv4 or IPv6 without brackets and zone; nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.count <= 45, !text.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(v4: UInt32(bigEndian: four.s_addr))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let (high, low) = withUnsafeBytes(of: &six) { raw in
            (
                UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        self.init(v6: high, low)
    }

    /// The usual text form (RFC 5952 for IPv6).
    public var description: String {
        switch family {
        case .v4:
            return [24, 16, 8, 0].map { String((low >> $0) & 0xff) }.joined(separator: ".")
        case .v6:
            var raw = (high.bigEndian, low.bigEndian)
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(AF_INET6, &raw, &text, socklen_t(text.count)) != nil else { return "?" }
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

extension Callers.Network: CustomStringConvertible {
    /// `address/bits`.
    public var description: String { "\(address)/\(prefixLength)" }
}
