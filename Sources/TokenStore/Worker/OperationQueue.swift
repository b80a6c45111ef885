internal import Glibc

/// An order to the store's thread.
struct Operation: Sendable {
    enum Work: Sendable {
        case open(now: Int64, Reply<StoreOpening>)
        case commit([StoreChange])
        case fetch(kind: UInt8, key: [UInt8], @Sendable (Result<StoredRow?, StoreFault>) -> Void)
        case job(StoreJob, @Sendable (Result<StoreReport, StoreFault>) -> Void)
        case measure(@Sendable (Result<StoreSize, StoreFault>) -> Void)
        case flush
        /// The same as `close`, but the thread stays and may be told to open again.
        case release
        case close
    }

    let work: Work
    let completion: @Sendable (Result<Void, StoreFault>) -> Void
}

extension Operation {
    /// Whether the operation adds something.
    var stores: Bool {
        guard case .commit(let changes) = work else { return false }
        return !changes.allSatisfy(\.isDeletion)
    }

    /// Whether the rows that it adds are of these kinds alone.
    func stores(only kinds: Set<UInt8>) -> Bool {
        guard case .commit(let changes) = work else { return false }
        return changes.allSatisfy { change in
            if case .put(let row) = change { kinds.contains(row.kind) } else { true }
        }
    }

    /// Whether it may change the row of this kind and key.
    func changes(kind: UInt8, key: [UInt8]) -> Bool {
        guard case .commit(let changes) = work else { return false }
        return changes.contains { change in
            if case .deleteExpired = change { true } else { change.names(kind: kind, key: key) }
        }
    }
}

/// A bounded queue with one consumer that blocks. A lock and a condition of pthread, because the consumer is a plain thread that
/// has to sleep in the kernel, and the standard library's `Mutex` has nothing to sleep on.
final class OperationQueue: @unchecked Sendable {
    private let monitor = Monitor()
    private var waiting: [Operation] = []
    private let limit: Int
    private var closed = false

    /// The most that one batch takes, so that one commit does not keep the first of its callers waiting for the last.
    static let maximumBatch = 64

    init(limit: Int) { self.limit = limit }

    enum Refusal { case full, closed }

    /// Opening and closing are always admitted: they come once, and a full queue must not keep a process from ending.
    func append(_ operation: Operation) -> Refusal? {
        monitor.lock()
        defer { monitor.unlock() }
        if closed { return .closed }
        switch operation.work {
        case .open, .release: break
        case .close: closed = true
        default: if waiting.count >= limit { return .full }
        }
        waiting.append(operation)
        monitor.signal()
        return nil
    }

    /// Takes what is there, in order, up to a batch; `waits` until there is something.
    func take(waits: Bool) -> [Operation] {
        monitor.lock()
        defer { monitor.unlock() }
        while waits, waiting.isEmpty { monitor.wait() }
        let batch = Array(waiting.prefix(Self.maximumBatch))
        waiting.removeFirst(batch.count)
        return batch
    }

    var count: Int {
        monitor.lock()
        defer { monitor.unlock() }
        return waiting.count
    }
}

/// A value that one thread waits for and another gives once.
final class Reply<Value: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private var value: Value?

    func give(_ value: Value) {
        monitor.lock()
        self.value = value
        monitor.signal()
        monitor.unlock()
    }

    /// nil when nothing was given in time.
    func wait(milliseconds: Int64) -> Value? {
        let deadline = Monitor.deadline(milliseconds)
        monitor.lock()
        defer { monitor.unlock() }
        while value == nil, monitor.wait(until: deadline) {}
        return value
    }
}

/// A lock with a condition.
private final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // A jump of the wall clock must not stretch a wait.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func lock() { pthread_mutex_lock(mutex) }
    func unlock() { pthread_mutex_unlock(mutex) }
    func signal() { pthread_cond_broadcast(condition) }
    func wait() { pthread_cond_wait(condition, mutex) }

    /// False when the deadline has passed.
    func wait(until deadline: timespec) -> Bool {
        var deadline = deadline
        return pthread_cond_timedwait(condition, mutex, &deadline) != ETIMEDOUT
    }

    static func deadline(_ milliseconds: Int64) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        time.tv_sec += Int(milliseconds / 1000)
        time.tv_nsec += Int(milliseconds % 1000) * 1_000_000
        if time.tv_nsec >= 1_000_000_000 {
            time.tv_sec += 1
            time.tv_nsec -= 1_000_000_000
        }
        return time
    }
}
