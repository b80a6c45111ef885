/// Coarse timers of one loop: arm, cancel and re-arm in constant time, no system call and no allocation once grown.
///
/// A wheel of seven levels with 64 slots each, ticks of 10 ms. A timer stands at the level of the highest six-bit digit in
/// which its tick differs from the wheel's position, in the slot of that digit. From that follows what the code relies on:
/// at every level all timers are ahead of the position and in its present revolution, so the earliest slot of a level is
/// the lowest bit of its map, and the lowest level that is not empty holds the earliest timer. When the position reaches
/// a slot above the first level, its timers move down. Seven levels hold every time that 64 bits of nanoseconds can say.
///
/// A class, so that what a timer sets off may arm and cancel others while the wheel is being emptied.
public final class TimerWheel {
    /// Nanoseconds of a tick. A timer fires at the first tick at or after its time, never before.
    public static let tick: UInt64 = 10_000_000

    /// Timers that may be armed at once.
    public let capacity: Int
    /// Timers that are armed now.
    public private(set) var count = 0

    // By hand: an array asks for each step whether it is shared, and a request over HTTP/2 arms and cancels a timer.
    private var nodes: UnsafeMutableBufferPointer<Node>
    /// Nodes that have been used; the others are not initialized.
    private var nodeCount = 0
    private var free = TimerWheel.none
    private let slots: UnsafeMutablePointer<UInt32>
    private let occupied: UnsafeMutablePointer<UInt64>
    // The tick up to which everything has fired.
    private var position: UInt64

    private static let levels = 7
    private static let none = UInt32.max
    private static let unarmed = UInt16.max

    private struct Node {
        var tick: UInt64 = 0
        var payload: UInt64 = 0
        // Neighbours in the slot; of a free node, `next` is the next free one.
        var next = TimerWheel.none
        var previous = TimerWheel.none
        var generation: UInt32 = 1
        var slot = TimerWheel.unarmed
    }

    /// - Parameters:
    ///   - now: nanoseconds of `CLOCK_BOOTTIME`, as are all times here.
    ///   - capacity: timers at once; `arm` gives nil past it.
    public init(now: UInt64 = 0, capacity: Int = 1 << 20) {
        position = now / Self.tick
        self.capacity = min(max(capacity, 1), Int(Self.none) - 1)
        nodes = .allocate(capacity: min(64, self.capacity))
        slots = .allocate(capacity: Self.levels * 64)
        slots.initialize(repeating: Self.none, count: Self.levels * 64)
        occupied = .allocate(capacity: Self.levels)
        occupied.initialize(repeating: 0, count: Self.levels)
    }

    deinit {
        nodes.deallocate()
        slots.deallocate()
        occupied.deallocate()
    }

    // MARK: - Arming

    /// Arms a timer. A time that has passed fires at the next tick.
    /// - Returns: nil when `capacity` timers are armed.
    public func arm(at time: UInt64, payload: UInt64) -> TimerID? {
        let index: UInt32
        if free != Self.none {
            index = free
            free = nodes[Int(index)].next
        } else {
            guard nodeCount < capacity else { return nil }
            if nodeCount == nodes.count { grow() }
            index = UInt32(nodeCount)
            nodes.initializeElement(at: nodeCount, to: Node())
            nodeCount += 1
        }
        nodes[Int(index)].payload = payload
        nodes[Int(index)].tick = due(time)
        link(index)
        count += 1
        return TimerID(index: index, generation: nodes[Int(index)].generation)
    }

    /// - Returns: false when it has fired or was cancelled already.
    @discardableResult
    public func cancel(_ timer: TimerID) -> Bool {
        guard let index = live(timer) else { return false }
        unlink(index)
        release(index)
        return true
    }

    // MARK: - Time

    /// Fires what is due, earliest tick first. `body` may arm and cancel; what it arms for now or before fires at the next
    /// tick, so this ends.
    public func expire(now: UInt64, _ body: (_ payload: UInt64) -> Void) {
        while let payload = popExpired(now: now) { body(payload) }
    }

    /// Takes one timer that is due, nil when there is none.
    public func popExpired(now: UInt64) -> UInt64? {
        let end = now / Self.tick
        while let (level, slot, tick) = earliestSlot(), tick <= end {
            position = max(position, tick)
            let index = slots[level * 64 + slot]
            if level == 0 {
                let payload = nodes[Int(index)].payload
                unlink(index)
                release(index)
                return payload
            }
            moveDown(level * 64 + slot)
        }
        position = max(position, end)
        return nil
    }

    /// When to call `expire` next: the time of the earliest timer, or before it a time at which far timers move closer (at most
    /// six such in the life of a timer). Nil while nothing is armed: an idle loop sleeps for ever.
    public func nextDeadline(now: UInt64) -> UInt64? {
        guard let (_, _, tick) = earliestSlot() else { return nil }
        let time = tick.multipliedReportingOverflow(by: Self.tick)
        return time.overflow ? .max : max(time.partialValue, now)
    }

    // MARK: - Slots

    private func due(_ time: UInt64) -> UInt64 {
        // Rounded up; and strictly ahead of the position, since the slot of the position itself has fired.
        max(time / Self.tick + (time % Self.tick == 0 ? 0 : 1), position + 1)
    }

    private func earliestSlot() -> (level: Int, slot: Int, tick: UInt64)? {
        for level in 0..<Self.levels where occupied[level] != 0 {
            let slot = occupied[level].trailingZeroBitCount
            let shift = UInt64(level * 6)
            let revolution = (position >> (shift + 6)) << (shift + 6)
            return (level, slot, revolution | UInt64(slot) << shift)
        }
        return nil
    }

    private func link(_ index: UInt32) {
        let tick = nodes[Int(index)].tick
        let difference = tick ^ position
        let level = difference == 0 ? 0 : (63 - difference.leadingZeroBitCount) / 6
        let digit = Int(tick >> UInt64(level * 6) & 63)
        let slot = level * 64 + digit
        let first = slots[slot]
        nodes[Int(index)].slot = UInt16(slot)
        nodes[Int(index)].previous = Self.none
        nodes[Int(index)].next = first
        if first != Self.none { nodes[Int(first)].previous = index }
        slots[slot] = index
        occupied[level] |= 1 << UInt64(digit)
    }

    private func unlink(_ index: UInt32) {
        let node = nodes[Int(index)]
        let slot = Int(node.slot)
        if node.next != Self.none { nodes[Int(node.next)].previous = node.previous }
        if node.previous != Self.none {
            nodes[Int(node.previous)].next = node.next
        } else {
            slots[slot] = node.next
            if node.next == Self.none { occupied[slot / 64] &= ~(1 << UInt64(slot % 64)) }
        }
        nodes[Int(index)].slot = Self.unarmed
    }

    private func moveDown(_ slot: Int) {
        var index = slots[slot]
        slots[slot] = Self.none
        occupied[slot / 64] &= ~(1 << UInt64(slot % 64))
        while index != Self.none {
            let next = nodes[Int(index)].next
            // The position has become the slot's first tick, so each timer differs from it in a lower digit, if at all.
            link(index)
            index = next
        }
    }

    private func grow() {
        let grown = UnsafeMutableBufferPointer<Node>.allocate(capacity: min(2 * nodes.count, capacity))
        _ = grown.moveInitialize(fromContentsOf: nodes[..<nodeCount])
        nodes.deallocate()
        nodes = grown
    }

    private func live(_ timer: TimerID) -> UInt32? {
        let index = UInt32(truncatingIfNeeded: timer.rawValue)
        guard Int(index) < nodeCount, nodes[Int(index)].slot != Self.unarmed,
            nodes[Int(index)].generation == UInt32(truncatingIfNeeded: timer.rawValue >> 32)
        else { return nil }
        return index
    }

    private func release(_ index: UInt32) {
        nodes[Int(index)].generation &+= 1
        if nodes[Int(index)].generation == 0 { nodes[Int(index)].generation = 1 }
        nodes[Int(index)].next = free
        free = index
        count -= 1
    }
}

/// An armed timer. It goes stale when the timer fires or is cancelled, and is never 0.
public struct TimerID: Sendable, Hashable {
    /// Fits the payload of another structure; tells nothing but equality.
    public let rawValue: UInt64

    init(index: UInt32, generation: UInt32) { rawValue = UInt64(generation) << 32 | UInt64(index) }
}
