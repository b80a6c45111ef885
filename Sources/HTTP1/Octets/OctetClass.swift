/// A set of ASCII octets in two words: a test is a shift and a mask, without a table in memory.
struct OctetClass {
    /// Octets 0–63.
    let low: UInt64
    /// Octets 64–127.
    let high: UInt64
}

// MARK: -

extension OctetClass {
    @inline(__always)
    func contains(_ octet: UInt8) -> Bool {
        guard octet < 0x80 else { return false }
        let word = octet < 0x40 ? low : high
        return (word >> UInt64(octet & 0x3F)) & 1 != 0
    }

    /// `tchar` (RFC 9110 §5.6.2).
    @inline(__always)
    static var token: OctetClass { OctetClass(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

    /// `unreserved` (RFC 3986 §2.3).
    @inline(__always)
    static var unreserved: OctetClass { OctetClass(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

    /// `cookie-octet` (RFC 6265 §4.1.1).
    @inline(__always)
    static var cookie: OctetClass { OctetClass(low: 0xF7FF_EFFA_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF) }

    /// Hex digits, `:` and `.`: what stands between the brackets of an IPv6 literal.
    @inline(__always)
    static var addressLiteral: OctetClass { OctetClass(low: 0x07FF_4000_0000_0000, high: 0x0000_007E_0000_007E) }
}

@inline(__always)
func isBlank(_ octet: UInt8) -> Bool {
    octet == 0x20 || octet == 0x09
}

@inline(__always)
func isDigit(_ octet: UInt8) -> Bool {
    octet &- 0x30 < 10
}

/// ASCII only; every other octet is returned as it is.
@inline(__always)
func lowercased(_ octet: UInt8) -> UInt8 {
    octet &- 0x41 < 26 ? octet | 0x20 : octet
}
