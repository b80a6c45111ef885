internal import TokenStore
internal import Tokens

/// Deletions from the store that somebody waits for, by a purge or a logout, and those that come meanwhile.
struct Erasures {
    /// The deletions of the latest purge, and of whatever else lets rows go.
    private(set) var current = Erasure()
    /// The store does one job at a time and refuses others, so those of a purge of all identities wait for each other here.
    private var jobs: [Job] = []

    private struct Job {
        let work: StoreJob
        /// The tokens whose rows it deletes.
        let isMeant: @Sendable (AccessKey) -> Bool
        let erasure: Erasure
    }

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

    /// Adds a job that deletes the rows of these tokens and reports to what is current; where too many wait, it reports its failure here.
    /// - Returns: whether it is the first, so that somebody has to begin with it.
    mutating func add(_ isMeant: @escaping @Sendable (AccessKey) -> Bool) -> Bool {
        current.began()
        guard jobs.count < Self.mostJobs else {
            current.ended(.failure(StoreFault(.queueFull, "too many purges wait for the store")))
            return false
        }
        let work = StoreJob.retain(kind: RowKind.access) { row in
            (try? KeyCodec.accessKey(row.key)).map { !isMeant($0) } ?? true
        }
        jobs.append(Job(work: work, isMeant: isMeant, erasure: current))
        return jobs.count == 1
    }

    var first: StoreJob? { jobs.first?.work }

    /// Whether a row of the token may be found that is to go: a job takes as long as the store is large.
    func cover(_ key: AccessKey) -> Bool { jobs.contains { $0.isMeant(key) } }

    /// The first job is over.
    /// - Returns: where that is to be reported.
    mutating func removeFirst() -> Erasure { jobs.removeFirst().erasure }
}
