/// Base 64 (RFC 4648), in both alphabets, strict when decoding: one text for one value.
public enum Base64 {
    private static let standardAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// Section 4: with `+`, `/` and padding.
    public static func encode(_ bytes: [UInt8]) -> String { String(decoding: octets(of: bytes), as: UTF8.self) }

    /// The same in an array that the caller can wipe: for secrets.
    public static func octets(of bytes: [UInt8]) -> [UInt8] { encode(bytes, standardAlphabet, padded: true) }

    /// Section 5: with `-`, `_` and no padding, as JOSE uses it (RFC 7515 section 2).
    public static func encodeURL(_ bytes: [UInt8]) -> String {
        String(decoding: encode(bytes, urlAlphabet, padded: false), as: UTF8.self)
    }

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
    public static func decode(_ text: String) -> [UInt8]? { decode(text.utf8) }
    /// The bytes of the URL alphabet (RFC 4648 §5); nil for anything else.
    public static func decodeURL(_ text: String) -> [UInt8]? { decodeURL(text.utf8) }

    /// Section 4, without memory of its own: for the data path. What others send is taken without padding and with any spare bits.
    /// - Returns: bytes written; nil for what is no base 64, or might not fit.
    public static func decode(_ text: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> Int? {
        var end = text.count
        while end > 0, text[end - 1] == UInt8(ascii: "="), text.count - end < 2 { end -= 1 }
        guard end / 4 * 3 + 2 <= target.count else { return nil }
        var count = 0
        let spare = read(text[..<end], UInt8(ascii: "+"), UInt8(ascii: "/")) { byte in
            target[count] = byte
            count += 1
        }
        return spare == nil ? nil : count
    }

    // MARK: -

    private static func encode(_ bytes: [UInt8], _ alphabet: [UInt8], padded: Bool) -> [UInt8] {
        var text: [UInt8] = []
        // Enough at once: a growth would leave a copy behind that nobody wipes.
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for digit in 0...group.count { text.append(alphabet[Int(bits >> UInt32(18 - 6 * digit) & 63)]) }
            if padded { for _ in group.count..<3 { text.append(UInt8(ascii: "=")) } }
        }
        return text
    }

    private static func decode(
        _ text: some Collection<UInt8>, _ sixtyTwo: UInt8, _ sixtyThree: UInt8
    ) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3 + 2)
        // Six spare bits mean a lone symbol; others must be zero, or two texts would stand for one value.
        guard let spare = read(text, sixtyTwo, sixtyThree, { bytes.append($0) }), spare.count < 6, spare.bits == 0
        else {
            return nil
        }
        return bytes
    }

    /// - Returns: the bits that are left behind the last whole octet; nil where a symbol is of another alphabet.
    private static func read(
        _ text: some Collection<UInt8>, _ sixtyTwo: UInt8, _ sixtyThree: UInt8, _ write: (UInt8) -> Void
    ) -> (count: Int, bits: UInt32)? {
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
                write(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
                group &= (1 << UInt32(bits)) - 1
            }
        }
        return (bits, group)
    }
}
