/// Base 64 (RFC 4648), in both alphabets, strict when decoding: one text for one value.
public enum Base64 {
    private static let standardAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Section 4: with `+`, `/` and padding.
    public static func encode(_ bytes: [UInt8]) -> String { encode(bytes, standardAlphabet, padded: true) }

    /// Section 5: with `-`, `_` and no padding, as JOSE uses it (RFC 7515 section 2).
    public static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, urlAlphabet, padded: false) }

    /// Section 4. Padding is required; nil for anything but base 64, also white space and non-zero spare bits.
    public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        let padding = text.reversed().prefix(2).prefix { $0 == UInt8(ascii: "=") }.count
        return decode(text.dropLast(padding), UInt8(ascii: "+"), UInt8(ascii: "/"))
    }

    /// Section 5 without padding; nil for anything else.
    public static func decodeURL(_ text: some Collection<UInt8>) -> [UInt8]? {
        decode(text, UInt8(ascii: "-"), UInt8(ascii: "_"))
    }

    /// The bytes of the standard alphabet (RFC 4648 §4); nil for anything else.
    public static func decode(_ text: String) -> [UInt8]? { decode(Array(text.utf8)) }
    /// The bytes of the URL alphabet (RFC 4648 §5); nil for anything else.
    public static func decodeURL(_ text: String) -> [UInt8]? { decodeURL(Array(text.utf8)) }

    // MARK: -

    private static func encode(_ bytes: [UInt8], _ alphabet: [UInt8], padded: Bool) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let rest = min(3, bytes.count - index)
            var group = UInt32(bytes[index]) << 16
            if rest > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if rest > 2 { group |= UInt32(bytes[index + 2]) }
            for place in 0..<4 {
                if place <= rest {
                    text.append(alphabet[Int(group >> (18 - 6 * UInt32(place)) & 63)])
                } else if padded {
                    text.append(UInt8(ascii: "="))
                }
            }
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func decode(
        _ text: some Collection<UInt8>, _ sixtyTwo: UInt8, _ sixtyThree: UInt8
    ) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3 + 2)
        var group: UInt32 = 0
        var bits = 0
        for symbol in text {
            let value: UInt8
            switch symbol {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = symbol - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = symbol - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = symbol - UInt8(ascii: "0") + 52
            case sixtyTwo: value = 62
            case sixtyThree: value = 63
            default: return nil
            }
            group = group << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= (1 << UInt32(bits)) - 1
            }
        }
        // Six spare bits mean a lone symbol; others must be zero, or two texts would stand for one value.
        return bits < 6 && group == 0 ? bytes : nil
    }
}
