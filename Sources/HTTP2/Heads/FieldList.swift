internal import CNghttp2
internal import Glibc

/// A head as nghttp2 wants it: name and value pairs with the pseudo-fields first.
///
/// Reused for every head of a connection. nghttp2 copies names and values when the list is submitted, those apart that stand in the program
/// itself.
struct FieldList: ~Copyable {
    private var pairs: UnsafeMutablePointer<nghttp2_nv>
    var count = 0
    /// Grows with the largest head; heads are bounded.
    private var capacity = 32
    /// The value of the last pair, which stands there without one: see `HeldValue`. Valid as long as the head is.
    var held = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The digits of an answer's status.
    let status = UnsafeMutableRawPointer.allocate(byteCount: 4, alignment: 4)

    init() {
        pairs = .allocate(capacity: capacity)
    }

    deinit {
        pairs.deallocate()
        status.deallocate()
    }
}

// MARK: -

extension FieldList {
    func withPairs<Result>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result) -> Result { body(pairs, count) }

    /// - Parameters:
    ///   - head: a whole head as `writeRequest` writes it; names are made lower case in place.
    ///   - scheme: of the upstream.
    ///   - secretName: lower case; the field of this name is never indexed (RFC 7541 §7.1.3), as is `authorization`.
    ///   - secretTarget: the target carries a credential.
    ///   - acceptsTrailers: say `te: trailers`.
    /// - Returns: false when the bytes are no head.
    mutating func fill(
        request head: UnsafeMutableRawBufferPointer, scheme: StaticString, secretName: [UInt8], secretTarget: Bool,
        acceptsTrailers: Bool
    ) -> Bool {
        count = 0
        held = UnsafeRawBufferPointer(start: nil, count: 0)
        let bytes = UnsafeRawBufferPointer(head)
        guard let end = index(of: 0x0d, in: bytes, from: 0, to: bytes.count),
            let space = index(of: 0x20, in: bytes, from: 0, to: end),
            let second = index(of: 0x20, in: bytes, from: space + 1, to: end)
        else { return false }
        add(":method", slice(bytes, 0, space))
        add(":scheme", Self.bytes(scheme))
        add(":path", slice(bytes, space + 1, second), secret: secretTarget)
        // The pair is held here: the authority is known only when its line is found.
        let authority = count
        add(":authority", UnsafeRawBufferPointer(start: nil, count: 0))
        let isFilled = secretName.withUnsafeBytes {
            addLines(head, from: end + 2, secretName: $0, authority: authority)
        }
        guard isFilled else { return false }
        if acceptsTrailers { add("te", Self.bytes("trailers")) }
        if bytes.count <= HeldValue.longestHead { holdSecret(from: authority + 1) }
        return true
    }

    /// - Parameter head: a whole head as `writeResponse` writes it.
    mutating func fill(response head: UnsafeMutableRawBufferPointer) -> Bool {
        count = 0
        let bytes = UnsafeRawBufferPointer(head)
        guard let end = index(of: 0x0d, in: bytes, from: 0, to: bytes.count), end >= 12 else { return false }
        add(":status", slice(bytes, 9, 12))
        return addLines(head, from: end + 2)
    }

    /// - Parameter lines: field lines alone.
    mutating func fill(trailers lines: UnsafeMutableRawBufferPointer) -> Bool {
        count = 0
        return addLines(lines, from: 0)
    }

    var isEmpty: Bool { count == 0 }

    // MARK: - Lines

    /// - Parameters:
    ///   - authority: where the value of `Host` goes, which is a field like any other without it.
    private mutating func addLines(
        _ head: UnsafeMutableRawBufferPointer, from first: Int,
        secretName: UnsafeRawBufferPointer = .init(start: nil, count: 0), authority: Int? = nil
    ) -> Bool {
        let bytes = UnsafeRawBufferPointer(head)
        var cursor = first
        while cursor < bytes.count {
            guard let end = index(of: 0x0d, in: bytes, from: cursor, to: bytes.count) else { return false }
            if end == cursor { return true }
            guard let colon = lowerName(head, from: cursor, to: end) else { return false }
            let name = slice(bytes, cursor, colon)
            let value = trimmed(bytes, colon + 1, end)
            cursor = end + 2
            var isSecret = false
            // By length first: most names are compared with nothing.
            switch name.count {
            case 4:
                if let authority, name.spells("host") {
                    pairs[authority].value = Self.pointer(value)
                    pairs[authority].valuelen = value.count
                    continue
                }
            case 13: isSecret = name.spells("authorization")
            default: break
            }
            if isOfOneHop(name) { continue }
            if !isSecret, !secretName.isEmpty { isSecret = sameOctets(name, secretName) }
            append(name, value, secret: isSecret)
        }
        return true
    }

    /// Moves the first secret field to the end and takes its value away, unless another field has its name: their order means something
    /// (RFC 9110 §5.3), that of different names does not.
    mutating func holdSecret(from first: Int) {
        var position: Int?
        var secrets = 0
        for index in first..<count where pairs[index].flags & Self.secret != 0 {
            secrets &+= 1
            if position == nil, pairs[index].valuelen > 0 { position = index }
        }
        guard let position else { return }
        var pair = pairs[position]
        // By their names fields are secret, so those of one name all are.
        if secrets > 1 {
            let name = UnsafeRawBufferPointer(start: pair.name, count: pair.namelen)
            for other in first..<count where other != position && pairs[other].namelen == name.count {
                if sameOctets(name, UnsafeRawBufferPointer(start: pairs[other].name, count: name.count)) { return }
            }
        }
        held = UnsafeRawBufferPointer(start: pair.value, count: pair.valuelen)
        pair.value = nil
        pair.valuelen = 0
        (pairs + position).update(from: pairs + position + 1, count: count - position - 1)
        pairs[count - 1] = pair
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

    /// Makes a name lower case, octet by octet: heads that are passed on come as fields and do not pass here.
    /// - Returns: where its colon stands.
    private func lowerName(_ head: UnsafeMutableRawBufferPointer, from first: Int, to end: Int) -> Int? {
        for position in first..<end {
            let octet = head[position]
            if octet == 0x3a { return position }
            if octet &- 0x41 < 26 { head[position] = octet | 0x20 }
        }
        return nil
    }

    private func index(of byte: UInt8, in bytes: UnsafeRawBufferPointer, from: Int, to: Int) -> Int? {
        guard let base = bytes.baseAddress, from < to, let found = memchr(base + from, Int32(byte), to - from) else {
            return nil
        }
        return UnsafeRawPointer(found) - base
    }

    private func slice(_ bytes: UnsafeRawBufferPointer, _ from: Int, _ to: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[from..<to])
    }

    /// Blanks at the edges of a value are none of it, and malformed in HTTP/2 (RFC 9113 §8.2.1).
    private func trimmed(_ bytes: UnsafeRawBufferPointer, _ from: Int, _ to: Int) -> UnsafeRawBufferPointer {
        guard let base = bytes.baseAddress, from < to else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        var first = base + from
        var end = base + to
        while first < end, Self.isBlank(first.load(as: UInt8.self)) { first += 1 }
        while end > first, Self.isBlank((end - 1).load(as: UInt8.self)) { end -= 1 }
        return UnsafeRawBufferPointer(start: first, count: end - first)
    }

    private static func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 }

    // MARK: - Pairs

    private mutating func add(_ name: StaticString, _ value: UnsafeRawBufferPointer, secret: Bool = false) {
        append(Self.bytes(name), value, (secret ? Self.secret : 0) | Self.staticName)
    }

    private mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, secret: Bool) {
        append(name, value, secret ? Self.secret : 0)
    }

    @inline(__always)
    mutating func append(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ flags: UInt8
    ) {
        if count == capacity { grow() }
        (pairs + count).initialize(to: Self.pair(name, value, flags))
        count += 1
    }

    /// Lets `body` put up to `most` pairs behind the others; it moves the pointer behind the last one.
    @inline(__always)
    mutating func extend(by most: Int, _ body: (inout UnsafeMutablePointer<nghttp2_nv>) -> Void) {
        while capacity - count < most { grow() }
        var position = pairs + count
        body(&position)
        count = position - pairs
    }

    @inline(__always)
    static func pair(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ flags: UInt8
    ) -> nghttp2_nv {
        nghttp2_nv(
            name: pointer(name), value: pointer(value), namelen: name.count, valuelen: value.count, flags: flags)
    }

    /// Never indexed (RFC 7541 §7.1.3).
    static var secret: UInt8 { UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) }
    /// Lower case and part of the program: nghttp2 may point at it for as long as it likes.
    static var staticName: UInt8 { UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue) }
    static var staticValue: UInt8 { UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue) }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: 2 * capacity)
        larger.moveInitialize(from: pairs, count: count)
        pairs.deallocate()
        pairs = larger
        capacity *= 2
    }

    static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// nghttp2 reads through these pointers only.
    private static func pointer(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
        UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
}
