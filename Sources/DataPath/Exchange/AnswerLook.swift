internal import HTTP1

/// A look into the body of an answer that may be a challenge (`recipe.challenge.json`): its bytes stay in the upstream's block, untouched,
/// and what they carry is collected beside them until it is whole or a bound is met.
///
/// An exception to the law against allocation: such an answer is no hit, and only routes whose identity reads bodies come here.
final class AnswerLook {
    /// Finds the body's end beside the reader that will relay it, which starts anew.
    private var reader: BodyReader
    /// Bytes behind the head that have been read.
    private var position = 0
    /// Without its framing, still in its content coding.
    private(set) var body: [UInt8] = []
    private(set) var isComplete: Bool

    /// Bytes of a body, as received, that are held at most. A longer one is passed on as it comes.
    static let limit = 64 * 1024
    /// Nanoseconds that an answer is held at most for the rest of its body: one that never ends must not keep its caller waiting.
    static let patience: UInt64 = 5_000_000_000

    init(_ reader: BodyReader) {
        self.reader = reader
        isComplete = reader.isComplete
    }

    /// - Parameter held: everything behind the head that has been received so far.
    func read(_ held: UnsafeRawBufferPointer) throws(ChunkFault) {
        while !isComplete, position < held.count {
            let rest = UnsafeRawBufferPointer(rebasing: held[position...])
            let step = try reader.next(rest)
            body += rest[step.data]
            position += step.consumed
            isComplete = step.ended
            if step.consumed == 0 { return }
        }
    }
}

/// Why a body could not be looked at, in words for the log.
enum Unseen: String {
    case long = "a body of over 64 KiB is not searched for a challenge"
    case slow = "the body did not end within 5 s, so it was not searched for a challenge"
    case noMemory = "no memory to hold a body and search it for a challenge"
    case coding = "a body in this Content-Encoding cannot be searched for a challenge"
}
