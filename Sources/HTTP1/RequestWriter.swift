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
    hop: borrowing ForwardedHop = .untouched, framing: OutgoingFraming, expectContinue: Bool = false,
    upgrade: Bool = false, asHEAD: Bool = false, into output: inout OutputCursor
) {
    precondition(head.length > 0)
    if asHEAD { output.append("HEAD") } else { output.append(bytes, head.method) }
    output.append(byte: 0x20)
    writeTarget(head, bytes, edits, credential, &output)
    output.append(" HTTP/1.1\r\nHost: ")
    if edits.host.isEmpty {
        output.append(bytes, head.host ?? .empty)
    } else {
        output.append(edits.host.span)
    }
    output.append("\r\n")

    writeReceivedFields(head, bytes, edits, credential, hop, &output)

    if edits.userAgentMode != .keep, !head.contains(.userAgent) {
        writeUserAgent(nil, bytes, edits, &output)
    }
    output.append(edits.setLines.span)
    hop.write(head, bytes, into: &output)
    if let credential {
        switch edits.place {
        case .header:
            output.append(credential)
        case .cookie where !head.contains(.cookie):
            output.append("Cookie: ")
            output.append(credential)
            output.append("\r\n")
        case .cookie, .query:
            break
        }
    }
    if !edits.via.isEmpty {
        writeVia(head.minorVersion, edits.via.span, &output)
    }
    if expectContinue { output.append("Expect: 100-continue\r\n") }
    if upgrade, let protocols = head.first(.upgrade) {
        output.append("Connection: upgrade\r\nUpgrade: ")
        output.append(bytes, protocols)
        output.append("\r\n")
    }
    framing.write(into: &output)
    output.append("\r\n")
}

// MARK: - Fields

private enum LineVerdict {
    case keep
    case drop
    case edit
}

private func writeReceivedFields(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ hop: borrowing ForwardedHop, _ output: inout OutputCursor
) {
    var run = ByteRange.empty
    var seenUserAgent = false
    var seenCookie = false
    for index in 0..<head.fieldCount {
        let field = head[index]
        switch verdict(field, head, bytes, edits, hop) {
        case .keep:
            if run.end == field.line.start, !run.isEmpty {
                run.count += field.line.count
            } else {
                output.append(bytes, run)
                run = field.line
            }
        case .drop:
            break
        case .edit:
            output.append(bytes, run)
            run = .empty
            // A value that may not pass is edited all the same, as if it were empty: ours is written in its place.
            let isPlaceholder = holdsPlaceholder(field, bytes, edits)
            let refused =
                field.marks.contains(.nominated) || edits.drop.covers(field, in: bytes)
                || isPlaceholder && field.known != .cookie
            let value = refused ? ByteRange.empty : field.value
            switch field.known {
            case _ where isRenamed(field, bytes, edits):
                guard !isPlaceholder else { break }
                output.append(edits.renamedTo.span)
                output.append(": ")
                output.append(bytes, field.value)
                output.append("\r\n")
            case .userAgent:
                if !seenUserAgent { writeUserAgent(value, bytes, edits, &output) }
                seenUserAgent = true
            case .cookie:
                writeCookies(value, bytes, edits, seenCookie || edits.place != .cookie ? nil : credential, &output)
                seenCookie = true
            default:
                if !refused { writeMaxForwards(value, bytes, &output) }
            }
        }
    }
    output.append(bytes, run)
}

private func verdict(
    _ field: Field, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits,
    _ hop: borrowing ForwardedHop
) -> LineVerdict {
    let verdict = verdictByName(field, head, bytes, edits, hop)
    guard edits.dropsPlaceholders, verdict == .keep, holdsPlaceholder(field, bytes, edits) else { return verdict }
    // Of cookies only the one that holds it goes.
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
    guard edits.renamed.count == Int(field.name.count), !edits.renamed.isEmpty else { return false }
    let name = edits.renamed.span
    for offset in name.indices where lowercased(bytes[Int(field.name.start) &+ offset]) != name[offset] { return false }
    return true
}

private func writeUserAgent(
    _ received: ByteRange?, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ output: inout OutputCursor
) {
    output.append("User-Agent: ")
    let own = edits.userAgent.span
    if edits.userAgentMode == .prepend, let received, !received.isEmpty {
        output.append(own)
        output.append(bytes, received)
    } else {
        // Blanks that would have parted the two are no part of a value that stands alone.
        output.append(own, own.trimmed(0..<own.count))
    }
    output.append("\r\n")
}

/// One hop fewer (RFC 9110 §7.6.2). Zero is answered before a request is written, and anything else passes as it is.
private func writeMaxForwards(_ value: ByteRange, _ bytes: Span<UInt8>, _ output: inout OutputCursor) {
    output.append("Max-Forwards: ")
    if let hops = bytes.decimal(at: value), hops > 0 {
        output.append(decimal: hops - 1)
    } else {
        output.append(bytes, value)
    }
    output.append("\r\n")
}

// MARK: - Target

private func writeTarget(
    _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ credential: Span<UInt8>?,
    _ output: inout OutputCursor
) {
    precondition(head.targetForm != .authority)
    if head.targetForm == .asterisk {
        output.append("*")
        return
    }
    // RFC 9112 §3.2.4: OPTIONS for a whole server arrives in absolute form without a path.
    if head.targetForm == .absolute, head.path.isEmpty, head.knownMethod == .options, edits.targetPrefix.isEmpty {
        output.append("*")
        return
    }
    var start = Int(head.path.start)
    let end = Int(head.path.end)
    if let stripped = strippableLength(bytes.extracting(start..<end), prefix: edits.stripPrefix.span) {
        start += stripped
    }
    output.append(edits.targetPrefix.span)
    if start == end || bytes[start] != 0x2F { output.append(byte: 0x2F) }
    if edits.place == .query || edits.dropsPlaceholders {
        writeQuery(ByteRange(start..<end), bytes, edits, edits.place == .query ? credential : nil, &output)
    } else {
        output.append(bytes, ByteRange(start..<end))
    }
}
