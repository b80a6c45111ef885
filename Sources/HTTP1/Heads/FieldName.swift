/// A field name from the configuration: a token (RFC 9110 §5.6.2), kept in lower case.
public struct FieldName: Sendable, Hashable {
    /// In lower case.
    public let bytes: [UInt8]

    /// Nil when `text` is not a token.
    public init?(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    /// Nil when `bytes` is not a token.
    public init?(bytes: [UInt8]) {
        guard !bytes.isEmpty, bytes.allSatisfy({ OctetClass.token.contains($0) }) else { return nil }
        self.bytes = bytes.map { lowercased($0) }
    }
}

/// A set of field names, compiled once and asked for every received field.
public struct NameSet: Sendable {
    /// All names, one after another.
    private var bytes: [UInt8] = []
    private var ranges: [ByteRange] = []
    /// Bit n: some name has n octets; lengths from 63 on share the last bit.
    private var lengths: UInt64 = 0
    /// Names that `KnownField` has, look-alikes included.
    private var known: UInt64 = 0

    /// Names that occur twice count once.
    public init(_ names: [FieldName] = []) {
        for name in names { insert(name) }
    }
}

// MARK: -

extension NameSet {
    /// True where no name is in the set.
    public var isEmpty: Bool { ranges.isEmpty }

    /// A name that is in the set already changes nothing.
    public mutating func insert(_ name: FieldName) {
        guard !contains(name.bytes.span, lookAlike: false) else { return }
        let range = ByteRange(bytes.count..<bytes.count + name.bytes.count)
        bytes += name.bytes
        ranges.append(range)
        lengths |= NameSet.lengthBit(name.bytes.count)
        known |= KnownField.lookup(range, in: bytes.span, lookAlike: true).bit
    }

    /// Whether a received name is in the set, in any case.
    ///
    /// - Parameter lookAlike: `_` and `-` are the same on both sides.
    public func contains(_ name: Span<UInt8>, lookAlike: Bool) -> Bool {
        guard lengths & NameSet.lengthBit(name.count) != 0 else { return false }
        let stored = bytes.span
        let candidates = ranges.span
        for index in candidates.indices {
            let range = candidates[index]
            guard Int(range.count) == name.count else { continue }
            var offset = 0
            while offset < name.count,
                NameSet.fold(name[offset], lookAlike)
                    == NameSet.fold(stored[Int(range.start) &+ offset], lookAlike)
            {
                offset &+= 1
            }
            if offset == name.count { return true }
        }
        return false
    }

    /// Whether the field has a name of the set or one that looks like it. Known fields take one bit test.
    func covers(_ field: Field, in bytes: Span<UInt8>) -> Bool {
        if field.resembles != .other { return known & field.resembles.bit != 0 }
        guard lengths & NameSet.lengthBit(Int(field.name.count)) != 0 else { return false }
        return contains(bytes.extracting(field.name.indices), lookAlike: true)
    }

    @inline(__always)
    private static func lengthBit(_ count: Int) -> UInt64 {
        1 << UInt64(min(count, 63))
    }

    @inline(__always)
    private static func fold(_ octet: UInt8, _ lookAlike: Bool) -> UInt8 {
        lookAlike && octet == 0x5F ? 0x2D : lowercased(octet)
    }
}

/// Prefixes of cookie names, compiled once. Cookie names are case-sensitive (RFC 6265 §5.3).
public struct PrefixSet: Sendable {
    private var bytes: [UInt8] = []
    private var ranges: [ByteRange] = []

    /// Empty prefixes are left out: they would cover every name.
    public init(_ prefixes: [[UInt8]] = []) {
        for prefix in prefixes where !prefix.isEmpty {
            ranges.append(ByteRange(bytes.count..<bytes.count + prefix.count))
            bytes += prefix
        }
    }
}

// MARK: -

extension PrefixSet {
    /// True where no prefix is in the set.
    public var isEmpty: Bool { ranges.isEmpty }

    /// Whether `name` starts with one of the prefixes.
    public func covers(_ name: Span<UInt8>) -> Bool {
        let stored = bytes.span
        let candidates = ranges.span
        for index in candidates.indices {
            let range = candidates[index]
            guard Int(range.count) <= name.count else { continue }
            var offset = 0
            while offset < Int(range.count), name[offset] == stored[Int(range.start) &+ offset] { offset &+= 1 }
            if offset == Int(range.count) { return true }
        }
        return false
    }
}
