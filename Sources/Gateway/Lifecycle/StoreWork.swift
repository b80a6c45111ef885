internal import Audit
public import Configuration
internal import Glibc
internal import Keeping
internal import Reactor
internal import Synchronization
internal import TLS
internal import Telemetry
internal import TokenStore
public import World

/// The tasks that `cardea store` asks for.
public enum StoreTask: String, Sendable, CaseIterable {
    case rotate, verify, compact
}

/// How far it is, or what came of it. Numbers and key ids; never what stands in a row.
public struct StoreWork: Sendable, Equatable {
    /// Counts the tasks of this process.
    public var number: UInt64
    /// The kind of the task.
    public var task: StoreTask
    /// Rows looked at so far.
    public var rows = 0
    /// Rows at the start of the task.
    public var total = 0
    /// Rows sealed anew so far.
    public var resealed = 0
    /// Rows that no key opens, or that the index does not find.
    public var damaged = 0
    /// SQLite's report where something is wrong with the file.
    public var finding: String?
    /// Bytes of the file; 0 until the end.
    public var bytes = 0
    /// The id of the key that seals.
    public var key = ""
    /// The task has ended well.
    public var isDone = false
    /// Why the task ended early.
    public var failure: String?

    /// Nothing more comes.
    public var isOver: Bool { isDone || failure != nil }
    /// The task has ended well, and everything that it looked at is whole.
    public var isGood: Bool { isDone && damaged == 0 && finding == nil && failure == nil }

    mutating func take(_ report: StoreReport) {
        rows = report.rows
        total = report.total
        resealed = report.resealed
        damaged = report.damaged
        finding = report.finding
        bytes = report.bytes
        key = report.key
    }
}

/// Runs tasks on a store, one at a time. Any thread.
final class StoreWorkshop: Sendable {
    private let store: TokenStore
    private let keys: StoreKeys
    private let state = Mutex<StoreWork?>(nil)

    init(_ store: TokenStore, _ keys: StoreKeys) {
        self.store = store
        self.keys = keys
    }

    /// The task that runs, or the last one.
    var work: StoreWork? {
        state.withLock { state in
            if let work = state, !work.isOver, let report = store.condition.job, report.job == work.task.rawValue,
                !report.isDone
            {
                state?.take(report)
            }
            return state
        }
    }

    /// - Returns: nil when a task is under way already.
    func claim(_ task: StoreTask) -> StoreWork? {
        state.withLock { state in
            if let state, !state.isOver { return nil }
            let work = StoreWork(number: (state?.number ?? 0) + 1, task: task)
            state = work
            return work
        }
    }

    /// Does what was claimed. Reads secrets, and so may block.
    /// - Parameter told: hears of the end, on the store's thread or this one.
    func run(_ task: StoreTask, thorough: Bool, told: @escaping @Sendable (StoreWork) -> Void) {
        let job: StoreJob
        switch task {
        case .rotate:
            do throws(StoreKeys.Problem) { job = .rotate(try keys.readForRotation()) } catch {
                return end(told) { $0.failure = error.text }
            }
        case .verify: job = .verify(thorough: thorough)
        case .compact: job = .compact
        }
        store.start(job) { [self] outcome in
            switch outcome {
            case .failure(let fault): end(told) { $0.failure = "\(fault)" }
            case .success(let report):
                var failure: String?
                if task == .rotate {
                    do throws(StoreKeys.Problem) { try keys.rotated() } catch { failure = error.text }
                }
                end(told) { work in
                    work.take(report)
                    work.isDone = true
                    work.failure = failure
                }
            }
        }
    }

    /// Ends a claimed task that could not be begun.
    func refuse(_ reason: String) { end({ _ in }) { $0.failure = reason } }

    private func end(_ told: (StoreWork) -> Void, _ change: (inout StoreWork) -> Void) {
        let work = state.withLock { state in
            if var work = state {
                change(&work)
                state = work
            }
            return state
        }
        if let work { told(work) }
    }
}

extension Gateway {
    /// The answer to the wish to begin a task.
    public enum StoreStart: Sendable, Equatable {
        case started(StoreWork)
        case busy
        case refused(String)
    }

    /// Must be called on the keeper's loop. The work itself is done on the store's thread, between the gateway's own changes and lookups.
    public func start(_ task: StoreTask) -> StoreStart {
        guard let workshop, !keeper.assumeIsolated({ $0.health.isLocked }) else {
            return .refused(
                keeper.assumeIsolated { keeper in "the gateway runs without a store: \(keeper.status().store)" })
        }
        // With the keys of the start every row would stay as it is; whoever then took the old key away would lose them all.
        if task == .rotate, running.withLock({ $0.needsRestart.contains("store") }) {
            return .refused(
                "'store' has changed since the gateway started, and its keys count from the next start on: restart it, or upgrade it "
                    + "in place (SIGUSR2), then rotate")
        }
        guard let work = workshop.claim(task) else { return .busy }
        let (events, audit) = (self.events, self.audit)
        let said: @Sendable (StoreWork) -> Void = { work in
            let fields = [
                LogField("task", .name(work.task.rawValue)), LogField("rows", .count(Int64(work.rows))),
                LogField("resealed", .count(Int64(work.resealed))), LogField("damaged", .count(Int64(work.damaged))),
            ]
            if work.task == .rotate {
                let word: StaticString = work.failure == nil && work.isGood ? "done" : "failed"
                audit?.note(
                    .rotation,
                    [AuditField(.result, .word(word)), AuditField(.count, .count(UInt64(clamping: work.resealed)))])
            }
            if let failure = work.failure {
                events.error("store task failed", fields + [LogField("reason", .name(failure))])
            } else if work.isGood {
                events.info("store task done", fields)
            } else {
                events.warn("store task found damage", fields)
            }
        }
        // Keys may come from slow disks and programs.
        let accepted = blocking.run { workshop.run(task, thorough: false, told: said) }
        if !accepted { workshop.refuse("too many secrets are being read") }
        return .started(workshop.work ?? work)
    }

    /// The task that runs, or the last one.
    public var storeWork: StoreWork? { workshop?.work }

    /// Does the task on a store that no gateway uses, and waits for its end.
    /// - Parameter progress: called several times a second.
    /// - Throws: when the store cannot be had; `isInUse` says that another process has it.
    public static func work(
        _ task: StoreTask, on configuration: Configuration, environment: @escaping @Sendable (String) -> String?,
        time: any TimeSource = SystemTime(), progress: (StoreWork) -> Void
    ) throws(StoreRefusal) -> StoreWork {
        guard let path = configuration.store.path else { throw StoreRefusal("the configuration has no store.path") }
        guard access(path, F_OK) == 0 else { throw StoreRefusal("there is no store at \(path)") }
        let keys = StoreKeys(configuration, path: path, environment: environment)
        let ring: SealingKeyRing
        do throws(StoreKeys.Problem) { ring = try keys.read() } catch { throw StoreRefusal(error.text) }
        var options = StoreOptions()
        options.spilledKinds = RowKind.spilled
        options.openTimeout = 60_000
        // Whoever asks for a look must find the file as it was.
        options.repairs = task != .verify
        let store = TokenStore(path: path, keys: ring, options: options)
        defer { _ = store.close() }
        switch store.open(now: .min) {
        case .owner: break
        case .lockedByAnother: throw StoreRefusal("another process has \(path)", isInUse: true)
        case .setAside(let aside): throw StoreRefusal("\(path) was damaged and is now \(aside)")
        case .unknownKey(let ids):
            let names = ids.map { SealingKey.name(of: $0) }.joined(separator: ", ")
            throw StoreRefusal("\(path) is sealed with a key that store.key does not name: \(names)")
        case .notOurs(let reason): throw StoreRefusal("\(path) is no token store: \(reason)")
        case .newer(let version): throw StoreRefusal("\(path) was written by a newer version (format \(version))")
        case .degraded(let reason): throw StoreRefusal(reason)
        }
        let workshop = StoreWorkshop(store, keys)
        guard workshop.claim(task) != nil else { throw StoreRefusal("another task is under way") }
        workshop.run(task, thorough: true) { _ in }
        while let work = workshop.work {
            if work.isOver { return work }
            progress(work)
            time.pause(milliseconds: 100)
        }
        throw StoreRefusal("the store was closed")
    }
}

/// Why `cardea store` could not begin.
public struct StoreRefusal: Error, Sendable, CustomStringConvertible {
    /// A sentence for an operator.
    public let description: String
    /// Another process has the store.
    public let isInUse: Bool

    init(_ description: String, isInUse: Bool = false) {
        self.description = description
        self.isInUse = isInUse
    }
}
