internal import Glibc
internal import Synchronization
internal import TLS

/// The code that the store's thread runs: the only code that touches the database.
///
/// Ours, it commits batches; not ours, it refuses; failing, it tries to open again with each batch, because a disk that was full or
/// unplugged comes back without telling.
final class StoreWorker: @unchecked Sendable {
    let path: String
    private var keys: SealingKeyRing
    let options: StoreOptions
    /// The database.
    let file: StoreFile
    let queue: OperationQueue
    let shared = Mutex(Shared())

    var state = State.unopened
    private var lock: (any StoreLock)?
    /// Device and inode of the open database: a file that was deleted or replaced under us takes writes without keeping them.
    var identity: [UInt64]?
    /// The time that was given with the last opening.
    private var now = Int64.min
    /// Rows have been read into `restored` once.
    private var loaded = false
    private var job: JobState?
    /// The space reserve of an open store that may write.
    var reserve: SpaceReserve?
    /// The same, for rows that cannot be had anew.
    var lastingReserve: SpaceReserve?

    /// Bytes of rows that one transaction takes, or a row: what it writes to the log has to fit in the reserve.
    private static let batchBytes = 256 << 10

    /// The state that other threads may see.
    struct Shared {
        var condition = StoreCondition()
        var restored: [StoredRow] = []
    }

    enum State {
        case unopened
        case owner(RowTable)
        /// Owned, but not open; try again.
        case failing
        /// Not ours until someone opens again.
        case barred(StoreFault)
    }

    init(path: String, keys: SealingKeyRing, options: StoreOptions) {
        self.path = path
        self.keys = keys
        self.options = options
        file = StoreFile(path, options.disk)
        queue = OperationQueue(limit: max(options.queueLimit, 1))
    }

    /// Runs until it is told to close.
    func run() { while turn(waits: true) {} }

    /// Does a batch of what waits, and a step of a job.
    /// - Parameter waits: until there is something, unless a job is under way: that goes on whenever nothing else waits, and after each batch.
    /// - Returns: false once it was told to close.
    func turn(waits: Bool) -> Bool {
        var commits: [Operation] = []
        var bytes = 0
        for operation in queue.take(waits: waits && job == nil) {
            switch operation.work {
            case .commit(let changes):
                commits.append(operation)
                bytes += changes.reduce(0) { $0 + $1.bytes }
                if bytes > Self.batchBytes {
                    commit(commits)
                    commits = []
                    bytes = 0
                }
                continue
            // A lookup does not wait for the disk of changes to other rows.
            case .fetch(let kind, let key, let completion)
            where !commits.contains(where: { $0.changes(kind: kind, key: key) }):
                completion(fetch(kind: kind, key: key))
                continue
            default: break
            }
            // Order is kept: what was put before a flush is on disk when the flush is done.
            commit(commits)
            commits = []
            bytes = 0
            if case .close = operation.work {
                endJob(StoreFault(.closed, "the store was closed"))
                close(StoreFault(.closed, "the store was closed"))
                operation.completion(.success(()))
                return false
            }
            perform(operation)
        }
        commit(commits)
        stepJob()
        return true
    }

    /// A turn would find something to do. On the thread that turns it.
    var hasWork: Bool { job != nil || queue.count > 0 }
}

// MARK: - Operations

extension StoreWorker {
    private func perform(_ operation: Operation) {
        switch operation.work {
        case .open(let now, let reply):
            reply.give(open(now: now))
        case .flush:
            operation.completion(refusal().map { .failure($0) } ?? .success(()))
        case .fetch(let kind, let key, let completion):
            completion(fetch(kind: kind, key: key))
        case .measure(let completion):
            completion(measure())
        case .job(let job, let completion):
            if self.job != nil { return completion(.failure(StoreFault(.busy, "another job is under way"))) }
            if let refusal = refusal() { return completion(.failure(refusal)) }
            self.job = JobState(job, completion)
        case .release:
            endJob(StoreFault(.notOwner, "the store was handed over"))
            close(StoreFault(.notOwner, "the store was handed over"))
            // Whoever had it meanwhile may have written: the next opening's rows are news.
            loaded = false
            operation.completion(.success(()))
        case .commit, .close:
            break
        }
    }

    private func fetch(kind: UInt8, key: [UInt8]) -> Result<StoredRow?, StoreFault> {
        var row: StoredRow?
        var damaged = 0
        let outcome = attempt(counts: false) { (table) throws(TableFault) in
            row = try table.fetch(kind: kind, key: key, damaged: &damaged)
        }
        if damaged > 0 { shared.withLock { $0.condition.damagedRows &+= UInt64(damaged) } }
        return outcome.map { row }
    }

    private func measure() -> Result<StoreSize, StoreFault> {
        var size = StoreSize()
        size.databaseBytes = file.size
        size.logBytes = file.logSize
        let outcome = attempt(counts: false) { (table) throws(TableFault) in
            size.rows = try table.countRows()
        }
        return outcome.map { size }
    }

    private func stepJob() {
        guard var state = job else { return }
        let before = state
        var (isDone, outcome) = step(&state)
        if case .failure(let fault) = outcome, fault.kind == .full, state.job.onlyDeletes {
            // So few rows that their pages fit in the space that is held back.
            for rows in [Int64(16), 1] {
                state = before
                state.stepRows = min(rows, before.stepRows)
                (isDone, outcome) = withReserve { step(&state) }
                if case .success = outcome { break }
            }
        } else {
            // There may be room again.
            state.stepRows = min(2 * state.stepRows, JobState.mostRows)
        }
        job = state
        shared.withLock { $0.condition.job = state.report }
        if case .failure(let fault) = outcome { return endJob(fault) }
        if isDone {
            job = nil
            state.completion(.success(state.report))
        }
    }

    private func step(_ state: inout JobState) -> (isDone: Bool, outcome: Result<Void, StoreFault>) {
        var isDone = false
        let outcome = attempt(counts: false) { (table) throws(TableFault) in
            isDone = try table.step(&state)
            keys = table.keys
        }
        return (isDone, outcome)
    }

    private func endJob(_ fault: StoreFault) {
        guard let state = job else { return }
        job = nil
        shared.withLock { $0.condition.job?.failure = fault }
        state.completion(.failure(fault))
    }

    private func refusal() -> StoreFault? {
        switch state {
        case .unopened: StoreFault(.notOwner, "the store was not opened")
        case .barred(let fault): fault
        case .owner, .failing: nil
        }
    }

    /// Does `work` on the open table; opens it first when it is not, and once more when the file proves damaged.
    /// - Parameter counts: it is a commit, and its success says that the store works.
    func attempt(
        counts: Bool = true, _ work: (RowTable) throws(TableFault) -> Void
    ) -> Result<Void, StoreFault> {
        for round in 0..<2 {
            if let refusal = refusal() { return .failure(refusal) }
            if case .owner = state, file.identity != identity { drop() }
            if case .failing = state {
                switch openTable() {
                case .owner, .setAside: break
                default: return .failure(refusal() ?? shared.withLock { $0.condition.degraded } ?? Self.unopenable)
                }
            }
            guard let fault = once(work) else {
                guard counts else { return .success(()) }
                // A commit that fitted into blocks that the log had already says nothing of a disk that is full.
                let isFull =
                    shared.withLock { $0.condition.degraded?.kind == .full || !$0.condition.isProven }
                    && options.disk.hasNoSpace(at: path)
                shared.withLock {
                    $0.condition.commits &+= 1
                    guard !isFull else { return }
                    $0.condition.degraded = nil
                    $0.condition.isProven = true
                }
                return .success(())
            }
            let told = record(fault.storeFault)
            if fault.needsReopening { drop() }
            guard fault.kind == .damage, round == 0, options.repairs, case .success = setAside() else {
                return .failure(told)
            }
        }
        return .failure(Self.unopenable)
    }

    /// A function of its own so that no reference to the table is left when its connection has to be closed.
    private func once(_ work: (RowTable) throws(TableFault) -> Void) -> TableFault? {
        guard case .owner(let table) = state else { return .damage("the store is not open") }
        do throws(TableFault) {
            try work(table)
            return nil
        } catch {
            // A damaged file is evidence: closing must not write to it.
            if error.kind == .damage { table.abandon() }
            return error
        }
    }

    private static let unopenable = StoreFault(.io, "the store could not be opened")

    func record(_ fault: StoreFault) -> StoreFault {
        shared.withLock {
            $0.condition.failures &+= 1
            $0.condition.degraded = fault
        }
        return fault
    }
}

// MARK: - Opening and closing

extension StoreWorker {
    private func open(now: Int64) -> StoreOpening {
        if case .owner = state { return .owner(StoreCensus()) }
        self.now = now
        return openTable()
    }

    /// Takes the lock, opens, and if need be replaces, the file.
    private func openTable() -> StoreOpening {
        if lock == nil {
            do throws(StoreLockRefusal) {
                lock = try options.disk.lock(path + ".lock")
            } catch {
                switch error {
                case .heldByAnother:
                    bar(StoreFault(.notOwner, "the store is locked by another process"))
                    return .lockedByAnother
                case .failed(let number): return fail(.system(number), at: path + ".lock")
                }
            }
        }
        var aside: String?
        for round in 0..<2 {
            switch tryOpening() {
            case .opened(let census): return aside.map { .setAside($0) } ?? .owner(census)
            case .ended(let opening): return opening
            case .damaged(let fault):
                // A new file that is damaged at once says that the disk is.
                guard round == 0, options.repairs else { return fail(fault) }
                switch setAside() {
                case .failure(let fault): return fail(.system(fault.number))
                case .success(let target): aside = target
                }
            }
        }
        return fail(.damage("the store is damaged"))
    }

    private enum Attempt {
        case opened(StoreCensus)
        case damaged(TableFault)
        case ended(StoreOpening)
    }

    private func tryOpening() -> Attempt {
        switch file.inspect() {
        case .ours: break
        case .absent where !options.repairs: return .ended(fail(.system(ENOENT)))
        case .absent:
            do throws(TableFault) {
                try RowTable.create(file)
            } catch {
                return .ended(fail(error))
            }
        case .damaged: return .damaged(.damage("the header is damaged"))
        case .notOurs(let reason):
            bar(StoreFault(.notOwner, "\(path) is \(reason)"))
            return .ended(.notOurs(reason))
        case .newer(let version): return .ended(refuse(newer: version))
        case .failed(let number): return .ended(fail(.system(number)))
        }
        var census = StoreCensus()
        var rows: [StoredRow] = []
        census.modeTightened = file.tightenMode()
        do throws(TableFault) {
            let table = try RowTable(
                path: path, keys: keys, options: options, now: now, census: &census, rows: &rows)
            adopt(table, census, rows)
            return .opened(census)
        } catch {
            switch error.kind {
            case .newer(let version): return .ended(refuse(newer: version))
            case .unknownKey(let ids):
                let names = ids.map { SealingKey.name(of: $0) }.joined(separator: ", ")
                bar(StoreFault(.notOwner, "\(path) is sealed with the unknown key \(names)"))
                return .ended(.unknownKey(ids))
            case .damage: return .damaged(error)
            case .full, .readOnly, .io, .sealing: return .ended(fail(error))
            }
        }
    }

    private func adopt(_ table: RowTable, _ census: StoreCensus, _ rows: [StoredRow]) {
        state = .owner(table)
        identity = file.identity
        if reserve == nil, options.repairs {
            let folder = StoreFile.directory(of: path)
            reserve = SpaceReserve.made(on: options.disk, in: folder, SpaceReserve.forDeletions)
            if !options.lastingKinds.isEmpty {
                lastingReserve = SpaceReserve.made(on: options.disk, in: folder, SpaceReserve.forLastingRows)
            }
        }
        let first = !loaded
        loaded = true
        shared.withLock {
            // When only the connection was lost, the rows are known, and nobody waits for them.
            if first { $0.restored = rows }
            $0.condition.isOwner = true
            $0.condition.degraded = nil
            // A disk that did not answer may have been filled meanwhile: that a file opens says nothing of whether it takes a row.
            $0.condition.isProven = false
            $0.condition.damagedRows &+= UInt64(census.damagedCount)
        }
    }

    /// Not ours: the lock goes too, so that whoever can use the file may.
    private func bar(_ fault: StoreFault) {
        state = .barred(fault)
        giveUpReserves()
        lock = nil
        shared.withLock {
            $0.condition.isOwner = false
            $0.condition.degraded = fault
        }
    }

    private func refuse(newer version: Int) -> StoreOpening {
        bar(StoreFault(.notOwner, "\(path) was written by a later version (schema \(version))"))
        return .newer(version: version)
    }

    private func fail(_ fault: TableFault, at file: String? = nil) -> StoreOpening {
        state = .failing
        let told = record(StoreFault(fault.storeFault.kind, "\(file ?? path): \(fault.text)"))
        return .degraded(told.message)
    }

    func drop() {
        state = .failing
        // The folder may be on another disk by now.
        giveUpReserves()
        identity = nil
    }

    private func giveUpReserves() {
        reserve = nil
        lastingReserve = nil
    }

    private func setAside() -> DiskResult<String> {
        let outcome = file.setAside()
        if case .success(let target) = outcome { shared.withLock { $0.condition.setAside.append(target) } }
        return outcome
    }

    private func close(_ refusal: StoreFault) {
        // First: to move the log takes space.
        giveUpReserves()
        if case .owner(let table) = state { table.checkpoint() }
        state = .barred(refusal)
        // Last: the next owner must find the log already in the database, and nobody writing.
        lock = nil
        shared.withLock {
            $0.condition.isOwner = false
            $0.restored = []
        }
    }
}
