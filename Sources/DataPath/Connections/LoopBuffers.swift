internal import HTTP1
internal import HTTP2
package import Reactor

/// The memory of one loop's connections: blocks for input, larger ones for the rare big head or body, and scratch areas that are
/// free again at the end of every call.
package final class LoopBuffers: BlockSource {
    /// Bytes of an ordinary block: one TLS record, and more than nearly every head.
    let blockSize = 16 * 1024
    /// Where heads are composed. Twice the largest head, since a rewrite may add to it.
    let scratch: UnsafeMutableRawBufferPointer
    /// Where the parts of one TLS record are put together.
    let record: UnsafeMutableRawBufferPointer
    /// The head that is on its way to a stream of HTTP/2. What is put together of it lies in `scratch`.
    var outgoing = OutgoingHead()
    /// Room for the output of HTTP/2 connections: four frames of the usual size, so that one write carries much.
    let http2Output: UnsafeMutableRawBufferPointer
    /// A route's own field line around a token.
    let credential: UnsafeMutableRawBufferPointer
    /// The caller's origin and lines of our own, beside an answer's head.
    let notes: UnsafeMutableRawBufferPointer
    /// A chunk's size line, and its end with the trailers behind it.
    let prefix: UnsafeMutableRawBufferPointer
    let suffix: UnsafeMutableRawBufferPointer
    let pool: BufferPool
    /// The allocator of nghttp2 for the loop's HTTP/2 connections.
    let frames = HTTP2Memory()
    /// The budget of the blocks of `pool` that the callers of HTTP/2 hold.
    let budget: BlockBudget
    /// For bodies that pass without being looked at; nil where none do.
    let pipes: PipePool?
    private(set) var inputBytes = 0
    private(set) var outputBytes = 0
    private let largeLimit: Int

    package init(blocks: Int, largeLimit: Int, scratchSize: Int, pipes: PipePool? = nil) {
        self.pipes = pipes
        pool = BufferPool(blockSize: 16 * 1024, capacity: blocks)
        budget = BlockBudget(pool: pool.capacity)
        self.largeLimit = largeLimit
        scratch = .allocate(byteCount: scratchSize, alignment: 16)
        record = .allocate(byteCount: 16 * 1024, alignment: 16)
        http2Output = .allocate(byteCount: 66 * 1024, alignment: 16)
        credential = .allocate(byteCount: 48 * 1024, alignment: 16)
        notes = .allocate(byteCount: 4 * 1024, alignment: 16)
        prefix = .allocate(byteCount: 32, alignment: 16)
        suffix = .allocate(byteCount: 12 * 1024, alignment: 16)
    }

    deinit {
        scratch.deallocate()
        record.deallocate()
        http2Output.deallocate()
        credential.deallocate()
        notes.deallocate()
        prefix.deallocate()
        suffix.deallocate()
    }

    func take() -> UnsafeMutableRawBufferPointer? { pool.take() }

    /// The uses of large blocks; each has a bound of its own, so that bodies kept for a replay cannot cut the answers of others.
    enum Use { case input, output }

    /// A block of at least `capacity` bytes. Past the pool's block size it is allocated, an exception to the first law: only heads over
    /// 16 KiB, bodies kept for a replay, and output that a slow peer leaves behind come here.
    func takeLarge(_ capacity: Int, for use: Use) -> UnsafeMutableRawBufferPointer? {
        if capacity <= blockSize { return pool.take() }
        switch use {
        case .input:
            guard inputBytes + capacity <= largeLimit else { return nil }
            inputBytes += capacity
        case .output:
            guard outputBytes + capacity <= largeLimit else { return nil }
            outputBytes += capacity
        }
        return .allocate(byteCount: capacity, alignment: 16)
    }

    func give(_ block: UnsafeMutableRawBufferPointer) { give(block, from: .input) }

    func give(_ block: UnsafeMutableRawBufferPointer, from use: Use) {
        if block.count == blockSize { return pool.give(block) }
        // A short message of HTTP/2 stays where it came (`Channel.fill`).
        if block.count <= HTTP2Memory.largestPiece { return frames.give(piece: block) }
        switch use {
        case .input: inputBytes -= block.count
        case .output: outputBytes -= block.count
        }
        block.deallocate()
    }

    /// Whether more lies ready than `connections` are likely to use.
    func canTrim(for connections: Int) -> Bool {
        pool.waitingCount > 2 * Self.kept(for: connections) || (pipes?.waitingCount ?? 0) > connections
    }

    /// Gives back what nobody has used since the last time.
    func trim(for connections: Int) {
        pipes?.trim(keeping: connections)
        pool.trimUnused(keeping: Self.kept(for: connections))
    }

    private static func kept(for connections: Int) -> Int { 64 + 2 * connections }
}
