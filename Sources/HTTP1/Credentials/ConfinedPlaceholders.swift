/// A part of a request's head that holds the placeholder of a confined program.
public struct PlaceholderPart: Sendable, Equatable {
    /// The place of a part in the head.
    public enum Place: Sendable { case method, target, name, field }

    /// The part's octets: the method, the path, a parameter, a name, a value or a cookie, as received.
    public let range: ByteRange
    /// The kind of place that the part stands in.
    public let place: Place
    /// Name of the field; empty where the part is of no field's value.
    public let field: ByteRange
    /// The credential of the route is written in the part's place, so that nothing of it is forwarded.
    public let isReplaced: Bool
    /// The part is `Basic` with the placeholder in its user or password (RFC 7617).
    public let isBasic: Bool
}

extension RequestHead {
    /// The parts of the head that hold placeholders of a confined program: nothing in the method or a name is ever replaced. Nothing is allocated where there is none.
    /// - Parameter fields: names of the fields that the route's credential takes, in lower case; they count where `edits` put it into a
    ///   field.
    public func placeholderParts(
        in bytes: Span<UInt8>, _ edits: borrowing RequestEdits, fields: [[UInt8]]
    ) -> [PlaceholderPart] {
        var parts: [PlaceholderPart] = []
        if bytes.holds(Placeholder.confined, in: method) {
            parts.append(
                PlaceholderPart(range: method, place: .method, field: .empty, isReplaced: false, isBasic: false))
        }
        if bytes.holds(Placeholder.confined, in: target) { addTarget(bytes, edits, &parts) }
        for index in 0..<fieldCount {
            let field = self[index]
            if bytes.holds(Placeholder.confined, in: field.name) {
                parts.append(
                    PlaceholderPart(range: field.name, place: .name, field: .empty, isReplaced: false, isBasic: false))
            }
            let isPlain = bytes.holds(Placeholder.confined, in: field.value)
            guard isPlain || bytes.holdsBasicPlaceholder(field.value) else { continue }
            guard field.known != .cookie else {
                addCookies(field, bytes, edits, &parts)
                continue
            }
            // A value that goes on under another name is not replaced.
            var isReplaced = false
            if edits.place == .header, edits.renamed.isEmpty {
                for name in fields where bytes.extracting(field.name.indices).isName(name.span) { isReplaced = true }
            }
            parts.append(
                PlaceholderPart(
                    range: field.value, place: .field, field: field.name, isReplaced: isReplaced, isBasic: !isPlain))
        }
        return parts
    }

    /// The path and each parameter that hold one.
    private func addTarget(
        _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ parts: inout [PlaceholderPart]
    ) {
        var start = Int(target.start)
        let end = Int(target.end)
        var isQuery = false
        while start < end {
            var cursor = start
            while cursor < end, isQuery ? bytes[cursor] != 0x26 && bytes[cursor] != 0x3B : bytes[cursor] != 0x3F {
                cursor &+= 1
            }
            let range = ByteRange(start..<cursor)
            if bytes.holds(Placeholder.confined, in: range) {
                var nameEnd = start
                while nameEnd < cursor, bytes[nameEnd] != 0x3D { nameEnd &+= 1 }
                let isReplaced =
                    isQuery && edits.place == .query
                    && isCarrier(ByteRange(start..<nameEnd), bytes, named: edits.placeName.span)
                parts.append(
                    PlaceholderPart(range: range, place: .target, field: .empty, isReplaced: isReplaced, isBasic: false)
                )
            }
            isQuery = true
            start = cursor &+ 1
        }
    }

    private func addCookies(
        _ field: Field, _ bytes: Span<UInt8>, _ edits: borrowing RequestEdits, _ parts: inout [PlaceholderPart]
    ) {
        var start = Int(field.value.start)
        let end = Int(field.value.end)
        while start < end {
            var cursor = start
            while cursor < end, bytes[cursor] != 0x3B, bytes[cursor] != 0x2C { cursor &+= 1 }
            let pair = bytes.trimmed(start..<cursor)
            start = cursor &+ 1
            guard bytes.holds(Placeholder.confined, in: pair) else { continue }
            let isReplaced = edits.place == .cookie && isCookie(pair, bytes, named: edits.placeName.span)
            parts.append(
                PlaceholderPart(
                    range: pair, place: .field, field: field.name, isReplaced: isReplaced, isBasic: false))
        }
    }
}

extension Span where Element == UInt8 {
    /// The octets of a part, decoded as far as its form is known: percent-encoding, or the base 64 of `Basic`.
    public func decoded(_ part: PlaceholderPart) -> [UInt8] {
        var octets: [UInt8] = []
        if part.isBasic {
            guard var credentials = BasicCredentials(self, part.range) else { return [] }
            while let octet = credentials.next(self) { octets.append(octet) }
            return octets
        }
        var cursor = Int(part.range.start)
        let end = Int(part.range.end)
        while cursor < end {
            let (octet, width) = decodedOctet(self, at: cursor, end: end)
            octets.append(octet)
            cursor &+= width
        }
        return octets
    }

    fileprivate func holdsBasicPlaceholder(_ value: ByteRange) -> Bool {
        guard var credentials = BasicCredentials(self, value) else { return false }
        let mark = Placeholder.confined
        // The last octets that were read, as many as the mark has.
        var (seen, sought): (UInt128, UInt128) = (0, 0)
        assert(mark.utf8CodeUnitCount == 16)
        for offset in 0..<16 { sought = sought << 8 | UInt128(mark.utf8Start[offset]) }
        while let octet = credentials.next(self) {
            seen = seen << 8 | UInt128(octet)
            if seen == sought { return true }
        }
        return false
    }
}

/// Reads the octets of `Basic` credentials one by one. What is no digit of base 64 ends them.
private struct BasicCredentials {
    private var cursor: Int
    private let end: Int
    private var bits: UInt32 = 0
    private var held = 0

    /// Nil where the value is of another scheme.
    init?(_ bytes: Span<UInt8>, _ value: ByteRange) {
        let scheme: StaticString = "basic"
        guard Int(value.count) > scheme.utf8CodeUnitCount &+ 1 else { return nil }
        cursor = Int(value.start)
        end = Int(value.end)
        for offset in 0..<scheme.utf8CodeUnitCount {
            guard lowercased(bytes[cursor]) == scheme.utf8Start[offset] else { return nil }
            cursor &+= 1
        }
        // Servers take a tab for a blank there.
        guard bytes[cursor] == 0x20 || bytes[cursor] == 0x09 else { return nil }
        while cursor < end, bytes[cursor] == 0x20 || bytes[cursor] == 0x09 { cursor &+= 1 }
    }

    mutating func next(_ bytes: Span<UInt8>) -> UInt8? {
        while held < 8 {
            guard cursor < end, let digit = Self.digit(bytes[cursor]) else { return nil }
            cursor &+= 1
            bits = bits << 6 | digit
            held &+= 6
        }
        held &-= 8
        return UInt8(truncatingIfNeeded: bits >> UInt32(held))
    }

    private static func digit(_ octet: UInt8) -> UInt32? {
        switch octet {
        case 0x41...0x5A: UInt32(octet &- 0x41)
        case 0x61...0x7A: UInt32(octet &- 0x61 &+ 26)
        case 0x30...0x39: UInt32(octet &- 0x30 &+ 52)
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
