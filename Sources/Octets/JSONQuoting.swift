// Strings of JSON that is written (RFC 8259 §7).

extension Array<UInt8> {
    /// For the inside of a string. The octets must be UTF-8.
    @inlinable public mutating func appendJSONEscaped(_ text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
            case 0..<0x20, 0x7F:
                append(contentsOf: "\\u00".utf8)
                append(Hexadecimal.digit(byte >> 4))
                append(Hexadecimal.digit(byte & 0x0F))
            default: append(byte)
            }
        }
    }
}

extension String {
    /// A JSON string with its quotes.
    public var jsonQuoted: String {
        var bytes = [UInt8(ascii: "\"")]
        bytes.appendJSONEscaped(utf8)
        return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
    }
}
