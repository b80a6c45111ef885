/// What happened to an identity in the last day: how many grants, failures and replays in each quarter of an hour.
///
/// Its size is fixed, and there is one for each configured identity, which holds several times as much in other things: nothing that a caller
/// does makes it grow, and nothing is given up for something else. It is memory alone: it begins anew with the process. Nothing wakes up for
/// it: what has become older than a day is dropped by the next event, and left out by whoever looks.
///
/// Time is that of `CLOCK_BOOTTIME`, which goes on while the machine is suspended, and which no change of the wall clock moves.
public struct IdentityDay: Sendable, Equatable {
    /// Nanoseconds.
    public static let quarter: UInt64 = 900_000_000_000
    /// Quarters in a day.
    public static let quarters = 96

    /// A kind of event.
    public enum Event: Sendable, CaseIterable { case grant, failure, replay }

    /// Counts of one quarter of an hour; each stays at its highest value.
    public struct Counts: Sendable, Equatable {
        /// Grants that succeeded.
        public var grants: UInt16 = 0
        /// Grants that failed, and credentials that an upstream refused.
        public var failures: UInt16 = 0
        /// Requests that were sent again with a credential, after a challenge.
        public var replays: UInt16 = 0

        /// Nothing happened.
        public init() {}

        /// Whether nothing happened.
        public var isEmpty: Bool { self == Counts() }
    }

    /// Quarter `number` of the clock stands at `number % quarters`. Empty until something happens.
    private var ring: [Counts] = []
    /// The number of the newest quarter in the ring.
    private var newest: UInt64 = 0

    /// Nothing has happened.
    public init() {}

    /// - Parameter now: nanoseconds. What is before the newest event counts as being beside it.
    public mutating func note(_ event: Event, at now: UInt64) {
        let number = max(now / Self.quarter, newest)
        if ring.isEmpty { ring = Array(repeating: Counts(), count: Self.quarters) } else { forget(until: number) }
        newest = number
        let place = Self.place(of: number)
        switch event {
        case .grant: Self.raise(&ring[place].grants)
        case .failure: Self.raise(&ring[place].failures)
        case .replay: Self.raise(&ring[place].replays)
        }
    }

    /// The last day, oldest first; the last one is the quarter of `now`, which is not over.
    /// - Parameter now: nanoseconds.
    public func counts(at now: UInt64) -> [Counts] {
        let current = max(now / Self.quarter, newest)
        return (0..<Self.quarters).map { index in
            let back = UInt64(Self.quarters - 1 - index)
            guard !ring.isEmpty, back <= current else { return Counts() }
            let number = current - back
            guard number <= newest, newest - number < UInt64(Self.quarters) else { return Counts() }
            return ring[Self.place(of: number)]
        }
    }

    /// Empties the quarters between the newest and `number`, whose places belong to the day before.
    private mutating func forget(until number: UInt64) {
        let passed = min(number - newest, UInt64(Self.quarters))
        for step in 0..<passed { ring[Self.place(of: number - step)] = Counts() }
    }

    private static func place(of number: UInt64) -> Int { Int(number % UInt64(quarters)) }

    private static func raise(_ count: inout UInt16) { if count < .max { count += 1 } }
}
