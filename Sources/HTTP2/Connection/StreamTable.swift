/// The open streams of a connection by their number.
///
/// Open addressing over half of the number, since those of one side are all odd: consecutive requests lie side by side, and a look-up
/// is a comparison or two. A dictionary would hash each number with a keyed hash, several times for each frame; here a peer can choose
/// numbers that meet, but has no more streams open than `HTTP2Limits.streams`, so that the worst look-up is as many comparisons.
///
/// Within a row of neighbours streams stand in the order of the places where they belong (Robin Hood hashing): what is put in moves those
/// behind it on, and what is taken out lets them move up only as far as the first that stands where it belongs. Of requests side by side
/// none moves.
///
/// Raw memory and not arrays, which would be checked for other owners at every change; a stream that stands here is held by the table.
struct StreamTable: ~Copyable {
    private(set) var count = 0
    private var places: UnsafeMutablePointer<Place>
    /// A power of two; twice as many as streams, at least.
    private var capacity: Int

    private struct Place {
        /// 0 where none stands.
        var number: Int32
        var stream: Unmanaged<HTTP2Stream>?
    }

    private static let least = 16

    init() {
        capacity = Self.least
        places = Self.make(capacity)
    }

    deinit {
        for place in 0..<capacity { places[place].stream?.release() }
        places.deallocate()
    }
}

// MARK: -

extension StreamTable {
    /// Lends the stream without a reference to count, for what is done with every frame: the table holds it.
    /// - Parameter body: must not change the table.
    @inline(__always)
    func with<Result>(_ id: Int32, _ body: (HTTP2Stream?) -> Result) -> Result {
        guard let place = place(of: id), let stream = places[place].stream else { return body(nil) }
        return stream._withUnsafeGuaranteedRef { body($0) }
    }

    /// The same for who has to do one thing with a stream and another without: to look into what may be none would count a reference.
    @inline(__always)
    func entry(_ id: Int32) -> Unmanaged<HTTP2Stream>? {
        guard let place = place(of: id) else { return nil }
        return places[place].stream
    }

    /// - Precondition: no stream of this number is in the table.
    mutating func insert(_ stream: HTTP2Stream) {
        if 2 * (count + 1) > capacity { grow() }
        put(Place(number: stream.id, stream: .passRetained(stream)))
        count += 1
    }

    /// - Returns: the stream with the reference that the table had: the caller's to release.
    mutating func remove(_ id: Int32) -> Unmanaged<HTTP2Stream>? {
        guard var gap = place(of: id) else { return nil }
        let removed = places[gap].stream
        count -= 1
        // No search may end at the gap that has to go on.
        var next = follower(of: gap)
        while places[next].number != 0, distance(of: places[next].number, at: next) > 0 {
            places[gap] = places[next]
            gap = next
            next = follower(of: next)
        }
        places[gap] = Place(number: 0, stream: nil)
        return removed
    }

    /// - Parameter body: gets each stream with the reference that the table had: its own to release. Must not change the table.
    mutating func removeAll(_ body: (Unmanaged<HTTP2Stream>) -> Void) {
        for place in 0..<capacity {
            if let stream = places[place].stream { body(stream) }
            places[place] = Place(number: 0, stream: nil)
        }
        count = 0
    }

    /// - Parameter body: must not change the table.
    func forEach(_ body: (HTTP2Stream) -> Void) {
        for place in 0..<capacity { if let stream = places[place].stream { body(stream.takeUnretainedValue()) } }
    }

    private var mask: Int { capacity &- 1 }

    private func home(of id: Int32) -> Int { Int(id >> 1) & mask }

    private func follower(of place: Int) -> Int { (place &+ 1) & mask }

    /// How far from where it belongs.
    private func distance(of id: Int32, at place: Int) -> Int { (place &- home(of: id)) & mask }

    private func place(of id: Int32) -> Int? {
        guard id != 0 else { return nil }
        var place = home(of: id)
        // Half of the places are free, so it ends.
        while places[place].number != id {
            guard places[place].number != 0 else { return nil }
            place = follower(of: place)
        }
        return place
    }

    private mutating func put(_ new: Place) {
        var moved = new
        var place = home(of: new.number)
        while places[place].number != 0 {
            // Who stands nearer to its own place gives way.
            if distance(of: places[place].number, at: place) < distance(of: moved.number, at: place) {
                swap(&places[place], &moved)
            }
            place = follower(of: place)
        }
        places[place] = moved
    }

    private mutating func grow() {
        let (old, before) = (places, capacity)
        capacity *= 2
        places = Self.make(capacity)
        for place in 0..<before where old[place].number != 0 { put(old[place]) }
        old.deallocate()
    }

    private static func make(_ capacity: Int) -> UnsafeMutablePointer<Place> {
        let places = UnsafeMutablePointer<Place>.allocate(capacity: capacity)
        places.initialize(repeating: Place(number: 0, stream: nil), count: capacity)
        return places
    }
}
