internal import Octets

enum UUIDText {
    /// A random UUID (RFC 9562 §5.4) out of 16 bytes.
    static func version4(_ entropy: [UInt8]) -> [UInt8] {
        var bytes = Array(entropy.prefix(16)) + Array(repeating: 0, count: Swift.max(0, 16 - entropy.count))
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let hex = Hexadecimal.octets(of: bytes)
        let cuts = [0, 8, 12, 16, 20, 32]
        return Array(zip(cuts, cuts.dropFirst()).map { Array(hex[$0..<$1]) }.joined(separator: [UInt8(ascii: "-")]))
    }
}
