import Glibc
import Synchronization

/// Which record falls out when there is no room: SIEVE (Zhang et al., NSDI 2024). Writer only, but for the marks, which it reads.
///
/// Records stand in the order in which their slots were filled; a hit moves nothing. A hand goes from the oldest to the newest: what was
/// hit since the hand was here last is passed, the first that was not falls out, and the hand stays there. So a scan over
/// records that nobody asks for twice pushes out its own records and not the popular ones.
///
/// "Hit since" is told without writing to the loops' memory: a loop stamps a hit with the era, and the hand keeps a copy of the
/// stamps that it has seen. A stamp that returns after 255 eras looks like no hit, once.
struct EvictionQueue {
    private static let none = UInt32.max

    /// Towards newer and older records, by slot.
    private let newer: UnsafeMutablePointer<UInt32>
    private let older: UnsafeMutablePointer<UInt32>
    /// By loop and slot.
    private let marks: [UnsafeMutablePointer<Atomic<UInt8>>]
    private let passed: [UnsafeMutablePointer<UInt8>]

    private var newest = none
    private var oldest = none
    private var hand = none
    private(set) var count = 0

    /// The era that loops stamp their hits with.
    private let era: UnsafeMutablePointer<Atomic<UInt8>>
    /// The hand saw a stamp of this very era, which further hits would repeat unseen.
    private var eraIsStale = false

    /// - Parameter marks: each loop's, `capacity` of them.
    init(capacity: Int, marks: [UnsafeMutablePointer<Atomic<UInt8>>], era: UnsafeMutablePointer<Atomic<UInt8>>) {
        newer = HotCache.zeroed(capacity)
        older = HotCache.zeroed(capacity)
        self.marks = marks
        self.era = era
        passed = marks.map { _ in HotCache.zeroed(capacity) }
    }

    func deallocate() {
        free(newer)
        free(older)
        for copy in passed { free(copy) }
    }

    // MARK: -

    /// Whether any loop has hit the slot since the hand passed it, or since it was filled.
    func isMarked(_ slot: Int) -> Bool {
        for loop in marks.indices where marks[loop][slot].load(ordering: .relaxed) != passed[loop][slot] { return true }
        return false
    }

    private mutating func pass(_ slot: Int) {
        let now = era.pointee.load(ordering: .relaxed)
        for loop in marks.indices {
            let mark = marks[loop][slot].load(ordering: .relaxed)
            passed[loop][slot] = mark
            if mark == now { eraIsStale = true }
        }
    }

    /// After a change: hits from now on are told from those that were seen. Loops learn of it with their next tick; what they hit
    /// before it counts as seen, which costs a popular record nothing.
    mutating func renewEra() {
        guard eraIsStale else { return }
        eraIsStale = false
        let now = era.pointee.load(ordering: .relaxed)
        era.pointee.store(now == 255 ? 1 : now + 1, ordering: .relaxed)
    }

    /// Whoever compares stamps by himself: from now on they are others.
    mutating func beginEra() {
        eraIsStale = true
        renewEra()
    }

    /// The eras in which loops hit the slot last, in one number.
    func stamps(of slot: Int) -> UInt64 {
        marks.reduce(0xCBF2_9CE4_8422_2325) { sum, loop in
            (sum ^ UInt64(loop[slot].load(ordering: .relaxed))) &* 0x0000_0100_0000_01B3
        }
    }

    /// The slot was empty and has a record now.
    mutating func append(_ slot: Int) {
        pass(slot)
        let index = UInt32(slot)
        newer[slot] = Self.none
        older[slot] = newest
        if newest == Self.none { oldest = index } else { newer[Int(newest)] = index }
        newest = index
        count += 1
    }

    /// The slot had a record and is empty now.
    mutating func remove(_ slot: Int) {
        let (next, previous) = (newer[slot], older[slot])
        if next == Self.none { newest = previous } else { older[Int(next)] = previous }
        if previous == Self.none { oldest = next } else { newer[Int(previous)] = next }
        if hand == UInt32(slot) { hand = next }
        count -= 1
    }

    /// Moves the hand to the record that is to go; nil when there is none but the spared one.
    mutating func victim(sparing spared: Int) -> Int? {
        // In one round every mark is cleared, so that the second finds one.
        for _ in 0..<(count * 2) {
            if hand == Self.none { hand = oldest }
            let slot = Int(hand)
            if slot != spared {
                if !isMarked(slot) { return slot }
                pass(slot)
            }
            hand = newer[slot]
        }
        return nil
    }
}
