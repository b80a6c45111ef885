/// The open streams of a connection by their number.
///
/// Open addressing over half of the number, since those of one side are all odd: consecutive requests lie side by side, and a look-up
/// is a comparison or two. A dictionary would hash each number with a keyed hash, several times for each frame; here a peer can choose
/// numbers that meet, but has no more streams open than `HTTP2Limits.streams`, so that the worst look-up is as many comparisons.
///
/// Within a row of neighbours streams stand in the order of the buckets where they belong (Robin Hood hashing): what is put in moves those
/// behind it on, and what is taken out lets them move up only as far as the first that stands where it belongs. Of requests side by side
/// none moves.
///
/// Raw memory and not arrays, which would be checked for other owners at every change; a stream that stands here is held by the table.
struct StreamTable: ~Copyable {
    private(set) var count = 0
    private var buckets: UnsafeMutablePointer<Bucket>
    /// A power of two; twice as many as streams, at least.
    private var capacity: Int

    private struct Bucket {
        /// 0 where none stands.
        var number: Int32
        var stream: Unmanaged<HTTP2Stream>?
    }

    private static let least = 16

    init() {
        capacity = Self.least
        buckets = Self.make(capacity)
    }

    deinit {
        for index in 0..<capacity { buckets[index].stream?.release() }
        buckets.deallocate()
    }
}

// MARK: -

extension StreamTable {
    /// Lends the stream without a reference to count, for what is done with every frame: the table holds it.
    /// - Parameter body: must not change the table.
    @inline(__always)
    func with<Result>(_ id: Int32, _ body: (HTTP2Stream?) -> Result) -> Result {
        guard let index = index(of: id), let stream = buckets[index].stream else { return body(nil) }
        return stream._withUnsafeGuaranteedRef { body($0) }
    }

    /// The same for who has to do one thing with a stream and another without: to look into what may be none would count a reference.
    @inline(__always)
    func entry(_ id: Int32) -> Unmanaged<HTTP2Stream>? {
        guard let index = index(of: id) else { return nil }
        return buckets[index].stream
    }

    /// - Precondition: no stream of this number is in the table.
    mutating func insert(_ stream: HTTP2Stream) {
        if 2 * (count + 1) > capacity { grow() }
        put(Bucket(number: stream.id, stream: .passRetained(stream)))
        count += 1
    }

    /// - Returns: the stream with the reference that the table had: the caller's to release.
    mutating func remove(_ id: Int32) -> Unmanaged<HTTP2Stream>? {
        guard var gap = index(of: id) else { return nil }
        let removed = buckets[gap].stream
        count -= 1
        // No search may end at the gap that has to go on.
        var next = follower(of: gap)
        while buckets[next].number != 0, distance(of: buckets[next].number, at: next) > 0 {
            buckets[gap] = buckets[next]
            gap = next
            next = follower(of: next)
        }
        buckets[gap] = Bucket(number: 0, stream: nil)
        return removed
    }

    /// - Parameter body: gets each stream with the reference that the table had: its own to release. Must not change the table.
    mutating func removeAll(_ body: (Unmanaged<HTTP2Stream>) -> Void) {
        for index in 0..<capacity {
            if let stream = buckets[index].stream { body(stream) }
            buckets[index] = Bucket(number: 0, stream: nil)
        }
        count = 0
    }

    /// - Parameter body: must not change the table.
    func forEach(_ body: (HTTP2Stream) -> Void) {
        for index in 0..<capacity { if let stream = buckets[index].stream { body(stream.takeUnretainedValue()) } }
    }

    private var mask: Int { capacity &- 1 }

    private func home(of id: Int32) -> Int { Int(id >> 1) & mask }

    private func follower(of index: Int) -> Int { (index &+ 1) & mask }

    /// How far from where it belongs.
    private func distance(of id: Int32, at index: Int) -> Int { (index &- home(of: id)) & mask }

    private func index(of id: Int32) -> Int? {
        guard id != 0 else { return nil }
        var index = home(of: id)
        // Half of the buckets are free, so it ends.
        while buckets[index].number != id {
            guard buckets[index].number != 0 else { return nil }
            index = follower(of: index)
        }
        return index
    }

    private mutating func put(_ new: Bucket) {
        var moved = new
        var index = home(of: new.number)
        while buckets[index].number != 0 {
            // A stream that stands nearer to its own bucket gives way.
            if distance(of: buckets[index].number, at: index) < distance(of: moved.number, at: index) {
                swap(&buckets[index], &moved)
            }
            index = follower(of: index)
        }
        buckets[index] = moved
    }

    private mutating func grow() {
        let (old, before) = (buckets, capacity)
        capacity *= 2
        buckets = Self.make(capacity)
        for index in 0..<before where old[index].number != 0 { put(old[index]) }
        old.deallocate()
    }

    private static func make(_ capacity: Int) -> UnsafeMutablePointer<Bucket> {
        let buckets = UnsafeMutablePointer<Bucket>.allocate(capacity: capacity)
        buckets.initialize(repeating: Bucket(number: 0, stream: nil), count: capacity)
        return buckets
    }
}
