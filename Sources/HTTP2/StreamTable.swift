/// The open streams of a session by their number.
///
/// Open addressing over half of the number, since those of one side are all odd: consecutive requests lie side by side, and a look-up
/// is a comparison or two. A dictionary would hash each number with a keyed hash, several times for each frame; here a peer can choose
/// numbers that meet, but has no more streams open than `HTTP2Limits.streams`, so that the worst look-up is as many comparisons.
struct StreamTable: ~Copyable {
    private(set) var count = 0
    /// 0 where none stands. As many as `streams`, a power of two.
    private var numbers: [Int32] = Array(repeating: 0, count: least)
    private var streams: [HTTP2Stream?] = Array(repeating: nil, count: least)

    private static let least = 16
}

// MARK: -

extension StreamTable {
    subscript(id: Int32) -> HTTP2Stream? {
        guard let place = place(of: id) else { return nil }
        return streams[place]
    }

    /// - Precondition: no stream of this number is in the table.
    mutating func insert(_ stream: HTTP2Stream) {
        if 2 * (count + 1) > numbers.count { grow() }
        put(stream)
        count += 1
    }

    mutating func remove(_ id: Int32) -> HTTP2Stream? {
        guard var gap = place(of: id) else { return nil }
        let removed = streams[gap]
        count -= 1
        // What stands behind the gap moves up, unless it stands where it belongs: no search may end at the gap that has to go on.
        var next = follower(of: gap)
        while numbers[next] != 0 {
            let wanted = home(of: numbers[next])
            if (next &- wanted) & mask >= (next &- gap) & mask {
                numbers[gap] = numbers[next]
                streams.swapAt(gap, next)
                gap = next
            }
            next = follower(of: next)
        }
        numbers[gap] = 0
        streams[gap] = nil
        return removed
    }

    mutating func removeAll() {
        for place in numbers.indices {
            numbers[place] = 0
            streams[place] = nil
        }
        count = 0
    }

    func forEach(_ body: (HTTP2Stream) -> Void) {
        for stream in streams { if let stream { body(stream) } }
    }

    private var mask: Int { numbers.count - 1 }

    private func home(of id: Int32) -> Int { Int(id >> 1) & mask }

    private func follower(of place: Int) -> Int { (place + 1) & mask }

    private func place(of id: Int32) -> Int? {
        guard id != 0 else { return nil }
        var place = home(of: id)
        // Half of the places are free, so it ends.
        while numbers[place] != id {
            guard numbers[place] != 0 else { return nil }
            place = follower(of: place)
        }
        return place
    }

    private mutating func put(_ stream: HTTP2Stream) {
        var place = home(of: stream.id)
        while numbers[place] != 0 { place = follower(of: place) }
        numbers[place] = stream.id
        streams[place] = stream
    }

    private mutating func grow() {
        let old = streams
        numbers = Array(repeating: 0, count: 2 * old.count)
        streams = Array(repeating: nil, count: 2 * old.count)
        for stream in old { if let stream { put(stream) } }
    }
}
