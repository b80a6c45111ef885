internal import Octets

/// Bytes as they came, compared as bytes. `String` compares by canonical equivalence, which would make two keys of one.
public struct ByteString: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The bytes, never decoded.
    public let bytes: [UInt8]

    /// Copies the bytes.
    public init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
    /// The UTF-8 of the text.
    public init(_ text: String) { bytes = Array(text.utf8) }
    /// The UTF-8 of the literal.
    public init(stringLiteral text: String) { self.init(text) }

    /// How many bytes there are.
    public var count: Int { bytes.count }

    /// Byte by byte; a prefix is less than what it begins.
    public static func < (left: ByteString, right: ByteString) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// Printable ASCII as it is, the rest as `%XX`: realms come from the network.
    public var description: String {
        var text: [UInt8] = []
        for byte in bytes {
            if (0x20...0x7E).contains(byte), byte != 0x25 { text.append(byte) } else { text.appendEscape(byte) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
