internal import HTTP1
internal import TLS

/// The whole body of a request whose signature contains the body's digest: the head cannot leave before the last byte has come.
/// An exception to the law against allocation, for the routes whose identity signs bodies.
final class GatheredBody {
    private var reader: BodyReader
    private let function: HashFunction
    private var hash: RunningHash
    /// Where in the caller's block the unread bytes begin.
    private var position: Int
    /// Reader and position as they were before the first byte.
    private let start: (reader: BodyReader, position: Int)
    /// The length of the body without its framing.
    private(set) var length: UInt64 = 0
    /// By `function`; nil as long as something is missing.
    private(set) var digest: [UInt8]?
    /// There are fields behind it, for which a message in chunks alone has room.
    private(set) var hasTrailers = false

    static let emptyDigest = sha256([])

    /// - Parameter wanted: the function that a signer will most likely want; SHA-256 for nil, and for one that the system's library lacks.
    init(_ reader: BodyReader, from position: Int, hashing wanted: HashFunction? = nil) {
        let function = wanted.flatMap { RunningHash($0) == nil ? nil : $0 } ?? .sha256
        guard let hash = RunningHash(function) else { preconditionFailure("SHA-256 not available") }
        self.function = function
        self.hash = hash
        self.reader = reader
        self.position = position
        start = (reader, position)
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
            if step.ended { end(hasTrailers: !step.trailers.isEmpty) }
            if step.consumed == 0 { return }
        }
    }

    /// The body ended beside its bytes, as HTTP/2 has it.
    func end(hasTrailers: Bool = false) {
        digest = hash.finish()
        self.hasTrailers = hasTrailers
    }

    /// The digest by a function that was not known when the body came; it reads the body once more.
    /// - Precondition: the body is whole, and still where it was received.
    /// - Returns: nil where there is no such function here.
    func digest(by function: HashFunction, in block: UnsafeRawBufferPointer) -> [UInt8]? {
        if function == self.function { return digest }
        guard var hash = RunningHash(function) else { return nil }
        var (reader, at) = start
        while at < position {
            let rest = UnsafeRawBufferPointer(rebasing: block[at..<position])
            guard let step = try? reader.next(rest), step.consumed > 0 else { return nil }
            hash.add(UnsafeRawBufferPointer(rebasing: rest[step.data]))
            at += step.consumed
        }
        return hash.finish()
    }
}
