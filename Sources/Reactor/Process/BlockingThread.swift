internal import Glibc
internal import Telemetry
internal import World

/// Where work goes that may block.
public protocol BlockingWork: Sendable {
    /// - Returns: false when too many jobs wait; this one was not taken.
    func run(_ job: @escaping @Sendable () -> Void) -> Bool
}

/// A thread for what may block and is no loop's business: secret files on slow disks, `exec:` programs. One job after the other.
public final class BlockingThread: BlockingWork {
    private let jobs: BoundedQueue<Job>
    private let wakeup: Wakeup

    private struct Job: Sendable {
        let run: @Sendable () -> Void
    }

    /// - Parameter capacity: jobs that may wait.
    public init(name: String = "blocking", capacity: Int = 256) throws(LoopFault) {
        guard let wakeup = Wakeup(blocks: true) else { throw LoopFault(call: "eventfd", errno: errno) }
        self.wakeup = wakeup
        let jobs = BoundedQueue<Job>(capacity: capacity)
        self.jobs = jobs
        do {
            try WorkerThread(name: name) {
                while true {
                    // Blocks without a timer until `run` wakes it; a signal or an error is only another look at the queue.
                    wakeup.acknowledge()
                    while let job = jobs.receive() { job.run() }
                }
            }.detach()
        } catch { throw LoopFault(call: "pthread_create", errno: error.errno) }
    }

    /// - Returns: false when too many jobs wait; the job will not run.
    public func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        guard jobs.send(Job(run: job)) else { return false }
        wakeup.wake()
        return true
    }
}
