internal import World

/// A job without the type of its result.
struct GSSWorkerJob: Sendable {
    enum Failure { case tooLate, refused, closed }

    /// Does the blocking work, and returns the call that hands its result to the caller.
    let run: @Sendable () -> @Sendable () -> Void
    /// Tells the caller that there is no result.
    let fail: @Sendable (Failure) -> Void
}

/// The interpreter of `GSSQueue`, shared by the worker and its threads: a lost thread keeps it alive after the worker is gone.
///
/// Thread safety: every variable is touched with the monitor's lock held; callers' closures run without it.
final class GSSWorkerCore<Key: Hashable & Sendable>: @unchecked Sendable {
    private let monitor = GSSMonitor()
    private var queue: GSSQueue<Key>
    private var jobs: [UInt64: GSSWorkerJob] = [:]
    private var lastJob: UInt64 = 0
    /// Jobs that the queue has started and no thread has fetched yet.
    private var ready: [UInt64] = []
    private var threads = 0
    private var idle = 0
    private var watches = false
    private let limits: GSSQueue<Key>.Limits

    init(_ limits: GSSQueue<Key>.Limits) {
        self.limits = limits
        queue = GSSQueue(limits: limits)
    }

    var counts: (waiting: Int, running: Int, lost: Int) {
        monitor.withLock { (queue.waitingCount, queue.runningCount, queue.lostCount) }
    }

    func submit(_ job: GSSWorkerJob, key: Key, within milliseconds: Int64) {
        let calls = monitor.withLock { () -> [() -> Void] in
            lastJob &+= 1
            jobs[lastJob] = job
            let now = GSSMonitor.now
            var calls = perform(queue.submit(lastJob, key: key, deadline: now + milliseconds, now: now), result: nil)
            if !makeThreads() { calls += refuseStranded() }
            // A job that only waits brings no action, and its deadline may be the earliest: the watch thread has to look again.
            monitor.wakeAll()
            return calls
        }
        for call in calls { call() }
    }

    func close() {
        let calls = monitor.withLock { perform(queue.close(), result: nil) }
        monitor.wakeAll()
        for call in calls { call() }
    }

    /// Turns actions into calls that are made after the lock has been released.
    private func perform(_ actions: [GSSQueue<Key>.Action], result: (@Sendable () -> Void)?) -> [() -> Void] {
        var calls: [() -> Void] = []
        for action in actions {
            switch action {
            case .start(let job): ready.append(job)
            case .refuse(let job): calls.append(failure(job, .refused))
            case .tellLate(let job): calls.append(failure(job, .tooLate))
            case .tellClosed(let job): calls.append(failure(job, .closed))
            case .deliver(let job):
                jobs.removeValue(forKey: job)
                if let result { calls.append(result) }
            case .drop: break
            }
        }
        if !actions.isEmpty { monitor.wakeAll() }
        return calls
    }

    private func failure(_ job: UInt64, _ why: GSSWorkerJob.Failure) -> () -> Void {
        let told = jobs.removeValue(forKey: job)
        return { told?.fail(why) }
    }

    // MARK: - Threads

    /// False when the kernel gives no thread although one is needed.
    private func makeThreads() -> Bool {
        if !watches, !queue.isClosed {
            guard begin("gss-watch", { self.watch() }) else { return false }
            watches = true
        }
        while idle < ready.count, threads < limits.threads {
            // Fewer threads than wished for are slower but right, as long as there is one.
            guard begin("gss", { self.serve() }) else { return threads > 0 }
            threads += 1
            idle += 1
        }
        return true
    }

    private func begin(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        guard let thread = try? WorkerThread(name: name, body) else { return false }
        // A call that never returns keeps its thread, so nobody waits for the end of one.
        thread.detach()
        return true
    }

    /// The kernel refused the first thread: nothing would ever run the jobs that the queue has started.
    private func refuseStranded() -> [() -> Void] {
        var calls: [() -> Void] = []
        while let job = ready.popLast() {
            calls.append(failure(job, .refused))
            calls += perform(queue.finish(job, now: GSSMonitor.now), result: nil)
        }
        return calls
    }

    /// The next step of a thread for jobs.
    private enum Step {
        case run(UInt64, GSSWorkerJob)
        case call([() -> Void])
        case end
    }

    /// The loop of a thread for jobs.
    private func serve() {
        while true {
            switch monitor.withLock({ nextStep() }) {
            case .run(let number, let job):
                let result = job.run()
                let calls = monitor.withLock { () -> [() -> Void] in
                    idle += 1
                    return perform(queue.finish(number, now: GSSMonitor.now), result: result)
                }
                for call in calls { call() }
            case .call(let calls): for call in calls { call() }
            case .end: return
            }
        }
    }

    /// Sleeps until a job is ready, or until the queue is closed and has nothing more to run.
    private func nextStep() -> Step {
        while ready.isEmpty {
            if queue.isClosed, queue.waitingCount == 0 {
                idle -= 1
                threads -= 1
                return .end
            }
            monitor.wait(until: nil)
        }
        let number = ready.removeFirst()
        // A job whose caller was told "too late" between its start and now is no longer known and needs no run.
        guard let job = jobs[number] else {
            return .call(perform(queue.finish(number, now: GSSMonitor.now), result: nil))
        }
        idle -= 1
        return .run(number, job)
    }

    /// The loop of the thread that tells callers when they are too late.
    private func watch() {
        while true {
            let calls = monitor.withLock { () -> [() -> Void]? in
                if queue.isClosed, queue.runningCount == 0 { return nil }
                monitor.wait(until: queue.nextDeadline)
                return perform(queue.advance(to: GSSMonitor.now), result: nil)
            }
            guard let calls else { return }
            for call in calls { call() }
        }
    }
}
