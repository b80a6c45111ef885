public import Synchronization

/// The counters of one loop: one writer, any number of readers.
///
/// With one writer an increment is a load and a store, with no locked instruction; readers may see it a moment later but
/// never torn. The block begins and ends on its own pair of cache lines, so that no loop's writes disturb another's.
/// All accesses are relaxed: each cell stands for itself, and a scrape needs no agreement between cells.
public final class MetricBlock: @unchecked Sendable {
    /// How many cells the block has, at least one.
    public let count: Int
    @usableFromInline let cells: UnsafeMutablePointer<Atomic<UInt64>>
    private let memory: UnsafeMutableRawPointer

    /// All cells are zero.
    /// - Parameter count: less than one counts as one.
    public init(cells count: Int) {
        self.count = max(count, 1)
        let line = 128
        let bytes = (self.count * 8 + line - 1) / line * line
        memory = .allocate(byteCount: bytes, alignment: line)
        cells = memory.bindMemory(to: Atomic<UInt64>.self, capacity: self.count)
        for index in 0..<self.count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: count)
        memory.deallocate()
    }

    // MARK: - The owning loop only

    /// Adds to a counter or a gauge; wraps at 2^64.
    @inlinable
    public func add(_ cell: MetricCell, _ amount: UInt64 = 1) {
        bump(cell.index, by: amount)
    }

    /// For gauges; the sum over the loops counts, so a single block may well stand below zero.
    @inlinable
    public func subtract(_ cell: MetricCell, _ amount: UInt64 = 1) {
        bump(cell.index, by: 0 &- amount)
    }

    /// Counts the duration in its bucket and adds it to the histogram's sum.
    @inlinable
    public func observe(_ histogram: MetricHistogram, nanoseconds: UInt64) {
        bump(histogram.index + DurationBuckets.bucket(of: nanoseconds), by: 1)
        bump(histogram.index + DurationBuckets.count, by: nanoseconds)
    }

    @inlinable
    func bump(_ index: Int, by amount: UInt64) {
        precondition(index < count)
        cells[index].store(cells[index].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    // MARK: - Any thread

    func value(at index: Int) -> UInt64 {
        precondition(index < count)
        return cells[index].load(ordering: .relaxed)
    }
}
