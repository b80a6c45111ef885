import FoundationEssentials

/// Standard base64 with padding (RFC 4648 §4).
enum Base64 {
    static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    /// Nil unless `text` is padded base64 of UTF-8 text.
    static func decodeText(_ text: String) -> String? {
        guard let data = Data(base64Encoded: text) else { return nil }
        return String(validating: data, as: UTF8.self)
    }
}
