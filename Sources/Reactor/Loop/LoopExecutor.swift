internal import Synchronization

/// Runs Swift jobs on a loop: the keeper is an actor whose executor this is, so that a handshake reads as straight lines while
/// its state is touched by one thread only.
///
/// The executor is the task executor of the keeper's tasks too. Without that a task that leaves the actor, if only for a step between two of its
/// methods, runs on the global pool: two threads' wake-ups for each.
public final class LoopExecutor: SerialExecutor, TaskExecutor {
    /// Runs every job.
    public let loop: Loop

    /// An executor whose jobs run in the loop's turns.
    public init(loop: Loop) { self.loop = loop }

    /// From any thread; wakes the loop where that is needed.
    public func enqueue(_ job: UnownedJob) {
        loop.enqueue(job, for: self)
    }

    /// The executor of an actor.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    /// The executor of a task.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    /// Ends the process where the caller is not on the loop's thread.
    public func checkIsolated() {
        precondition(loop.isCurrent, "keeper state touched off its loop")
    }
}

/// Jobs that wait for their loop. Not bounded: a job exists only while the operation that it resumes does, and each of those is
/// bounded where it starts (flights, issuer calls, commits).
final class JobQueue: @unchecked Sendable {
    let wakeup: Wakeup
    // Jobs made on the loop itself, the usual case, need neither lock nor wake-up.
    private var local: [Waiting] = []
    // A lock, off the data path: only store, resolver and helper threads come here.
    private let remote = Mutex<[Waiting]>([])
    private let remoteWaits = Atomic<Bool>(false)

    private struct Waiting: Sendable {
        let job: UnownedJob
        let executor: LoopExecutor
    }

    init(_ wakeup: Wakeup) { self.wakeup = wakeup }

    var hasLocal: Bool { !local.isEmpty }
    /// On the loop's thread.
    var hasAny: Bool { !local.isEmpty || remoteWaits.load(ordering: .relaxed) }

    func append(_ job: UnownedJob, for executor: LoopExecutor, fromLoop: Bool) {
        let waiting = Waiting(job: job, executor: executor)
        guard !fromLoop else { return local.append(waiting) }
        remote.withLock { $0.append(waiting) }
        remoteWaits.store(true, ordering: .releasing)
        wakeup.wake()
    }

    func run() {
        // The plain load first: an exchange in every turn would be a locked instruction on loops that never get a job.
        if remoteWaits.load(ordering: .relaxed), remoteWaits.exchange(false, ordering: .acquiring) {
            local.append(
                contentsOf: remote.withLock { waiting in
                    defer { waiting.removeAll(keepingCapacity: true) }
                    return waiting
                })
        }
        // A job may enqueue the next one; a bounded number of rounds keeps readiness from starving.
        var rounds = 0
        while !local.isEmpty, rounds < 64 {
            rounds += 1
            let round = local
            local.removeAll(keepingCapacity: true)
            for waiting in round {
                // Isolated to the actor whatever the job: it is this thread, and a job that then calls the actor stays where it is.
                waiting.job.runSynchronously(
                    isolatedTo: waiting.executor.asUnownedSerialExecutor(),
                    taskExecutor: waiting.executor.asUnownedTaskExecutor())
            }
        }
    }
}
