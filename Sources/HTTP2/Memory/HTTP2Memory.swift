internal import CNghttp2
internal import Glibc

/// Memory for what is made for each stream and frame, for the connections of one loop: pieces of a few sizes that wait for the next one of
/// their size, so that a steady stream of requests allocates nothing, and closed streams that wait for another request.
///
/// Every piece is wiped when it comes back: heads are among them, with credentials in them.
///
/// Not thread-safe: its connections belong to one loop.
public final class HTTP2Memory {
    /// The lists, for those that hold this object: reached by address, without a reference to count.
    let freeLists: UnsafeMutablePointer<FreeLists>
    var spare = SpareStreams()

    /// Memory of one loop; takes nothing from the system before the first connection.
    public init() {
        freeLists = .allocate(capacity: 1)
        freeLists.initialize(to: FreeLists())
    }

    deinit {
        freeLists.pointee.empty()
        freeLists.deallocate()
    }

    /// Lets the closed streams go, which hold this object: whoever owns it calls it at the end.
    public func forgetStreams() { spare = SpareStreams() }

    /// Bytes that wait for their next use.
    var waitingBytes: Int { freeLists.pointee.waiting }

    /// Bytes of the largest piece.
    public static var largestPiece: Int { FreeLists.most }

    /// Takes back a piece of a stream (`HTTP2Stream.takePiece`), and wipes what the stream had written.
    public func give(piece: UnsafeMutableRawBufferPointer) { freeLists.pointee.give(piece.baseAddress) }

    /// Valid as long as this object lives.
    var functions: nghttp2_mem {
        // The pointer and not the object is handed through nghttp2: a reference would be counted at every call.
        nghttp2_mem(
            mem_user_data: UnsafeMutableRawPointer(freeLists),
            malloc: { size, user in FreeLists.of(user).pointee.take(size) },
            free: { piece, user in FreeLists.of(user).pointee.give(piece) },
            calloc: { number, size, user in
                let (total, overflows) = number.multipliedReportingOverflow(by: size)
                guard !overflows, let piece = FreeLists.of(user).pointee.take(total) else { return nil }
                return memset(piece, 0, total)
            },
            realloc: { piece, size, user in FreeLists.of(user).pointee.resize(piece, size) })
    }
}

/// A piece is preceded by two words: how much of it can be used, and how much of that was asked for, which is what has to be wiped. While
/// it waits its own first word leads to the next.
struct FreeLists {
    /// The first free pieces of 64, 128, 256, 512 and 1024 bytes.
    private var first = InlineArray<5, UnsafeMutableRawPointer?>(repeating: nil)
    private(set) var waiting = 0

    private static let header = 16
    private static let least = 64
    static let most = 1024
    /// Bytes that may wait; past them a piece goes back to the process.
    private static let limit = 512 * 1024
    static func of(_ user: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<FreeLists> {
        user!.assumingMemoryBound(to: FreeLists.self)
    }

    /// A piece of at least `size` bytes; nil where it would not be small, or without memory.
    mutating func take(piece size: Int) -> UnsafeMutableRawBufferPointer? {
        size <= Self.most ? take(buffer: size) : nil
    }

    /// A piece of at least `size` bytes; a large one is allocated.
    mutating func take(buffer size: Int) -> UnsafeMutableRawBufferPointer? {
        guard let piece = take(size) else { return nil }
        return UnsafeMutableRawBufferPointer(start: piece, count: Self.capacity(of: piece))
    }

    /// - Parameter used: the bytes at its beginning that were written, all of them: what lies behind is not wiped.
    mutating func give(_ piece: UnsafeMutableRawBufferPointer, used: Int) {
        guard let start = piece.baseAddress else { return }
        Self.note(used: min(used, piece.count), of: start)
        give(start)
    }

    @inline(__always)
    mutating func take(_ size: Int) -> UnsafeMutableRawPointer? {
        // There is a size class for every size from 1 to `most`, so the index need not be checked.
        guard UInt(bitPattern: size &- 1) < Self.most, let piece = first[unchecked: Self.sizeClass(of: size)] else {
            return Self.make(size)
        }
        let sizeClass = Self.sizeClass(of: size)
        first[unchecked: sizeClass] = piece.load(as: UnsafeMutableRawPointer?.self)
        waiting &-= Self.least &<< sizeClass
        Self.note(used: size, of: piece)
        return piece
    }

    @inline(__always)
    mutating func give(_ piece: UnsafeMutableRawPointer?) {
        guard let piece else { return }
        let capacity = Self.capacity(of: piece)
        guard capacity <= Self.most, waiting &+ capacity <= Self.limit else { return Self.discard(piece) }
        // These stores cannot be left out as those before a `free` could: the piece stays within reach, of `first`. Most pieces are short, and
        // a piece of which more than one class's size was used has the size of the next class.
        let zeros = SIMD64<UInt8>(repeating: 0)
        let used = Self.used(of: piece)
        piece.storeBytes(of: zeros, as: SIMD64<UInt8>.self)
        if used > 64 { piece.storeBytes(of: zeros, toByteOffset: 64, as: SIMD64<UInt8>.self) }
        if used > 128 {
            piece.storeBytes(of: zeros, toByteOffset: 128, as: SIMD64<UInt8>.self)
            piece.storeBytes(of: zeros, toByteOffset: 192, as: SIMD64<UInt8>.self)
        }
        let sizeClass = Self.sizeClass(of: capacity)
        piece.storeBytes(of: first[unchecked: sizeClass], as: UnsafeMutableRawPointer?.self)
        first[unchecked: sizeClass] = piece
        waiting &+= capacity
        // Last, so that nothing has to be kept over the call.
        if used > 256 { explicit_bzero(piece + 256, used &- 256) }
    }

    mutating func resize(_ piece: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
        guard let piece else { return take(size) }
        let used = Self.used(of: piece)
        if size <= Self.capacity(of: piece) {
            // A piece that becomes smaller still has all that it held.
            Self.note(used: max(size, used), of: piece)
            return piece
        }
        guard let larger = take(size) else { return nil }
        memcpy(larger, piece, used)
        give(piece)
        return larger
    }

    mutating func empty() {
        for sizeClass in first.indices {
            while let piece = first[sizeClass] {
                first[sizeClass] = piece.load(as: UnsafeMutableRawPointer?.self)
                Glibc.free(piece - Self.header)
            }
        }
        waiting = 0
    }

    /// Makes a piece of its class's size or, where no class is so large, of just this size.
    @inline(never)
    private static func make(_ size: Int) -> UnsafeMutableRawPointer? {
        guard size >= 0 else { return nil }
        let capacity = size <= most ? least << sizeClass(of: max(size, 1)) : size
        let (total, overflows) = capacity.addingReportingOverflow(header)
        guard !overflows, let start = Glibc.malloc(total) else { return nil }
        start.storeBytes(of: capacity, as: Int.self)
        note(used: size, of: start + header)
        return start + header
    }

    /// Gives a piece back to the process.
    @inline(never)
    private static func discard(_ piece: UnsafeMutableRawPointer) {
        explicit_bzero(piece, capacity(of: piece))
        Glibc.free(piece - header)
    }

    static func capacity(of piece: UnsafeMutableRawPointer) -> Int { (piece - header).load(as: Int.self) }

    private static func used(of piece: UnsafeMutableRawPointer) -> Int { (piece - 8).load(as: Int.self) }

    static func note(used: Int, of piece: UnsafeMutableRawPointer) { (piece - 8).storeBytes(of: used, as: Int.self) }

    /// The smallest class whose pieces have this size, which is 1 at least.
    @inline(__always)
    private static func sizeClass(of size: Int) -> Int {
        // All sizes up to `least` have the same bits set.
        Int.bitWidth &- ((size &- 1) | (least &- 1)).leadingZeroBitCount &- 6
    }
}

/// The thread sanitizer's part of the compiler (6.3) fails on a change behind a pointer that is a part of a structure without copies; a
/// function takes the pointer by itself.
extension UnsafeMutablePointer where Pointee == FreeLists {
    @inline(__always)
    func take(buffer size: Int) -> UnsafeMutableRawBufferPointer? { pointee.take(buffer: size) }

    @inline(__always)
    func take(piece size: Int) -> UnsafeMutableRawBufferPointer? { pointee.take(piece: size) }

    @inline(__always)
    func give(_ piece: UnsafeMutableRawBufferPointer, used: Int) { pointee.give(piece, used: used) }
}

/// Closed streams of one loop's connections. Who used them may still hold them, so those that have waited longest are asked first.
///
/// Raw memory and not an array, which would be checked for other owners and count a reference with every change.
struct SpareStreams: ~Copyable {
    private let ring: UnsafeMutablePointer<HTTP2Stream>
    private var first = 0
    private var count = 0

    /// Streams that are kept; a power of two: as many as may end in one turn of a busy loop.
    private static let most = 512
    /// How many are asked at a time. One whose reader is slow goes behind the others, and stands in nobody's way.
    private static let tries = 3

    init() { ring = .allocate(capacity: Self.most) }

    deinit {
        for offset in 0..<count { (ring + Self.index(first + offset)).deinitialize(count: 1) }
        ring.deallocate()
    }

    /// - Returns: nil when there is none that nobody holds any more, among those that were asked.
    mutating func take() -> HTTP2Stream? {
        for _ in 0..<min(count, Self.tries) {
            let isFree = isKnownUniquelyReferenced(&ring[first])
            let stream = (ring + first).move()
            first = Self.index(first + 1)
            count -= 1
            if isFree { return stream }
            give(stream)
        }
        return nil
    }

    mutating func give(_ stream: consuming HTTP2Stream) {
        guard count < Self.most else { return }
        (ring + Self.index(first + count)).initialize(to: stream)
        count += 1
    }

    private static func index(_ number: Int) -> Int { number & (most - 1) }
}
