/// How opening went. In every case but the first two the gateway runs from memory and says why.
public enum StoreOpening: Sendable, Equatable {
    /// The file is ours; `restore()` gives its rows.
    case owner(StoreCensus)
    /// The file was damaged. It was renamed to this path and an empty one stands in its place.
    case setAside(String)
    /// Another process holds the lock.
    case lockedByAnother
    /// Rows are sealed with keys that were not given; the file is left alone. Ascending ids; `SealingKey.name(of:)` spells them.
    case unknownKey([UInt64])
    /// Something else's file, left alone; the text says what it is.
    case notOurs(String)
    /// Written by a later version of this program, left alone.
    case newer(version: Int)
    /// The file could not be opened. Later puts try again.
    case degraded(String)
}

/// The store's state now, for health and metrics.
public struct StoreCondition: Sendable, Equatable {
    /// This process has the lock of the file.
    public var isOwner = false
    /// Why the last commit failed; nil when it succeeded.
    public var degraded: StoreFault?
    /// A row has been stored since the opening, on a disk with room.
    var isProven = false
    /// Commits that succeeded since the start.
    public var commits: UInt64 = 0
    /// Commits that failed since the start.
    var failures: UInt64 = 0
    /// Rows that could not be opened since the start.
    public var damagedRows: UInt64 = 0
    /// Files set aside since the start, oldest first.
    public var setAside: [String] = []
    /// The job that runs, or the last one.
    public var job: StoreReport?
    /// Operations that wait.
    public var queued = 0
}

/// How much there is.
public struct StoreSize: Sendable, Equatable {
    /// Bytes of the database file.
    public var databaseBytes: UInt64 = 0
    /// Bytes of the write-ahead log.
    public var logBytes: UInt64 = 0
    /// By kind; kinds without rows are left out.
    public var rows: [UInt8: UInt64] = [:]

    /// An empty store.
    public init() {}
}
