internal import CNghttp2
internal import Glibc

/// Memory for what is made for each stream and frame, for the sessions of one loop: pieces of a few sizes that wait for the next one of
/// their size, so that a steady stream of requests allocates nothing, and closed streams that wait for another request.
///
/// Every piece is wiped when it comes back: heads are among them, with credentials in them.
///
/// Not thread-safe: its sessions belong to one loop.
public final class HTTP2Memory {
    private let shelves: UnsafeMutablePointer<Shelves>
    var spare = SpareStreams()

    public init() {
        shelves = .allocate(capacity: 1)
        shelves.initialize(to: Shelves())
    }

    deinit {
        shelves.pointee.empty()
        shelves.deallocate()
    }

    /// Lets the closed streams go, which hold this object: whoever owns it calls it at the end.
    public func forgetStreams() { spare = SpareStreams() }

    /// Bytes that wait for their next use.
    public var waitingBytes: Int { shelves.pointee.waiting }

    /// A piece of at least `size` bytes; nil where it would not be small, or without memory.
    func take(piece size: Int) -> UnsafeMutableRawBufferPointer? {
        size <= Shelves.most ? take(size) : nil
    }

    /// A piece of at least `size` bytes; a large one is allocated.
    func take(_ size: Int) -> UnsafeMutableRawBufferPointer? {
        guard let piece = shelves.pointee.take(size) else { return nil }
        return UnsafeMutableRawBufferPointer(start: piece, count: Shelves.capacity(of: piece))
    }

    func give(piece: UnsafeMutableRawBufferPointer) { shelves.pointee.give(piece.baseAddress) }

    /// Valid as long as this object lives.
    var functions: nghttp2_mem {
        // The pointer and not the object is handed through nghttp2: a reference would be counted at every call.
        nghttp2_mem(
            mem_user_data: UnsafeMutableRawPointer(shelves),
            malloc: { size, user in Shelves.of(user).pointee.take(size) },
            free: { piece, user in Shelves.of(user).pointee.give(piece) },
            calloc: { number, size, user in
                let (total, overflows) = number.multipliedReportingOverflow(by: size)
                guard !overflows, let piece = Shelves.of(user).pointee.take(total) else { return nil }
                return memset(piece, 0, total)
            },
            realloc: { piece, size, user in Shelves.of(user).pointee.resize(piece, size) })
    }
}

/// A piece is preceded by 16 bytes: how much of it can be used, and for alignment nothing. While it waits its first word leads to the next.
private struct Shelves {
    /// Of 64, 128, 256, 512 and 1024 bytes.
    private var first = InlineArray<5, UnsafeMutableRawPointer?>(repeating: nil)
    private(set) var waiting = 0

    private static let header = 16
    private static let least = 64
    static let most = 1024
    /// Bytes that may wait; past them a piece goes back to the process.
    private static let limit = 512 * 1024

    static func of(_ user: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<Shelves> {
        user!.assumingMemoryBound(to: Shelves.self)
    }

    mutating func take(_ size: Int) -> UnsafeMutableRawPointer? {
        guard size <= Self.most else {
            let (total, overflows) = size.addingReportingOverflow(Self.header)
            return overflows ? nil : Self.make(total)
        }
        let shelf = Self.shelf(of: size)
        guard let piece = first[shelf] else { return Self.make((Self.least << shelf) + Self.header) }
        first[shelf] = piece.load(as: UnsafeMutableRawPointer?.self)
        waiting -= Self.least << shelf
        return piece
    }

    mutating func give(_ piece: UnsafeMutableRawPointer?) {
        guard let piece else { return }
        let capacity = Self.capacity(of: piece)
        explicit_bzero(piece, capacity)
        guard capacity <= Self.most, waiting + capacity <= Self.limit else { return Glibc.free(piece - Self.header) }
        let shelf = Self.shelf(of: capacity)
        piece.storeBytes(of: first[shelf], as: UnsafeMutableRawPointer?.self)
        first[shelf] = piece
        waiting += capacity
    }

    mutating func resize(_ piece: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
        guard let piece else { return take(size) }
        let capacity = Self.capacity(of: piece)
        if size <= capacity { return piece }
        guard let larger = take(size) else { return nil }
        memcpy(larger, piece, capacity)
        give(piece)
        return larger
    }

    mutating func empty() {
        for shelf in first.indices {
            while let piece = first[shelf] {
                first[shelf] = piece.load(as: UnsafeMutableRawPointer?.self)
                Glibc.free(piece - Self.header)
            }
        }
        waiting = 0
    }

    private static func make(_ total: Int) -> UnsafeMutableRawPointer? {
        guard let start = Glibc.malloc(total) else { return nil }
        start.storeBytes(of: total - header, as: Int.self)
        return start + header
    }

    static func capacity(of piece: UnsafeMutableRawPointer) -> Int { (piece - header).load(as: Int.self) }

    /// The smallest that has pieces of this size.
    private static func shelf(of size: Int) -> Int {
        size <= least ? 0 : Int.bitWidth - (size - 1).leadingZeroBitCount - 6
    }
}

/// Closed streams of one loop's sessions. Who used them may still hold them, so those that have waited longest are asked first.
struct SpareStreams: ~Copyable {
    private var ring: [HTTP2Stream?] = []
    private var first = 0
    private var count = 0

    /// Streams that are kept.
    private static let most = 128
    /// How many are asked at a time. One whose reader is slow goes behind the others, and stands in nobody's way.
    private static let tries = 3

    /// - Returns: nil when there is none that nobody holds any more, among those that were asked.
    mutating func take() -> HTTP2Stream? {
        for _ in 0..<min(count, Self.tries) {
            let isFree = isKnownUniquelyReferenced(&ring[first])
            let stream = ring[first]
            ring[first] = nil
            first = (first + 1) % Self.most
            count -= 1
            guard !isFree, let stream else { return stream }
            give(stream)
        }
        return nil
    }

    mutating func give(_ stream: HTTP2Stream) {
        guard count < Self.most else { return }
        if ring.isEmpty { ring = Array(repeating: nil, count: Self.most) }
        ring[(first + count) % Self.most] = stream
        count += 1
    }
}
