/// A path as servers read it that are less exact than a route is.
public struct LenientReading: Equatable, Sendable {
    /// The slash at the path's end was not there.
    public var addsSlash = false
    /// Servers of this kind differ about what the path leads to, so that no one reading of it is to be relied on: two dots behind an empty
    /// segment, with parameters, or beside a separator that is not written as a slash; or such a separator among parameters.
    public var isAmbiguous = false
}

/// Writes the path of a target, without its query, as less exact servers read it: `;` and what follows is taken from each segment
/// (RFC 3986 §3.3 leaves its meaning to the server), letters have no case, and a slash stands at its end. Empty segments go, dot
/// segments are resolved (RFC 3986 §5.2.4), and a backslash or an encoded slash parts segments, too: where no credential is put in,
/// such paths pass.
///
/// Percent-encoded octets are decoded, except those that would mean something else then (`%`, `?`, `#`) or are not printable.
///
/// - Parameters:
///   - target: `RequestHead.path`.
///   - output: needs room for one octet more than `target` has.
public func writeLenientPath(_ target: Span<UInt8>, into output: inout OutputCursor) -> LenientReading {
    var writer = SegmentWriter(at: output.count)
    output.append(byte: 0x2F)
    // The separator that every path begins with.
    var cursor = 1
    while cursor < target.count, target[cursor] != 0x3F {
        let (octet, width) = decodedOctet(target, at: cursor, end: target.count)
        if octet == 0x2F || octet == 0x5C {
            writer.separate(bySlash: octet == 0x2F && width == 1, in: &output)
        } else if octet == 0x3B || writer.isCutting {
            writer.isCutting = true
        } else if width == 3, !isPlain(octet) {
            output.append(target, ByteRange(cursor..<(cursor &+ width)))
        } else {
            output.append(byte: octet &- 0x41 < 26 ? octet | 0x20 : octet)
        }
        cursor &+= width
    }
    writer.end(in: &output)
    return LenientReading(addsSlash: writer.endsInSegment, isAmbiguous: writer.isAmbiguous)
}

private func isPlain(_ octet: UInt8) -> Bool {
    octet > 0x20 && octet < 0x7F && octet != 0x25 && octet != 0x3F && octet != 0x23
}

/// The segments of a path, as they are written one after the other.
private struct SegmentWriter {
    /// Where the path begins, with a slash, and its segment of now.
    private let path: Int
    private var segment: Int
    /// A parameter has begun, which goes.
    var isCutting = false
    private(set) var isAmbiguous = false
    /// Whether the last segment is one of which something is left.
    private(set) var endsInSegment = false
    private var beginsAtSlash = true
    private var followsEmpty = false

    init(at path: Int) {
        self.path = path
        segment = path &+ 1
    }

    mutating func separate(bySlash isSlash: Bool, in output: inout OutputCursor) {
        if isCutting, !isSlash { isAmbiguous = true }
        close(atSlash: isSlash, in: &output)
        segment = output.count
        beginsAtSlash = isSlash
        isCutting = false
    }

    mutating func end(in output: inout OutputCursor) { close(atSlash: true, in: &output) }

    /// Puts a slash behind the segment, unless nothing is left of it.
    private mutating func close(atSlash isSlash: Bool, in output: inout OutputCursor) {
        endsInSegment = false
        var isEmpty = false
        switch output.count &- segment {
        case 0: isEmpty = true
        case 1 where output[segment] == 0x2E: output.rewind(to: segment)
        case 2 where output[segment] == 0x2E && output[segment &+ 1] == 0x2E:
            if isCutting || followsEmpty || !isSlash || !beginsAtSlash { isAmbiguous = true }
            // Up to the slash before the segment before; the first slash stays.
            var end = segment
            if end &- 1 > path {
                end &-= 1
                while output[end &- 1] != 0x2F { end &-= 1 }
            }
            output.rewind(to: end)
        default:
            output.append(byte: 0x2F)
            endsInSegment = true
        }
        followsEmpty = isEmpty
    }
}

/// Whether a path, up to its query, may be another one to `writeLenientPath`, whatever stands at its end.
public func hasLenientReading(_ target: Span<UInt8>) -> Bool {
    var last: UInt8 = 0
    for index in target.indices {
        let octet = target[unchecked: index]
        if octet == 0x3F { return false }
        if octet &- 0x41 < 26 || octet == 0x3B || octet == 0x25 || octet == 0x5C { return true }
        if last == 0x2F, octet == 0x2F || octet == 0x2E { return true }
        last = octet
    }
    return false
}
