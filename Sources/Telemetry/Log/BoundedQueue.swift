public import Synchronization

/// A lock-free bounded queue: any number of senders, one receiver. A full queue refuses; it never grows.
///
/// Each slot carries a turn number. `turn == position` means free for the sender of that position, `turn == position + 1`
/// means filled, and the receiver sets it a whole lap ahead when it has emptied the slot. A sender claims a position by a
/// compare-exchange of the tail, then owns the slot alone.
///
/// Memory order: the claim is relaxed because it hands over no data. The sender's load of the turn acquires what the
/// receiver released when it emptied the slot; the receiver's load acquires what the sender published. That publishing
/// store is sequentially consistent rather than releasing for the sake of sleepers: see `hasNext`.
public final class BoundedQueue<Element: Sendable>: @unchecked Sendable {
    /// Slots; a power of two, at least 2.
    public let capacity: Int
    @usableFromInline let mask: Int
    @usableFromInline let turns: UnsafeMutablePointer<Atomic<Int>>
    @usableFromInline let elements: UnsafeMutablePointer<Element>
    // Senders write the tail, the receiver the head; each has a pair of cache lines to itself.
    @usableFromInline let cursors: UnsafeMutableRawPointer
    @usableFromInline let tail: UnsafeMutablePointer<Atomic<Int>>
    @usableFromInline let head: UnsafeMutablePointer<Int>

    /// - Parameter capacity: elements that may wait, 1 … 2²⁴; rounded up to a power of two.
    public init(capacity: Int) {
        var size = 2
        while size < min(max(capacity, 1), 1 << 24) { size <<= 1 }
        self.capacity = size
        mask = size - 1
        turns = .allocate(capacity: size)
        elements = .allocate(capacity: size)
        for position in 0..<size { (turns + position).initialize(to: Atomic(position)) }
        cursors = .allocate(byteCount: 256, alignment: 128)
        tail = cursors.bindMemory(to: Atomic<Int>.self, capacity: 1)
        tail.initialize(to: Atomic(0))
        head = (cursors + 128).bindMemory(to: Int.self, capacity: 1)
        head.initialize(to: 0)
    }

    deinit {
        while receive() != nil {}
        turns.deinitialize(count: capacity)
        turns.deallocate()
        elements.deallocate()
        tail.deinitialize(count: 1)
        cursors.deallocate()
    }

    // MARK: - Any thread

    /// - Returns: false when the queue is full; the element was not taken.
    @inlinable
    public func send(_ element: Element) -> Bool {
        var position = tail.pointee.load(ordering: .relaxed)
        while true {
            let slot = position & mask
            let distance = turns[slot].load(ordering: .acquiring) &- position
            if distance == 0 {
                let claim = tail.pointee.weakCompareExchange(
                    expected: position, desired: position &+ 1, ordering: .relaxed)
                if claim.exchanged {
                    (elements + slot).initialize(to: element)
                    turns[slot].store(position &+ 1, ordering: .sequentiallyConsistent)
                    return true
                }
                position = claim.original
            } else if distance < 0 {
                // The slot still holds the element of a lap ago.
                return false
            } else {
                position = tail.pointee.load(ordering: .relaxed)
            }
        }
    }

    // MARK: - The receiver's thread only

    /// The oldest element, nil when there is none or when its sender has claimed the slot and not yet filled it.
    @inlinable
    public func receive() -> Element? {
        let position = head.pointee
        let slot = position & mask
        guard turns[slot].load(ordering: .acquiring) == position &+ 1 else { return nil }
        let element = (elements + slot).move()
        turns[slot].store(position &+ capacity, ordering: .releasing)
        head.pointee = position &+ 1
        return element
    }

    /// Whether `receive` would give an element, as the second half of a sleeper's handshake.
    ///
    /// The receiver stores "asleep", then loads the turn; a sender stores the turn, then loads "asleep". All four are
    /// sequentially consistent, so they stand in one order that both agree on, and in it one of the two loads comes after
    /// the other side's store: either the receiver sees the element or the sender sees the sleeper. With acquire and
    /// release alone both could read the old values, and the element would lie there with nobody awake.
    @inlinable
    public var hasNext: Bool {
        let position = head.pointee
        return turns[position & mask].load(ordering: .sequentiallyConsistent) == position &+ 1
    }
}
