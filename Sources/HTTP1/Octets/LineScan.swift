internal import Glibc

// For heads that leave as fields: ready lines are taken apart, and names are lower case.

/// The offset of the first CR in `bytes[from...]`, or their count. For ready lines, which have no other line breaks.
@inline(__always)
func firstCarriageReturn(in bytes: Span<UInt8>, from: Int) -> Int {
    precondition(from >= 0 && from <= bytes.count)
    return bytes.withUnsafeBytes { raw in
        guard let base = raw.baseAddress, let found = memchr(base + from, 0x0D, raw.count &- from) else {
            return raw.count
        }
        return UnsafeRawPointer(found) - base
    }
}

/// Whether a capital letter stands in `name`, eight octets a step.
func hasCapital(_ name: ByteRange, _ bytes: Span<UInt8>) -> Bool {
    precondition(name.start >= 0 && Int(name.end) <= bytes.count)
    return bytes.withUnsafeBytes { raw in
        var position = Int(name.start)
        let end = Int(name.end)
        while position < end, position &+ 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let low = word & 0x7F7F_7F7F_7F7F_7F7F
            let fromA = low &+ 0x3F3F_3F3F_3F3F_3F3F
            let pastZ = low &+ 0x2525_2525_2525_2525
            var capitals = (fromA ^ pastZ) & ~word & 0x8080_8080_8080_8080
            // The octets behind the name are in the word too.
            if end &- position < 8 { capitals &= (1 << UInt64(8 &* (end &- position))) &- 1 }
            if capitals != 0 { return true }
            position &+= 8
        }
        while position < end {
            if raw[position] &- 0x41 < 26 { return true }
            position &+= 1
        }
        return false
    }
}
