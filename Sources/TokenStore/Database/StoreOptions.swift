public import World

/// Bounds and clock of one store.
public struct StoreOptions: Sendable {
    /// Bound of the database file. At it rows of `spilledKinds` make room, those that expire first; where there are none, puts fail
    /// with `.full`. At least 64 KiB.
    public var maximumBytes = 2 << 30
    /// Kinds of which there may be more than memory holds: not read by `open`, but looked up one by one with `fetch`.
    public var spilledKinds: Set<UInt8> = []
    /// Kinds whose rows cannot be had anew when they are lost: on a full disk they are stored with space that is held back for them.
    public var lastingKinds: Set<UInt8> = []
    /// Tells which rows have long expired.
    public var time: any TimeSource = SystemTime()
    /// Where the files are.
    public var disk: any StoreDisk = MachineDisk()
    /// The store has a thread; else whoever made it calls `turn` whenever there may be something to do.
    public var hasThread = true
    /// A damaged file is set aside, rows of no use are deleted, a missing file is made. Without, such a file is not opened and nothing is
    /// changed.
    public var repairs = true
    /// Operations that may wait for the disk.
    public var queueLimit = 4096
    /// How long `open` waits for a disk that does not answer, in milliseconds.
    public var openTimeout: Int64 = 5000
    /// How long `close` waits for what is queued, in milliseconds.
    var closeTimeout: Int64 = 5000

    /// The defaults serve every gateway.
    public init() {}
}
