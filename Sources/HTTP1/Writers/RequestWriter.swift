/// Writes a received request for the upstream, as HTTP/1.1.
///
/// Lines that nothing touches are copied byte for byte, in order, whole runs at once. What the caller sent under a name
/// that we inject is gone before anything is injected, and a caller's `Connection` acts before the injection too:
/// naming `Authorization` or `Host` there removes the caller's copy and never ours.
///
/// - Parameters:
///   - head: parsed from `bytes`, complete.
///   - credential: ready bytes as `edits.place` asks for; nil writes none and still deletes the caller's copies.
///   - hop: what this request says of the connection it came on.
///   - framing: how the body will be sent; `.untilClose` does not exist for requests and counts as `.none`.
///   - expectContinue: write `Expect: 100-continue`; the caller's own is always deleted.
///   - upgrade: write `Connection: upgrade` and the caller's `Upgrade`.
///   - asHEAD: write the method HEAD in the received one's place; `framing` is `.none` then.
///   - output: look at `overflowed` afterwards.
/// - Precondition: the head is complete and its target is not in authority form.
public func writeRequest(
    _ head: borrowing RequestHead, bytes: Span<UInt8>, edits: borrowing RequestEdits, credential: Span<UInt8>?,
    hop: borrowing ForwardedHop = .untouched, framing: BodyFraming, expectContinue: Bool = false,
    upgrade: Bool = false, asHEAD: Bool = false, into output: inout OutputCursor
) {
    var sink = LineSink(output)
    write(
        head, bytes, edits, credential, hop, framing, expectContinue: expectContinue, upgrade: upgrade, asHEAD: asHEAD,
        &sink)
    output = sink.output
}

/// The same for HTTP/2: what it says of its connection is left out.
///
/// - Parameter output: begun; look at `overflowed` afterwards.
public func writeRequest(
    _ head: borrowing RequestHead, bytes: Span<UInt8>, edits: borrowing RequestEdits, credential: Span<UInt8>?,
    hop: borrowing ForwardedHop = .untouched, framing: BodyFraming, expectContinue: Bool = false,
    asHEAD: Bool = false, into output: inout OutgoingHead
) {
    write(
        head, bytes, edits, credential, hop, framing, expectContinue: expectContinue, upgrade: false, asHEAD: asHEAD,
        &output)
}

private func write<Sink: HeadSink & ~Copyable>(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ hop: borrowing ForwardedHop, _ framing: BodyFraming, expectContinue: Bool, upgrade: Bool, asHEAD: Bool,
    _ sink: inout Sink
) {
    precondition(head.length > 0)
    sink.put(method: head.method, of: bytes, asHEAD: asHEAD)
    writeTarget(head, bytes, edits, credential, &sink)
    if edits.host.isEmpty {
        sink.put(host: head.host ?? .empty, of: bytes)
    } else {
        sink.put(host: edits.host.span)
    }

    writeReceivedFields(head, bytes, edits, credential, hop, &sink)

    if edits.userAgentMode != .keep, !head.contains(.userAgent) {
        writeUserAgent(nil, bytes, edits, &sink)
    }
    sink.put(lines: edits.setLines.span)
    hop.write(head, bytes, into: &sink)
    if let credential {
        switch edits.place {
        case .header:
            sink.put(lines: credential)
        case .cookie where !head.contains(.cookie):
            sink.begin("Cookie: ", .cookie)
            sink.output.append(credential)
            sink.end()
        case .cookie, .query:
            break
        }
    }
    if !edits.via.isEmpty {
        writeVia(head.minorVersion, edits.via.span, &sink)
    }
    if expectContinue { sink.put(line: "Expect: 100-continue\r\n", .expect) }
    if Sink.hasConnectionFields, upgrade, let protocols = head.first(.upgrade) {
        sink.output.append("Connection: upgrade\r\nUpgrade: ")
        sink.output.append(bytes, protocols)
        sink.output.append("\r\n")
    }
    framing.write(into: &sink)
    sink.finish()
}

// MARK: - Fields

private enum LineVerdict {
    case keep
    case drop
    case edit
}

private func writeReceivedFields<Sink: HeadSink & ~Copyable>(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ hop: borrowing ForwardedHop, _ sink: inout Sink
) {
    var seenUserAgent = false
    var seenCookie = false
    let mapsAddresses = !edits.destinationScheme.isEmpty && head.knownMethod.mayName
    for index in 0..<head.fieldCount {
        let field = head[index]
        switch verdict(field, head, bytes, edits, hop) {
        case .keep where mapsAddresses && field.holdsAddresses(head.knownMethod, in: bytes):
            writeAddresses(of: field, head, bytes, edits, &sink)
        case .keep:
            sink.keep(field, of: bytes)
        case .drop:
            break
        case .edit:
            sink.flush(bytes)
            // A value that may not pass is edited all the same, as if it were empty: ours is written in its place.
            let isPlaceholder = holdsPlaceholder(field, bytes, edits)
            let refused =
                field.marks.contains(.nominated) || edits.drop.covers(field, in: bytes)
                || isPlaceholder && field.known != .cookie
            let value = refused ? ByteRange.empty : field.value
            switch field.known {
            case _ where isRenamed(field, bytes, edits):
                guard !isPlaceholder else { break }
                sink.begin(name: edits.renamedTo.span)
                sink.output.append(bytes, field.value)
                sink.end()
            case .userAgent:
                if !seenUserAgent { writeUserAgent(value, bytes, edits, &sink) }
                seenUserAgent = true
            case .cookie:
                writeCookies(value, bytes, edits, seenCookie || edits.place != .cookie ? nil : credential, &sink)
                seenCookie = true
            default:
                if !refused { writeMaxForwards(value, bytes, &sink) }
            }
        }
    }
    sink.flush(bytes)
}

private func verdict(
    _ field: Field, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits,
    _ hop: borrowing ForwardedHop
) -> LineVerdict {
    let verdict = verdictByName(field, head, bytes, edits, hop)
    guard edits.dropsPlaceholders, verdict == .keep, holdsPlaceholder(field, bytes, edits) else { return verdict }
    // Only the cookie that holds it goes.
    return field.known == .cookie ? .edit : .drop
}

private func holdsPlaceholder(_ field: Field, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits) -> Bool {
    edits.dropsPlaceholders && bytes.holdsPlaceholder(field.value)
}

private func verdictByName(
    _ field: Field, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits,
    _ hop: borrowing ForwardedHop
) -> LineVerdict {
    if RequestEdits.ownedByHop & field.resembles.bit != 0 { return .drop }
    // The fields that we edit come before nomination: a caller cannot take a User-Agent prefix away.
    switch field.resembles {
    case .userAgent where edits.userAgentMode != .keep:
        return field.known == .userAgent ? .edit : .drop
    case .cookie where edits.place == .cookie:
        return field.known == .cookie ? .edit : .drop
    case .expect:
        // Void in HTTP/1.0, and ours to answer or to write again otherwise. Other expectations are the upstream's.
        if head.minorVersion == 0 || bytes.spells("100-continue", at: field.value) { return .drop }
    case .maxForwards where head.knownMethod == .options || head.knownMethod == .trace:
        return field.known == .maxForwards ? .edit : .drop
    default:
        break
    }
    if field.marks.contains(.nominated) { return .drop }
    if isRenamed(field, bytes, edits) { return .edit }
    return edits.drop.covers(field, in: bytes) || hop.drops(field, in: bytes) ? .drop : .keep
}

/// The exact name alone: a look-alike is no value of the caller's that anybody asked to keep.
private func isRenamed(_ field: Field, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits) -> Bool {
    !edits.renamed.isEmpty && bytes.extracting(field.name.indices).isName(edits.renamed.span)
}

private func writeUserAgent<Sink: HeadSink & ~Copyable>(
    _ received: ByteRange?, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ sink: inout Sink
) {
    sink.begin("User-Agent: ", .userAgent)
    let own = edits.userAgent.span
    if edits.userAgentMode == .prepend, let received, !received.isEmpty {
        sink.output.append(own)
        sink.output.append(bytes, received)
    } else {
        // Blanks that would have parted the two are no part of a value that stands alone.
        sink.output.append(own, own.trimmed(0..<own.count))
    }
    sink.end()
}

/// Counts one hop down (RFC 9110 §7.6.2). Zero is answered before a request is written, and anything else passes as it is.
private func writeMaxForwards<Sink: HeadSink & ~Copyable>(
    _ value: ByteRange, _ bytes: Span<UInt8>, _ sink: inout Sink
) {
    sink.begin("Max-Forwards: ", .maxForwards)
    if let hops = bytes.decimal(at: value), hops > 0 {
        sink.output.append(decimal: hops - 1)
    } else {
        sink.output.append(bytes, value)
    }
    sink.end()
}

// MARK: - Target

private func writeTarget<Sink: HeadSink & ~Copyable>(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ sink: inout Sink
) {
    precondition(head.targetForm != .authority)
    // RFC 9112 §3.2.4: OPTIONS for a whole server arrives in absolute form without a path.
    let isWhole =
        head.targetForm == .absolute && head.path.isEmpty && head.knownMethod == .options && edits.targetPrefix.isEmpty
    if head.targetForm == .asterisk || isWhole {
        sink.beginTarget()
        sink.output.append("*")
        return sink.endTarget()
    }
    var start = Int(head.path.start)
    let end = Int(head.path.end)
    if let stripped = strippableLength(bytes.extracting(start..<end), prefix: edits.stripPrefix.span) {
        start += stripped
    }
    let path = ByteRange(start..<end)
    let isRooted = start < end && bytes[start] == 0x2F
    let isEdited = edits.place == .query || edits.dropsPlaceholders
    if isRooted, !isEdited, edits.targetPrefix.isEmpty { return sink.put(target: path, of: bytes) }
    sink.beginTarget()
    sink.output.append(edits.targetPrefix.span)
    if !isRooted { sink.output.append(byte: 0x2F) }
    if isEdited {
        writeQuery(path, bytes, edits, edits.place == .query ? credential : nil, &sink.output)
    } else {
        sink.output.append(bytes, path)
    }
    sink.endTarget()
}
