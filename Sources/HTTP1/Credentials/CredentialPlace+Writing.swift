// Where the credential is no field of its own: the caller's parameters or cookies of its name go, ours is added behind
// what is left, and every other byte stays as it came.

/// The path, the parameters that are not ours, then ours.
func writeQuery(
    _ path: ByteRange, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ output: inout OutputCursor
) {
    let end = Int(path.end)
    var cursor = Int(path.start)
    while cursor < end, bytes[cursor] != 0x3F { cursor &+= 1 }
    output.append(bytes, ByteRange(Int(path.start)..<cursor))
    let isEmpty = end &- cursor < 2
    var separator: UInt8 = 0x3F
    // A part begins behind `?`, `&` or `;`, which some servers read as `&`, and takes the mark before it along.
    while cursor < end, !isEmpty {
        let mark = separator == 0x3F ? separator : bytes[cursor]
        let start = cursor &+ 1
        cursor = start
        while cursor < end, bytes[cursor] != 0x26, bytes[cursor] != 0x3B { cursor &+= 1 }
        var nameEnd = start
        while nameEnd < cursor, bytes[nameEnd] != 0x3D { nameEnd &+= 1 }
        let isOurs = edits.place == .query && isCarrier(ByteRange(start..<nameEnd), bytes, named: edits.placeName.span)
        if isOurs || edits.dropsPlaceholders && bytes.holdsPlaceholder(ByteRange(start..<cursor)) { continue }
        output.append(byte: mark)
        output.append(bytes, ByteRange(start..<cursor))
        separator = 0x26
    }
    if isEmpty, credential == nil { return output.append(bytes, ByteRange(cursor..<end)) }
    if let credential {
        output.append(byte: separator)
        output.append(credential)
    }
}

/// Writes a `Cookie` line without the cookies that are not the caller's to send, and with ours where `credential` is given.
func writeCookies<Sink: HeadSink & ~Copyable>(
    _ value: ByteRange, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ sink: inout Sink
) {
    var isOpen = false
    var cursor = Int(value.start)
    let end = Int(value.end)
    while cursor < end {
        let start = cursor
        // A comma parts cookies for servers of RFC 2109; in values that have one for themselves it stays.
        while cursor < end, bytes[cursor] != 0x3B, bytes[cursor] != 0x2C { cursor &+= 1 }
        let pair = bytes.trimmed(start..<cursor)
        let received = ByteRange(start..<cursor)
        cursor &+= 1
        let isOurs = edits.place == .cookie && isCookie(pair, bytes, named: edits.placeName.span)
        if pair.isEmpty || isOurs || edits.dropsPlaceholders && bytes.holdsPlaceholder(pair) { continue }
        // With the mark and the blanks it came with: the line never grows by more than the credential.
        if isOpen {
            sink.output.append(byte: bytes[start &- 1])
            sink.output.append(bytes, received)
        } else {
            sink.begin("Cookie: ", .cookie)
            sink.output.append(bytes, pair)
        }
        isOpen = true
    }
    if let credential {
        if isOpen { sink.output.append("; ") } else { sink.begin("Cookie: ", .cookie) }
        sink.output.append(credential)
        isOpen = true
    }
    if isOpen { sink.end() }
}

/// Whether a pair of the `Cookie` field has the name of ours.
func isCookie(_ pair: ByteRange, _ bytes: Span<UInt8>, named name: Span<UInt8>) -> Bool {
    var end = Int(pair.start)
    while end < Int(pair.end), bytes[end] != 0x3D { end &+= 1 }
    return isCarrier(bytes.trimmed(Int(pair.start)..<end), bytes, named: name)
}
