internal import CLinux
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
    private let wakeup: Int32

    private struct Job: Sendable {
        let run: @Sendable () -> Void
    }

    /// - Parameter capacity: jobs that may wait.
    public init(capacity: Int = 256) throws(LoopFault) {
        jobs = BoundedQueue(capacity: capacity)
        wakeup = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_SEMAPHORE))
        guard wakeup >= 0 else { throw LoopFault(call: "eventfd", errno: errno) }
        do {
            let jobs = self.jobs
            let wakeup = self.wakeup
            _ = try WorkerThread(name: "blocking") {
                var count: UInt64 = 0
                while true {
                    // Blocks without a timer until `run` writes to the eventfd; a signal or an error is only another look at the queue.
                    _ = Glibc.read(wakeup, &count, 8)
                    while let job = jobs.receive() { job.run() }
                }
            }
        } catch { throw LoopFault(call: "pthread_create", errno: error.errno) }
    }

    /// - Returns: false when too many jobs wait; the job will not run.
    public func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        guard jobs.send(Job(run: job)) else { return false }
        var one: UInt64 = 1
        _ = Glibc.write(wakeup, &one, 8)
        return true
    }
}
