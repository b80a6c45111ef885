/// Addresses by which a WebDAV caller names the server that it called, and which are to name the upstream: the `Destination` (RFC 4918
/// section 10.3), and the resource tags of an `If` (section 10.4). Bodies name resources too (`href`), and are never edited.
///
/// An address of another server passes as it is, and so does a whole `If` that cannot be read.

extension KnownMethod {
    /// Requests that only read have no such fields in practice, and they are the hot ones.
    var mayName: Bool {
        switch self {
        case .other, .post, .put, .delete, .patch: true
        case .get, .head, .connect, .options, .trace: false
        }
    }
}

extension Field {
    func holdsAddresses(_ method: KnownMethod, in bytes: Span<UInt8>) -> Bool {
        switch name.count {
        case 2: bytes.spells("if", at: name)
        case 11: method == .other && bytes.spells("destination", at: name)
        default: false
        }
    }
}

/// Writes the field with the upstream's addresses in place of those that were called.
func writeAddresses<Sink: HeadSink & ~Copyable>(
    of field: Field, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits,
    _ sink: inout Sink
) {
    if field.name.count == 11 {
        guard let path = calledPath(field.value, head, bytes, edits) else { return sink.keep(field, of: bytes) }
        sink.flush(bytes)
        sink.begin(field, of: bytes)
        writeAddress(field.value, path, head, bytes, edits, &sink)
        return sink.end()
    }
    guard hasCalledTag(field.value, head, bytes, edits) else { return sink.keep(field, of: bytes) }
    sink.flush(bytes)
    sink.begin(field, of: bytes)
    var tags = ResourceTags(of: field.value)
    var written = Int(field.value.start)
    while let tag = tags.next(in: bytes) {
        guard let path = calledPath(tag, head, bytes, edits) else { continue }
        sink.output.append(bytes, ByteRange(written..<Int(tag.start)))
        writeAddress(tag, path, head, bytes, edits, &sink)
        written = Int(tag.end)
    }
    sink.output.append(bytes, ByteRange(written..<Int(field.value.end)))
    sink.end()
}

// MARK: - If

private func hasCalledTag(
    _ value: ByteRange, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits
) -> Bool {
    var tags = ResourceTags(of: value)
    var isFound = false
    while let tag = tags.next(in: bytes) {
        if calledPath(tag, head, bytes, edits) != nil { isFound = true }
    }
    return isFound && !tags.isMalformed
}

/// The resource tags of an `If`, in order: what stands in angle brackets outside of lists. Inside of a list these are state tokens, which
/// may look like any address and are the server's own words.
private struct ResourceTags {
    /// A character that has no place there, or an end that is missing.
    private(set) var isMalformed = false
    private var position: Int
    private let end: Int

    init(of value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    /// - Returns: without the brackets; nil at the end.
    mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        while position < end {
            let first = position
            position &+= 1
            switch bytes[first] {
            case 0x20, 0x09: break
            case 0x3C:
                skip(behind: 0x3E, in: bytes)
                return isMalformed ? nil : ByteRange(first &+ 1..<position &- 1)
            case 0x28: skipList(in: bytes)
            default: fail()
            }
        }
        return nil
    }

    /// Up to the closing parenthesis. One may also stand in a state token, or in the quotes of an entity tag.
    private mutating func skipList(in bytes: Span<UInt8>) {
        while position < end {
            let octet = bytes[position]
            position &+= 1
            switch octet {
            case 0x29: return
            case 0x3C: skip(behind: 0x3E, in: bytes)
            case 0x22: skip(behind: 0x22, in: bytes)
            case 0x28: return fail()
            default: break
            }
        }
        fail()
    }

    private mutating func skip(behind octet: UInt8, in bytes: Span<UInt8>) {
        while position < end {
            position &+= 1
            if bytes[position &- 1] == octet { return }
        }
        fail()
    }

    private mutating func fail() {
        isMalformed = true
        position = end
    }
}

// MARK: - Addresses

/// The part of an address that the upstream is to read as its path, or nil where it does not name the server that was called.
private func calledPath(
    _ value: ByteRange, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits
) -> ByteRange? {
    var start = Int(value.start)
    let end = Int(value.end)
    guard start < end else { return nil }
    if bytes[start] != 0x2F {
        let length = [8, 7].first { length in
            end - start > length
                && bytes.spells(
                    length == 8 ? "https://" : "http://", at: ByteRange(start..<start &+ length))
        }
        guard let length, let host = head.authority ?? head.host else { return nil }
        start &+= length
        guard end - start >= Int(host.count) else { return nil }
        let named = bytes.extracting(start..<start &+ Int(host.count))
        guard named.isName(bytes.extracting(host.indices)) else { return nil }
        start &+= Int(host.count)
        guard start == end || bytes[start] == 0x2F || bytes[start] == 0x3F else { return nil }
    } else if start &+ 1 < end, bytes[start &+ 1] == 0x2F {
        return nil
    }
    guard !edits.stripPrefix.isEmpty else { return ByteRange(start..<end) }
    return strippableLength(bytes.extracting(start..<end), prefix: edits.stripPrefix.span)
        .map { ByteRange(start &+ $0..<end) }
}

/// Writes the upstream as it knows itself: by its scheme and by the `Host` that it is sent.
private func writeAddress<Sink: HeadSink & ~Copyable>(
    _ address: ByteRange, _ path: ByteRange, _ head: borrowing RequestHead, _ bytes: Span<UInt8>,
    _ edits: borrowing RequestEdits, _ sink: inout Sink
) {
    if bytes[Int(address.start)] != 0x2F {
        sink.output.append(edits.destinationScheme.span)
        if edits.host.isEmpty {
            sink.output.append(bytes, head.host ?? .empty)
        } else {
            sink.output.append(edits.host.span)
        }
    }
    sink.output.append(edits.destinationPrefix.span)
    if path.isEmpty || bytes[Int(path.start)] != 0x2F { sink.output.append(byte: 0x2F) }
    sink.output.append(bytes, path)
}
