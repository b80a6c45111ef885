internal import Handshakes

/// A body that is signed while it passes: what has come and is not signed yet is held here, apart from the caller's block, in which the
/// octets stay as they came for a request that is sent again.
///
/// An exception to the law against allocation, for requests that bring such a body: the memory counts in the loop's bound for large blocks.
final class PassingBody {
    private let signer: any BodySigner
    private let buffers: LoopBuffers
    private var memory: UnsafeMutableRawBufferPointer?
    private var start = 0
    /// The end of what may go out.
    private var signed = 0
    private var end = 0
    /// The body's last octet is among them.
    private(set) var hasEnded = false

    init(_ signer: any BodySigner, _ buffers: LoopBuffers) {
        self.signer = signer
        self.buffers = buffers
    }

    deinit { if let memory { buffers.give(memory) } }

    /// The octets that may go out.
    var ready: UnsafeRawBufferPointer {
        guard let memory else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: memory[start..<signed])
    }

    var isReady: Bool { start < signed }

    /// - Parameters:
    ///   - piece: the next octets of the body, without the framing of its message.
    ///   - ended: they are the last ones.
    /// - Precondition: nothing is ready.
    func add(_ piece: UnsafeRawBufferPointer, ended: Bool) throws(Fault) {
        guard makeRoom(for: piece.count) else { throw Fault(.outOfMemory, retryAfter: 1) }
        memory?.put(piece, at: end)
        end += piece.count
        do throws(BodyFault) {
            if let memory { signed = try signer.sign(UnsafeMutableRawBufferPointer(rebasing: memory[..<end])) }
            guard ended else { return }
            try signer.end()
            hasEnded = true
        } catch { throw Fault(error) }
    }

    /// `count` octets of what was ready have gone out.
    func sent(_ count: Int) {
        start += count
        guard hasEnded, start == end, let memory else { return }
        buffers.give(memory)
        self.memory = nil
        (start, signed, end) = (0, 0, 0)
    }

    /// Room behind what is held, which moves to the front.
    private func makeRoom(for count: Int) -> Bool {
        let held = end - start
        if let memory, memory.count - held >= count {
            if start > 0, held > 0 {
                memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[start..<end]))
            }
        } else {
            guard count > 0 else { return true }
            // With a block beside it, so that what comes behind a chunk has room too.
            let wanted = max(held + count, signer.room + buffers.blockSize)
            guard let larger = buffers.takeLarge(wanted, for: .input) else { return false }
            if let memory {
                larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[start..<end]))
                buffers.give(memory)
            }
            memory = larger
        }
        (start, signed, end) = (0, 0, held)
        return true
    }
}

extension Fault {
    fileprivate init(_ fault: BodyFault) {
        self.init(fault.isTooLarge ? .bigBody : .malformedRequest, detail: "of its body: \(fault.reason)")
    }
}
