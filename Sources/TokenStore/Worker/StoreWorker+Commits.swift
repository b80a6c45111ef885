internal import Synchronization
internal import World

/// Commits, and what becomes of them on a full disk.
extension StoreWorker {
    /// Commits all of them in one transaction, which costs one wait for the disk; on a full disk then each by itself, so that what still can
    /// be done (a short row) is, and deletions with the space that is held back for them. A disk that fails otherwise is not asked again
    /// within the batch: it may be slow at it.
    func commit(_ operations: [Operation]) {
        guard !operations.isEmpty else { return }
        guard !operations.contains(where: \.stores) || hasRoom() else { return commitWithoutRoom(operations) }
        var all: [StoreChange] = []
        for case .commit(let changes) in operations.map(\.work) { all += changes }
        let changes = all
        let now = options.time.wallMilliseconds()
        // An operation that deletes alone says nothing of whether there is room.
        let stores = operations.contains(where: \.stores)
        var together = make(changes, now, counts: stores)
        var rounds = 0
        while case .failure(let fault) = together, fault.kind == .full, rounds < 4, case .owner(let table) = state,
            table.makeRoom()
        {
            rounds += 1
            together = make(changes, now, counts: true)
        }
        // Deletions alone next all at once: one by one they cost a wait for the disk each.
        if case .failure(let fault) = together, fault.kind == .full, !stores, operations.count > 1 {
            together = withReserve { make(changes, now, counts: false) }
        }
        if case .success = together { forget(changes) }
        guard case .failure(let fault) = together, fault.kind == .full else {
            for operation in operations { operation.completion(together) }
            return
        }
        for operation in operations {
            guard case .commit(let changes) = operation.work else { continue }
            var outcome = together
            if operations.count > 1 { outcome = make(changes, now, counts: operation.stores) }
            finish(operation, changes, outcome, now)
        }
    }

    /// Without the whole reserve nothing is stored that can be had anew: it would stand in the log, and be moved to the database with the
    /// space that the next deletion needs. One by one, since their order counts.
    private func commitWithoutRoom(_ operations: [Operation]) {
        let fault = record(StoreFault(.full, "the disk is full, but for what is held back for deletions"))
        let now = options.time.wallMilliseconds()
        for operation in operations {
            guard case .commit(let changes) = operation.work else { continue }
            var outcome = Result<Void, StoreFault>.failure(fault)
            if !operation.stores { outcome = make(changes, now, counts: false) }
            finish(operation, changes, outcome, now)
        }
    }

    /// Tries again with what is held back, where the disk was full.
    private func finish(
        _ operation: Operation, _ changes: [StoreChange], _ outcome: Result<Void, StoreFault>, _ now: Int64
    ) {
        var outcome = outcome
        if case .failure(let fault) = outcome, fault.kind == .full {
            outcome = makeWithReserve(operation, changes, now) ?? outcome
        }
        if case .success = outcome { forget(changes) }
        operation.completion(outcome)
    }

    /// - Returns: nil where nothing is held back for it.
    private func makeWithReserve(
        _ operation: Operation, _ changes: [StoreChange], _ now: Int64
    ) -> Result<Void, StoreFault>? {
        if !operation.stores { return withReserve { make(changes, now, counts: false) } }
        guard operation.stores(only: options.lastingKinds) else { return nil }
        lastingReserve?.release()
        if case .owner(let table) = state { table.emptyLog() }
        defer { lastingReserve?.hold() }
        return make(changes, now, counts: false)
    }

    private func make(_ changes: [StoreChange], _ now: Int64, counts: Bool) -> Result<Void, StoreFault> {
        attempt(counts: counts) { (table) throws(TableFault) in try table.commit(changes, now: now) }
    }

    private func hasRoom() -> Bool {
        // Another disk may be in its place, and has its own room.
        if case .owner = state, file.identity != identity { drop() }
        guard case .owner(let table) = state, let whole = reserve?.whole else { return true }
        guard reserve?.refill() == true, lastingReserve?.refill() != false else { return false }
        // The log grows past its bound where it cannot be moved.
        return file.logSize <= whole || table.checkpoint()
    }

    /// Rows that were read at the opening and not taken yet are as old as that: of a disk that was slow, what was forgotten since then
    /// must not come back. One that was put anew stays: its reader knows the younger one, and may need the older to understand others.
    private func forget(_ changes: [StoreChange]) {
        shared.withLock { shared in
            guard !shared.restored.isEmpty else { return }
            shared.restored.removeAll { row in changes.contains { $0.deletes(row) } }
        }
    }

    /// On a full disk: does `work` with the space that is held back.
    func withReserve<Outcome>(_ work: () -> Outcome) -> Outcome {
        reserve?.release()
        // First, so that the log is written from its beginning again, in blocks that it has already.
        if case .owner(let table) = state { table.emptyLog() }
        defer { reserve?.hold() }
        return work()
    }
}
