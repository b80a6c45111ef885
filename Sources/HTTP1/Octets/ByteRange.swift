/// Offsets into the bytes that were parsed.
///
/// Received bytes stay where they are; everything this module finds in them is told as a range. `Int32` keeps an
/// index of fields small, and a head is bounded far below 2 GiB.
public struct ByteRange: Sendable, Equatable {
    /// Offset of the first octet.
    public var start: Int32
    /// Octets.
    public var count: Int32

    /// Neither value is checked.
    @inlinable
    public init(start: Int32, count: Int32) {
        self.start = start
        self.count = count
    }
}

// MARK: -

extension ByteRange {
    /// Nothing at all, at offset 0.
    @inlinable
    public static var empty: ByteRange { ByteRange(start: 0, count: 0) }

    /// The offset after the last byte.
    @inlinable
    public var end: Int32 { start + count }

    /// No octets; `start` may still tell a position.
    @inlinable
    public var isEmpty: Bool { count == 0 }

    /// The same range for subscripts and `Span.extracting`.
    @inlinable
    public var indices: Range<Int> { Int(start)..<Int(start) + Int(count) }

    /// The caller has bounded both ends by a limit that fits `Int32`.
    @inlinable
    public init(_ range: Range<Int>) {
        self.init(start: Int32(range.lowerBound), count: Int32(range.count))
    }

    /// Both ends lie in a head that was measured before.
    @inline(__always)
    init(unchecked start: Int, _ end: Int) {
        self.init(start: Int32(truncatingIfNeeded: start), count: Int32(truncatingIfNeeded: end &- start))
    }
}
