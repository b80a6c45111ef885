/// The buckets of every duration histogram: 0.5 ms to 60 s, three a decade, as Prometheus' users expect them.
public enum DurationBuckets {
    /// Upper bounds, nanoseconds, inclusive. What is longer falls into the last bucket, which has no bound.
    public static let bounds: [UInt64] = [
        500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000,
        500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000, 60_000_000_000,
    ]

    /// The same bounds in seconds, as the exposition writes them.
    static let labels = [
        "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10",
        "30", "60",
    ]

    /// Buckets with the unbounded one; after them, one cell for the sum.
    @usableFromInline static let count = 17
    static let cells = count + 1

    /// The bucket of a duration.
    ///
    /// A chain of comparisons rather than a table lookup: the short durations of a hot gateway leave it after one or two,
    /// and it touches no memory.
    @inlinable
    public static func bucket(of nanoseconds: UInt64) -> Int {
        if nanoseconds <= 10_000_000 {
            if nanoseconds <= 500_000 { return 0 }
            if nanoseconds <= 1_000_000 { return 1 }
            if nanoseconds <= 2_500_000 { return 2 }
            return nanoseconds <= 5_000_000 ? 3 : 4
        }
        if nanoseconds <= 500_000_000 {
            if nanoseconds <= 25_000_000 { return 5 }
            if nanoseconds <= 50_000_000 { return 6 }
            if nanoseconds <= 100_000_000 { return 7 }
            return nanoseconds <= 250_000_000 ? 8 : 9
        }
        if nanoseconds <= 1_000_000_000 { return 10 }
        if nanoseconds <= 2_500_000_000 { return 11 }
        if nanoseconds <= 5_000_000_000 { return 12 }
        if nanoseconds <= 10_000_000_000 { return 13 }
        if nanoseconds <= 30_000_000_000 { return 14 }
        return nanoseconds <= 60_000_000_000 ? 15 : 16
    }
}

/// The counts of a histogram, summed over the loops.
public struct DurationDistribution: Sendable, Equatable {
    /// Observations of each bucket, not cumulative; the last has no upper bound.
    private(set) var buckets: [UInt64]
    /// Sum of all observations, nanoseconds.
    public private(set) var sum: UInt64

    /// A distribution that has seen nothing.
    public init() { self.init(buckets: Array(repeating: 0, count: DurationBuckets.count), sum: 0) }

    init(buckets: [UInt64], sum: UInt64) {
        self.buckets = buckets
        self.sum = sum
    }

    /// For what is counted in one place, off the data path.
    public mutating func observe(nanoseconds: UInt64) {
        buckets[DurationBuckets.bucket(of: nanoseconds)] &+= 1
        sum &+= nanoseconds
    }

    /// How many durations were observed.
    public var count: UInt64 { buckets.reduce(0, &+) }

    /// An estimate in nanoseconds, linear inside the bucket; nil when nothing was observed. Past the last bound it is that
    /// bound: the histogram knows no more.
    /// - Parameter quantile: 0 … 1.
    public func estimate(quantile: Double) -> UInt64? {
        let total = count
        guard total > 0, quantile >= 0, quantile <= 1 else { return nil }
        let rank = quantile * Double(total)
        var below: UInt64 = 0
        for (index, inside) in buckets.enumerated() where inside > 0 {
            if Double(below &+ inside) >= rank {
                guard index < DurationBuckets.bounds.count else { break }
                let lower = index == 0 ? 0 : DurationBuckets.bounds[index - 1]
                let width = Double(DurationBuckets.bounds[index] - lower)
                let share = max(0, rank - Double(below)) / Double(inside)
                return lower + UInt64(width * min(1, share))
            }
            below &+= inside
        }
        return DurationBuckets.bounds.last
    }

    /// The durations added since an earlier distribution of the same histogram.
    public func since(_ earlier: DurationDistribution) -> DurationDistribution {
        guard earlier.buckets.count == buckets.count else { return self }
        return DurationDistribution(
            buckets: zip(buckets, earlier.buckets).map { $0 &- $1 }, sum: sum &- earlier.sum)
    }
}
