internal import Octets

/// Builds one line of log in a buffer that is used again.
///
/// Escaping is strict, because names and paths come from outside: a line of ours is always one line, valid UTF-8, and moves
/// no terminal's cursor. Control characters, DEL, C1 controls, line and paragraph separators and the marks that reverse
/// reading direction become `\u` and four digits; a byte that is no UTF-8 becomes `\u00XX`, its Latin-1 reading.
struct LogLine {
    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(2048) }

    mutating func clear() { bytes.removeAll(keepingCapacity: true) }

    // MARK: - Plain

    mutating func append(_ word: StaticString) {
        word.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    mutating func append(decimal value: UInt64) {
        var rest = value
        let start = bytes.count
        repeat {
            bytes.append(0x30 + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    mutating func append(decimal value: Int64) {
        if value < 0 { bytes.append(0x2d) }
        append(decimal: value.magnitude)
    }

    mutating func append(decimal value: UInt64, digits: Int) {
        var scale: UInt64 = 1
        for _ in 1..<max(digits, 1) { scale *= 10 }
        while scale > 0 {
            bytes.append(0x30 + UInt8(value / scale % 10))
            scale /= 10
        }
    }

    mutating func append(hex value: UInt64, digits: Int) {
        for position in stride(from: digits - 1, through: 0, by: -1) {
            bytes.append(Hexadecimal.digit(UInt8(value >> UInt64(position * 4) & 0xf)))
        }
    }

    /// Milliseconds with three decimals.
    mutating func append(milliseconds nanoseconds: UInt64) {
        append(decimal: nanoseconds / 1_000_000)
        bytes.append(0x2e)
        append(decimal: nanoseconds / 1_000 % 1_000, digits: 3)
    }

    /// RFC 3339 in UTC with milliseconds.
    mutating func append(time nanoseconds: UInt64) {
        let seconds = nanoseconds / 1_000_000_000
        let second = seconds % 86_400
        let date = CivilDate(daysSince1970: Int(seconds / 86_400))
        append(decimal: UInt64(date.year), digits: 4)
        append("-")
        append(decimal: UInt64(date.month), digits: 2)
        append("-")
        append(decimal: UInt64(date.day), digits: 2)
        append("T")
        append(decimal: second / 3_600, digits: 2)
        append(":")
        append(decimal: second / 60 % 60, digits: 2)
        append(":")
        append(decimal: second % 60, digits: 2)
        append(".")
        append(decimal: nanoseconds / 1_000_000 % 1_000, digits: 3)
        append("Z")
    }

    // MARK: - Escaped

    /// Writes hostile bytes for the inside of a JSON string.
    mutating func append(escaped text: some Collection<UInt8>) {
        var index = text.startIndex
        while index != text.endIndex {
            let byte = text[index]
            if byte < 0x80 {
                index = text.index(after: index)
                switch byte {
                case 0x22, 0x5c:
                    bytes.append(0x5c)
                    bytes.append(byte)
                case 0x0a: append("\\n")
                case 0x0d: append("\\r")
                case 0x09: append("\\t")
                case 0..<0x20, 0x7f: append(escape: UInt32(byte))
                default: bytes.append(byte)
                }
                continue
            }
            guard let (scalar, length) = Self.decode(text, at: index) else {
                append(escape: UInt32(byte))
                index = text.index(after: index)
                continue
            }
            let end = text.index(index, offsetBy: length)
            if Self.isDisplayControl(scalar) {
                append(escape: scalar)
            } else {
                bytes.append(contentsOf: text[index..<end])
            }
            index = end
        }
    }

    private mutating func append(escape scalar: UInt32) {
        append("\\u")
        append(hex: UInt64(scalar), digits: 4)
    }

    private static func isDisplayControl(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x80..<0xa0, 0x061c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xfeff: true
        default: false
        }
    }

    /// The scalar of a well-formed sequence (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF), or nil.
    private static func decode<Text: Collection<UInt8>>(
        _ text: Text, at start: Text.Index
    ) -> (scalar: UInt32, length: Int)? {
        let first = text[start]
        let length: Int
        var scalar: UInt32
        let smallest: UInt32
        switch first {
        case 0xc2...0xdf: (length, scalar, smallest) = (2, UInt32(first & 0x1f), 0x80)
        case 0xe0...0xef: (length, scalar, smallest) = (3, UInt32(first & 0x0f), 0x800)
        case 0xf0...0xf4: (length, scalar, smallest) = (4, UInt32(first & 0x07), 0x10000)
        default: return nil
        }
        var index = start
        for _ in 1..<length {
            index = text.index(after: index)
            guard index != text.endIndex, text[index] & 0xc0 == 0x80 else { return nil }
            scalar = scalar << 6 | UInt32(text[index] & 0x3f)
        }
        guard scalar >= smallest, scalar <= 0x10ffff, !(0xd800...0xdfff).contains(scalar) else { return nil }
        return (scalar, length)
    }
}
