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

/// The highest bit of each of eight octets.
private var tops: UInt64 { 0x8080_8080_8080_8080 }

/// Not empty, and nothing but token characters (RFC 9110 §5.6.2).
func isToken(_ bytes: Span<UInt8>) -> Bool {
    for index in 0..<bytes.count where !OctetClass.token.contains(bytes[index]) { return false }
    return bytes.count > 0
}

/// Whether a field's value, behind a colon and a blank, is found again as it is: it has nothing that ends a line or may not stand in one,
/// and no blank at either end.
@inline(__always)
func isPlainValue(_ bytes: Span<UInt8>) -> Bool {
    let count = bytes.count
    guard count > 0 else { return true }
    if isBlank(bytes[0]) || isBlank(bytes[count &- 1]) { return false }
    // Control characters below 14 are looked at one by one: a tab is none of the three.
    let isClean = bytes.everyWord { ($0 &- 0x0E0E_0E0E_0E0E_0E0E) & ~$0 & tops == 0 }
    return isClean || firstLineBreak(in: bytes, from: 0, limit: count) == count
}

/// Not empty, and nothing that ends a target or may not stand in one.
func isPlainTarget(_ bytes: Span<UInt8>) -> Bool {
    bytes.count > 0
        && bytes.everyWord { word in
            let deleted = word ^ 0x7F7F_7F7F_7F7F_7F7F
            let fragment = word ^ 0x2323_2323_2323_2323
            let ones: UInt64 = 0x0101_0101_0101_0101
            let controls = (word &- 0x2121_2121_2121_2121) & ~word
            return (controls | (deleted &- ones) & ~deleted | (fragment &- ones) & ~fragment) & tops == 0
        }
}

extension Span where Element == UInt8 {
    /// Whether `test` holds for all words of eight octets that together hold every octet, some of them twice. Less than eight are filled up
    /// with a letter.
    @inline(__always)
    func everyWord(_ test: (UInt64) -> Bool) -> Bool {
        withUnsafeBytes { raw in
            let last = raw.count &- 8
            guard last >= 0 else {
                var word: UInt64 = 0x6161_6161_6161_6161
                for octet in raw { word = word << 8 | UInt64(octet) }
                return test(word)
            }
            var offset = 0
            while offset < last {
                guard test(raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) else { return false }
                offset &+= 8
            }
            return test(raw.loadUnaligned(fromByteOffset: last, as: UInt64.self))
        }
    }

    /// CR and LF stand at `offset`.
    @inline(__always)
    func endsLine(at offset: Int) -> Bool {
        guard offset >= 0, offset &+ 2 <= count else { return false }
        return withUnsafeBytes { pair($0, offset) == 0x0A0D }
    }

    /// A colon and a blank stand at `colon`, CR and LF at `end`.
    @inline(__always)
    func hasLine(colon: Int, end: Int) -> Bool {
        guard colon >= 0, colon <= end, end &+ 2 <= count else { return false }
        return withUnsafeBytes { pair($0, colon) == 0x203A && pair($0, end) == 0x0A0D }
    }

    @inline(__always)
    private func pair(_ raw: UnsafeRawBufferPointer, _ offset: Int) -> UInt16 {
        UInt16(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// Whether the eight octets at `offset` are those of `literal`.
    @inline(__always)
    func isWord(_ literal: StaticString, at offset: Int) -> Bool {
        precondition(literal.utf8CodeUnitCount == 8)
        guard offset >= 0, offset &+ 8 <= count else { return false }
        return withUnsafeBytes {
            $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                == UnsafeRawPointer(literal.utf8Start).loadUnaligned(as: UInt64.self)
        }
    }

    func contains(_ octet: UInt8, at range: ByteRange) -> Bool {
        for index in range.indices where self[index] == octet { return true }
        return false
    }

    /// Whether the bytes of `range`, in any case, are `literal`, which is written in lower case, digits, `-`, `:` and `/`.
    @inline(__always)
    func spells(_ literal: StaticString, at range: ByteRange) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard Int(range.count) == count else { return false }
        precondition(range.start >= 0 && Int(range.end) <= self.count)
        let start = Int(range.start)
        let expected = literal.utf8Start
        // The literal and its length are constants where this is inlined: a few words are compared with immediates.
        return withUnsafeBytes { raw in
            let literal = UnsafeRawPointer(expected)
            if count >= 8 {
                var offset = 0
                while offset &+ 8 < count {
                    let word = raw.loadUnaligned(fromByteOffset: start &+ offset, as: UInt64.self)
                    if !isSameWord(word, literal.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) {
                        return false
                    }
                    offset &+= 8
                }
                // The last word overlaps the one before it.
                let word = raw.loadUnaligned(fromByteOffset: start &+ count &- 8, as: UInt64.self)
                return isSameWord(word, literal.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
            }
            if count >= 4 {
                let low = UInt64(raw.loadUnaligned(fromByteOffset: start, as: UInt32.self))
                let high = UInt64(raw.loadUnaligned(fromByteOffset: start &+ count &- 4, as: UInt32.self))
                let expectedLow = UInt64(literal.loadUnaligned(as: UInt32.self))
                let expectedHigh = UInt64(literal.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
                return isSameWord(low | high << 32, expectedLow | expectedHigh << 32)
            }
            for offset in 0..<count where lowercased(raw[start &+ offset]) != expected[offset] { return false }
            return true
        }
    }

    /// `spells`, where a received `_` counts as `-`.
    func resembles(_ literal: StaticString, at range: ByteRange) -> Bool {
        guard Int(range.count) == literal.utf8CodeUnitCount else { return false }
        for offset in 0..<Int(range.count) {
            var octet = lowercased(self[Int(range.start) &+ offset])
            if octet == 0x5F { octet = 0x2D }
            if octet != literal.utf8Start[offset] { return false }
        }
        return true
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

    /// The value behind a colon without the blanks around it; most often there is one blank, and none at the end.
    @inline(__always)
    func value(from start: Int, to end: Int) -> ByteRange {
        if start &+ 1 < end, self[start] == 0x20, self[start &+ 1] > 0x20, self[end &- 1] > 0x20 {
            return ByteRange(unchecked: start &+ 1, end)
        }
        return trimmed(start..<end)
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
/// Letters may differ by 0x20, which is case, and of what stands in literals only they have 0x40 set; all else has to be the same.
@inline(__always)
private func isSameWord(_ received: UInt64, _ lowerCase: UInt64) -> Bool {
    (received ^ lowerCase) & ~((lowerCase & 0x4040_4040_4040_4040) >> 1) == 0
}
