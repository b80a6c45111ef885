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

extension UInt8 {
    /// The value of a hexadecimal digit, nil for any other octet.
    @inlinable
    public var hexValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }
}
