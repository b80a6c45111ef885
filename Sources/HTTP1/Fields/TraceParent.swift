internal import Octets

/// A `traceparent`: the trace that a request belongs to, and the span that sent it (W3C Trace Context, section 3.2).
public struct TraceParent: Sendable, Equatable {
    /// The first eight octets of the trace id.
    public var traceHigh: UInt64
    /// The last eight octets of the trace id; not both halves are zero.
    public var traceLow: UInt64
    /// The sender's span; not zero.
    public var span: UInt64
    /// The sender may have recorded its part.
    public var isSampled: Bool
}

extension TraceParent {
    /// Nil for a text that the recommendation has replaced by a new trace. Of a version that is not known the parts of version 00 are read
    /// (section "Versioning of traceparent"), and of the flags the one that is defined.
    public init?(_ text: Span<UInt8>) {
        guard text.count >= Self.length, text[2] == 0x2D, text[35] == 0x2D, text[52] == 0x2D,
            let version = text.hexadecimalOctet(at: 0), version != 0xFF,
            text.count == Self.length || version > 0 && text[Self.length] == 0x2D,
            let high = text.hexadecimalWord(at: 3), let low = text.hexadecimalWord(at: 19), high | low != 0,
            let span = text.hexadecimalWord(at: 36), span != 0, let flags = text.hexadecimalOctet(at: 53)
        else { return nil }
        traceHigh = high
        traceLow = low
        self.span = span
        isSampled = flags & 1 != 0
    }

    /// Octets of version 00.
    private static var length: Int { 55 }

    /// Octets of the field's line with its CRLF.
    private static var lineLength: Int { 16 + length - 3 + 2 }

    /// Writes the field's line as version 00, with its CRLF.
    public static func writeLine(
        traceHigh: UInt64, traceLow: UInt64, span: UInt64, isSampled: Bool, into output: inout OutputCursor
    ) {
        // Every request of a route that is traced has one, so it is written a word at a time.
        guard let line = output.extend(by: lineLength) else { return }
        // "tracepar", "ent: 00-"
        line.storeBytes(of: UInt64(0x7472_6163_6570_6172).bigEndian, as: UInt64.self)
        line.storeBytes(of: UInt64(0x656E_743A_2030_302D).bigEndian, toByteOffset: 8, as: UInt64.self)
        write(traceHigh, at: line + 16)
        write(traceLow, at: line + 32)
        line.storeBytes(of: 0x2D, toByteOffset: 48, as: UInt8.self)
        write(span, at: line + 49)
        // "-00\r" or "-01\r"
        let flags: UInt32 = isSampled ? 0x2D30_310D : 0x2D30_300D
        line.storeBytes(of: flags.bigEndian, toByteOffset: 65, as: UInt32.self)
        line.storeBytes(of: 10, toByteOffset: 69, as: UInt8.self)
    }

    @inline(__always)
    private static func write(_ number: UInt64, at place: UnsafeMutableRawPointer) {
        let (high, low) = (UInt32(truncatingIfNeeded: number >> 32), UInt32(truncatingIfNeeded: number))
        place.storeBytes(of: Hexadecimal.digits(of: high).bigEndian, as: UInt64.self)
        place.storeBytes(of: Hexadecimal.digits(of: low).bigEndian, toByteOffset: 8, as: UInt64.self)
    }
}

extension Span<UInt8> {
    /// The number of sixteen small hexadecimal digits.
    fileprivate func hexadecimalWord(at start: Int) -> UInt64? {
        guard let high = Hexadecimal.number(of: word(at: start)), let low = Hexadecimal.number(of: word(at: start + 8))
        else { return nil }
        return UInt64(high) << 32 | UInt64(low)
    }

    /// The number of two of them.
    fileprivate func hexadecimalOctet(at start: Int) -> UInt8? {
        let zeros: UInt64 = 0x3030_3030_3030_0000
        let digits = UInt64(self[start]) << 8 | UInt64(self[start + 1])
        return Hexadecimal.number(of: zeros | digits).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// Eight octets, the first one highest.
    private func word(at start: Int) -> UInt64 {
        precondition(start >= 0 && start + 8 <= count)
        return withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: start, as: UInt64.self)) }
    }
}
