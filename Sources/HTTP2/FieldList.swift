internal import CNghttp2

/// A head in HTTP/1.1's form as nghttp2 wants it: name and value pairs with the pseudo-fields first.
///
/// Reused for every head of a session. nghttp2 copies names and values when the list is submitted.
struct FieldList: ~Copyable {
    private var pairs: [nghttp2_nv] = []

    init() {
        pairs.reserveCapacity(64)
    }
}

// MARK: -

extension FieldList {
    func withPairs<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result {
        pairs.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }

    /// - Parameters:
    ///   - head: a whole head as `writeRequest` writes it; names are made lower case in place.
    ///   - scheme: of the upstream.
    ///   - secretName: lower case; the field of this name is never indexed (RFC 7541 §7.1.3), as is `authorization`.
    ///   - secretTarget: the target carries a credential.
    ///   - protocolName: for extended CONNECT (RFC 8441), outlives the submission; empty otherwise.
    ///   - acceptsTrailers: say `te: trailers`.
    /// - Returns: false when the bytes are no head.
    mutating func fill(
        request head: UnsafeMutableRawBufferPointer, scheme: StaticString, secretName: [UInt8], secretTarget: Bool,
        protocolName: UnsafeRawBufferPointer, acceptsTrailers: Bool
    ) -> Bool {
        pairs.removeAll(keepingCapacity: true)
        guard let line = firstLine(head) else { return false }
        let bytes = UnsafeRawBufferPointer(head)
        guard let space = index(of: 0x20, in: bytes, from: 0, to: line.end),
            let second = index(of: 0x20, in: bytes, from: space + 1, to: line.end)
        else { return false }
        let extended = !protocolName.isEmpty
        add(":method", extended ? Self.bytes("CONNECT") : slice(bytes, 0, space))
        if extended { add(":protocol", protocolName) }
        add(":scheme", Self.bytes(scheme))
        add(":path", slice(bytes, space + 1, second), secret: secretTarget)
        // The place is held here: the authority is known only when its line is found.
        let authority = pairs.count
        add(":authority", UnsafeRawBufferPointer(start: nil, count: 0))
        guard addLines(head, from: line.next, secretName: secretName, authority: authority) else { return false }
        // The proof of the handshake is HTTP/1.1's alone (RFC 8441 §5).
        if extended {
            pairs.removeAll { UnsafeRawBufferPointer(start: $0.name, count: $0.namelen).spells("sec-websocket-key") }
        }
        if acceptsTrailers { add("te", Self.bytes("trailers")) }
        return true
    }

    /// - Parameter head: a whole head as `writeResponse` writes it.
    mutating func fill(response head: UnsafeMutableRawBufferPointer) -> Bool {
        pairs.removeAll(keepingCapacity: true)
        guard let line = firstLine(head), line.end >= 12 else { return false }
        add(":status", slice(UnsafeRawBufferPointer(head), 9, 12))
        return addLines(head, from: line.next, secretName: [], authority: nil)
    }

    /// - Parameter lines: field lines alone.
    mutating func fill(trailers lines: UnsafeMutableRawBufferPointer) -> Bool {
        pairs.removeAll(keepingCapacity: true)
        return addLines(lines, from: 0, secretName: [], authority: nil)
    }

    var isEmpty: Bool { pairs.isEmpty }

    // MARK: - Lines

    private mutating func addLines(
        _ head: UnsafeMutableRawBufferPointer, from first: Int, secretName: [UInt8], authority: Int?
    ) -> Bool {
        let bytes = UnsafeRawBufferPointer(head)
        var cursor = first
        while cursor < bytes.count {
            guard let end = index(of: 0x0d, in: bytes, from: cursor, to: bytes.count) else { return false }
            let next = end + 2
            if end == cursor { return true }
            guard let colon = index(of: 0x3a, in: bytes, from: cursor, to: end) else { return false }
            for place in cursor..<colon where head[place] >= 0x41 && head[place] <= 0x5a { head[place] |= 0x20 }
            let name = slice(bytes, cursor, colon)
            let value = trimmed(bytes, colon + 1, end)
            cursor = next
            if let authority, name.spells("host") {
                pairs[authority].value = Self.pointer(value)
                pairs[authority].valuelen = value.count
                continue
            }
            if isOfOneHop(name) { continue }
            let secret = name.spells("authorization") || (!secretName.isEmpty && name.elementsEqual(secretName))
            pairs.append(pair(name, value, secret: secret))
        }
        return true
    }

    /// RFC 9113 §8.2.2. Our writers leave them out, or write them for HTTP/1.1's framing.
    private func isOfOneHop(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name.count {
        case 2: name.spells("te")
        case 7: name.spells("upgrade")
        case 10: name.spells("connection") || name.spells("keep-alive")
        case 16: name.spells("proxy-connection")
        case 17: name.spells("transfer-encoding")
        default: false
        }
    }

    private func firstLine(_ head: UnsafeMutableRawBufferPointer) -> (end: Int, next: Int)? {
        guard let end = index(of: 0x0d, in: UnsafeRawBufferPointer(head), from: 0, to: head.count) else { return nil }
        return (end, end + 2)
    }

    private func index(of byte: UInt8, in bytes: UnsafeRawBufferPointer, from: Int, to: Int) -> Int? {
        var cursor = from
        while cursor < to {
            if bytes[cursor] == byte { return cursor }
            cursor &+= 1
        }
        return nil
    }

    private func slice(_ bytes: UnsafeRawBufferPointer, _ from: Int, _ to: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[from..<to])
    }

    /// Blanks at the edges of a value are none of it, and malformed in HTTP/2 (RFC 9113 §8.2.1).
    private func trimmed(_ bytes: UnsafeRawBufferPointer, _ from: Int, _ to: Int) -> UnsafeRawBufferPointer {
        var first = from
        var last = to
        while first < last, bytes[first] == 0x20 || bytes[first] == 0x09 { first &+= 1 }
        while last > first, bytes[last &- 1] == 0x20 || bytes[last &- 1] == 0x09 { last &-= 1 }
        return slice(bytes, first, last)
    }

    // MARK: - Pairs

    private mutating func add(_ name: StaticString, _ value: UnsafeRawBufferPointer, secret: Bool = false) {
        pairs.append(pair(Self.bytes(name), value, secret: secret))
    }

    private func pair(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, secret: Bool) -> nghttp2_nv {
        nghttp2_nv(
            name: Self.pointer(name), value: Self.pointer(value), namelen: name.count, valuelen: value.count,
            flags: secret ? UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
    }

    private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// nghttp2 reads through these pointers only.
    private static func pointer(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
        UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
}
