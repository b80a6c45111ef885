/// Writes the path of a target, without its query, as servers read it that are less exact than a route is: `;` and what follows is taken from
/// each segment (RFC 3986 §3.3 leaves its meaning to the server), letters have no case, and a slash stands at its end.
///
/// A segment of which nothing is left goes, too. Percent-encoded unreserved characters are decoded; what else is encoded stays so.
///
/// - Parameters:
///   - target: `RequestHead.path`.
///   - output: needs room for one octet more than `target` has.
/// - Returns: whether the slash at the end was not there.
public func writeLenientPath(_ target: Span<UInt8>, into output: inout OutputCursor) -> Bool {
    var last: UInt8 = 0
    var isCutting = false
    var cursor = 0
    while cursor < target.count, target[cursor] != 0x3F {
        let (octet, width) = decodedOctet(target, at: cursor, end: target.count)
        let start = cursor
        cursor &+= width
        if octet == 0x2F, width == 1 {
            if !isCutting || last != 0x2F { output.append(byte: 0x2F) }
            isCutting = false
            last = 0x2F
        } else if octet == 0x3B || isCutting {
            isCutting = true
        } else if width == 3, !OctetClass.unreserved.contains(octet) {
            output.append(target, ByteRange(start..<cursor))
            last = octet == 0x2F ? 0x25 : octet
        } else {
            last = octet &- 0x41 < 26 ? octet | 0x20 : octet
            output.append(byte: last)
        }
    }
    if last == 0x2F { return false }
    output.append(byte: 0x2F)
    return true
}

/// Whether a path, up to its query, may be another one to `writeLenientPath`, whatever stands at its end.
public func hasLenientReading(_ target: Span<UInt8>) -> Bool {
    for index in target.indices {
        let octet = target[unchecked: index]
        if octet == 0x3F { return false }
        if octet &- 0x41 < 26 || octet == 0x3B || octet == 0x25 { return true }
    }
    return false
}
