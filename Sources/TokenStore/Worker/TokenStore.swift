internal import CSQLite
internal import Glibc
internal import Synchronization
public import TLS
internal import World

/// Where rows are kept.
public protocol RowStore: Sendable {
    typealias Answer<Value> = @Sendable (Result<Value, StoreFault>) -> Void
    typealias Completion = @Sendable (Result<Void, StoreFault>) -> Void

    /// All of `changes`, in this order, or none of them; after everything submitted before.
    /// - Parameter completion: runs once, on any thread, when the change would survive a power failure or cannot be made; must not block.
    func commit(_ changes: [StoreChange], completion: @escaping Completion)

    /// The rows that were there at the start, without those deleted since. They are handed over: a second call gives none, but for what a slow disk
    /// could not give before.
    func restore() -> [StoredRow]

    /// The row of a kind and key as the changes submitted before leave it; nil when there is none. It may have expired.
    func fetch(kind: UInt8, key: [UInt8], completion: @escaping Answer<StoredRow?>)

    /// Counts the rows, by the index, and looks at the files.
    func measure(completion: @escaping Answer<StoreSize>)

    /// Starts a job. It ends with `.busy` when there is one already.
    func start(_ job: StoreJob, completion: @escaping Answer<StoreReport>)

    /// Changes cannot be stored, or only some of them with what is held back for them; or nothing has shown since the opening that they can.
    var isDegraded: Bool { get }

    /// Does a batch of what waits, where no thread does it.
    func turn()
}

extension RowStore {
    /// A store that does not say otherwise is sound.
    public var isDegraded: Bool { false }

    /// Adds the row, or replaces the one of the same kind and key.
    public func put(_ row: StoredRow, completion: @escaping Completion) { commit([.put(row)], completion: completion) }

    /// The rows of these keys, waited for: before there is anybody to be kept waiting.
    /// - Parameter milliseconds: what is not there by then is left out.
    /// - Returns: by key, nil where there is no row.
    public func fetch(kind: UInt8, keys: [[UInt8]], within milliseconds: Int64) -> [[UInt8]: StoredRow?] {
        guard !keys.isEmpty else { return [:] }
        let gathering = Gathering(keys.count)
        for key in keys { fetch(kind: kind, key: key) { gathering.add(key, $0) } }
        turn()
        _ = gathering.whole.wait(milliseconds: milliseconds)
        return gathering.found
    }
}

/// Answers that come one by one.
private final class Gathering: Sendable {
    private let state: Mutex<(left: Int, found: [[UInt8]: StoredRow?])>
    let whole = Reply<Bool>()

    init(_ count: Int) { state = Mutex((count, [:])) }

    var found: [[UInt8]: StoredRow?] { state.withLock { $0.found } }

    func add(_ key: [UInt8], _ result: Result<StoredRow?, StoreFault>) {
        let isLast = state.withLock { state in
            state.left -= 1
            if case .success(let row) = result { state.found[key] = .some(row) }
            return state.left == 0
        }
        if isLast { whole.give(true) }
    }
}

/// Tokens on disk: sealed rows in SQLite, written by one thread over one connection in one process.
///
/// Calls never wait for the disk, except `open` and `close`, which wait a bounded time. A completion runs on the store's thread when the
/// change would survive a power failure, or cannot be made; it must not block. When the queue is full or the store is closed
/// it runs at once on the calling thread.
///
/// The path must not be used twice in one process. Signals stay with the other threads.
public final class TokenStore: RowStore {
    /// The database file as it was given.
    public let path: String
    private let options: StoreOptions
    private let worker: StoreWorker
    private let started = Mutex(false)

    /// Touches nothing yet.
    /// - Parameters:
    ///   - path: the database; its directory must exist. `PATH.lock` and SQLite's logs stand beside it.
    ///   - keys: the first seals, all open.
    public init(path: String, keys: SealingKeyRing, options: StoreOptions = StoreOptions()) {
        self.path = path
        self.options = options
        worker = StoreWorker(path: path, keys: keys, options: options)
    }

    /// Queued operations are still written; the thread ends by itself.
    deinit { _ = worker.queue.append(Operation(work: .close, completion: { _ in })) }
}

// MARK: - Life

extension TokenStore {
    /// Starts the thread, takes the lock, opens the file and reads it. May be called again after an answer that was not `.owner`, as
    /// when another process gives up the lock.
    /// - Parameter now: milliseconds of Unix time; rows that expired before it are not restored and are deleted. Pass an earlier
    ///   time to keep rows that are served for a while after their expiry.
    /// - Returns: `.degraded` also when the disk does not answer in time; the opening goes on then, and later puts may succeed.
    public func open(now: Int64) -> StoreOpening {
        guard start() else { return .degraded("no thread for the store") }
        let reply = Reply<StoreOpening>()
        guard worker.queue.append(Operation(work: .open(now: now, reply), completion: { _ in })) == nil else {
            return .degraded("the store was closed")
        }
        if !options.disk.hangs { turn() }
        return reply.wait(milliseconds: options.hasThread ? options.openTimeout : 0)
            ?? .degraded("\(path): the disk did not answer in \(options.openTimeout) ms")
    }

    /// The rows that `open` read, in ascending kind, within a kind in the order in which they were last put. They are handed over:
    /// a second call gives none. After a degraded opening they come with the first put that succeeds; what was put since then is
    /// newer than what is restored.
    public func restore() -> [StoredRow] {
        worker.shared.withLock { shared in
            defer { shared.restored = [] }
            return shared.restored
        }
    }

    /// Writes what is queued, moves the log into the database, closes it and gives up the lock. Nothing is accepted any more.
    /// - Returns: false when that is still going on after `closeTimeout`.
    @discardableResult
    public func close() -> Bool {
        guard started.withLock({ $0 }) else { return worker.queue.append(Self.closing) == nil }
        let reply = Reply<Bool>()
        let refusal = worker.queue.append(Operation(work: .close, completion: { _ in reply.give(true) }))
        turn()
        return refusal == .closed || reply.wait(milliseconds: options.closeTimeout) != nil
    }

    /// Writes what is queued, closes the file and gives up the lock, for another process to take. Until `open` is called again everything
    /// is refused; what that opening reads, `restore` gives anew.
    /// - Parameter completion: runs once, on the store's thread, when another may open; at once where nothing was opened.
    public func release(completion: @escaping @Sendable () -> Void) {
        guard started.withLock({ $0 }) else { return completion() }
        if worker.queue.append(Operation(work: .release, completion: { _ in completion() })) != nil { completion() }
    }

    /// A copy of the state at this moment; never waits for the disk.
    public var condition: StoreCondition {
        var condition = worker.shared.withLock { $0.condition }
        condition.queued = worker.queue.count
        return condition
    }

    /// The last commit failed, or none has shown yet that there is room.
    public var isDegraded: Bool {
        worker.shared.withLock { $0.condition.degraded != nil || !$0.condition.isProven }
    }

    /// For a store without a thread: does what waits, on the calling thread, and one step of a job.
    public func turn() {
        guard !options.hasThread, worker.hasWork else { return }
        _ = worker.turn(waits: false)
    }

    /// For a store without a thread: `turn` would find something to do.
    public var hasWork: Bool { worker.hasWork }

    private static let closing = Operation(work: .close, completion: { _ in })

    private func start() -> Bool {
        started.withLock { started in
            guard !started, options.hasThread else {
                started = true
                return true
            }
            let worker = self.worker
            do throws(WorkerThreadFault) {
                try WorkerThread(name: "cardea-store") { worker.run() }.detach()
            } catch { return false }
            started = true
            return true
        }
    }
}

// MARK: - Rows

extension TokenStore {
    /// Looks the row up on the store's thread; no row is a success with nil.
    public func fetch(kind: UInt8, key: [UInt8], completion: @escaping Answer<StoredRow?>) {
        submit(.fetch(kind: kind, key: key, completion)) {
            if case .failure(let fault) = $0 { completion(.failure(fault)) }
        }
    }

    /// Measured on the store's thread.
    public func measure(completion: @escaping Answer<StoreSize>) {
        submit(.measure(completion)) { if case .failure(let fault) = $0 { completion(.failure(fault)) } }
    }

    /// All of `changes`, in this order, or none of them.
    public func commit(_ changes: [StoreChange], completion: @escaping Completion) {
        for case .put(let row) in changes where !row.fits {
            completion(.failure(StoreFault(.tooLarge, "a row of kind \(row.kind) is too large for the store")))
            return
        }
        submit(.commit(changes), completion)
    }

    /// Completes when everything submitted before has completed.
    public func flush(completion: @escaping Completion) { submit(.flush, completion) }

    /// `condition.job` tells how far it is.
    public func start(_ job: StoreJob, completion: @escaping Answer<StoreReport>) {
        submit(.job(job, completion)) { if case .failure(let fault) = $0 { completion(.failure(fault)) } }
    }

    private func submit(_ work: Operation.Work, _ completion: @escaping Completion) {
        guard started.withLock({ $0 }) else {
            completion(.failure(StoreFault(.notOwner, "the store was not opened")))
            return
        }
        switch worker.queue.append(Operation(work: work, completion: completion)) {
        case nil: break
        case .full: completion(.failure(StoreFault(.queueFull, "too many changes wait for the disk")))
        case .closed: completion(.failure(StoreFault(.closed, "the store was closed")))
        }
    }
}
