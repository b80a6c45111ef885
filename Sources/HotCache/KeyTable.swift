import Glibc
import Synchronization

/// Leads from a key's bytes to its slot, for keys that a request brings and no route holds: the names of end users. Chains from a fixed
/// number of buckets; written by the keeper alone, walked by the loops without a lock.
///
/// An entry never changes but for its link, and a link only ever skips entries that are gone. A reader may stand on an entry that is
/// unlinked under it; its link still leads on, to entries that were unlinked later or not at all. Each of these is retired in an
/// epoch that this reader has not announced, so the whole chain before it stays until its tick ends. That holds for the
/// same reason as with slots: every link is loaded, and every unlinking stored, in the one order that announcements and scans are in
/// too (`EpochDomain`). With acquire alone the load of a link may pass the announcement (`KeyChainModelTests`).
///
/// Keys are compared whole. The hash chooses a bucket, and is keyed by the process's seed, so that nobody can choose names that meet in one.
struct KeyTable {
    let buckets: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    let mask: UInt64
    private(set) var count = 0

    /// - Parameter keys: about how many there will be; more make the chains longer.
    init(keys: Int) {
        var size = 16
        while size < min(keys, 1 << 24) { size *= 2 }
        buckets = HotCache.zeroed(size)
        mask = UInt64(size - 1)
    }

    func deallocate() {
        for bucket in 0...Int(mask) {
            var link = buckets[bucket].load(ordering: .relaxed)
            while let memory = link {
                let entry = memory.assumingMemoryBound(to: KeyEntry.self)
                link = entry.pointee.next.load(ordering: .relaxed)
                explicit_bzero(memory, entry.pointee.byteCount)
                free(memory)
            }
        }
        free(buckets)
    }

    static func hash(_ key: UnsafeRawBufferPointer, in space: Slot) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(space.index)
        hasher.combine(space.version)
        hasher.combine(bytes: key)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    static func find(
        _ key: UnsafeRawBufferPointer, in space: Slot,
        from buckets: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>, mask: UInt64
    ) -> Slot? {
        let hash = hash(key, in: space)
        var link = buckets[Int(hash & mask)].load(ordering: .sequentiallyConsistent)
        while let memory = link {
            let entry = memory.assumingMemoryBound(to: KeyEntry.self)
            if entry.pointee.hash == hash, KeyEntry.isEqual(entry, key, space) { return entry.pointee.slot }
            link = entry.pointee.next.load(ordering: .sequentiallyConsistent)
        }
        return nil
    }

    // MARK: - Writer

    /// The key must not be there. False when there is no memory.
    mutating func add(_ key: UnsafeRawBufferPointer, in space: Slot, slot: Slot) -> Bool {
        let hash = Self.hash(key, in: space)
        let bucket = buckets + Int(hash & mask)
        guard let memory = malloc(KeyEntry.byteCount(of: key.count)) else { return false }
        memory.bindMemory(to: KeyEntry.self, capacity: 1).initialize(
            to: KeyEntry(
                next: Atomic(bucket.pointee.load(ordering: .relaxed)), hash: hash, space: space, slot: slot,
                length: UInt32(key.count)))
        if let source = key.baseAddress {
            (memory + MemoryLayout<KeyEntry>.stride).copyMemory(from: source, byteCount: key.count)
        }
        bucket.pointee.store(memory, ordering: .sequentiallyConsistent)
        count += 1
        return true
    }

    /// Unlinks the entry.
    /// - Returns: it, to be retired; nil when there is none.
    mutating func remove(_ key: UnsafeRawBufferPointer, in space: Slot) -> (
        memory: UnsafeMutableRawPointer, bytes: Int
    )? {
        let hash = Self.hash(key, in: space)
        let bucket = buckets + Int(hash & mask)
        var before: UnsafeMutablePointer<KeyEntry>?
        var link = bucket.pointee.load(ordering: .relaxed)
        while let memory = link {
            let entry = memory.assumingMemoryBound(to: KeyEntry.self)
            let next = entry.pointee.next.load(ordering: .relaxed)
            if entry.pointee.hash == hash, KeyEntry.isEqual(entry, key, space) {
                // Its own link stays: readers that stand on it go on from there.
                if let before {
                    before.pointee.next.store(next, ordering: .sequentiallyConsistent)
                } else {
                    bucket.pointee.store(next, ordering: .sequentiallyConsistent)
                }
                count -= 1
                return (memory, entry.pointee.byteCount)
            }
            before = entry
            link = next
        }
        return nil
    }
}

/// The head of an entry; the key's bytes follow it.
struct KeyEntry: ~Copyable {
    let next: Atomic<UnsafeMutableRawPointer?>
    let hash: UInt64
    /// The space that the key belongs to: two spaces may have the same names.
    let space: Slot
    let slot: Slot
    let length: UInt32

    var byteCount: Int { Self.byteCount(of: Int(length)) }

    static func byteCount(of length: Int) -> Int { MemoryLayout<KeyEntry>.stride + length }

    static func isEqual(_ entry: UnsafeMutablePointer<KeyEntry>, _ key: UnsafeRawBufferPointer, _ space: Slot) -> Bool {
        guard entry.pointee.length == key.count, entry.pointee.space == space else { return false }
        guard let start = key.baseAddress else { return true }
        return memcmp(UnsafeRawPointer(entry + 1), start, key.count) == 0
    }
}

extension Reader {
    /// The slot that a key of `space` leads to. Nil says only that the keeper has to be asked.
    public func slot(of key: UnsafeRawBufferPointer, in space: Slot) -> Slot? {
        KeyTable.find(key, in: space, from: keyBuckets, mask: keyMask)
    }
}

// MARK: - Keys (writer only)

extension HotCache {
    /// Makes the bytes lead to the slot. False where the slot was given back, or no memory is to be had.
    public func addKey(_ key: [UInt8], in space: Slot, slot: Slot) -> Bool {
        guard isCurrent(slot), key.withUnsafeBytes({ keys.add($0, in: space, slot: slot) }) else { return false }
        keyQueue.append(Int(slot.index))
        return true
    }

    /// Takes the key away before its slot is released.
    public func removeKey(_ key: [UInt8], in space: Slot, slot: Slot) {
        guard let entry = key.withUnsafeBytes({ keys.remove($0, in: space) }) else { return }
        keyQueue.remove(Int(slot.index))
        epochs.retire(.secret(entry.memory, byteCount: entry.bytes))
        epochs.reclaim()
    }

    /// The slot of the key that is to go when there is no room for another: as SIEVE chooses among records, whether or not the slot has one
    /// now. The key stays; whoever finds that it cannot go calls `keepKey`.
    public func keyToGo() -> Slot? {
        defer { keyQueue.renewEra() }
        return keyQueue.victim(sparing: -1).map { Slot(index: UInt32($0), version: versions[$0]) }
    }

    /// Puts the key back among the newest.
    public func keepKey(of slot: Slot) {
        keyQueue.remove(Int(slot.index))
        keyQueue.append(Int(slot.index))
    }

    /// How many keys lead to a slot. Writer only.
    public var keyCount: Int { keys.count }

    /// The record in the slot. Only this thread retires, so it stands still until the next publication.
    public func record(in slot: Slot) -> RecordView? {
        guard isCurrent(slot) else { return nil }
        return slots[Int(slot.index)].load(ordering: .relaxed).map { RecordView($0) }
    }
}
