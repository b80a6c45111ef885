internal import Glibc

/// Blocks of raw memory of one size, for one loop. Bounded; the block given last is taken first, because it is in the cache.
///
/// Not thread-safe: a block goes back to the pool of its loop. Blocks are whole pages from the kernel, so that what is
/// trimmed really leaves the process.
public final class BufferPool {
    /// Bytes of a block.
    let blockSize: Int
    /// Blocks that may exist at once, taken or waiting.
    public let capacity: Int
    /// Blocks that are out.
    public private(set) var taken = 0

    /// The blocks that lie ready, the last given last. Raw memory: an array would be checked for other owners with every block.
    private let waiting: UnsafeMutablePointer<UnsafeMutableRawPointer>
    /// Blocks that lie ready.
    public private(set) var waitingCount = 0
    /// The fewest that waited at any moment since `trimUnused` was last called.
    private var leastWaiting = 0

    /// - Parameters:
    ///   - blockSize: bytes, rounded up to whole pages of 4 KiB.
    ///   - capacity: blocks; `take` gives nil past it.
    public init(blockSize: Int = 16 * 1024, capacity: Int) {
        self.blockSize = max((blockSize + 4095) / 4096, 1) * 4096
        self.capacity = max(capacity, 1)
        waiting = .allocate(capacity: self.capacity)
    }

    deinit {
        trim(keeping: 0)
        waiting.deallocate()
    }

    /// Bytes that the pool holds, taken or waiting.
    public var bytes: Int { (taken + waitingCount) * blockSize }

    /// A block with old or zero content; nil when the pool is used up or the kernel has no memory.
    public func take() -> UnsafeMutableRawBufferPointer? {
        if waitingCount > 0 {
            taken += 1
            waitingCount -= 1
            if waitingCount < leastWaiting { leastWaiting = waitingCount }
            return UnsafeMutableRawBufferPointer(start: waiting[waitingCount], count: blockSize)
        }
        guard taken < capacity else { return nil }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        guard let block = mmap(nil, blockSize, PROT_READ | PROT_WRITE, flags, -1, 0), block != MAP_FAILED else {
            return nil
        }
        taken += 1
        return UnsafeMutableRawBufferPointer(start: block, count: blockSize)
    }

    /// Takes a block back.
    /// - Parameter wiping: bytes at the front that held a secret and are overwritten first.
    public func give(_ block: UnsafeMutableRawBufferPointer, wiping: Int = 0) {
        guard let start = block.baseAddress else { return }
        precondition(block.count == blockSize && taken > 0, "a block of another pool")
        if wiping > 0 { explicit_bzero(start, min(wiping, blockSize)) }
        // With those that are out no more than `capacity`, so there is room.
        taken -= 1
        waiting[waitingCount] = start
        waitingCount += 1
    }

    /// Returns to the kernel the blocks that nobody has needed since this was last called.
    ///
    /// Not those that just happen to wait: between two requests of a busy moment all of them do, and a block that goes and comes again costs
    /// two system calls and its pages.
    /// - Parameter kept: so many stay in any case.
    public func trimUnused(keeping kept: Int) {
        trim(keeping: max(waitingCount - leastWaiting, kept))
        leastWaiting = waitingCount
    }

    /// The least recently used first.
    private func trim(keeping kept: Int) {
        let excess = waitingCount - kept
        guard excess > 0 else { return }
        for index in 0..<excess { munmap(waiting[index], blockSize) }
        waitingCount = kept
        waiting.update(from: waiting + excess, count: kept)
    }
}
