package import Telemetry

/// The uses that one data loop has counted and not left yet: a table of fixed size. Nothing here allocates, locks or waits.
package final class UseCounter {
    private let trail: AuditTrail
    private let policy: UsePolicy
    private let slots: UnsafeMutablePointer<UseRecord>
    /// Slots that hold a count.
    private var used = 0

    /// Callers, identities, origins and generations of a minute that one loop counts apart; then what it has is left early.
    static let capacity = 512
    /// Beyond it a search would pass too many.
    static let most = capacity * 3 / 4
    /// Nanoseconds of a minute.
    package static let minute: UInt64 = 60_000_000_000
    private static let free = UseRecord(
        time: 0, place: 0, route: 0, count: 0, generation: 0, caller: LogAddress())

    /// For one loop.
    package init(_ trail: AuditTrail, _ policy: UsePolicy) {
        self.trail = trail
        self.policy = policy
        slots = .allocate(capacity: Self.capacity)
        slots.initialize(repeating: Self.free, count: Self.capacity)
    }

    deinit { slots.deallocate() }

    /// Nothing waits to be left.
    package var isEmpty: Bool { used == 0 }

    /// Takes a place for the record of a request, before its credential is added.
    /// - Parameter wall: nanoseconds since 1970.
    /// - Returns: false where there is none and the policy says that such a request is refused.
    package func note(
        caller: LogAddress, place: UInt16, route: UInt16, generation: UInt64, at wall: UInt64
    ) -> Bool {
        if policy.blocks, trail.isFailing { return false }
        if policy.recordsEach {
            let use = UseRecord(
                time: wall, place: place, route: route, count: 1, generation: generation, caller: caller)
            return trail.leave(use) || refused(use)
        }
        let use = UseRecord(
            time: wall - wall % Self.minute, place: place, route: 0, count: 1, generation: generation, caller: caller)
        if count(use) { return true }
        flush()
        return count(use) || refused(use)
    }

    /// Leaves the counts of every minute but one, also of those that a clock which was set back has still before it; what finds no place
    /// stays.
    /// - Parameter minute: nanoseconds since 1970; nil: all are left.
    package func flush(sparing minute: UInt64? = nil) {
        guard used > 0 else { return }
        for index in 0..<Self.capacity where slots[index].count > 0 && slots[index].time != minute {
            guard trail.leave(slots[index]) else { break }
            slots[index].count = 0
            used -= 1
        }
        // A slot that is free again would end the search for what stands behind it.
        if used > 0 { settle() }
    }

    /// Leaves everything, also what finds no place: it is dropped and counted. For the end.
    package func finish() {
        flush()
        for index in 0..<Self.capacity where slots[index].count > 0 {
            trail.drop(UInt64(slots[index].count))
            slots[index].count = 0
        }
        used = 0
    }

    // MARK: -

    /// - Returns: false where the table is full.
    private func count(_ use: UseRecord) -> Bool {
        var index = Self.start(use)
        while slots[index].count > 0 {
            if slots[index].counts(with: use), slots[index].count < .max {
                slots[index].count += 1
                return true
            }
            index = (index + 1) & (Self.capacity - 1)
        }
        guard used < Self.most else { return false }
        slots[index] = use
        used += 1
        return true
    }

    private func refused(_ use: UseRecord) -> Bool {
        if policy.blocks { return false }
        trail.drop(UInt64(use.count))
        return true
    }

    /// Puts every count where a search finds it. Each is taken out and put in anew, from behind a free slot on, so that none is passed by.
    private func settle() {
        guard let gap = (0..<Self.capacity).first(where: { slots[$0].count == 0 }) else { return }
        for step in 1..<Self.capacity {
            let index = (gap + step) & (Self.capacity - 1)
            guard slots[index].count > 0 else { continue }
            let use = slots[index]
            slots[index].count = 0
            var place = Self.start(use)
            while slots[place].count > 0 { place = (place + 1) & (Self.capacity - 1) }
            slots[place] = use
        }
    }

    /// A caller cannot make all loops slow: a table has few slots, and a full one is left early.
    private static func start(_ use: UseRecord) -> Int {
        var mixed = use.generation &+ use.caller.low &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ use.caller.high ^ UInt64(use.place) &<< 48) &* 0xBF58_476D_1CE4_E5B9
        return Int(mixed >> 32) & (capacity - 1)
    }
}
