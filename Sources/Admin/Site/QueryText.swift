/// The first value of a name in a query string (application/x-www-form-urlencoded), decoded; nil when the name is missing or the
/// value is not well-formed UTF-8 with whole escapes.
func queryValue(_ name: String, in query: String) -> String? {
    for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
        let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let key = unescaped(parts[0]), key == name else { continue }
        return parts.count == 2 ? unescaped(parts[1]) : ""
    }
    return nil
}

/// A value such that `queryValue` gives it back.
func queryEscaped(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            escaped.unicodeScalars.append(Unicode.Scalar(byte))
        default:
            let digits = String(byte, radix: 16, uppercase: true)
            escaped += "%" + (digits.utf8.count == 1 ? "0" : "") + digits
        }
    }
    return escaped
}

private func unescaped(_ text: some Sequence<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
        switch byte {
        case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
        case UInt8(ascii: "%"):
            guard let high = iterator.next().flatMap(digit), let low = iterator.next().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        default: bytes.append(byte)
        }
    }
    return String(validating: bytes, as: UTF8.self)
}

private func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
}
