import Glibc
public import Synchronization

/// Quiescent-state reclamation shared by every structure that the data loops read without a lock.
///
/// The one writer retires what it has unlinked; each reader announces, once per wake, the epoch it has seen. What was retired
/// in epoch *e* is freed when every online reader has announced *e* or later. Readers that block are offline and delay nothing.
///
/// The announcement, the reader's load of a link, the writer's exchange and the writer's scan are all sequentially
/// consistent. With acquire and release alone the load of a link may pass the announcement's store (on arm64, and in
/// x86's store buffer): the writer's scan then sees "offline" while the reader already holds the old link.
public final class EpochDomain: @unchecked Sendable {
    /// Bytes between two announcements: two cache lines, because adjacent lines are fetched in pairs.
    @usableFromInline static let padding = 128

    /// How many loops may read, 1 to 64.
    let readerCount: Int
    @usableFromInline let epoch: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline let era: UnsafeMutablePointer<Atomic<UInt8>>
    private let shared: UnsafeMutableRawPointer
    private let announcements: UnsafeMutableRawPointer

    // Writer only.
    private var retired: [Retired] = []
    private var oldest = 0
    /// Bytes of credentials that wait for their grace period. Writer only.
    public private(set) var retiredBytes = 0

    private struct Retired {
        let epoch: UInt64
        let garbage: Garbage
    }

    /// Memory or an object that waits for its grace period.
    enum Garbage {
        /// Memory of `malloc`, wiped before it is freed: it holds a credential.
        case secret(UnsafeMutableRawPointer, byteCount: Int)
        case object(Unmanaged<AnyObject>)
    }

    /// - Parameter readers: how many loops will read, 1 to 64.
    public init(readers: Int) {
        precondition((1...64).contains(readers), "1 to 64 readers")
        readerCount = readers
        shared = .allocate(byteCount: Self.padding, alignment: Self.padding)
        epoch = shared.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
        epoch.initialize(to: Atomic(1))
        era = (shared + 64).bindMemory(to: Atomic<UInt8>.self, capacity: 1)
        era.initialize(to: Atomic(1))
        announcements = .allocate(byteCount: Self.padding * readers, alignment: Self.padding)
        for index in 0..<readers {
            let announcement = (announcements + index * Self.padding).bindMemory(to: Atomic<UInt64>.self, capacity: 1)
            announcement.initialize(to: Atomic(Self.offline))
        }
    }

    deinit {
        // Whoever held the domain is gone, so no reader can be inside a tick.
        for entry in retired[oldest...] { Self.free(entry.garbage) }
        announcements.deallocate()
        shared.deallocate()
    }

    /// The announcement of a reader that holds nothing.
    @usableFromInline static let offline: UInt64 = 0

    func announcement(of reader: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition((0..<readerCount).contains(reader), "no such reader")
        return (announcements + reader * Self.padding).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    // MARK: - Writer

    /// Takes what the writer has already unlinked by a sequentially consistent exchange.
    func retire(_ garbage: Garbage) {
        let epoch = epoch.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
        if case .secret(_, let byteCount) = garbage { retiredBytes += byteCount }
        retired.append(Retired(epoch: epoch, garbage: garbage))
    }

    /// Frees what every online reader has passed. Writer only; cheap when nothing waits.
    /// - Returns: how many retired things still wait.
    @discardableResult
    func reclaim() -> Int {
        guard oldest < retired.count else { return 0 }
        var passed = UInt64.max
        for reader in 0..<readerCount {
            let seen = announcement(of: reader).pointee.load(ordering: .sequentiallyConsistent)
            if seen != Self.offline { passed = min(passed, seen) }
        }
        while oldest < retired.count, retired[oldest].epoch <= passed {
            if case .secret(_, let byteCount) = retired[oldest].garbage { retiredBytes -= byteCount }
            Self.free(retired[oldest].garbage)
            oldest += 1
        }
        if oldest == retired.count {
            retired.removeAll(keepingCapacity: true)
            oldest = 0
        } else if oldest > 64, oldest > retired.count / 2 {
            retired.removeFirst(oldest)
            oldest = 0
        }
        return retired.count - oldest
    }

    /// How many retired things wait for their grace period. Writer only.
    public var retiredCount: Int { retired.count - oldest }

    private static func free(_ garbage: Garbage) {
        switch garbage {
        case .secret(let memory, let byteCount):
            explicit_bzero(memory, byteCount)
            Glibc.free(memory)
        case .object(let object):
            object.release()
        }
    }
}
