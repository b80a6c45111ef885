internal import HTTP2
internal import Reactor

/// The blocks of a loop that the callers of HTTP/2 hold, all together. One of their connections can carry a hundred requests and windows
/// full of bodies, so that some dozens of them could leave nothing to anybody else.
final class BlockBudget {
    /// Blocks that they may hold: half of the pool. The other half is for connections that carry one request at a time.
    let limit: Int
    /// Blocks that each connection may hold, however much the others do. They come out of the other half where the first is used up.
    let floor: Int
    /// Blocks that are held or reserved.
    fileprivate(set) var held = 0
    /// Connections that hold any.
    fileprivate(set) var holders = 0

    init(pool capacity: Int) {
        limit = capacity / 2
        floor = min(max(capacity / 128, BlockShare.perStream + 1), 24)
    }
}

/// The part of the budget that a connection has: an equal share among those that hold something now.
///
/// A connection that stood alone may hold more than what is its share when others come. Nothing is taken away from it; it gets no more,
/// its windows shrink as they are read, and the others draw on their floor until then.
final class BlockShare: BlockSource {
    /// Blocks that a request holds beside the queues of its stream: the caller's, the upstream's, and one of output that waits there.
    static let perStream = 3

    private(set) var held = 0
    private let budget: BlockBudget
    private let pool: any BlockSource

    init(of budget: BlockBudget, from pool: any BlockSource) {
        self.budget = budget
        self.pool = pool
    }

    /// Room for one more request; `endStream` gives it back.
    func beginStream() -> Bool {
        guard mayHold(Self.perStream) else { return false }
        hold(Self.perStream)
        return true
    }

    func endStream() { release(Self.perStream) }

    // MARK: - Blocks of its queues

    /// The next block might not be had.
    var isShort: Bool { !mayHold(1) }

    func take() -> UnsafeMutableRawBufferPointer? {
        guard mayHold(1), let block = pool.take() else { return nil }
        hold(1)
        return block
    }

    func give(_ block: UnsafeMutableRawBufferPointer) {
        pool.give(block)
        release(1)
    }

    // MARK: - Counting

    private func mayHold(_ more: Int) -> Bool {
        let next = held + more
        guard next > budget.floor else { return true }
        let holders = budget.holders + (held == 0 ? 1 : 0)
        return budget.held + more <= budget.limit && next <= budget.limit / holders
    }

    private func hold(_ count: Int) {
        if held == 0 { budget.holders += 1 }
        held += count
        budget.held += count
    }

    private func release(_ count: Int) {
        guard count > 0 else { return }
        precondition(held >= count, "blocks are given back that were not held")
        held -= count
        budget.held -= count
        if held == 0 { budget.holders -= 1 }
    }
}
