internal import Glibc

/// Memory for the queues of streams, in blocks of one size; bounded by whoever owns it.
public protocol BlockSource: AnyObject {
    /// - Returns: nil when the bound is reached.
    func take() -> UnsafeMutableRawBufferPointer?
    func give(_ block: UnsafeMutableRawBufferPointer)
    /// The next block might not be had: who holds any should make do with them.
    var isShort: Bool { get }
}

extension BlockSource {
    /// A source that does not say otherwise has enough.
    public var isShort: Bool { false }
}

/// Bytes in the order they came, in blocks that go back as soon as they are read.
///
/// The first bytes of a queue lie in a small piece, if it fits into one: heads and short bodies, of which hundreds wait at once, would
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
    /// Not counted: bytes are appended only while the stream has a connection, which holds it.
    private unowned(unsafe) var source: any BlockSource
    /// `source`, held for as long as blocks of it are: they may outlive the connection.
    private var owner: (any BlockSource)?
    private let memory: HTTP2Memory
    private let freeLists: UnsafeMutablePointer<FreeLists>

    private static var none: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: nil, count: 0) }

    init(source: any BlockSource, memory: HTTP2Memory) {
        self.source = source
        self.memory = memory
        freeLists = memory.freeLists
    }

    deinit {
        if isPiece { freeLists.give(first, used: usedOfFirst) } else if first.count > 0 { owner?.give(first) }
        for block in others { owner?.give(block) }
    }
}

// MARK: -

extension BlockQueue {
    /// - Parameter following: bytes that will come behind these; a piece that takes them too spares a larger one later.
    /// - Returns: false when no memory could be had; nothing has been appended then, so that credit for it is counted once, by whoever
    ///   offered it.
    mutating func append(_ bytes: UnsafeRawBufferPointer, following: Int = 0) -> Bool {
        guard let origin = bytes.baseAddress, bytes.count > 0 else { return true }
        // Most often all there will be fits into a piece: a head, a short body, or both.
        if isPiece ? others.isEmpty : first.count == 0, reserve(bytes.count, following) {
            memcpy(first.baseAddress! + end, origin, bytes.count)
            end += bytes.count
            count += bytes.count
            return true
        }
        return appendInParts(bytes)
    }

    /// Makes room in `first`, which is a piece or none and has nothing behind it.
    /// - Returns: false where no piece is so large.
    private mutating func reserve(_ size: Int, _ following: Int) -> Bool {
        if first.count - end >= size { return true }
        let least = count + size
        let wanted = following <= FreeLists.most ? least + following : least
        guard let larger = freeLists.take(piece: wanted <= FreeLists.most ? wanted : least) else { return false }
        if isPiece {
            memcpy(larger.baseAddress!, first.baseAddress! + start, count)
            freeLists.give(first, used: end)
        }
        isPiece = true
        first = larger
        start = 0
        end = count
        return true
    }

    private mutating func appendInParts(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (countBefore, endBefore, othersBefore) = (count, end, others.count)
        var offset = 0
        while offset < bytes.count {
            var last = others.last ?? first
            if end == last.count {
                guard let added = add(for: bytes.count - offset) else {
                    if countBefore == 0 { giveAll() } else { takeBack(to: endBefore, behind: othersBefore) }
                    count = countBefore
                    return false
                }
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

    private mutating func takeBack(to endBefore: Int, behind othersBefore: Int) {
        while others.count > othersBefore { owner?.give(others.removeLast()) }
        end = endBefore
        // A piece is wiped as far as it is used, and it is not used here any more.
        guard isPiece, others.isEmpty else { return }
        memset(first.baseAddress! + end, 0, first.count - end)
        owner = nil
    }

    private mutating func add(for size: Int) -> UnsafeMutableRawBufferPointer? {
        guard first.count == 0 else {
            guard let block = takeBlock() else { return nil }
            others.append(block)
            end = 0
            return block
        }
        let piece = freeLists.take(piece: size)
        guard let block = piece ?? takeBlock() else { return nil }
        isPiece = piece != nil
        first = block
        start = 0
        end = 0
        return block
    }

    private mutating func takeBlock() -> UnsafeMutableRawBufferPointer? {
        guard let block = source.take() else { return nil }
        if owner == nil { owner = source }
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

    /// The bytes of the first block that were written.
    private var usedOfFirst: Int { others.isEmpty ? end : first.count }

    private mutating func giveFirst() {
        guard first.count > 0 else { return }
        if isPiece { freeLists.give(first, used: usedOfFirst) } else { owner?.give(first) }
        isPiece = false
        start = 0
        if others.isEmpty {
            first = Self.none
            end = 0
            if owner != nil { owner = nil }
        } else {
            first = others.removeFirst()
        }
    }

    /// Moves bytes out.
    /// - Returns: how many; less than fit only when the queue is empty then.
    mutating func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        if others.isEmpty, count <= target.count, count > 0, let origin = first.baseAddress,
            let destination = target.baseAddress
        {
            let size = count
            memcpy(destination, origin + start, size)
            count = 0
            giveFirst()
            return size
        }
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

    /// Gives the piece away in which all bytes lie, if it is one: its `HTTP2Memory` has it back from whoever gets it, who writes nothing
    /// behind these bytes, as only they are wiped then.
    mutating func takePiece() -> UnsafeMutableRawBufferPointer? {
        guard isPiece, start == 0, others.isEmpty, let base = first.baseAddress else { return nil }
        let piece = first
        FreeLists.note(used: end, of: base)
        first = Self.none
        isPiece = false
        end = 0
        count = 0
        return piece
    }

    @inline(__always)
    mutating func clear() {
        if first.count > 0 { giveAll() }
    }

    private mutating func giveAll() {
        while first.count > 0 { giveFirst() }
        count = 0
    }

    /// Empties it; what comes next lies in blocks of another owner.
    mutating func begin(source next: any BlockSource) {
        clear()
        source = next
    }
}
