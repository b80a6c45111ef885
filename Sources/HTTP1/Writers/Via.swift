// `Via` (RFC 9110 §7.6.3): every request we forward carries our pseudonym, and a request that carries it already has
// been here before.

/// A line of our own after those received: the same list as a member appended to the last of them (RFC 9110 §5.3), and
/// the received lines stay as they are.
func writeVia<Sink: HeadSink & ~Copyable>(_ minorVersion: UInt8, _ pseudonym: Span<UInt8>, _ sink: inout Sink) {
    sink.begin(minorVersion > 0 ? "Via: 1.1 " : "Via: 1.0 ", .via)
    sink.output.append(pseudonym)
    sink.end()
}

extension RequestHead {
    /// Whether a `Via` member, on whichever of its lines, names `pseudonym` as its recipient, in any case.
    public func viaNames(_ pseudonym: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        guard contains(.via), !pseudonym.isEmpty else { return false }
        for index in 0..<fieldCount where self[index].known == .via {
            var walk = ViaMembers(self[index].value)
            while let recipient = walk.next(in: bytes) {
                if bytes.extracting(recipient.indices).isName(pseudonym) { return true }
            }
        }
        return false
    }

    /// `Max-Forwards` of a TRACE or OPTIONS (RFC 9110 §7.6.2): at 0 the request is ours to answer.
    public func maxForwards(in bytes: Span<UInt8>) -> UInt64? {
        guard knownMethod == .trace || knownMethod == .options else { return nil }
        guard let value = first(.maxForwards) else { return nil }
        return bytes.decimal(at: value)
    }
}

/// Walks the recipients of a `Via` value: `received-protocol RWS received-by [ RWS comment ]`, separated by commas.
///
/// Comments nest and may hold escaped characters, and neither a comma nor our name in one means anything. A comment that
/// does not end hides what follows it; whoever wrote it takes part in the loop and could leave us out as well.
struct ViaMembers {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    /// The next member's `received-by`; empty for a member that has none.
    mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        guard position < end else { return nil }
        var recipient = ByteRange.empty
        var words = 0
        while position < end, bytes[position] != 0x2C {
            if isBlank(bytes[position]) {
                position &+= 1
            } else if bytes[position] == 0x28 {
                skipComment(bytes)
            } else {
                let start = position
                while position < end, !isBlank(bytes[position]), bytes[position] != 0x2C, bytes[position] != 0x28 {
                    position &+= 1
                }
                if words == 1 { recipient = ByteRange(start..<position) }
                words &+= 1
            }
        }
        position &+= 1
        return recipient
    }

    private mutating func skipComment(_ bytes: Span<UInt8>) {
        var depth = 0
        while position < end {
            let octet = bytes[position]
            position &+= octet == 0x5C ? 2 : 1
            if octet == 0x28 { depth &+= 1 }
            if octet == 0x29 {
                depth &-= 1
                if depth == 0 { return }
            }
        }
    }
}
