internal import Octets

/// Undoes the chunked coding (RFC 9112 §7.1), strictly and without keeping a byte of the body.
///
/// A relay calls `next` until it is told to wait: each step names body bytes that lie in the given buffer, so they go
/// out without a copy, and says how far the buffer is read. The state survives any cut between two reads. Extensions
/// are passed over, bounded, and never forwarded (RFC 9112 §7.1.1). A fault stays: where the message ends is not known any more.
public struct ChunkedDecoder: Sendable {
    private enum State: Sendable, Equatable {
        case sizeStart
        case size
        case padding
        case sizeExtension
        case sizeLineFeed
        case data
        case dataReturn
        case dataLineFeed
        case trailers
        case done
        case failed(ChunkFault)
    }

    private var state = State.sizeStart
    /// Size of the current chunk while it is read, then what is left of it.
    private var remaining: UInt64 = 0
    private var digits = 0
    private var extensionSize = 0
    /// Bytes of size lines beyond what the body they carried excuses.
    private var overhead = 0
    /// Within the trailer section: start of the line that is not validated yet, and how far it was searched.
    private var trailerLine = 0
    private var trailerScanned = 0
    private let limits: ChunkLimits

    /// A decoder at the start of a body.
    public init(limits: ChunkLimits = ChunkLimits()) {
        self.limits = limits
    }

    /// The result of a call.
    public enum Step: Sendable, Equatable {
        /// Body bytes; the next call starts at their end.
        case data(ByteRange)
        /// Everything before `consumed` is done with; call again from there when more has arrived. Bytes of an
        /// unfinished trailer section are not consumed: they are to stand at the front of the next call.
        case needsMore(consumed: Int)
        /// The message ends before `consumed`. `trailers` are the trailer lines with their CRLFs, validated, without
        /// the empty line; they lie before `consumed` and may be empty.
        case end(consumed: Int, trailers: ByteRange)
    }
}

/// Bounds of a chunked body.
public struct ChunkLimits: Sendable, Equatable {
    /// Bytes after the size of one chunk.
    public var chunkExtension: Int
    /// Bytes that size lines may take beyond twice the body they carried, over the whole message: without it a sender
    /// keeps us reading extensions for one byte of body at a time.
    public var overhead: Int
    /// Bytes of the trailer section.
    public var trailers: Int
    /// Take blanks after a chunk size that nothing follows, as some old servers pad it. For responses.
    public var allowsPadding: Bool

    /// Bounds in octets; negative ones count as zero. The defaults suit both directions.
    public init(
        chunkExtension: Int = 256, overhead: Int = 16 << 10, trailers: Int = 8 << 10, allowsPadding: Bool = false
    ) {
        self.chunkExtension = max(chunkExtension, 0)
        self.overhead = max(overhead, 0)
        self.trailers = min(max(trailers, 2), Int(Int32.max) / 2)
        self.allowsPadding = allowsPadding
    }
}

/// Why a chunked body was refused: 400 for a request, 502 or an aborted answer for a response.
public enum ChunkFault: Error, Equatable, Sendable, CaseIterable {
    case sizeInvalid
    case sizeTooLarge
    case extensionInvalid
    case extensionTooLong
    case overheadTooLarge
    case lineEndInvalid
    case dataEndInvalid
    case trailerInvalid
    case trailersTooLarge
}

// MARK: -

extension ChunkedDecoder {
    /// The last chunk and its trailer section were read.
    public var isDone: Bool { state == .done }

    /// The next step from `offset` on.
    ///
    /// - Parameter bytes: the read buffer; all offsets in the answer are offsets into it.
    /// - Precondition: `offset` is at most `bytes.count`, which fits `Int32`.
    public mutating func next(_ bytes: Span<UInt8>, from offset: Int = 0) throws(ChunkFault) -> Step {
        if case .failed(let fault) = state { throw fault }
        do {
            return try advance(bytes, from: offset)
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func advance(_ bytes: Span<UInt8>, from offset: Int) throws(ChunkFault) -> Step {
        precondition(offset >= 0 && offset <= bytes.count)
        var cursor = offset
        while true {
            if state == .trailers { return try readTrailers(bytes, from: cursor) }
            if state == .done { return .end(consumed: cursor, trailers: ByteRange(cursor..<cursor)) }
            guard cursor < bytes.count else { return .needsMore(consumed: cursor) }
            if state == .data {
                let count = Int(min(remaining, UInt64(bytes.count - cursor)))
                remaining -= UInt64(count)
                if remaining == 0 { state = .dataReturn }
                return .data(ByteRange(cursor..<cursor + count))
            }
            try take(bytes[cursor])
            cursor &+= 1
        }
    }

    private mutating func take(_ octet: UInt8) throws(ChunkFault) {
        switch state {
        case .sizeStart:
            guard let digit = octet.hexValue else { throw .sizeInvalid }
            remaining = UInt64(digit)
            digits = 1
            extensionSize = 0
            state = .size
        case .size:
            if let digit = octet.hexValue {
                digits += 1
                // 16 digits are 64 bits; leading zeros count, or a size line could go on for ever.
                guard digits <= 16, remaining <= UInt64(Int64.max) >> 4 else { throw .sizeTooLarge }
                remaining = remaining << 4 | UInt64(digit)
            } else if isBlank(octet) {
                state = .padding
                try countExtension()
            } else {
                try endSize(octet)
            }
        case .padding:
            if isBlank(octet) {
                try countExtension()
            } else {
                // Blanks may part the size from `;`. Before a line end they are nobody's grammar.
                guard octet == 0x3B || limits.allowsPadding else { throw .sizeInvalid }
                try endSize(octet)
            }
        case .sizeExtension:
            if octet == 0x0D {
                state = .sizeLineFeed
            } else {
                guard octet != 0x0A else { throw .lineEndInvalid }
                guard octet != 0 else { throw .extensionInvalid }
                try countExtension()
            }
        case .sizeLineFeed:
            guard octet == 0x0A else { throw .lineEndInvalid }
            try settleOverhead()
            state = remaining > 0 ? .data : .trailers
            trailerLine = 0
            trailerScanned = 0
        case .dataReturn:
            guard octet == 0x0D else { throw .dataEndInvalid }
            state = .dataLineFeed
        case .dataLineFeed:
            guard octet == 0x0A else { throw .dataEndInvalid }
            state = .sizeStart
        case .data, .trailers, .done, .failed:
            break
        }
    }

    private mutating func endSize(_ octet: UInt8) throws(ChunkFault) {
        switch octet {
        case 0x0D:
            state = .sizeLineFeed
        case 0x3B:
            state = .sizeExtension
            try countExtension()
        case 0x0A:
            throw .lineEndInvalid
        default:
            throw .sizeInvalid
        }
    }

    private mutating func countExtension() throws(ChunkFault) {
        extensionSize += 1
        guard extensionSize <= limits.chunkExtension else { throw .extensionTooLong }
    }

    private mutating func settleOverhead() throws(ChunkFault) {
        overhead += digits + extensionSize
        // A size line of 16 bytes is what any sender may need; a body pays for twice its size more.
        let excused = min(remaining, UInt64(Int32.max)) * 2 + 16
        overhead = max(0, overhead - Int(excused))
        guard overhead <= limits.overhead else { throw .overheadTooLarge }
    }

    private mutating func readTrailers(_ bytes: Span<UInt8>, from start: Int) throws(ChunkFault) -> Step {
        let limit = min(bytes.count, start + limits.trailers)
        while start + trailerScanned < limit {
            let found = firstLineBreak(in: bytes, from: start + trailerScanned, limit: limit)
            trailerScanned = found - start
            guard found < limit else { break }
            guard bytes[found] == 0x0D else { throw .trailerInvalid }
            guard found + 1 < limit else { break }
            guard bytes[found + 1] == 0x0A else { throw .trailerInvalid }
            let line = ByteRange(start + trailerLine..<found)
            if line.isEmpty {
                state = .done
                return .end(consumed: found + 2, trailers: ByteRange(start..<found))
            }
            guard trailerName(line, in: bytes) != nil else { throw .trailerInvalid }
            trailerLine = found + 2 - start
            trailerScanned = trailerLine
        }
        guard bytes.count - start < limits.trailers else { throw .trailersTooLarge }
        return .needsMore(consumed: start)
    }
}

/// The name of a trailer line, nil when the line is no field line.
func trailerName(_ line: ByteRange, in bytes: Span<UInt8>) -> ByteRange? {
    var cursor = Int(line.start)
    let end = Int(line.end)
    while cursor < end, OctetClass.token.contains(bytes[cursor]) { cursor &+= 1 }
    guard cursor > Int(line.start), cursor < end, bytes[cursor] == 0x3A else { return nil }
    return ByteRange(Int(line.start)..<cursor)
}
