internal import Octets

/// Builds one line of log in a buffer that is used again.
///
/// Escaping is strict, because names and paths come from outside: a line of ours is always one line, valid UTF-8, and moves
/// no terminal's cursor. Control characters, DEL, C1 controls, line and paragraph separators and the marks that reverse
/// reading direction become `\u` and four digits; a byte that is no UTF-8 becomes `\u00XX`, its Latin-1 reading.
package struct LogLine {
    package private(set) var bytes: [UInt8] = []

    /// An empty line.
    package init() { bytes.reserveCapacity(2048) }

    /// Makes it an empty line again.
    package mutating func clear() { bytes.removeAll(keepingCapacity: true) }

    // MARK: - Plain

    /// Writes a word of ours as it is.
    package mutating func append(_ word: StaticString) {
        word.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// Writes octets that need no escape, such as digits.
    package mutating func append(octets: [UInt8]) { bytes += octets }

    /// Writes decimal digits.
    package mutating func append(decimal value: UInt64) {
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

    /// An address without its port.
    package mutating func append(host: LogAddress) { host.writeHost(to: &self) }

    /// RFC 3339 in UTC with milliseconds.
    package mutating func append(time nanoseconds: UInt64) {
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
    package mutating func append(escaped text: some Collection<UInt8>) {
        var parser = Unicode.UTF8.ForwardParser()
        var rest = text[...]
        var octets = text.makeIterator()
        while true {
            switch parser.parseScalar(from: &octets) {
            case .emptyInput: return
            case .error(let length):
                // A sequence that is not well-formed (RFC 3629) is written octet by octet.
                for octet in rest.prefix(length) { append(escape: UInt32(octet)) }
                rest = rest.dropFirst(length)
            case .valid(let encoded):
                append(Unicode.UTF8.decode(encoded), encoded)
                rest = rest.dropFirst(encoded.count)
            }
        }
    }

    private mutating func append(_ scalar: Unicode.Scalar, _ encoded: some Sequence<UInt8>) {
        switch scalar {
        case "\"", "\\":
            append("\\")
            bytes += encoded
        case "\n": append("\\n")
        case "\r": append("\\r")
        case "\t": append("\\t")
        // Control characters, and those that turn the direction of a line or hide in it.
        case "\0"..<" ", "\u{7f}"..<"\u{a0}", "\u{61c}", "\u{200e}", "\u{200f}", "\u{2028}"..."\u{202e}",
            "\u{2066}"..."\u{2069}", "\u{feff}":
            append(escape: scalar.value)
        default: bytes += encoded
        }
    }

    private mutating func append(escape scalar: UInt32) {
        append("\\u")
        append(hex: UInt64(scalar), digits: 4)
    }
}

/// A moment as the log writes it: RFC 3339 in UTC with milliseconds.
/// - Parameter nanoseconds: of the wall clock since 1970.
public func logTime(_ nanoseconds: UInt64) -> String {
    var line = LogLine()
    line.append(time: nanoseconds)
    return String(decoding: line.bytes, as: UTF8.self)
}
