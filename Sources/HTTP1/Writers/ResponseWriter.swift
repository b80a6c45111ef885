/// Writes a received response for the caller, as HTTP/1.1 (the version is ours, RFC 9110 §2.5).
///
/// Untouched lines are copied byte for byte, in order, whole runs at once; folded lines and blanks before a colon are
/// written repaired.
///
/// - Parameters:
///   - head: parsed from `bytes`, complete.
///   - callerOrigin: as `RequestHead.writeCallerOrigin` gave it, for `edits.addresses`.
///   - isPrivate: say `Cache-Control: private`.
///   - lines: ready lines of this exchange, each with its CRLF.
///   - framing: how the body will be sent, usually `head.outgoingFraming`.
///   - callerMinorVersion: of the request; an HTTP/1.0 caller is told when the connection stays open.
///   - close: say `Connection: close`; implied by `.untilClose`.
///   - upgrade: write `Connection: upgrade` and the upstream's `Upgrade` (for a 101 that is passed on).
///   - output: look at `overflowed` afterwards.
/// - Precondition: the head is complete.
public func writeResponse(
    _ head: borrowing ResponseHead, bytes: Span<UInt8>, edits: borrowing ResponseEdits,
    callerOrigin: Span<UInt8> = Span(), isPrivate: Bool = false, lines: Span<UInt8> = Span(), framing: BodyFraming,
    callerMinorVersion: UInt8, close: Bool, upgrade: Bool = false, into output: inout OutputCursor
) {
    var sink = LineSink(output)
    write(
        head, bytes, edits, callerOrigin, isPrivate, lines, framing, callerMinorVersion: callerMinorVersion,
        close: close,
        upgrade: upgrade, &sink)
    output = sink.output
}

/// The same for HTTP/2: what it says of its connection is left out.
///
/// - Parameter output: begun; look at `overflowed` afterwards.
public func writeResponse(
    _ head: borrowing ResponseHead, bytes: Span<UInt8>, edits: borrowing ResponseEdits,
    callerOrigin: Span<UInt8> = Span(), isPrivate: Bool = false, lines: Span<UInt8> = Span(), framing: BodyFraming,
    into output: inout OutgoingHead
) {
    write(
        head, bytes, edits, callerOrigin, isPrivate, lines, framing, callerMinorVersion: 1, close: false,
        upgrade: false, &output)
}

private func write<Sink: HeadSink & ~Copyable>(
    _ head: borrowing ResponseHead, _ bytes: Span<UInt8>, _ edits: borrowing ResponseEdits, _ callerOrigin: Span<UInt8>,
    _ isPrivate: Bool, _ lines: Span<UInt8>, _ framing: BodyFraming, callerMinorVersion: UInt8, close: Bool,
    upgrade: Bool,
    _ sink: inout Sink
) {
    precondition(head.length > 0)
    sink.put(status: head.status, reason: head.reason, of: bytes)
    for index in 0..<head.fieldCount {
        let field = head[index]
        if isDropped(field, bytes, edits) { continue }
        if edits.addresses.isOn, isAddress(field) {
            sink.flush(bytes)
            if !writeMapped(field, bytes, edits.addresses, callerOrigin, &sink) { sink.keep(field, of: bytes) }
        } else if field.needsRepair {
            sink.flush(bytes)
            sink.begin(field, of: bytes)
            writeUnfolded(field.value, bytes, &sink.output)
            sink.end()
        } else {
            sink.keep(field, of: bytes)
        }
    }
    sink.flush(bytes)

    if isPrivate { sink.put(line: "Cache-Control: private\r\n", .cacheControl) }
    sink.put(lines: lines)
    if !edits.via.isEmpty {
        writeVia(head.minorVersion, edits.via.span, &sink)
    }
    if Sink.hasConnectionFields {
        if upgrade, let protocols = head.first(.upgrade) {
            sink.output.append("Connection: upgrade\r\nUpgrade: ")
            writeUnfolded(protocols, bytes, &sink.output)
            sink.output.append("\r\n")
        } else if close || framing == .untilClose {
            sink.output.append("Connection: close\r\n")
        } else if callerMinorVersion == 0, head.status >= 200 {
            sink.output.append("Connection: keep-alive\r\n")
        }
    }
    framing.write(into: &sink)
    sink.finish()
}

// MARK: -

private func isDropped(_ field: Field, _ bytes: Span<UInt8>, _ edits: borrowing ResponseEdits) -> Bool {
    if ResponseEdits.ownedByHop & field.resembles.bit != 0 || field.marks.contains(.nominated) { return true }
    if field.resembles == .trailer { return !edits.keepsTrailer }
    if field.known == .setCookie, !edits.dropCookies.isEmpty {
        var end = Int(field.value.start)
        while end < Int(field.value.end), bytes[end] != 0x3D, bytes[end] != 0x3B { end &+= 1 }
        let name = bytes.trimmed(Int(field.value.start)..<end)
        if edits.dropCookies.covers(bytes.extracting(name.indices)) { return true }
    }
    return edits.drop.covers(field, in: bytes)
}

/// A field that may name the upstream. A folded one is left to be repaired: what names an address is short.
private func isAddress(_ field: Field) -> Bool {
    let named = KnownField.location.bit | KnownField.contentLocation.bit | KnownField.setCookie.bit
    return named & field.known.bit != 0 && !field.needsRepair
}

/// False, and nothing written, for a field that names something else.
private func writeMapped<Sink: HeadSink & ~Copyable>(
    _ field: Field, _ bytes: Span<UInt8>, _ addresses: borrowing AddressMap, _ origin: Span<UInt8>,
    _ sink: inout Sink
) -> Bool {
    let mark = sink.output.count
    sink.begin(field, of: bytes)
    let value = bytes.extracting(field.value.indices)
    let isMapped =
        field.known == .setCookie
        ? addresses.write(cookie: value, origin: origin, into: &sink.output)
        : addresses.write(location: value, origin: origin, into: &sink.output)
    guard isMapped else {
        sink.output.rewind(to: mark)
        return false
    }
    sink.end()
    return true
}

/// A fold, with the blanks around it, becomes one blank (RFC 9112 §5.2).
func writeUnfolded(_ value: ByteRange, _ bytes: Span<UInt8>, _ output: inout OutputCursor) {
    var cursor = Int(value.start)
    let end = Int(value.end)
    while cursor < end {
        let start = cursor
        while cursor < end, !isLineBreak(bytes[cursor]) { cursor &+= 1 }
        var kept = cursor
        // Only before a fold: the end of the value is trimmed already.
        if cursor < end {
            while kept > start, isBlank(bytes[kept &- 1]) { kept &-= 1 }
        }
        output.append(bytes, ByteRange(start..<kept))
        guard cursor < end else { return }
        while cursor < end, isBlank(bytes[cursor]) || isLineBreak(bytes[cursor]) { cursor &+= 1 }
        output.append(byte: 0x20)
    }
}
