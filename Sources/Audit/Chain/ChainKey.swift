internal import Octets
internal import TLS

/// The key of one group of records: 32 octets, wiped when the last reference goes.
///
/// The key of the next group follows from it and never the other way round, so whoever takes the key of today cannot write records of
/// yesterday: K(n + 1) = HMAC-SHA-256(K(n), "cardea audit next 1").
package final class ChainKey: Sendable {
    // Written once in `init`, read-only until `deinit`: nothing to race with.
    private nonisolated(unsafe) let octets: UnsafeMutableRawBufferPointer

    /// Octets of a key.
    package static let size = 32
    private static let label = Array("cardea audit next 1".utf8)

    /// Takes 32 octets and wipes the array where nobody else holds it; nil for another number of them, or for octets that are all alike.
    package init?(wiping source: consuming [UInt8]) {
        var source = source
        defer { source.wipe() }
        guard source.count == Self.size, source.contains(where: { $0 != source[0] }) else { return nil }
        octets = .allocate(byteCount: Self.size, alignment: 8)
        octets.copyBytes(from: source)
    }

    /// 64 hexadecimal digits, with blanks and line ends around them.
    package convenience init?(text: ArraySlice<UInt8>) {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
        guard let start = text.firstIndex(where: { !isBlank($0) }), let end = text.lastIndex(where: { !isBlank($0) }),
            let decoded = Hexadecimal.decode(text[start...end])
        else { return nil }
        self.init(wiping: decoded)
    }

    deinit {
        octets.wipe()
        octets.deallocate()
    }

    /// The key of the next group.
    package func next() -> ChainKey { ChainKey(after: UnsafeRawBufferPointer(octets)) }

    /// The code of a record (HMAC-SHA-256): 32 octets.
    /// - Parameter message: the code of the record before it, then its text. It is never as short as the text that `next` hashes.
    func code(of message: [UInt8]) -> [UInt8] { keyedHash(key: UnsafeRawBufferPointer(octets), message) }

    private init(after last: UnsafeRawBufferPointer) {
        var code = keyedHash(key: last, Self.label)
        octets = .allocate(byteCount: Self.size, alignment: 8)
        octets.copyBytes(from: code)
        code.wipe()
    }

    /// 64 hexadecimal digits, for the key file and for the one time that the first key is handed out. Whoever gets them wipes them.
    package var digits: [UInt8] {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * Self.size)
        for octet in octets {
            digits.append(Hexadecimal.digit(octet >> 4))
            digits.append(Hexadecimal.digit(octet & 0x0F))
        }
        return digits
    }

    /// Whether both are the same, in constant time.
    func isSame(as other: ChainKey) -> Bool {
        UnsafeRawBufferPointer(octets).isEqualInConstantTime(to: UnsafeRawBufferPointer(other.octets))
    }
}
