/// The disk that a store stands on: SQLite's way to its files, and the few things that are done to files beside it. `MachineDisk` is the
/// real form; a simulation has one that loses, tears and fills up as it is told. Touched on the store's thread.
///
/// Failures are numbers of `errno`.
public protocol StoreDisk: Sendable {
    /// The name of SQLite's virtual file system; nil: this machine's.
    var sqlite: String? { get }
    /// - Parameter follows: a link is followed; else it is looked at itself.
    func status(of path: String, follows: Bool) -> DiskResult<DiskFile>
    /// At most the first `count` octets. A link is refused.
    func beginning(of path: String, count: Int) -> DiskResult<[UInt8]>
    /// Takes every right from all but the owner.
    /// - Returns: whether that was done.
    func makePrivate(_ path: String) -> Bool
    /// An empty private file that was not there.
    /// - Returns: 0, or why there is none.
    func create(_ path: String) -> Int32
    /// Whether something stands there.
    func exists(_ path: String) -> Bool
    /// - Returns: 0, or why the file has its old name.
    func rename(_ path: String, to target: String) -> Int32
    func remove(_ path: String)
    /// Makes what was created, renamed and removed beside `path` last through a power failure.
    @discardableResult
    func synchronizeFolder(of path: String) -> Bool
    /// Whether there is less left than a few rows need. False where that cannot be known, as with a quota.
    func hasNoSpace(at path: String) -> Bool
    /// - Throws: why the lock is not ours.
    func lock(_ path: String) throws(StoreLockRefusal) -> any StoreLock
    /// A file without a name in the folder, to hold space with; nil where there is no such thing.
    func nameless(in folder: String) -> (any NamelessFile)?
    /// Whether it is no use to wait for it now. Asked of a store without a thread of its own, which would stand with the disk.
    var hangs: Bool { get }
}

extension StoreDisk {
    /// A real disk does not say so; a store's thread waits for it.
    public var hangs: Bool { false }
}

/// The answer to a question to the disk.
public typealias DiskResult<Value> = Result<Value, DiskErrno>

/// A number of `errno`.
public struct DiskErrno: Error, Sendable, Equatable {
    /// Never 0.
    public let number: Int32

    /// Any number of `errno.h`.
    public init(_ number: Int32) { self.number = number }
}

/// A file as the disk knows it.
public struct DiskFile: Sendable, Equatable {
    /// Not a folder, link or device.
    public var isRegular: Bool
    /// The process, or root, owns it.
    public var isOurs: Bool
    /// Only its owner has a right to it.
    public var isPrivate: Bool
    /// In octets.
    public var size: UInt64
    /// Tells it from every other file of the machine.
    public var identity: [UInt64]

    /// Memberwise.
    public init(isRegular: Bool, isOurs: Bool, isPrivate: Bool, size: UInt64, identity: [UInt64]) {
        self.isRegular = isRegular
        self.isOurs = isOurs
        self.isPrivate = isPrivate
        self.size = size
        self.identity = identity
    }
}

/// Ownership of a store, for as long as the object lives or the process does.
public protocol StoreLock: AnyObject, Sendable {}

/// Why a store's lock is not ours.
public enum StoreLockRefusal: Error, Sendable {
    case heldByAnother
    case failed(Int32)
}

/// A file that is gone with the object, or with the process.
public protocol NamelessFile: AnyObject, Sendable {
    /// Blocks of its disk in all, and octets of one; nil where the disk does not say. No blocks: a disk without a bound of its own.
    var disk: (blocks: Int, octets: Int)? { get }
    /// Takes blocks for the first `octets`.
    /// - Returns: 0, or why not; some of them may be taken all the same.
    func take(_ octets: Int) -> Int32
    /// Gives back what lies behind the first `octets`.
    func cut(to octets: Int)
}
