/// The bookkeeping of blocking jobs: which one starts, which one waits, which one is refused or told that it is too late.
///
/// A pure machine: events in, actions out; neither threads nor clocks are known to it. Two promises hold: at most `threads` jobs are with
/// the library at a time, and at most one of each key, so that an identity whose KDC is dead occupies one thread and no more.
struct GSSQueue<Key: Hashable & Sendable>: Sendable {
    /// The number of a job, given by whoever submits it; no two jobs have the same.
    typealias Job = UInt64

    /// The bounds of a queue.
    struct Limits: Sendable, Equatable {
        /// Jobs with the library at a time, at least 1.
        var threads: Int
        /// Jobs that wait, of all keys.
        var waiting: Int
        /// Jobs that wait, of one key: less than `waiting`, so that jobs of a dead identity leave room for those of others.
        var waitingOfKey: Int
    }

    /// An instruction to the interpreter.
    enum Action: Sendable, Equatable {
        /// A free thread has to run the job.
        case start(Job)
        /// The job is not taken. Its caller learns so at once.
        case refuse(Job)
        /// The job's caller has to be told that its deadline has passed.
        case tellLate(Job)
        /// The job's outcome has to be given to its caller.
        case deliver(Job)
        /// The job's caller was told "too late" before; the outcome is dropped.
        case drop(Job)
        /// The job has not begun and never will, because the queue is closed.
        case tellClosed(Job)
    }

    private struct Waiting: Sendable {
        let job: Job
        let key: Key
        let deadline: Int64
    }

    private struct Running: Sendable {
        let key: Key
        let deadline: Int64
        var isLost: Bool
    }

    private let limits: Limits
    /// In order of arrival. Bounded, so that going through it is cheap.
    private var waiting: [Waiting] = []
    private var running: [Job: Running] = [:]
    private var busy: Set<Key> = []
    private(set) var isClosed = false

    init(limits: Limits) {
        precondition(limits.threads > 0 && limits.waiting >= 0 && limits.waitingOfKey >= 0, "limits are not negative")
        self.limits = limits
    }

    /// Jobs that wait for a thread or for an earlier job of their key.
    var waitingCount: Int { waiting.count }
    /// Jobs that are with the library, those told "too late" among them.
    var runningCount: Int { running.count }
    /// Threads that are still with the library although their callers have been told "too late".
    var lostCount: Int { running.values.count { $0.isLost } }
    /// The instant at which `advance(to:)` next has something to do, nil for none.
    var nextDeadline: Int64? {
        let ofRunning = running.values.lazy.filter { !$0.isLost }.map(\.deadline).min()
        let ofWaiting = waiting.lazy.map(\.deadline).min()
        return [ofRunning, ofWaiting].compactMap(\.self).min()
    }

    /// A new job.
    mutating func submit(_ job: Job, key: Key, deadline: Int64, now: Int64) -> [Action] {
        guard !isClosed else { return [.tellClosed(job)] }
        guard deadline > now else { return [.tellLate(job)] }
        if running.count < limits.threads, !busy.contains(key) {
            // No job of the key can be waiting: it would have started when the key or a thread became free.
            return [start(Waiting(job: job, key: key, deadline: deadline))]
        }
        let ofKey = waiting.count { $0.key == key }
        guard waiting.count < limits.waiting, ofKey < limits.waitingOfKey else { return [.refuse(job)] }
        waiting.append(Waiting(job: job, key: key, deadline: deadline))
        return []
    }

    /// The library has returned from a job. A second report of the same job is ignored.
    mutating func finish(_ job: Job, now: Int64) -> [Action] {
        guard let ended = running.removeValue(forKey: job) else { return [] }
        busy.remove(ended.key)
        let outcome: Action = ended.isLost ? .drop(job) : .deliver(job)
        return [outcome] + advance(to: now)
    }

    /// Tells callers whose deadlines have passed, and starts jobs that can start.
    mutating func advance(to now: Int64) -> [Action] {
        var actions: [Action] = []
        for job in running.keys.sorted() {
            guard let entry = running[job], !entry.isLost, entry.deadline <= now else { continue }
            running[job]?.isLost = true
            actions.append(.tellLate(job))
        }
        actions += waiting.filter { $0.deadline <= now }.map { .tellLate($0.job) }
        waiting.removeAll { $0.deadline <= now }
        while running.count < limits.threads, let index = waiting.firstIndex(where: { !busy.contains($0.key) }) {
            actions.append(start(waiting.remove(at: index)))
        }
        return actions
    }

    /// Ends the queue: jobs that wait are told, and running ones go on to their outcome or deadline.
    mutating func close() -> [Action] {
        isClosed = true
        defer { waiting = [] }
        return waiting.map { .tellClosed($0.job) }
    }

    private mutating func start(_ entry: Waiting) -> Action {
        running[entry.job] = Running(key: entry.key, deadline: entry.deadline, isLost: false)
        busy.insert(entry.key)
        return .start(entry.job)
    }
}
