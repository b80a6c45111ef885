// Classes of ASCII octets as the grammars of HTTP, URIs and JSON name them: nothing here depends on a locale or on Unicode.
extension UInt8 {
    /// `DIGIT` (RFC 5234 appendix B.1).
    @inlinable public var isDigit: Bool { self &- 0x30 < 10 }
    /// A hexadecimal digit in either case.
    @inlinable public var isHexDigit: Bool { isDigit || (self | 0x20) &- 0x61 < 6 }
    /// `ALPHA` (RFC 5234 appendix B.1).
    @inlinable public var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }
    /// `ALPHA` or `DIGIT`.
    @inlinable public var isLetterOrDigit: Bool { isDigit || isLetter }
    /// `tchar` (RFC 9110 §5.6.2).
    @inlinable public var isTokenCharacter: Bool { isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }
    /// `unreserved` (RFC 3986 §2.3).
    @inlinable public var isUnreserved: Bool { isLetterOrDigit || "-._~".utf8.contains(self) }
    /// Whether host names may have the octet: letters, digits, `-`, `_` and `.`.
    @inlinable public var isHostNameCharacter: Bool { isLetterOrDigit || "-_.".utf8.contains(self) }
    /// A space or a tab.
    @inlinable public var isBlank: Bool { self == 0x20 || self == 0x09 }
    /// `ws` (RFC 8259 §2).
    @inlinable public var isJSONBlank: Bool { isBlank || self == 0x0A || self == 0x0D }
    /// A control character of ASCII.
    @inlinable public var isControl: Bool { self < 0x20 || self == 0x7F }
    /// The small letter of a capital letter; every other octet as it is.
    @inlinable public var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

extension Collection<UInt8> {
    /// Equality without regard to the case of ASCII letters.
    @inlinable public func matches(_ text: String) -> Bool {
        elementsEqual(text.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }

    /// Whether the octets are well-formed UTF-8. They are not copied, as `String(validating:)` would, so secrets may be asked.
    @inlinable public var isUTF8: Bool {
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = makeIterator()
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }
}
