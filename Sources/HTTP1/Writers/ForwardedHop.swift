/// A request's account of the connection it came on: `Forwarded` (RFC 7239) and the `X-Forwarded-*` fields before it.
///
/// The received ones are believed only of a trusted peer. Of anybody else they are deleted, whether ours are written or
/// not: an upstream that reads them must not read what a caller made up.
public struct ForwardedHop: Sendable {
    /// The caller's address as text, an IPv6 one without brackets; empty: not known.
    public var address: [UInt8] = []
    /// The identifier in the address's place where `isHidden`. RFC 7239 §6.3: made at random for each request.
    public var identifier: UInt64 = 0
    /// `identifier` is told in the address's place.
    public var isHidden = true
    /// The peer is one whose fields are believed: they stay, and ours follow them.
    public var isTrusted = false
    /// The fields that are written.
    public var fields: Fields = []
    /// The caller's connection is TLS.
    public var isSecure = false

    /// A hop that writes nothing.
    public init() {}

    /// Which fields are written.
    public struct Fields: OptionSet, Sendable {
        /// A bit for each field.
        public let rawValue: UInt8
        /// Any bits are allowed.
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// `Forwarded`.
        public static var standard: Fields { Fields(rawValue: 1) }
        /// `X-Forwarded-For`, `-Proto` and `-Host`.
        public static var legacy: Fields { Fields(rawValue: 2) }
    }

    /// Nothing is deleted and nothing written.
    public static let untouched: ForwardedHop = {
        var hop = ForwardedHop()
        hop.isTrusted = true
        return hop
    }()
}

// MARK: - Received fields

extension ForwardedHop {
    /// Known fields that are not copied from the received head; those that are kept and joined with ours are among them.
    var dropped: UInt64 {
        if !isTrusted {
            return KnownField.forwarded.bit | KnownField.xForwardedFor.bit | KnownField.xForwardedHost.bit
                | KnownField.xForwardedProto.bit
        }
        return (fields.contains(.standard) ? KnownField.forwarded.bit : 0)
            | (fields.contains(.legacy) ? KnownField.xForwardedFor.bit : 0)
    }

    /// Whether a received field is not copied. Beside the four known names that is, of a peer that is not believed, every
    /// name that begins with `X-Forwarded-`, also with `_`.
    @inline(__always)
    func drops(_ field: Field, in bytes: Span<UInt8>) -> Bool {
        if field.resembles != .other { return dropped & field.resembles.bit != 0 }
        guard !isTrusted, field.name.count >= 12, lowercased(bytes[Int(field.name.start)]) == 0x78 else { return false }
        return bytes.resembles("x-forwarded-", at: ByteRange(start: field.name.start, count: 12))
    }
}

// MARK: - Writing

extension ForwardedHop {
    func write<Sink: HeadSink & ~Copyable>(
        _ head: borrowing RequestHead, _ bytes: Span<UInt8>, into sink: inout Sink
    ) {
        if fields.contains(.standard) {
            sink.begin("Forwarded: ", .forwarded)
            writeStandard(head, bytes, &sink.output)
            sink.end()
        }
        guard fields.contains(.legacy) else { return }
        sink.begin("X-Forwarded-For: ", .xForwardedFor)
        writeLegacy(head, bytes, &sink.output)
        sink.end()
        if !keeps(.xForwardedProto, of: head) {
            let line: StaticString = isSecure ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n"
            sink.put(line: line, .xForwardedProto)
        }
        if !keeps(.xForwardedHost, of: head), let host = head.host, !host.isEmpty {
            sink.begin("X-Forwarded-Host: ", .xForwardedHost)
            sink.output.append(bytes, host)
            sink.end()
        }
    }

    private func writeStandard(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ output: inout OutputCursor) {
        // The value stands in one line, as many readers look at the first line alone.
        writeReceived(.forwarded, head, bytes, &output)
        output.append("for=")
        writeNode(&output)
        if let host = head.host, !host.isEmpty {
            // Validated as an authority: it holds nothing that would have to be escaped.
            output.append(";host=\"")
            output.append(bytes, host)
            output.append("\"")
        }
        output.append(isSecure ? ";proto=https" : ";proto=http")
    }

    /// RFC 7239 §6: a name that is no address begins with `_`; an IPv6 address is bracketed, and quoted for its colons.
    private func writeNode(_ output: inout OutputCursor) {
        if isHidden {
            output.append("_")
            output.append(hexadecimal: identifier)
        } else if address.isEmpty {
            output.append("unknown")
        } else if address.contains(0x3A) {
            output.append("\"[")
            output.append(address.span)
            output.append("]\"")
        } else {
            output.append(address.span)
        }
    }

    private func writeLegacy(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ output: inout OutputCursor) {
        writeReceived(.xForwardedFor, head, bytes, &output)
        // These fields have no identifiers; `unknown` is what other proxies write for an address that is not told.
        if isHidden || address.isEmpty { output.append("unknown") } else { output.append(address.span) }
    }

    /// The elements that a trusted peer sent, each with a comma behind it.
    private func writeReceived(
        _ known: KnownField, _ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ output: inout OutputCursor
    ) {
        guard isTrusted, head.contains(known) else { return }
        for index in 0..<head.fieldCount where head[index].known == known {
            let field = head[index]
            guard !field.marks.contains(.nominated), !field.value.isEmpty else { continue }
            // An open quote in `Forwarded` would swallow our own element.
            if known == .forwarded, !isForwardedList(bytes.extracting(field.value.indices)) { continue }
            output.append(bytes, field.value)
            output.append(", ")
        }
    }

    /// A trusted peer's word of the first hop stands: ours would speak of the hop between the two.
    private func keeps(_ known: KnownField, of head: borrowing RequestHead) -> Bool {
        guard isTrusted, head.contains(known) else { return false }
        for index in 0..<head.fieldCount where head[index].known == known {
            if !head[index].marks.contains(.nominated) { return true }
        }
        return false
    }
}
