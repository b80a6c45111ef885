import Glibc
public import Synchronization

/// Tokens ready to splice, read by the data loops without a lock and written by the keeper alone.
///
/// Capacity is counted twice: `slots` is address space (untouched pages of the tables stay unbacked), `byteLimit` is the
/// memory of the records. What falls out stays in the store; the next miss brings it back.
public final class HotCache: @unchecked Sendable {
    /// The outcome of a publication.
    public enum Publication: Equatable, Sendable {
        /// The token is served. `evicted` fell out to make room; their machines are told.
        case published(evicted: [Slot])
        /// The slot was given back in the meantime.
        case staleSlot
        /// The record alone exceeds the limit, or no memory was to be had: it is not served from here.
        case refused
    }

    /// The readers' announcements, shared with every other structure that the same loops read.
    public let epochs: EpochDomain
    /// How many slots there are.
    public let capacity: Int
    /// The most bytes that live records and those that wait for their grace period may have together.
    public let byteLimit: Int
    /// Bytes of the records that readers can reach. Writer only.
    public private(set) var liveBytes = 0
    /// Records that fell out to make room, since the start. Writer only.
    public private(set) var evictions: UInt64 = 0

    @usableFromInline let slots: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    private let marks: [UnsafeMutablePointer<Atomic<UInt8>>]
    private let asked: [UnsafeMutablePointer<UInt64>]
    /// The readers' part of the key table; the rest of it is the writer's.
    let keyBuckets: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    let keyMask: UInt64
    private let claimed = Atomic<UInt64>(0)

    // Writer only.
    var versions: [UInt32] = []
    private var inUse: [Bool] = []
    private var vacant: [UInt32] = []
    private var queue: EvictionQueue
    var keys: KeyTable
    /// Over the slots that keys lead to.
    var keyQueue: EvictionQueue

    /// - Parameters:
    ///   - readers: data loops, 1 to 64.
    ///   - slots: most slots ever in use at once, 1 to 2^24.
    ///   - byteLimit: memory of all live records.
    ///   - keys: about how many keys will lead to slots.
    public init(readers: Int, slots capacity: Int, byteLimit: Int, keys: Int = 0) {
        precondition((1...(1 << 24)).contains(capacity), "1 to 2^24 slots")
        epochs = EpochDomain(readers: readers)
        self.capacity = capacity
        self.byteLimit = byteLimit
        slots = Self.zeroed(capacity)
        marks = (0..<readers).map { _ in Self.zeroed(capacity) }
        queue = EvictionQueue(capacity: capacity, marks: marks, era: epochs.era)
        self.keys = KeyTable(keys: keys)
        keyBuckets = self.keys.buckets
        keyMask = self.keys.mask
        keyQueue = EvictionQueue(capacity: capacity, marks: marks, era: epochs.era)
        asked = (0..<readers).map { _ in Self.zeroed(capacity) }
    }

    deinit {
        for index in versions.indices {
            guard let memory = slots[index].exchange(nil, ordering: .relaxed) else { continue }
            let byteCount = memory.assumingMemoryBound(to: TokenRecord.self).pointee.byteCount
            explicit_bzero(memory, byteCount)
            free(memory)
        }
        free(slots)
        queue.deallocate()
        keyQueue.deallocate()
        keys.deallocate()
        for table in marks { free(table) }
        for table in asked { free(table) }
    }

    /// Zero bytes are a valid `Atomic` of nil and of 0; `calloc` leaves the pages unbacked until they are used.
    static func zeroed<Element: ~Copyable>(_ count: Int) -> UnsafeMutablePointer<Element> {
        guard let memory = calloc(count, MemoryLayout<Element>.stride) else {
            preconditionFailure("no memory for \(count) slots")
        }
        return memory.bindMemory(to: Element.self, capacity: count)
    }

    // MARK: - Readers

    /// The access of loop `index`; each index is taken once.
    public func makeReader(_ index: Int) -> Reader {
        let bit: UInt64 = 1 << UInt64(index)
        precondition(claimed.bitwiseOr(bit, ordering: .relaxed).oldValue & bit == 0, "reader \(index) is taken")
        return Reader(self, index: index)
    }

    func marks(of reader: Int) -> UnsafeMutablePointer<Atomic<UInt8>> { marks[reader] }
    func asked(of reader: Int) -> UnsafeMutablePointer<UInt64> { asked[reader] }

    // MARK: - Slots (writer only)

    /// An empty slot, or nil when all are in use.
    public func allocateSlot() -> Slot? {
        if let index = vacant.popLast() {
            inUse[Int(index)] = true
            return Slot(index: index, version: versions[Int(index)])
        }
        guard versions.count < capacity else { return nil }
        versions.append(1)
        inUse.append(true)
        return Slot(index: UInt32(versions.count - 1), version: 1)
    }

    /// Gives the slot back; handles to it that are still about miss from now on.
    public func releaseSlot(_ slot: Slot) {
        guard isCurrent(slot) else { return }
        clear(slot: slot)
        let index = Int(slot.index)
        versions[index] &+= 1
        inUse[index] = false
        vacant.append(slot.index)
    }

    func isCurrent(_ slot: Slot) -> Bool {
        let index = Int(slot.index)
        return index < versions.count && inUse[index] && versions[index] == slot.version
    }

    // MARK: - Records (writer only)

    /// Makes the record the slot's; what was there is wiped and freed after its grace period.
    /// - Parameter bytes: the whole field line, ready to splice; copied.
    @discardableResult
    public func publish(slot: Slot, record fields: RecordFields, bytes: UnsafeRawBufferPointer) -> Publication {
        guard isCurrent(slot) else { return .staleSlot }
        let byteCount = TokenRecord.byteCount(of: bytes.count)
        guard byteCount <= byteLimit, bytes.count <= Int(UInt32.max) else { return .refused }
        guard let memory = TokenRecord.make(fields, version: slot.version, bytes: bytes) else { return .refused }
        link(memory, byteCount: byteCount, at: Int(slot.index))
        let evicted = evict(sparing: Int(slot.index))
        epochs.reclaim()
        return .published(evicted: evicted)
    }

    /// Copies the bytes into a record of its own; the caller wipes the array.
    @discardableResult
    public func publish(slot: Slot, record fields: RecordFields, bytes: [UInt8]) -> Publication {
        bytes.withUnsafeBytes { publish(slot: slot, record: fields, bytes: $0) }
    }

    /// Publishes the bytes that are already there with other times. False if the slot holds no record of that generation.
    @discardableResult
    public func restamp(slot: Slot, record fields: RecordFields) -> Bool {
        guard isCurrent(slot), let old = slots[Int(slot.index)].load(ordering: .relaxed) else { return false }
        let view = RecordView(old)
        guard view.generation == fields.generation else { return false }
        // Only this thread retires, so the old bytes stand still while they are copied.
        if case .published = publish(slot: slot, record: fields, bytes: view.bytes) { return true }
        return false
    }

    /// The generation of the record that readers find in the slot.
    public func generation(in slot: Slot) -> UInt64? {
        guard isCurrent(slot) else { return nil }
        return slots[Int(slot.index)].load(ordering: .relaxed).map { RecordView($0).generation }
    }

    /// Takes the record away; the slot stays.
    public func clear(slot: Slot) {
        guard isCurrent(slot) else { return }
        unlink(Int(slot.index))
        epochs.reclaim()
    }

    /// Frees what every online reader has passed. The keeper calls it once per tick.
    @discardableResult
    public func reclaim() -> Int { epochs.reclaim() }

    private func link(_ memory: UnsafeMutableRawPointer, byteCount: Int, at index: Int) {
        let old = slots[index].exchange(memory, ordering: .sequentiallyConsistent)
        liveBytes += byteCount
        if let old { retire(old) } else { queue.append(index) }
    }

    private func unlink(_ index: Int) {
        guard let old = slots[index].exchange(nil, ordering: .sequentiallyConsistent) else { return }
        queue.remove(index)
        retire(old)
    }

    private func retire(_ memory: UnsafeMutableRawPointer) {
        let byteCount = memory.assumingMemoryBound(to: TokenRecord.self).pointee.byteCount
        liveBytes -= byteCount
        epochs.retire(.secret(memory, byteCount: byteCount))
    }

    // MARK: - Eviction (writer only)

    private func evict(sparing spared: Int) -> [Slot] {
        var evicted: [Slot] = []
        while liveBytes > byteLimit, let victim = queue.victim(sparing: spared) {
            unlink(victim)
            evictions += 1
            evicted.append(Slot(index: UInt32(victim), version: versions[victim]))
        }
        queue.renewEra()
        return evicted
    }

    /// Whether any loop has hit the slot since eviction looked at it last.
    public func isMarked(_ slot: Slot) -> Bool { queue.isMarked(Int(slot.index)) }

    /// Differs from what it was before the latest `beginEra()` where a loop has hit the slot since.
    public func stamps(of slot: Slot) -> UInt64 { queue.stamps(of: Int(slot.index)) }

    /// Hits from now on are told from those before.
    public func beginEra() { queue.beginEra() }

    /// Records that readers can reach.
    public var count: Int { queue.count }
}
