/// Writes what stands around the chunks of a body (RFC 9112 §7.1). The body bytes go out from where they lie.
public enum ChunkedEncoder {

    /// Ends every chunk.
    public static var lineEnd: StaticString { "\r\n" }
    /// Ends a body before its trailer lines, which `lineEnd` ends.
    public static var lastChunkBeforeTrailers: StaticString { "0\r\n" }
    /// Octets of the last chunk's line (RFC 9112 §7.1).
    public static let lastChunkLength = 3
}

// MARK: -

extension ChunkedEncoder {

    /// - Precondition: `count` is greater than 0: a chunk of no bytes ends the body.
    public static func appendPrefix(_ count: Int, into output: inout OutputCursor) {
        precondition(count > 0)
        output.append(hexadecimal: UInt64(count))
        output.append("\r\n")
    }

    /// Writes the end of a body with those trailer lines that may be forwarded.
    ///
    /// Fields of framing, routing, authentication and cookies are no trailers (RFC 9110 §6.5.1) and are left out; so is
    /// every name in `drop`, look-alikes included: an injected field must not come in through the back door.
    ///
    /// - Parameter trailers: as `ChunkedDecoder.Step.end` gave them.
    public static func appendEnd(
        _ bytes: Span<UInt8>, trailers: ByteRange, drop: borrowing NameSet, into output: inout OutputCursor
    ) {
        output.append(lastChunkBeforeTrailers)
        var start = Int(trailers.start)
        let end = Int(trailers.end)
        while start < end {
            var lineEnd = start
            while lineEnd < end, bytes[lineEnd] != 0x0D { lineEnd &+= 1 }
            let next = min(lineEnd &+ 2, end)
            if let name = trailerName(ByteRange(start..<lineEnd), in: bytes) {
                let known = KnownField.lookup(name, in: bytes, lookAlike: true)
                if forbidden & known.bit == 0, !drop.contains(bytes.extracting(name.indices), lookAlike: true) {
                    output.append(bytes, ByteRange(start..<next))
                }
            }
            start = next
        }
        output.append(lineEnd)
    }

    @inline(__always)
    private static var forbidden: UInt64 {
        RequestEdits.ownedByHop | ResponseEdits.ownedByHop | KnownField.authorization.bit
            | KnownField.wwwAuthenticate.bit | KnownField.cookie.bit | KnownField.setCookie.bit
            | KnownField.expect.bit | KnownField.maxForwards.bit | KnownField.cacheControl.bit
            | KnownField.contentType.bit | KnownField.contentEncoding.bit | KnownField.location.bit
            | KnownField.forwarded.bit | KnownField.xForwardedFor.bit | KnownField.xForwardedHost.bit
            | KnownField.xForwardedProto.bit | KnownField.dpop.bit
    }
}
