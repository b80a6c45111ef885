internal import Synchronization
internal import World

/// Threads for work that may block for seconds and must not wait for other work of its kind: programs that bring credentials.
///
/// A thread is made for a job and takes those that wait behind it; it ends when none is left, so that who has no such work has no thread.
public final class BlockingThreads: BlockingWork {
    private struct State {
        var running = 0
        var waiting: [@Sendable () -> Void] = []
    }

    /// Threads at once.
    public static let most = 32
    /// Jobs that may wait for one.
    public static let capacity = 1024

    private let name: String
    private let most: Int
    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - name: of each thread; the kernel keeps 15 bytes.
    ///   - most: threads at once.
    ///   - capacity: jobs that may wait for one.
    public init(name: String, most: Int = most, capacity: Int = capacity) {
        self.name = name
        self.most = most
        self.capacity = capacity
    }

    /// - Returns: false when too many jobs wait, or there is no thread and none can be made; the job will not run.
    public func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            // Made under the lock: a job that waits has a thread that runs.
            if state.running < most, begin(job) {
                state.running += 1
                return true
            }
            guard state.running > 0, state.waiting.count < capacity else { return false }
            state.waiting.append(job)
            return true
        }
    }

    private func begin(_ first: @escaping @Sendable () -> Void) -> Bool {
        let thread = try? WorkerThread(name: name) { [self] in
            var next: (@Sendable () -> Void)? = first
            while let job = next {
                job()
                next = self.next()
            }
        }
        thread?.detach()
        return thread != nil
    }

    /// The next job for the thread that asks; nil: it ends.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
    }
}
