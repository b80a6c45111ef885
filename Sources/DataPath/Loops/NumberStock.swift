internal import World

/// Random numbers for the identifiers of one loop's requests, drawn from the generator many at a time: one costs a load and no call.
struct NumberStock: ~Copyable {
    private let source: any RandomSource
    private let numbers: UnsafeMutableBufferPointer<UInt64>
    private var left = 0

    /// Numbers of one draw: four kilobytes, so that the generator's calls are few.
    private static let size = 512

    init(_ source: any RandomSource) {
        self.source = source
        numbers = .allocate(capacity: Self.size)
        numbers.initialize(repeating: 0)
    }

    deinit { numbers.deallocate() }

    /// A number that was not given out before, and cannot be told from those that were.
    @inline(__always)
    mutating func next() -> UInt64 {
        if left == 0 { refill() }
        left &-= 1
        return numbers[left]
    }

    @inline(never)
    private mutating func refill() {
        source.fill(UnsafeMutableRawBufferPointer(numbers))
        left = Self.size
    }
}
