import Synchronization

/// A record that is filled in place, again and again.
protocol RingRecord: Sendable {
    init()
    /// Makes it a new one's.
    mutating func clear()
}

/// Records on their way from one thread to the log thread: one writer, one reader, no locks. Full means dropped and
/// counted; a loop never waits for a log.
///
/// A structure that lives in a class with a record's name (`AccessRing`, `TraceRing`): within this module its type is known, and a loop
/// that appends pays for nothing generic.
///
/// Memory order: the writer fills a slot and publishes it by the tail; the reader gives it back by the head. Each side
/// acquires what the other released. The tail's store is sequentially consistent for the sake of a sleeping reader
/// (`BoundedQueue.hasNext` has the argument). Each side keeps a copy of the other's cursor and reads the real one only
/// when the copy says "full" or "empty", so that the shared lines are seldom fought for.
struct RecordRing<Record: RingRecord>: ~Copyable, @unchecked Sendable {
    /// How many records fit.
    let capacity: Int
    private let slots: UnsafeMutablePointer<Record>
    private let memory: UnsafeMutableRawPointer
    // Writer's lines: its cursor, its copy of the head.
    private let tail: UnsafeMutablePointer<Atomic<Int>>
    private let headCopy: UnsafeMutablePointer<Int>
    // Reader's line.
    private let head: UnsafeMutablePointer<Atomic<Int>>

    private let droppedRecords = Atomic<UInt64>(0)
    private let sleep: SleepFlag
    private let wake: WakePipe

    init(capacity: Int, wake: WakePipe) {
        var size = 2
        while size < min(max(capacity, 2), 1 << 16) { size <<= 1 }
        self.capacity = size
        self.wake = wake
        sleep = SleepFlag()
        slots = .allocate(capacity: size)
        slots.initialize(repeating: Record(), count: size)
        memory = .allocate(byteCount: 256, alignment: 128)
        tail = memory.bindMemory(to: Atomic<Int>.self, capacity: 1)
        headCopy = (memory + 8).bindMemory(to: Int.self, capacity: 1)
        head = (memory + 128).bindMemory(to: Atomic<Int>.self, capacity: 1)
        tail.initialize(to: Atomic(0))
        headCopy.initialize(to: 0)
        head.initialize(to: Atomic(0))
    }

    deinit {
        slots.deallocate()
        memory.deallocate()
    }

    /// Records that found the ring full.
    var dropped: UInt64 { droppedRecords.load(ordering: .relaxed) }

    // MARK: - The owning loop only

    /// Hands the next free slot, cleared, to `fill`.
    /// - Parameter countingLoss: whether a record that finds the ring full is counted as dropped.
    /// - Returns: false when the ring is full; `fill` was not called.
    func append(countingLoss: Bool = true, _ fill: (inout Record) -> Void) -> Bool {
        let position = tail.pointee.load(ordering: .relaxed)
        if position &- headCopy.pointee >= capacity {
            headCopy.pointee = head.pointee.load(ordering: .acquiring)
            guard position &- headCopy.pointee < capacity else {
                guard countingLoss else { return false }
                droppedRecords.store(droppedRecords.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
                return false
            }
        }
        let slot = slots + position & (capacity - 1)
        slot.pointee.clear()
        fill(&slot.pointee)
        tail.pointee.store(position &+ 1, ordering: .sequentiallyConsistent)
        if sleep.take() {
            wake.wake()
        } else if position &+ 1 &- headCopy.pointee == capacity / 2 {
            // The reader lets records gather for a moment; half full is the time to cut that short. The copy may be old, so
            // the real cursor decides, and becomes the copy: the next reminder is half a ring away.
            headCopy.pointee = head.pointee.load(ordering: .acquiring)
            if position &+ 1 &- headCopy.pointee == capacity / 2 { wake.wake() }
        }
        return true
    }

    // MARK: - The log thread only

    /// Whether there is a record, as the second half of a sleeper's handshake.
    var hasNext: Bool {
        tail.pointee.load(ordering: .sequentiallyConsistent) != head.pointee.load(ordering: .relaxed)
    }

    /// Gives the oldest record to `body` in place.
    /// - Returns: false when there is none.
    func next(_ body: (borrowing Record) -> Void) -> Bool {
        let position = head.pointee.load(ordering: .relaxed)
        guard tail.pointee.load(ordering: .acquiring) != position else { return false }
        body(slots[position & (capacity - 1)])
        head.pointee.store(position &+ 1, ordering: .releasing)
        return true
    }

    func armWake() { sleep.arm() }
    func disarmWake() { sleep.disarm() }
}
