internal import HTTP1

/// Finds a body's end in received bytes, whatever its framing, without copying.
enum BodyReader {
    case none
    case length(UInt64)
    case chunked(ChunkedDecoder)
    /// A body in chunks that has ended. The case is separate, so that nobody has to look into a decoder to know.
    case done
    case untilClose

    struct Step {
        /// Bytes that are done with, framing and data.
        var consumed = 0
        /// Where among them the data lies.
        var data = 0..<0
        /// Where among them the trailer lines lie; only with the end.
        var trailers = ByteRange.empty
        /// The body's last byte is among them.
        var ended = false
    }

    init(_ framing: RequestFraming) {
        switch framing {
        case .none: self = .none
        case .length(let count): self = .length(count)
        case .chunked: self = .chunked(ChunkedDecoder())
        }
    }

    init(_ framing: BodyFraming) {
        switch framing {
        case .none: self = .none
        case .length(let count): self = .length(count)
        case .chunked: self = .chunked(ChunkedDecoder(limits: ChunkLimits(allowsPadding: true)))
        case .untilClose: self = .untilClose
        }
    }

    /// No byte of the body is left to come.
    var isComplete: Bool {
        switch self {
        case .none, .done: true
        case .length(let left): left == 0
        case .chunked, .untilClose: false
        }
    }

    /// Bytes that may pass without being looked at, since nothing in them says where the body ends.
    var opaque: UInt64 {
        switch self {
        case .length(let left): left
        case .untilClose: .max
        case .none, .chunked, .done: 0
        }
    }

    /// `count` bytes have passed without being looked at.
    mutating func passed(_ count: Int) {
        if case .length(let left) = self { self = .length(left - UInt64(count)) }
    }

    /// The next piece of the body in `bytes`. Nothing consumed and not ended means that more bytes are needed.
    mutating func next(_ bytes: UnsafeRawBufferPointer) throws(ChunkFault) -> Step {
        switch self {
        case .none, .done:
            return Step(ended: true)
        case .length(let left):
            let count = Int(min(left, UInt64(bytes.count)))
            self = .length(left - UInt64(count))
            return Step(consumed: count, data: 0..<count, ended: left == UInt64(count))
        case .untilClose:
            return Step(consumed: bytes.count, data: 0..<bytes.count)
        case .chunked(var decoder):
            let step = try Self.step(&decoder, bytes)
            self = step.ended ? .done : .chunked(decoder)
            return step
        }
    }

    private static func step(_ decoder: inout ChunkedDecoder, _ bytes: UnsafeRawBufferPointer) throws(ChunkFault)
        -> Step
    {
        var step = Step()
        switch try decoder.next(bytes.octets) {
        case .needsMore(let consumed):
            step.consumed = consumed
            return step
        case .end(let consumed, let trailers):
            step.consumed = consumed
            step.trailers = trailers
            step.ended = true
            return step
        case .data(let range):
            step.data = range.indices
            step.consumed = Int(range.end)
        }
        // The decoder looks one step further: where the end follows at once, data and end leave in one write.
        guard step.consumed < bytes.count else { return step }
        var ahead = decoder
        switch try ahead.next(bytes.octets, from: step.consumed) {
        case .data: break
        case .needsMore(let consumed):
            decoder = ahead
            step.consumed = consumed
        case .end(let consumed, let trailers):
            decoder = ahead
            step.consumed = consumed
            step.trailers = trailers
            step.ended = true
        }
        return step
    }
}
