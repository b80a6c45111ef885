/// Writes the path of a target, without its query, as servers read it that are less exact than a route is: `;` and what follows is taken from
/// each segment (RFC 3986 §3.3 leaves its meaning to the server), letters have no case, and a slash stands at its end. Empty segments go,
/// dot segments are resolved (RFC 3986 §5.2.4), and a backslash or an encoded slash parts segments, too: where no credential is put
/// in, such paths pass.
///
/// Percent-encoded unreserved characters are decoded; what else is encoded stays so.
///
/// - Parameters:
///   - target: `RequestHead.path`.
///   - output: needs room for one octet more than `target` has.
/// - Returns: whether the slash at the end was not there.
public func writeLenientPath(_ target: Span<UInt8>, into output: inout OutputCursor) -> Bool {
    let start = output.count
    output.append(byte: 0x2F)
    var segment = output.count
    var isCutting = false
    // The separator that every path begins with.
    var cursor = 1
    while cursor < target.count, target[cursor] != 0x3F {
        let (octet, width) = decodedOctet(target, at: cursor, end: target.count)
        if octet == 0x2F || octet == 0x5C {
            _ = output.endSegment(from: segment, of: start)
            segment = output.count
            isCutting = false
        } else if octet == 0x3B || isCutting {
            isCutting = true
        } else if width == 3, !OctetClass.unreserved.contains(octet) {
            output.append(target, ByteRange(cursor..<(cursor &+ width)))
        } else {
            output.append(byte: octet &- 0x41 < 26 ? octet | 0x20 : octet)
        }
        cursor &+= width
    }
    return output.endSegment(from: segment, of: start)
}

extension OutputCursor {
    /// Puts a slash behind the segment, unless nothing is left of it.
    /// - Parameters:
    ///   - segment: where it begins.
    ///   - path: where the path begins, with a slash.
    /// - Returns: whether there is a segment.
    fileprivate mutating func endSegment(from segment: Int, of path: Int) -> Bool {
        switch count &- segment {
        case 0: return false
        case 1 where self[segment] == 0x2E: rewind(to: segment)
        case 2 where self[segment] == 0x2E && self[segment &+ 1] == 0x2E:
            // Up to the slash before the segment before; the first slash stays.
            var end = segment
            if end &- 1 > path {
                end &-= 1
                while self[end &- 1] != 0x2F { end &-= 1 }
            }
            rewind(to: end)
        default:
            append(byte: 0x2F)
            return true
        }
        return false
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
