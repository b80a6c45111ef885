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
///
/// What a queue begins with lies in a small piece, if it fits into one: heads and short bodies, of which hundreds wait at once, would
/// each touch a block of several pages.
struct BlockQueue: ~Copyable {
    private(set) var count = 0
    private var first = none
    /// Behind it, in the rare case that there are more.
    private var others: [UnsafeMutableRawBufferPointer] = []
    /// `first` is of `memory`.
    private var isPiece = false
    /// Where the bytes begin in the first block, and end in the last.
    private var start = 0
    private var end = 0
    private var source: any BlockSource
    private let memory: HTTP2Memory

    private static var none: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: nil, count: 0) }

    init(source: any BlockSource, memory: HTTP2Memory) {
        self.source = source
        self.memory = memory
    }

    deinit {
        if isPiece { memory.give(piece: first) } else if first.count > 0 { source.give(first) }
        for block in others { source.give(block) }
    }
}

// MARK: -

extension BlockQueue {
    /// - Returns: false when no memory could be had; what fitted has been appended.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        while offset < bytes.count {
            var last = others.last ?? first
            if end == last.count {
                guard let added = add(for: bytes.count - offset) else { return false }
                last = added
            }
            let size = min(bytes.count - offset, last.count - end)
            UnsafeMutableRawBufferPointer(rebasing: last[end..<(end + size)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + size)]))
            end += size
            offset += size
            count += size
        }
        return true
    }

    private mutating func add(for size: Int) -> UnsafeMutableRawBufferPointer? {
        guard first.count == 0 else {
            guard let block = source.take() else { return nil }
            others.append(block)
            end = 0
            return block
        }
        let piece = memory.take(piece: size)
        guard let block = piece ?? source.take() else { return nil }
        isPiece = piece != nil
        first = block
        start = 0
        end = 0
        return block
    }

    /// The bytes that lie together at the front.
    var front: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: first[start..<(others.isEmpty ? end : first.count)])
    }

    /// Forgets bytes at the front.
    /// - Precondition: `size` is at most `front.count`.
    mutating func drop(_ size: Int) {
        precondition(size <= front.count)
        start += size
        count -= size
        if count == 0 || start == first.count { giveFirst() }
    }

    private mutating func giveFirst() {
        guard first.count > 0 else { return }
        if isPiece { memory.give(piece: first) } else { source.give(first) }
        isPiece = false
        start = 0
        if others.isEmpty {
            first = Self.none
            end = 0
        } else {
            first = others.removeFirst()
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
        while first.count > 0 { giveFirst() }
        count = 0
    }

    /// Empties it; what comes next lies in blocks of another owner.
    mutating func begin(source next: any BlockSource) {
        clear()
        if source !== next { source = next }
    }
}
