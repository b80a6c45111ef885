// Reading through raw memory is confined to this file, `LineScan`, `FieldTable`, `OutputCursor` and `OutgoingHead`; all others index
// spans, which check their bounds.

/// The offset of the first CR, LF or NUL in `bytes[from..<limit]`, or `limit`.
///
/// The three octets that may not stand inside a line are looked for at once, eight bytes a step, so a head is read for
/// line ends exactly one time, however many pieces it arrives in.
func firstLineBreak(in bytes: Span<UInt8>, from: Int, limit: Int) -> Int {
    precondition(from >= 0 && limit <= bytes.count)
    return bytes.withUnsafeBytes { raw in
        let bound: UInt64 = 0x0E0E_0E0E_0E0E_0E0E
        let tops: UInt64 = 0x8080_8080_8080_8080
        var offset = from
        while offset &+ 8 <= limit {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            // Octets below 14: the three, and a few that are rare. A borrow can set a false bit only above a true one, so the
            // lowest set bit is always true.
            let below = (word &- bound) & ~word & tops
            if below != 0 {
                var candidate = offset &+ (below.trailingZeroBitCount >> 3)
                // Behind a tab or another control character the word is read octet by octet.
                while candidate < offset &+ 8 {
                    if endsLine(raw[candidate]) { return candidate }
                    candidate &+= 1
                }
            }
            offset &+= 8
        }
        while offset < limit {
            if endsLine(raw[offset]) { return offset }
            offset &+= 1
        }
        return max(offset, limit)
    }
}

@inline(__always)
private func endsLine(_ octet: UInt8) -> Bool {
    octet == 0x0D || octet == 0x0A || octet == 0
}

/// The offset of the first colon in `bytes[from..<limit]`, or `limit`.
@inline(__always)
func firstColon(in bytes: Span<UInt8>, from: Int, limit: Int) -> Int {
    precondition(from >= 0 && limit <= bytes.count)
    return bytes.withUnsafeBytes { raw in
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        var offset = from
        while offset &+ 8 <= limit {
            let word =
                UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ 0x3A3A_3A3A_3A3A_3A3A
            let found = (word &- ones) & ~word & tops
            if found != 0 { return offset &+ (found.trailingZeroBitCount >> 3) }
            offset &+= 8
        }
        while offset < limit, raw[offset] != 0x3A { offset &+= 1 }
        return offset
    }
}

extension Span where Element == UInt8 {
    /// Whether the bytes of `range`, in any case, are `literal`, which is written in lower case.
    ///
    /// With `lookAlike`, a received `_` counts as `-`.
    @inline(__always)
    func spells(_ literal: StaticString, at range: ByteRange, lookAlike: Bool = false) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard Int(range.count) == count else { return false }
        precondition(range.start >= 0 && Int(range.end) <= self.count)
        let start = Int(range.start)
        let expected = literal.utf8Start
        if lookAlike {
            for offset in 0..<count {
                var octet = lowercased(self[start &+ offset])
                if octet == 0x5F { octet = 0x2D }
                if octet != expected[offset] { return false }
            }
            return true
        }
        // The literal and its length are constants where this is inlined: a few words are compared with immediates.
        return withUnsafeBytes { raw in
            let literal = UnsafeRawPointer(expected)
            var offset = 0
            while offset &+ 8 <= count {
                let word = raw.loadUnaligned(fromByteOffset: start &+ offset, as: UInt64.self)
                if !isSameWord(word, literal.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) { return false }
                offset &+= 8
            }
            while offset < count {
                if lowercased(raw[start &+ offset]) != expected[offset] { return false }
                offset &+= 1
            }
            return true
        }
    }

    /// Whether the bytes of `range` are exactly those of `literal`.
    @inline(__always)
    func isExactly(_ literal: StaticString, at range: ByteRange) -> Bool {
        guard Int(range.count) == literal.utf8CodeUnitCount else { return false }
        let expected = literal.utf8Start
        for offset in 0..<Int(range.count) where self[Int(range.start) &+ offset] != expected[offset] {
            return false
        }
        return true
    }

    /// Whether two ranges hold the same bytes, ASCII case aside.
    func matchesIgnoringCase(_ left: ByteRange, _ right: ByteRange) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<Int(left.count) {
            let one = lowercased(self[Int(left.start) &+ offset])
            let other = lowercased(self[Int(right.start) &+ offset])
            if one != other { return false }
        }
        return true
    }

    /// `range` without blanks at both ends; of a folded value the line breaks go too.
    func trimmed(_ range: Range<Int>) -> ByteRange {
        var lower = range.lowerBound
        var upper = range.upperBound
        while lower < upper, isBlank(self[lower]) || isLineBreak(self[lower]) { lower &+= 1 }
        while lower < upper, isBlank(self[upper &- 1]) || isLineBreak(self[upper &- 1]) { upper &-= 1 }
        return ByteRange(lower..<upper)
    }

    /// The value of `1*DIGIT`, nil for anything else and for what does not fit a signed 64-bit length.
    func decimal(at range: ByteRange) -> UInt64? {
        guard range.count > 0 else { return nil }
        var value: UInt64 = 0
        for index in range.indices {
            let octet = self[index]
            guard isDigit(octet) else { return nil }
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = scaled.addingReportingOverflow(UInt64(octet &- 0x30))
            guard !overflow, !carry, sum <= UInt64(Int64.max) else { return nil }
            value = sum
        }
        return value
    }
}

@inline(__always)
func isLineBreak(_ octet: UInt8) -> Bool {
    octet == 0x0D || octet == 0x0A
}

/// Whether eight octets, in any case, are eight octets in lower case.
///
/// Setting 0x20 makes letters lower-case; it also maps some octets that are no letters onto others, so where the words agree a second
/// look is taken at those that were changed: only upper-case letters may have been.
@inline(__always)
private func isSameWord(_ received: UInt64, _ lowerCase: UInt64) -> Bool {
    let changed = received ^ lowerCase
    if changed == 0 { return true }
    guard changed & ~0x2020_2020_2020_2020 == 0 else { return false }
    // Each octet that differs does so by 0x20 alone; it is a letter, or the words differ.
    var rest = changed
    while rest != 0 {
        let shift = UInt64(rest.trailingZeroBitCount & ~7)
        guard UInt8(truncatingIfNeeded: received >> shift) &- 0x41 < 26 else { return false }
        rest &= ~(0xFF << shift)
    }
    return true
}
