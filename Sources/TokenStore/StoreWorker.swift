internal import Glibc
internal import Synchronization
internal import TLS

/// What the store's thread runs: the only code that touches the database.
///
/// Ours, it commits batches; not ours, it refuses; failing, it tries to open again with each batch, because a disk that was full or
/// unplugged comes back without telling.
final class StoreWorker: @unchecked Sendable {
    private let path: String
    private let keys: SealingKeyRing
    private let maximumBytes: Int
    let queue: OperationQueue
    let shared = Mutex(Shared())

    private var state = State.unopened
    private var lock: StoreLock?
    /// Device and inode of the open database: a file that was deleted or replaced under us takes writes without keeping them.
    private var identity: [UInt64]?
    /// The time that was given with the last opening.
    private var now = Int64.min
    /// Rows have been read into `restored` once.
    private var loaded = false

    /// What other threads may see.
    struct Shared {
        var condition = StoreCondition()
        var restored: [StoredRow] = []
    }

    private enum State {
        case unopened
        case owner(RowTable)
        /// Owned, but not open; try again.
        case failing
        /// Not ours until someone opens again.
        case barred(StoreFault)
    }

    init(path: String, keys: SealingKeyRing, maximumBytes: Int, queueLimit: Int) {
        self.path = path
        self.keys = keys
        self.maximumBytes = maximumBytes
        queue = OperationQueue(limit: queueLimit)
    }

    /// Runs until it is told to close.
    func run() {
        while true {
            var commits: [Operation] = []
            for operation in queue.take() {
                if case .commit = operation.work {
                    commits.append(operation)
                    continue
                }
                // Order is kept: what was put before a flush is on disk when the flush is done.
                commit(commits)
                commits = []
                if case .close = operation.work {
                    close()
                    operation.completion(.success(()))
                    return
                }
                perform(operation)
            }
            commit(commits)
        }
    }
}

// MARK: - Operations

extension StoreWorker {
    private func perform(_ operation: Operation) {
        switch operation.work {
        case .open(let now, let reply):
            reply.give(open(now: now))
        case .flush:
            operation.completion(refusal().map { .failure($0) } ?? .success(()))
        case .rotate:
            operation.completion(attempt { (table) throws(RowTable.CommitFault) in try table.rotate() })
        case .compact:
            operation.completion(attempt { (table) throws(RowTable.CommitFault) in try table.compact() })
        case .commit, .close:
            break
        }
    }

    /// One transaction for all of them, which costs one wait for the disk; on a full disk then one for each, so that what still can
    /// be done (a deletion, a short row) is. A disk that fails otherwise is not asked again within the batch: it may be slow at it.
    private func commit(_ operations: [Operation]) {
        guard !operations.isEmpty else { return }
        var all: [StoreChange] = []
        for case .commit(let changes) in operations.map(\.work) { all += changes }
        let changes = all
        let together = attempt { (table) throws(RowTable.CommitFault) in try table.commit(changes) }
        guard case .failure(let fault) = together, fault.kind == .full, operations.count > 1 else {
            for operation in operations { operation.completion(together) }
            return
        }
        for operation in operations {
            guard case .commit(let changes) = operation.work else { continue }
            operation.completion(attempt { (table) throws(RowTable.CommitFault) in try table.commit(changes) })
        }
    }

    private func refusal() -> StoreFault? {
        switch state {
        case .unopened: StoreFault(.notOwner, "the store was not opened")
        case .barred(let fault): fault
        case .owner, .failing: nil
        }
    }

    /// Does `work` on the open table; opens it first when it is not, and once more when the file proves damaged.
    private func attempt(_ work: (RowTable) throws(RowTable.CommitFault) -> Void) -> Result<Void, StoreFault> {
        for round in 0..<2 {
            if let refusal = refusal() { return .failure(refusal) }
            if case .owner = state, StoreFile.identity(path) != identity { drop() }
            if case .failing = state {
                switch openTable() {
                case .owner, .setAside: break
                default: return .failure(refusal() ?? shared.withLock { $0.condition.degraded } ?? Self.unopenable)
                }
            }
            switch once(work) {
            case .done:
                shared.withLock {
                    $0.condition.commits &+= 1
                    $0.condition.degraded = nil
                }
                return .success(())
            case .unsealed: return .failure(record(StoreFault(.sealing, "the value could not be sealed")))
            case .failed(let fault):
                let told = record(fault.storeFault)
                if fault.needsReopening { drop() }
                guard fault.isDamage, round == 0, setAside() != nil else { return .failure(told) }
            }
        }
        return .failure(Self.unopenable)
    }

    private enum Outcome {
        case done, unsealed
        case failed(SQLiteFault)
    }

    /// A function of its own so that no reference to the table is left when its connection has to be closed.
    private func once(_ work: (RowTable) throws(RowTable.CommitFault) -> Void) -> Outcome {
        guard case .owner(let table) = state else { return .failed(.damage("the store is not open")) }
        do throws(RowTable.CommitFault) {
            try work(table)
            return .done
        } catch {
            guard case .sqlite(let fault) = error else { return .unsealed }
            // A damaged file is evidence: closing must not write to it.
            if fault.isDamage { table.abandon() }
            return .failed(fault)
        }
    }

    private static let unopenable = StoreFault(.io, "the store could not be opened")

    private func record(_ fault: StoreFault) -> StoreFault {
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
            do throws(StoreLock.Refusal) {
                lock = try StoreLock(path + ".lock")
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
                guard round == 0 else { return fail(fault) }
                guard let target = setAside() else { return fail(.system(errno)) }
                aside = target
            }
        }
        return fail(.damage("the store is damaged"))
    }

    private enum Attempt {
        case opened(StoreCensus)
        case damaged(SQLiteFault)
        case ended(StoreOpening)
    }

    private func tryOpening() -> Attempt {
        switch StoreFile.inspect(path) {
        case .ours: break
        case .absent:
            do throws(SQLiteFault) {
                try RowTable.create(path)
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
        census.modeTightened = StoreFile.tightenMode(path)
        do throws(RowTable.Refusal) {
            let table = try RowTable(
                path: path, keys: keys, maximumBytes: maximumBytes, now: now, census: &census, rows: &rows)
            adopt(table, census, rows)
            return .opened(census)
        } catch {
            switch error {
            case .newer(let version): return .ended(refuse(newer: version))
            case .unknownKey(let ids):
                let names = ids.map { SealingKey.name(of: $0) }.joined(separator: ", ")
                bar(StoreFault(.notOwner, "\(path) is sealed with the unknown key \(names)"))
                return .ended(.unknownKey(ids))
            case .sqlite(let fault): return fault.isDamage ? .damaged(fault) : .ended(fail(fault))
            }
        }
    }

    private func adopt(_ table: RowTable, _ census: StoreCensus, _ rows: [StoredRow]) {
        state = .owner(table)
        identity = StoreFile.identity(path)
        let first = !loaded
        loaded = true
        shared.withLock {
            // When only the connection was lost, the rows are known, and nobody waits for them.
            if first { $0.restored = rows }
            $0.condition.isOwner = true
            $0.condition.degraded = nil
            $0.condition.damagedRows &+= UInt64(census.damagedCount)
        }
    }

    /// Not ours: the lock goes too, so that whoever can use the file may.
    private func bar(_ fault: StoreFault) {
        state = .barred(fault)
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

    private func fail(_ fault: SQLiteFault, at place: String? = nil) -> StoreOpening {
        state = .failing
        let told = record(StoreFault(fault.storeFault.kind, "\(place ?? path): \(fault.text)"))
        return .degraded(told.message)
    }

    private func drop() {
        state = .failing
        identity = nil
    }

    private func setAside() -> String? {
        guard let target = StoreFile.setAside(path) else { return nil }
        shared.withLock { $0.condition.setAside.append(target) }
        return target
    }

    private func close() {
        if case .owner(let table) = state { table.checkpoint() }
        state = .barred(StoreFault(.closed, "the store was closed"))
        // Last: the next owner must find the log already in the database, and nobody writing.
        lock = nil
        shared.withLock {
            $0.condition.isOwner = false
            $0.restored = []
        }
    }
}
