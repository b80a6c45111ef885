internal import Octets

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
