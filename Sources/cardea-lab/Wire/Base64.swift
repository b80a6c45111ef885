import FoundationEssentials

/// Base64 with padding (RFC 4648 §4), and its form for URLs without (RFC 4648 §5).
enum Base64 {
    static func encode(_ bytes: some Sequence<UInt8>) -> String { Data(bytes).base64EncodedString() }

    /// Nil unless `text` is padded base64 of UTF-8 text.
    static func decodeText(_ text: some StringProtocol) -> String? {
        Data(base64Encoded: String(text)).flatMap { String(validating: $0, as: UTF8.self) }
    }

    static func encodeURL(_ bytes: some Sequence<UInt8>) -> String {
        encode(bytes).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    static func decodeURL(_ text: some StringProtocol) -> [UInt8]? {
        guard !text.contains(where: { "+/=".contains($0) }) else { return nil }
        let padding = String(repeating: "=", count: -text.utf8.count & 3)
        let padded = String(text).replacing("-", with: "+").replacing("_", with: "/") + padding
        return Data(base64Encoded: padded).map(Array.init)
    }
}
