public import Synchronization

/// The result of a lookup in a slot.
@frozen
public enum Lookup {
    case miss
    case hit(RecordView)
    /// A hit past `refreshAt`, the first of this loop for this generation: serve it, and mail the keeper once.
    case refreshDue(RecordView)
}

@available(*, unavailable)
extension Lookup: Sendable {}

/// A loop's access to the hot cache. All calls are made on the loop's own thread; none takes a lock, allocates, or
/// writes a line that another reader writes.
public struct Reader: ~Copyable, @unchecked Sendable {
    /// The loop's number, from 0.
    public let index: Int
    /// Keeps the memory below alive; never touched after `init`, so a lookup moves no reference count.
    private let cache: HotCache
    @usableFromInline let slots: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    @usableFromInline let capacity: UInt32
    @usableFromInline let epoch: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline let sharedEra: UnsafeMutablePointer<Atomic<UInt8>>
    @usableFromInline let announcement: UnsafeMutablePointer<Atomic<UInt64>>
    /// Beside the announcement, on this loop's own lines.
    @usableFromInline let era: UnsafeMutablePointer<UInt8>
    @usableFromInline let marks: UnsafeMutablePointer<Atomic<UInt8>>
    @usableFromInline let asked: UnsafeMutablePointer<UInt64>
    let keyBuckets: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    let keyMask: UInt64

    init(_ cache: HotCache, index: Int) {
        self.cache = cache
        self.index = index
        slots = cache.slots
        capacity = UInt32(cache.capacity)
        epoch = cache.epochs.epoch
        sharedEra = cache.epochs.era
        announcement = cache.epochs.announcement(of: index)
        era = (UnsafeMutableRawPointer(announcement) + 64).bindMemory(to: UInt8.self, capacity: 1)
        era.initialize(to: 1)
        marks = cache.marks(of: index)
        asked = cache.asked(of: index)
        keyBuckets = cache.keyBuckets
        keyMask = cache.keyMask
    }

    deinit { announcement.pointee.store(EpochDomain.offline, ordering: .sequentiallyConsistent) }

    /// Once per wake, before the first lookup. Views of earlier ticks end here.
    @inlinable
    public func enterTick() {
        let seen = epoch.pointee.load(ordering: .sequentiallyConsistent)
        // An equal announcement already stands in the total order before every load of this tick.
        if announcement.pointee.load(ordering: .relaxed) != seen {
            announcement.pointee.store(seen, ordering: .sequentiallyConsistent)
        }
        era.pointee = sharedEra.pointee.load(ordering: .relaxed)
    }

    /// Before blocking. Until the next `enterTick()` no lookup may be made, and no view of this tick be used.
    @inlinable
    public func goOffline() { announcement.pointee.store(EpochDomain.offline, ordering: .sequentiallyConsistent) }

    /// The slot's record, whatever its times.
    @inlinable
    public func record(_ slot: Slot) -> RecordView? {
        // `Slot.nowhere` is a miss like any other stale handle.
        guard slot.index < capacity else { return nil }
        guard let memory = slots[Int(slot.index)].load(ordering: .sequentiallyConsistent) else { return nil }
        let view = RecordView(memory)
        return view.record.pointee.version == slot.version ? view : nil
    }

    /// A hit is one load and the comparison of two times. A hit is marked for eviction's sake.
    /// - Parameter now: nanoseconds of `CLOCK_BOOTTIME`.
    @inlinable
    public func lookup(_ slot: Slot, now: UInt64) -> Lookup {
        guard let view = record(slot), now < view.servedUntil else { return .miss }
        let index = Int(slot.index)
        // Read first: an equal mark leaves the line shared with the keeper's sweep.
        if marks[index].load(ordering: .relaxed) != era.pointee { marks[index].store(era.pointee, ordering: .relaxed) }
        guard now >= view.refreshAt, asked[index] != view.generation else { return .hit(view) }
        asked[index] = view.generation
        return .refreshDue(view)
    }

    /// The mail that a `refreshDue` called for could not be sent: the next hit asks again.
    @inlinable
    public func refreshNotAsked(_ slot: Slot) { asked[Int(slot.index)] = 0 }

    /// Calls `body` with the published snapshot, without touching its reference count. The snapshot must not outlive the
    /// tick; nil if nothing is published.
    @inlinable
    public func withSnapshot<Snapshot, Result>(
        _ published: Published<Snapshot>, _ body: (Snapshot) throws -> Result
    ) rethrows -> Result? {
        guard let opaque = published.pointer.load(ordering: .sequentiallyConsistent) else { return nil }
        return try Unmanaged<Snapshot>.fromOpaque(opaque)._withUnsafeGuaranteedRef(body)
    }
}
