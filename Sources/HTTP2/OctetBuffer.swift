internal import Glibc

/// Bytes that are put together piece by piece, in memory that stays for the next time.
///
/// Whoever appends bounds what is appended.
struct OctetBuffer: ~Copyable {
    private(set) var count = 0
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// What stays between two uses. More was one large head's, and would be an idle connection's for good.
    private static let kept = 2048

    deinit { memory.deallocate() }
}

// MARK: -

extension OctetBuffer {
    /// Valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory.baseAddress, count: count) }

    subscript(range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        let place = reserve(bytes.count)
        memcpy(place, source, bytes.count)
        count += bytes.count
    }

    mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(_ octet: UInt8) {
        reserve(1).storeBytes(of: octet, as: UInt8.self)
        count += 1
    }

    /// A field line, its end included.
    mutating func append(line name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        var place = reserve(name.count + value.count + 4)
        count += name.count + value.count + 4
        if let source = name.baseAddress { memcpy(place, source, name.count) }
        place += name.count
        place.storeBytes(of: 0x203a as UInt16, as: UInt16.self)
        place += 2
        if let source = value.baseAddress { memcpy(place, source, value.count) }
        place += value.count
        place.storeBytes(of: 0x0a0d as UInt16, as: UInt16.self)
    }

    mutating func clear() {
        count = 0
        guard memory.count > Self.kept else { return }
        memory.deallocate()
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// - Returns: where the next `size` bytes go.
    private mutating func reserve(_ size: Int) -> UnsafeMutableRawPointer {
        if let base = memory.baseAddress, memory.count - count >= size { return base + count }
        return grow(by: size)
    }

    private mutating func grow(by size: Int) -> UnsafeMutableRawPointer {
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(512, 2 * memory.count, count + size), alignment: 16)
        if count > 0 { larger.copyMemory(from: bytes) }
        memory.deallocate()
        memory = larger
        // Never empty: at least 512 bytes were asked for.
        return larger.baseAddress! + count
    }
}
