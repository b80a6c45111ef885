// Character classes of the grammars met here, on bytes: nothing of them depends on a locale or on Unicode.
extension UInt8 {
    var isDigit: Bool { self &- 0x30 < 10 }
    var isHexDigit: Bool { isDigit || (self | 0x20) &- 0x61 < 6 }
    var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }
    var isLetterOrDigit: Bool { isDigit || isLetter }
    /// RFC 9110 §5.6.2.
    var isTokenCharacter: Bool { isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }
    var isBlank: Bool { self == 0x20 || self == 0x09 }
    var isControl: Bool { self < 0x20 || self == 0x7F }
    var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

extension Collection<UInt8> {
    /// Equality without regard to the case of ASCII letters.
    func matches(_ text: String) -> Bool {
        elementsEqual(text.utf8) { $0.asciiLowercased == $1.asciiLowercased }
    }
}

// MARK: - Alphabets of credentials

/// The alphabets that the bytes of a token are checked against before they are put into a request (docs/design/tokens.md#rule-7).
enum TokenAlphabet {
    /// RFC 6750 §2.1: `1*( ALPHA / DIGIT / "-._~+/" ) *"="`.
    case b64token
    /// Percent-encoded text, as OAM's tokens: visible ASCII without quotes and backslash.
    case visible
    /// RFC 9110 §5.5 without obs-text: visible ASCII, blanks inside.
    case fieldValue

    /// The longest token taken; what fits here still fits into a head of 64 KiB.
    static let longest = 32 * 1024

    func admits(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !bytes.isEmpty, bytes.count <= Self.longest else { return false }
        switch self {
        case .b64token:
            var end = bytes.count
            while end > 0, bytes[end - 1] == UInt8(ascii: "=") { end -= 1 }
            return end > 0 && bytes[..<end].allSatisfy { $0.isLetterOrDigit || "-._~+/".utf8.contains($0) }
        case .visible:
            return bytes.allSatisfy { (0x21...0x7E).contains($0) && !"\"'\\".utf8.contains($0) }
        case .fieldValue:
            return bytes.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x09 }
                && !bytes[0].isBlank && !bytes[bytes.count - 1].isBlank
        }
    }

    func admits(_ secret: Secret) -> Bool { secret.withBytes(admits) }
}

// MARK: - Base64

extension Array<UInt8> {
    /// Standard alphabet with padding (RFC 4648 §4). Written here because it turns secrets into bytes that can be wiped.
    var base64: [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        text.reserveCapacity((count + 2) / 3 * 4)
        for start in stride(from: 0, to: count, by: 3) {
            let second = start + 1 < count ? self[start + 1] : 0
            let third = start + 2 < count ? self[start + 2] : 0
            text.append(alphabet[Int(self[start] >> 2)])
            text.append(alphabet[Int((self[start] & 0x03) << 4 | second >> 4)])
            text.append(start + 1 < count ? alphabet[Int((second & 0x0F) << 2 | third >> 6)] : UInt8(ascii: "="))
            text.append(start + 2 < count ? alphabet[Int(third & 0x3F)] : UInt8(ascii: "="))
        }
        return text
    }
}

// MARK: - Hexadecimal

/// Made once: an encoder on a data loop must not make a table for every byte.
enum HexDigits {
    static let upper = Array("0123456789ABCDEF".utf8)
    static let lower = Array("0123456789abcdef".utf8)
}
