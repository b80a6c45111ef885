/// Memory for the queues of streams, in blocks of one size; bounded by whoever owns it.
public protocol BlockSource: AnyObject {
    /// - Returns: nil when the bound is reached.
    func take() -> UnsafeMutableRawBufferPointer?
    func give(_ block: UnsafeMutableRawBufferPointer)
    /// The next block might not be had: who holds any should make do with them.
    var isShort: Bool { get }
}

extension BlockSource {
    public var isShort: Bool { false }
}

/// Bytes in the order they came, in blocks that go back as soon as they are read.
struct BlockQueue: ~Copyable {
    private(set) var count = 0
    private var blocks: [UnsafeMutableRawBufferPointer] = []
    /// Where the bytes begin in the first block, and end in the last.
    private var start = 0
    private var end = 0
    private let source: any BlockSource

    init(source: any BlockSource) {
        self.source = source
    }

    deinit {
        for block in blocks { source.give(block) }
    }
}

// MARK: -

extension BlockQueue {
    /// - Returns: false when no memory could be had; what fitted has been appended.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        while offset < bytes.count {
            if blocks.isEmpty || end == blocks[blocks.count - 1].count {
                guard let block = source.take() else { return false }
                blocks.append(block)
                end = 0
                if blocks.count == 1 { start = 0 }
            }
            let last = blocks[blocks.count - 1]
            let size = min(bytes.count - offset, last.count - end)
            UnsafeMutableRawBufferPointer(rebasing: last[end..<(end + size)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + size)]))
            end += size
            offset += size
            count += size
        }
        return true
    }

    /// The bytes that lie together at the front.
    var front: UnsafeRawBufferPointer {
        guard let first = blocks.first else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: first[start..<(blocks.count == 1 ? end : first.count)])
    }

    /// Forgets bytes at the front.
    /// - Precondition: `size` is at most `front.count`.
    mutating func drop(_ size: Int) {
        precondition(size <= front.count)
        start += size
        count -= size
        guard let first = blocks.first else { return }
        if count == 0 || start == first.count {
            // Most often the only one, whose end needs no shifting.
            if blocks.count == 1 { blocks.removeLast() } else { blocks.removeFirst() }
            source.give(first)
            start = 0
        }
    }

    /// Moves bytes out.
    /// - Returns: how many; less than fit only when the queue is empty then.
    mutating func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        var filled = 0
        while filled < target.count, count > 0 {
            let piece = front
            let size = min(piece.count, target.count - filled)
            UnsafeMutableRawBufferPointer(rebasing: target[filled..<(filled + size)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece[..<size]))
            drop(size)
            filled += size
        }
        return filled
    }

    mutating func clear() {
        guard !blocks.isEmpty else { return }
        for block in blocks { source.give(block) }
        blocks.removeAll(keepingCapacity: true)
        start = 0
        end = 0
        count = 0
    }
}
