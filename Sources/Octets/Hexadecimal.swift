/// Two hexadecimal digits for each octet (RFC 4648 §8).
public enum Hexadecimal {
    /// In small letters.
    @inlinable public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: octets(of: bytes), as: UTF8.self)
    }

    /// The same as octets.
    @inlinable public static func octets(of bytes: some Sequence<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return text
    }

    /// Octets of digits in either case; nil for anything but pairs of digits.
    @inlinable public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var rest = text[...]
        while let high = rest.popFirst(), let low = rest.popFirst() {
            guard let byte = octet(high, low) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// The octet that two digits spell; nil where one of them is none.
    @inlinable
    public static func octet(_ high: UInt8?, _ low: UInt8?) -> UInt8? {
        guard let high = high?.hexValue, let low = low?.hexValue else { return nil }
        return high << 4 | low
    }

    /// - Parameter value: below 16.
    @inlinable
    public static func digit(_ value: UInt8, isCapital: Bool = false) -> UInt8 {
        value < 10 ? 0x30 &+ value : (isCapital ? 0x37 : 0x57) &+ value
    }
}

// MARK: - Eight digits in one word

// Identifiers are written and read for each request where they are asked for; eight digits at a time take a few instructions.
extension Hexadecimal {
    /// The eight digits of a number, leading zeros too, in small letters; the first one in the highest octet.
    @inlinable
    public static func digits(of number: UInt32) -> UInt64 {
        var nibbles = UInt64(number)
        nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
        nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F
        return text(of: nibbles)
    }

    /// The number of eight digits, the first one in the highest octet; nil where one is no digit, or a capital.
    @inlinable
    public static func number(of digits: UInt64) -> UInt32? {
        // In ASCII the bit of 64 tells letters from digits, and `a` is 9 away from its value.
        let letters = (digits >> 6) & 0x0101_0101_0101_0101
        var nibbles = (digits & 0x0F0F_0F0F_0F0F_0F0F) &+ letters &* 9
        guard nibbles & 0xF0F0_F0F0_F0F0_F0F0 == 0, text(of: nibbles) == digits else { return nil }
        nibbles = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: nibbles | nibbles >> 16)
    }

    /// Digits of octets below 16. Nothing carries from one octet to the next.
    @inlinable
    static func text(of nibbles: UInt64) -> UInt64 {
        let letters = ((nibbles &+ 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101
        return nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit, nil for any other octet.
    @inlinable
    public var hexValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }
}
