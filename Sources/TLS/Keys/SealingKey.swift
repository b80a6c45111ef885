internal import COpenSSL
internal import Octets

/// Why something could not be sealed or opened.
public enum SealingFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// Sealed with a key that is not in the ring; not damage.
    case unknownKey(UInt64)
    /// Not what was sealed, or bound to something else.
    case damaged
    /// A key is 32 bytes: raw, in base 64, or in hexadecimal, and not all alike.
    case badKey
    /// The cipher is not available, or memory is short.
    case unavailable

    /// Names key ids, never key material.
    public var description: String {
        switch self {
        case .unknownKey(let id): "sealed with the unknown key \(SealingKey.name(of: id))"
        case .damaged: "sealed value is damaged"
        case .badKey: "a sealing key is 32 bytes: raw, in base64 or in hexadecimal"
        case .unavailable: "AES-256-GCM is not available"
        }
    }
}

/// A 256-bit key for sealing, with what is derived from it: the cipher's key, the key of keyed hashes, and a public id.
///
/// The bytes lie on a page of their own that is kept out of core dumps, out of swap where `mlock` is allowed, and is wiped at
/// the end. Immutable, so it may be shared between threads.
public final class SealingKey: @unchecked Sendable, CustomStringConvertible {
    /// Bytes of a key as it is given.
    public static let size = 32

    /// Tells keys apart without telling anything about them: the first eight bytes of a keyed hash.
    public let id: UInt64
    /// The cipher's key, then the key of `tag`.
    private let page: KeyPage

    /// - Throws: `.badKey` unless `bytes` are 32 and not all alike (an unwritten or zeroed file).
    public init(bytes: [UInt8]) throws(SealingFault) {
        guard bytes.count == Self.size, bytes.contains(where: { $0 != bytes[0] }) else { throw .badKey }
        guard let page = KeyPage() else { throw .unavailable }
        self.page = page
        // Every purpose has its own key: neither the id nor a tag helps against the cipher.
        var derived =
            keyedHash(key: bytes, Array("cardea seal 1".utf8)) + keyedHash(key: bytes, Array("cardea tag 1".utf8))
        page.start.copyMemory(from: derived, byteCount: 2 * Self.size)
        derived.wipe()
        id = keyedHash(key: bytes, Array("cardea id 1".utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A key file's contents: 32 raw bytes, or base 64 (either alphabet, padding optional) or hexadecimal of them, with at most one
    /// newline behind it.
    public convenience init(fileContents: [UInt8]) throws(SealingFault) {
        var contents = fileContents
        defer { contents.wipe() }
        if contents.count != Self.size, contents.last == UInt8(ascii: "\n") { contents.removeLast() }
        if contents.count != Self.size, contents.last == UInt8(ascii: "\r") { contents.removeLast() }
        if contents.count == Self.size {
            try self.init(bytes: contents)
            return
        }
        let decoded = Base64.decode(contents) ?? Base64.decodeURL(contents)
        guard var bytes = decoded?.count == Self.size ? decoded : Hexadecimal.decode(contents) else { throw .badKey }
        defer { bytes.wipe() }
        try self.init(bytes: bytes)
    }

    /// The key's public id, never its bytes.
    public var description: String { "SealingKey(\(Self.name(of: id)))" }

    /// An id as an operator sees it: 16 hexadecimal digits.
    public static func name(of id: UInt64) -> String {
        Hexadecimal.encode((0..<8).map { UInt8(truncatingIfNeeded: id >> UInt64(56 - 8 * $0)) })
    }

    // MARK: -

    var cipherKey: UnsafePointer<UInt8> { UnsafePointer(page.start.assumingMemoryBound(to: UInt8.self)) }

    /// A name for `bytes` that only holders of the key can compute: 32 bytes.
    public func tag(_ bytes: [UInt8]) -> [UInt8] {
        keyedHash(key: UnsafeRawBufferPointer(start: page.start + Self.size, count: Self.size), bytes)
    }
}
