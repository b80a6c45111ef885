/// Percent-encoding (RFC 3986 §2.1), and the form encoding made of it (RFC 6749 appendix B).
public enum PercentEncoding {
    /// Encodes a segment, or a name or value of a query, whatever the text holds.
    @inlinable public static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 { bytes.appendPercentEncoded(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Nil where a percent sign has no two digits behind it.
    @inlinable public static func decode(_ text: some Sequence<UInt8>, plusIsBlank: Bool = false) -> [UInt8]? {
        var bytes: [UInt8] = []
        // Enough at once: of a secret a growth would leave a copy behind.
        bytes.reserveCapacity(text.underestimatedCount)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let octet = Hexadecimal.octet(rest.next(), rest.next()) else { return nil }
                bytes.append(octet)
            case UInt8(ascii: "+") where plusIsBlank: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}

extension Array<UInt8> {
    /// Encodes all but unreserved characters (RFC 3986 §2.3).
    @inlinable public mutating func appendPercentEncoded(_ byte: UInt8) {
        if byte.isUnreserved { append(byte) } else { appendEscape(byte) }
    }

    /// Encodes for `application/x-www-form-urlencoded`.
    @inlinable public mutating func appendFormEncoded(_ byte: UInt8, space: StaticString = "+") {
        if byte.isLetterOrDigit || "-._*".utf8.contains(byte) {
            append(byte)
        } else if byte == 0x20 {
            space.withUTF8Buffer { append(contentsOf: $0) }
        } else {
            appendEscape(byte)
        }
    }

    /// Encodes it whatever it is.
    @inlinable public mutating func appendEscape(_ byte: UInt8) {
        append(UInt8(ascii: "%"))
        append(Hexadecimal.digit(byte >> 4, isCapital: true))
        append(Hexadecimal.digit(byte & 0x0F, isCapital: true))
    }
}
