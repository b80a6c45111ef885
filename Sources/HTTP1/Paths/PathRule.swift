internal import Octets

/// The verdict of a strict route on a path.
///
/// Each refused shape is one that two servers read as different paths, so a rule checked on one would not hold on the
/// other.
public enum PathVerdict: UInt8, Sendable, Equatable {
    case clean
    /// `.` or `..` as a segment, also percent-encoded and also before a `;` parameter.
    case dotSegment
    /// `%2F`, `%5C` or a plain `\`.
    case encodedSeparator
    /// `//`.
    case emptySegment
    /// `%00`.
    case nul
    /// `%` without two hex digits.
    case malformedEscape
    /// The target has no path that could be judged.
    case notAPath
}

// MARK: - Strictness

/// Judges the path of a target, up to its query.
///
/// - Parameter target: `RequestHead.path`. An empty path and a lone `*` are clean.
public func validateStrictPath(_ target: Span<UInt8>) -> PathVerdict {
    if target.isEmpty || target[0] == 0x3F { return .clean }
    if target.count == 1, target[0] == 0x2A { return .clean }
    guard target[0] == 0x2F else { return .notAPath }
    var dots = 0
    // Whether the segment so far is nothing but dots, and whether it has anything at all.
    var onlyDots = true
    var isEmptySegment = true
    var cursor = 1
    while cursor < target.count, target[cursor] != 0x3F {
        let raw = target[cursor]
        if raw == 0x2F {
            if isEmptySegment { return .emptySegment }
            if onlyDots, dots == 1 || dots == 2 { return .dotSegment }
            dots = 0
            onlyDots = true
            isEmptySegment = true
            cursor &+= 1
            continue
        }
        let (octet, width) = decodedOctet(target, at: cursor, end: target.count)
        if raw == 0x25 {
            if width == 1 { return .malformedEscape }
            if octet == 0 { return .nul }
            if octet == 0x2F { return .encodedSeparator }
        }
        if octet == 0x5C { return .encodedSeparator }
        if octet == 0x3B, onlyDots, dots == 1 || dots == 2 { return .dotSegment }
        if octet == 0x2E { dots &+= 1 } else { onlyDots = false }
        isEmptySegment = false
        cursor &+= width
    }
    if onlyDots, dots == 1 || dots == 2 { return .dotSegment }
    return .clean
}

// MARK: - Matching

/// Whether the path of `target`, without its query, starts with `prefix`.
///
/// Percent-encoded unreserved characters equal the characters themselves and hex digits have no case
/// (RFC 3986 §6.2.2); everything else is compared octet by octet.
public func pathMatches(_ target: Span<UInt8>, prefix: Span<UInt8>) -> Bool {
    matchedLength(target, prefix: prefix) != nil
}

/// Whether the path of `target`, without its query, is `exact`, compared as for a prefix.
public func pathMatches(_ target: Span<UInt8>, exact: Span<UInt8>) -> Bool {
    guard let length = matchedLength(target, prefix: exact) else { return false }
    return length == target.count || target[length] == 0x3F
}

/// How many received bytes of the path `prefix` covers when it ends where a segment does, or nil: `/v1` is no prefix to
/// take from `/v10`.
func strippableLength(_ target: Span<UInt8>, prefix: Span<UInt8>) -> Int? {
    guard !prefix.isEmpty, let length = matchedLength(target, prefix: prefix) else { return nil }
    if prefix[prefix.count - 1] == 0x2F || length == target.count { return length }
    return target[length] == 0x2F || target[length] == 0x3F ? length : nil
}

/// How many received bytes of the path `prefix` covers, or nil.
public func matchedLength(_ target: Span<UInt8>, prefix: Span<UInt8>) -> Int? {
    // Most octets stand for themselves on both sides.
    let shorter = min(target.count, prefix.count)
    var cursor = 0
    while cursor < shorter {
        let octet = target[unchecked: cursor]
        guard octet == prefix[unchecked: cursor], octet != 0x25, octet != 0x3F else { break }
        cursor &+= 1
    }
    var expected = cursor
    while expected < prefix.count {
        guard cursor < target.count, target[cursor] != 0x3F else { return nil }
        let (left, leftWidth) = normalizedOctet(target, at: cursor)
        let (right, rightWidth) = normalizedOctet(prefix, at: expected)
        guard left == right else { return nil }
        cursor &+= leftWidth
        expected &+= rightWidth
    }
    return cursor
}

/// Numbers for the beginnings of a path, one after each segment: the same for two paths whenever the segments up to there are the same by
/// the rules of `matchedLength`. A slash at the end begins no further segment; without one at the beginning there are none.
public struct SegmentHashes: ~Copyable {
    private var hash: UInt32 = 0x811C_9DC5
    private var cursor = 0

    /// Stands before the first segment.
    public init() {}

    /// - Parameter target: the same in every call; a query ends it.
    /// - Returns: the number after the next segment; nil when there is none.
    public mutating func next(in target: Span<UInt8>) -> UInt32? {
        guard cursor < target.count, target[cursor] == 0x2F else { return nil }
        var end = cursor &+ 1
        guard cursor == 0 || end < target.count && target[end] != 0x3F else { return nil }
        // Distinct from every octet, so that no two segments look like one.
        var hash = (hash ^ 0x1_0000) &* 0x0100_0193
        while end < target.count, target[end] != 0x2F, target[end] != 0x3F {
            let (value, width) = normalizedOctet(target, at: end)
            hash = (hash ^ UInt32(value)) &* 0x0100_0193
            end &+= width
        }
        self.hash = hash
        cursor = end
        return hash
    }
}

/// The octet at `cursor` and its width: 3 for a percent-encoded one, 1 for a plain one or a `%` that encodes nothing.
@inline(__always)
func decodedOctet(_ bytes: Span<UInt8>, at cursor: Int, end: Int) -> (octet: UInt8, width: Int) {
    let octet = bytes[cursor]
    guard octet == 0x25, cursor &+ 2 < end, let high = bytes[cursor &+ 1].hexValue,
        let low = bytes[cursor &+ 2].hexValue
    else { return (octet, 1) }
    return (high << 4 | low, 3)
}

/// The same as `decodedOctet`, except that an encoded octet which is not unreserved stays apart from the plain one by 256.
@inline(__always)
private func normalizedOctet(_ bytes: Span<UInt8>, at cursor: Int) -> (value: UInt16, width: Int) {
    let (octet, width) = decodedOctet(bytes, at: cursor, end: bytes.count)
    if width == 3, !OctetClass.unreserved.contains(octet) { return (UInt16(octet) + 256, 3) }
    return (UInt16(octet), width)
}
