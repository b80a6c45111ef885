internal import HTTP1
internal import TLS

/// The whole body of a request whose signature contains the body's digest: the head cannot leave before the last byte has come.
/// An exception to the law against allocation, for the routes whose identity signs bodies.
final class GatheredBody {
    private var reader: BodyReader
    private var hash = RunningSHA256()
    /// Where in the caller's block the unread bytes begin.
    private var position: Int
    /// The length of the body without its framing.
    private(set) var length: UInt64 = 0
    /// SHA-256; nil as long as something is missing.
    private(set) var digest: [UInt8]?

    static let emptyDigest = sha256([])

    init(_ reader: BodyReader, from position: Int) {
        self.reader = reader
        self.position = position
        if reader.isComplete { end() }
    }

    /// - Parameter block: the caller's, up to what has been received.
    func read(_ block: UnsafeRawBufferPointer) throws(ChunkFault) {
        while digest == nil, position < block.count {
            let rest = UnsafeRawBufferPointer(rebasing: block[position...])
            let step = try reader.next(rest)
            hash.add(UnsafeRawBufferPointer(rebasing: rest[step.data]))
            length += UInt64(step.data.count)
            position += step.consumed
            if step.ended { end() }
            if step.consumed == 0 { return }
        }
    }

    /// The body ended beside its bytes, as HTTP/2 has it.
    func end() { digest = hash.finish() }
}
