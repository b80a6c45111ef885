internal import TokenStore

/// Deletions from the store that somebody waits for, by a purge or a logout, and those that come meanwhile.
struct Erasures {
    /// The deletions of the latest purge, and of whatever else lets rows go.
    private(set) var current = Erasure()
    /// The store does one job at a time and refuses others, so those of a purge of all identities wait for each other here.
    private var jobs: [(job: StoreJob, erasure: Erasure)] = []

    /// More than there are identities: a disk that hangs must not let repeated purges grow without end.
    private static let mostJobs = 16_384
    /// Deletions of one transaction: on a full disk its pages have to fit in what is held back for them.
    static let atOnce = 64

    /// Deletions that are ordered from here on count together.
    mutating func begin() { current = Erasure() }

    /// Nanoseconds after which the store is asked again while it does another job.
    static let patience: UInt64 = 250_000_000

    /// - Returns: what was ordered since `begin`; what goes later is none of it.
    mutating func end() -> Erasure {
        defer { current = Erasure() }
        return current
    }

    /// Reports to what is current; where too many wait, its failure at once.
    /// - Returns: whether it is the first, so that somebody has to begin with it.
    mutating func add(_ job: StoreJob) -> Bool {
        current.began()
        guard jobs.count < Self.mostJobs else {
            current.ended(.failure(StoreFault(.queueFull, "too many purges wait for the store")))
            return false
        }
        jobs.append((job, current))
        return jobs.count == 1
    }

    var first: StoreJob? { jobs.first?.job }

    /// The first job is over.
    /// - Returns: where that is to be reported.
    mutating func removeFirst() -> Erasure { jobs.removeFirst().erasure }
}
