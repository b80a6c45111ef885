internal import Glibc
package import HTTP1
internal import Octets

// Received bytes by offset, as the head indices name them.

extension UnsafeRawBufferPointer {
    package subscript(range: ByteRange) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[range.indices])
    }

    /// The bytes for the pure modules. The block they lie in outlives the call that gets them; nothing of it is kept.
    package var octets: Span<UInt8> {
        @_lifetime(immortal)
        get { _overrideLifetime(Span(_unsafeBytes: self), copying: ()) }
    }
}

extension OutputCursor {
    /// The bytes that were written into `memory`, from which the cursor was made.
    package func written(in memory: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[..<count])
    }
}

/// Compares with a name that is in lower case already.
package func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ lowercase: [UInt8]) -> Bool {
    guard bytes.count == lowercase.count else { return false }
    for index in 0..<lowercase.count where bytes[index].asciiLowercased != lowercase[index] { return false }
    return true
}

func equals(_ bytes: UnsafeRawBufferPointer, _ expected: [UInt8]) -> Bool {
    bytes.count == expected.count && expected.withUnsafeBytes { $0.elementsEqual(bytes) }
}

/// Type and subtype of a `Content-Type`, without its parameters (RFC 9110 §8.3.1).
func mediaType(of field: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
        rebasing: field.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 })
}

extension UnsafeRawBufferPointer {
    /// Without this end, where it has it.
    func without(_ end: [UInt8]) -> UnsafeRawBufferPointer {
        guard count > end.count else { return self }
        let start = count - end.count
        return equals(UnsafeRawBufferPointer(rebasing: self[start...]), end)
            ? UnsafeRawBufferPointer(rebasing: self[..<start]) : self
    }
}
