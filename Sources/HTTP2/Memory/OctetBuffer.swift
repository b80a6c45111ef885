internal import Glibc

/// Bytes that are put together piece by piece, in memory that stays for the next time.
///
/// Whoever appends bounds what is appended.
struct OctetBuffer: ~Copyable {
    private(set) var count = 0
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// The capacity that stays between two uses. More was one large head's, and would be an idle connection's for good.
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
        copyOctets(source, to: reserve(bytes.count), bytes.count)
        count += bytes.count
    }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        append(Self.bytes(of: text))
    }

    /// Two parts, each with a constant behind it.
    @inline(__always)
    mutating func append(
        _ first: UnsafeRawBufferPointer, _ between: StaticString, _ second: UnsafeRawBufferPointer, _ end: StaticString
    ) {
        let total = first.count &+ between.utf8CodeUnitCount &+ second.count &+ end.utf8CodeUnitCount
        var target = reserve(total)
        count &+= total
        if let source = first.baseAddress { copyOctets(source, to: target, first.count) }
        target += first.count
        copyOctets(between.utf8Start, to: target, between.utf8CodeUnitCount)
        target += between.utf8CodeUnitCount
        if let source = second.baseAddress { copyOctets(source, to: target, second.count) }
        target += second.count
        copyOctets(end.utf8Start, to: target, end.utf8CodeUnitCount)
    }

    @inline(__always)
    static func bytes(of text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    static var none: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    mutating func clear() {
        count = 0
        guard memory.count > Self.kept else { return }
        memory.deallocate()
        memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// - Returns: where the next `size` bytes go.
    @inline(__always)
    private mutating func reserve(_ size: Int) -> UnsafeMutableRawPointer {
        if let base = memory.baseAddress, memory.count &- count >= size { return base + count }
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

/// By two loads that overlap, up to a length that most names and values do not reach: for them a call costs more than what it does.
@inline(__always)
private func copyOctets(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ count: Int) {
    if count > 32 {
        memcpy(target, source, count)
    } else if count >= 16 {
        copyEnds(source, to: target, count, of: SIMD16<UInt8>.self)
    } else if count >= 8 {
        copyEnds(source, to: target, count, of: UInt64.self)
    } else if count >= 4 {
        copyEnds(source, to: target, count, of: UInt32.self)
    } else if count > 0 {
        copyEnds(source, to: target, count, of: UInt8.self)
        target.storeBytes(
            of: source.load(fromByteOffset: count >> 1, as: UInt8.self), toByteOffset: count >> 1, as: UInt8.self)
    }
}

/// The first octets and the last, of one word each; they meet or overlap where there are no more than two words.
@inline(__always)
private func copyEnds<Word: BitwiseCopyable>(
    _ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ count: Int, of word: Word.Type
) {
    let last = count &- MemoryLayout<Word>.size
    target.storeBytes(of: source.loadUnaligned(as: word), as: word)
    target.storeBytes(of: source.loadUnaligned(fromByteOffset: last, as: word), toByteOffset: last, as: word)
}
