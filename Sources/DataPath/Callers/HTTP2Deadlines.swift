/// When a caller's HTTP/2 connection has to be looked at, and why: a pure machine. Times are of the loop's clock, in nanoseconds.
///
/// A connection is idle while no stream of it has a complete request head, whatever else comes meanwhile. A complete request is bounded by
/// the timeouts of its own route and has no part in this.
struct HTTP2Deadlines {
    /// The times that a caller is given.
    struct Patience {
        var idle: UInt64
        /// For a field section, from its first frame to its end: no other frame may come in between, so it stops the whole connection.
        var head: UInt64
        /// Between two looks at what a slow reader has taken.
        var write: UInt64
        /// For a caller that was told to go, from when it has taken what waited for it.
        var farewell: UInt64
    }

    enum Reason: Equatable { case head, write, idle, farewell }

    private var idle = never
    private var head = never
    private var write = never
    private var farewell = never
    /// The field section that `head` is for.
    private var section: UInt32?
    private var isLeaving = false

    private static let never = UInt64.max
}

// MARK: -

extension HTTP2Deadlines {
    /// The caller goes, by our word or its own: it is not idle any more, and at `deadline` its connection ends with its last stream.
    mutating func leave(by deadline: UInt64?) {
        isLeaving = true
        idle = Self.never
        farewell = deadline ?? Self.never
    }

    /// A request has come, if only one that is over by now.
    mutating func requestCame() { idle = Self.never }

    /// - Parameters:
    ///   - served: streams whose request head is complete.
    ///   - section: the field section that has begun and not ended; each has a number of its own.
    mutating func note(served: Int, section: UInt32?, at now: UInt64, _ patience: Patience) {
        if section != self.section {
            self.section = section
            head = section == nil ? Self.never : now &+ patience.head
        }
        if isLeaving || served > 0 {
            idle = Self.never
        } else if idle == Self.never {
            idle = now &+ patience.idle
        }
    }

    /// Output waits, or does not any more.
    /// - Returns: whether the wait has just begun, and what was taken so far is to be noted.
    mutating func note(waits: Bool, at now: UInt64, _ patience: Patience) -> Bool {
        guard waits else {
            guard write != Self.never else { return false }
            write = Self.never
            // The time that the caller took to read is not held against it.
            if isLeaving { farewell = now &+ patience.farewell }
            if idle != Self.never { idle = now &+ patience.idle }
            return false
        }
        guard write == Self.never else { return false }
        write = now &+ patience.write
        return true
    }

    /// The caller has read enough since the last look.
    mutating func looked() { write = Self.never }

    /// The next one; nil for none. A caller that reads what waits for it is neither idle nor late to go.
    var next: UInt64? {
        let nearest = min(head, write == Self.never ? min(idle, farewell) : write)
        return nearest == Self.never ? nil : nearest
    }

    /// The reason whose time has passed. Each is told once, except `write`, which is told until `looked`.
    mutating func passed(at now: UInt64) -> Reason? {
        if head <= now {
            head = Self.never
            return .head
        }
        if write != Self.never { return write <= now ? .write : nil }
        if idle <= now {
            idle = Self.never
            return .idle
        }
        guard farewell <= now else { return nil }
        farewell = Self.never
        return .farewell
    }
}
