/// Streams one behind the other, by a link in each: a stream stands in one row at most.
///
/// Nothing is counted and nothing allocated, as one of these is written for every frame; who owns a row says who holds its streams.
struct StreamRow {
    private(set) var first: Unmanaged<HTTP2Stream>?
    private var last: Unmanaged<HTTP2Stream>?

    var isEmpty: Bool { first == nil }

    mutating func append(_ stream: HTTP2Stream) {
        let entry = Unmanaged.passUnretained(stream)
        stream.next = nil
        if let last { last._withUnsafeGuaranteedRef { $0.next = entry } } else { first = entry }
        last = entry
    }

    mutating func popFirst() -> Unmanaged<HTTP2Stream>? {
        guard let entry = first else { return nil }
        first = entry._withUnsafeGuaranteedRef { $0.next }
        if first == nil { last = nil }
        return entry
    }
}
