import Testing

@testable import HTTP2

/// Bytes come out of a queue as they went in, wherever they lay meanwhile, and everything that they lay in goes back.
@Suite struct BlockQueueTests {
    private let memory = HTTP2Memory()

    private static func octets(_ count: Int, from first: Int = 0) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: (first + $0) % 251 + 1) }
    }

    // MARK: - Every change in any order

    /// Sizes around those of pieces and around several blocks of 100.
    private static let sizes = [
        0, 1, 2, 63, 64, 65, 99, 100, 101, 127, 128, 199, 200, 201, 500, 512, 1000, 1023, 1024, 1025, 1100, 2049, 3000,
    ]

    @Test(arguments: UInt64(1)...60)
    func `a queue agrees with an array`(seed: UInt64) {
        var drawn = DrawnHeads(seed: seed)
        let blocks = SizedBlocks(size: 100, limit: 40)
        var queue = BlockQueue(source: blocks, memory: memory)
        var expected: [UInt8] = []
        var written = 0
        for _ in 0..<150 {
            switch Int.random(in: 0..<12, using: &drawn) {
            case 0..<5:
                let new = Self.octets(drawn.one(of: Self.sizes), from: written)
                let following = drawn.one(of: [0, 0, 1, 500, 1024, .max])
                let taken = blocks.taken
                let isTaken = new.withUnsafeBytes { queue.append($0, following: following) }
                if isTaken { expected += new } else { #expect(blocks.taken == taken) }
                written += new.count
            case 5..<9:
                let room = drawn.one(of: Self.sizes)
                var target = [UInt8](repeating: 0, count: room)
                let count = target.withUnsafeMutableBytes { queue.read(into: $0) }
                #expect(count == min(room, expected.count) && target[..<count] == expected[..<count])
                expected.removeFirst(count)
            case 9:
                let front = queue.front.count
                let part = front == 0 ? 0 : Int.random(in: 0...front, using: &drawn)
                queue.drop(part)
                expected.removeFirst(part)
            case 10:
                let piece = queue.takePiece()
                if let piece {
                    #expect(Array(piece[..<expected.count]) == expected)
                    memory.give(piece: piece)
                    expected = []
                }
            default:
                queue.clear()
                expected = []
            }
            let (count, front) = (queue.count, Array(queue.front))
            #expect(count == expected.count && expected.starts(with: front))
            #expect(front.isEmpty == expected.isEmpty)
            if expected.isEmpty { #expect(blocks.taken == 0) }
        }
        queue.clear()
        #expect(blocks.taken == 0)
    }

    // MARK: - Pieces

    /// - Returns: the size of the piece in which these lie, one appended behind the other; nil where it is none.
    private func piece(of sizes: [Int], following: Int? = nil) -> Int? {
        let blocks = SizedBlocks(size: 4096, limit: 5)
        defer { withExtendedLifetime(blocks) {} }
        var queue = BlockQueue(source: blocks, memory: memory)
        for size in sizes {
            let isTaken = Self.octets(size).withUnsafeBytes {
                following == nil ? queue.append($0) : queue.append($0, following: following ?? 0)
            }
            #expect(isTaken)
        }
        guard let piece = queue.takePiece() else { return nil }
        let count = queue.count
        #expect(count == 0)
        defer { memory.give(piece: piece) }
        return piece.count
    }

    @Test(
        arguments: [
            ([1], 64), ([64], 64), ([65], 128), ([128], 128), ([129], 256), ([256], 256), ([257], 512), ([512], 512),
            ([513], 1024), ([1024], 1024), ([1025], nil), ([64, 1], 128), ([60, 4], 64), ([1024, 1], nil),
            ([1, 1023], 1024),
            ([1, 1024], nil),
        ] as [([Int], Int?)])
    func `a queue takes the smallest piece in which all of it fits`(sizes: [Int], size: Int?) {
        #expect(piece(of: sizes) == size)
    }

    /// A larger piece than is needed now spares a copy later, but no piece is larger than the largest.
    @Test(arguments: [
        (64, 0, 64), (64, 1, 128), (10, 54, 64), (10, 55, 128), (100, 924, 1024), (100, 925, 128), (100, 1024, 128),
        (100, 1025, 128), (100, .max, 128), (1024, 1, 1024),
    ])
    func `room is made for what follows where a piece has it`(size: Int, following: Int, piece: Int) {
        #expect(self.piece(of: [size], following: following) == piece)
    }

    @Test func `a piece that became too small waits for another queue`() {
        let blocks = SizedBlocks(size: 4096, limit: 5)
        defer { withExtendedLifetime(blocks) {} }
        var queue = BlockQueue(source: blocks, memory: memory)
        var waiting: [Int] = []
        for size in [60, 60, 200, 500] {
            #expect(Self.octets(size).withUnsafeBytes { queue.append($0) })
            waiting.append(memory.waitingBytes)
        }
        #expect(waiting == [0, 64, 64 + 128, 64 + 128 + 512])
        queue.clear()
        #expect(memory.waitingBytes == 64 + 128 + 512 + 1024)
    }

    /// A piece that is begun to be read is not given away, nor is one with a block behind it.
    @Test func `a piece is given away only with all bytes in it`() {
        let blocks = SizedBlocks(size: 100, limit: 5)
        // A queue holds its source only while it has blocks of it.
        defer { withExtendedLifetime(blocks) {} }
        var queue = BlockQueue(source: blocks, memory: memory)
        let before = queue.takePiece()
        #expect(before == nil)
        #expect(Self.octets(1024).withUnsafeBytes { queue.append($0) })
        #expect(Self.octets(1).withUnsafeBytes { queue.append($0) })
        let crossing = queue.takePiece()
        #expect(crossing == nil)
        queue.clear()
        #expect(Self.octets(10).withUnsafeBytes { queue.append($0) })
        queue.drop(1)
        let begun = queue.takePiece()
        #expect(begun == nil)
        let count = queue.count
        #expect(count == 9)
    }

    /// The queue is as good as a new one, for bytes that fit into a piece and for those that do not.
    @Test(arguments: [1, 64, 1024, 1025, 4000])
    func `a queue whose piece was given away takes more`(size: Int) {
        let blocks = SizedBlocks(size: 100, limit: 50)
        var queue = BlockQueue(source: blocks, memory: memory)
        #expect(Self.octets(20).withUnsafeBytes { queue.append($0) })
        if let piece = queue.takePiece() { memory.give(piece: piece) }
        let (count, front) = (queue.count, queue.front.count)
        #expect(count == 0 && front == 0)
        let more = Self.octets(size, from: 7)
        #expect(more.withUnsafeBytes { queue.append($0) })
        let held = queue.count
        #expect(held == size)
        var target = [UInt8](repeating: 0, count: size + 1)
        let read = target.withUnsafeMutableBytes { queue.read(into: $0) }
        #expect(read == size && target[..<size] == more[...] && blocks.taken == 0)
    }

    @Test func `a queue of nothing has nothing in front`() {
        let blocks = SizedBlocks(size: 100, limit: 5)
        var queue = BlockQueue(source: blocks, memory: memory)
        let front = queue.front.count
        #expect(front == 0)
        queue.drop(0)
        queue.clear()
        let isTaken = queue.append(UnsafeRawBufferPointer(start: nil, count: 0), following: 100)
        #expect(isTaken)
        var target = [UInt8](repeating: 0, count: 10)
        let read = target.withUnsafeMutableBytes { queue.read(into: $0) }
        let count = queue.count
        #expect(read == 0 && count == 0 && blocks.taken == 0 && memory.waitingBytes == 0)
    }

    // MARK: - Blocks

    @Test func `a block goes back as soon as it is read`() {
        let blocks = SizedBlocks(size: 100, limit: 50)
        var queue = BlockQueue(source: blocks, memory: memory)
        #expect(Self.octets(1100).withUnsafeBytes { queue.append($0) })
        #expect(blocks.taken == 11)
        var target = [UInt8](repeating: 0, count: 100)
        for left in (0..<11).reversed() {
            #expect(target.withUnsafeMutableBytes { queue.read(into: .init(rebasing: $0[..<99])) } == 99)
            #expect(blocks.taken == left + 1)
            #expect(target.withUnsafeMutableBytes { queue.read(into: .init(rebasing: $0[..<1])) } == 1)
            #expect(blocks.taken == left)
        }
    }

    @Test func `a block that has room is filled before another is taken`() {
        let blocks = SizedBlocks(size: 2000, limit: 50)
        var queue = BlockQueue(source: blocks, memory: memory)
        for (size, taken) in [(1100, 1), (899, 1), (1, 1), (1, 2), (1999, 2), (2001, 4)] {
            #expect(Self.octets(size).withUnsafeBytes { queue.append($0) })
            #expect(blocks.taken == taken)
        }
        queue.clear()
        #expect(blocks.taken == 0)
    }

    /// The bytes that are taken back out of a piece's room are wiped at once, since a piece is wiped later only as far as it is used.
    @Test func `nothing is left in a piece of what found no room`() {
        let blocks = SizedBlocks(size: 100, limit: 3)
        var queue = BlockQueue(source: blocks, memory: memory)
        #expect(Self.octets(10).withUnsafeBytes { queue.append($0, following: 900) })
        #expect(!Self.octets(5000).withUnsafeBytes { queue.append($0) })
        let (count, room) = (queue.count, memory.waitingBytes)
        #expect(count == 10 && room == 0 && blocks.taken == 0)
        guard let piece = queue.takePiece() else { Issue.record("all of it lies in a piece"); return }
        #expect(piece.count == 1024 && Array(piece[..<10]) == Self.octets(10) && piece[10...].allSatisfy { $0 == 0 })
        memory.give(piece: piece)
    }

    // MARK: - The owner of blocks

    /// Blocks may outlive the connection that owns their source, so that they hold it, and nothing else of a queue does.
    enum End: CaseIterable { case read, readInParts, dropped, cleared, begun, ended, refused }

    @Test(arguments: End.allCases)
    func `a source lives as long as a queue has blocks of it`(end: End) {
        var blocks: SizedBlocks? = SizedBlocks(size: 1000, limit: 3)
        weak let source = blocks
        var queue: BlockQueue? = BlockQueue(source: blocks!, memory: memory)
        // The piece's bytes stay where the next ones find no room.
        if end == .refused {
            #expect(Self.octets(100).withUnsafeBytes { queue!.append($0) })
            #expect(!Self.octets(9000).withUnsafeBytes { queue!.append($0) })
            #expect(blocks?.taken == 0)
            blocks = nil
            #expect(source == nil)
            return
        }
        #expect(Self.octets(1500).withUnsafeBytes { queue!.append($0) })
        #expect(blocks?.taken == 2)
        blocks = nil
        #expect(source?.taken == 2)
        var target = [UInt8](repeating: 0, count: 3000)
        switch end {
        case .read: #expect(target.withUnsafeMutableBytes { queue!.read(into: $0) } == 1500)
        case .readInParts:
            for (count, left) in [(700, 2), (700, 1), (100, 0)] {
                #expect(target.withUnsafeMutableBytes { queue!.read(into: .init(rebasing: $0[..<count])) } == count)
                #expect((source?.taken ?? 0) == left)
            }
        case .dropped:
            queue!.drop(1000)
            #expect(source?.taken == 1)
            queue!.drop(500)
        case .cleared: queue!.clear()
        case .begun: queue!.begin(source: SizedBlocks.spare)
        case .ended: queue = nil
        case .refused: break
        }
        #expect(source == nil)
    }

    @Test func `a queue that begins anew takes blocks of its new source`() {
        let (first, second) = (SizedBlocks(size: 1000, limit: 5), SizedBlocks(size: 1000, limit: 5))
        var queue = BlockQueue(source: first, memory: memory)
        #expect(Self.octets(1500).withUnsafeBytes { queue.append($0) })
        #expect(first.taken == 2)
        queue.begin(source: second)
        let count = queue.count
        #expect(count == 0 && first.taken == 0)
        #expect(Self.octets(2500).withUnsafeBytes { queue.append($0) })
        #expect(first.taken == 0 && second.taken == 3)
        queue.clear()
        #expect(second.taken == 0)
    }

    @Test func `a queue that ends gives back its piece and its blocks`() {
        let blocks = SizedBlocks(size: 100, limit: 50)
        for sizes in [[10], [1024, 300], [1500]] {
            var queue: BlockQueue? = BlockQueue(source: blocks, memory: memory)
            for size in sizes { #expect(Self.octets(size).withUnsafeBytes { queue!.append($0) }) }
            queue = nil
            #expect(blocks.taken == 0)
        }
        #expect(memory.waitingBytes == 64 + 1024)
    }
}

/// Blocks of any size, so that few bytes reach across many.
private final class SizedBlocks: BlockSource {
    private let size: Int
    private let limit: Int
    private(set) var taken = 0

    nonisolated(unsafe) static let spare = SizedBlocks(size: 1000, limit: 0)

    init(size: Int, limit: Int) {
        self.size = size
        self.limit = limit
    }

    func take() -> UnsafeMutableRawBufferPointer? {
        guard taken < limit else { return nil }
        taken += 1
        return .allocate(byteCount: size, alignment: 16)
    }

    func give(_ block: UnsafeMutableRawBufferPointer) {
        taken -= 1
        block.deallocate()
    }
}
