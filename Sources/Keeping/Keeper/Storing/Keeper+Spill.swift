internal import DataPath
internal import HotCache
internal import Reactor
internal import TokenStore
internal import Tokens

/// Tokens that memory does not hold come back from the store, without a call to an issuer.
///
/// A token whose row is committed has its bytes in the hot cache and nowhere else in memory. When it falls out there, the next miss
/// has it looked up; so has the first miss of a key that an earlier life of the gateway may have kept.
extension Keeper {
    typealias Recalled = (isolated Keeper, Fault?) -> Void

    /// How long a lookup is waited for: the disk may hang, and its letter may be lost in a full mailbox. Nanoseconds.
    private static let patience: UInt64 = 500_000_000

    /// Whether the store has to be asked before the machine is.
    func needsRecall(_ token: KeptToken) -> Bool {
        store == nil ? token.recall != nil : token.needsRecall(cached: cache.generation(in: token.slot))
    }

    /// Looks the token up and calls `work` when it is there again, or known to be lost; with a fault where neither can be said.
    func recall(_ token: KeptToken, then work: @escaping Recalled) {
        // The rows are another process's to change now; no token is given up for what they say.
        guard handOver.mayGrant else { return work(self, Self.upgrading) }
        guard token.recall == nil else {
            token.recall?.waiting.append { fault in work(self, fault) }
            return
        }
        // A purge lets the row go, and the store has not come to it yet.
        guard !erasures.cover(token.key) else {
            takeBack(nil, for: token)
            return work(self, nil)
        }
        let number = health.nextLookup()
        var recall = KeptRecall(number: number, waiting: [{ fault in work(self, fault) }])
        // The token is held until the alarm fires or is closed, though it may have been forgotten before.
        set(&recall.alarm, at: now + Self.patience) { keeper in
            // A store that cannot be read is no reason to leave callers without a token.
            keeper.health.lookups.failed += 1
            keeper.takeBack(nil, for: token)
            keeper.endRecall(of: token, nil)
        }
        token.recall = recall
        store?.fetch(kind: RowKind.access, key: KeyCodec.encode(token.key)) { result in
            self.post { $0.recalled(token, number, result) }
        }
    }

    private func recalled(_ token: KeptToken, _ number: UInt64, _ result: Result<StoredRow?, StoreFault>) {
        // Given up meanwhile.
        guard token.recall?.number == number else { return }
        health.lookups.note(result)
        if case .failure(let fault) = result, fault.kind == .queueFull {
            return endRecall(of: token, Fault(.tooManyWaiters, retryAfter: 1))
        }
        // A store that fails is not asked again at once, or a request that looks again after the answer would do so for ever; a store that
        // works again says so.
        takeBack(token.recall?.isVoid == true ? nil : (try? result.get()), for: token)
        endRecall(of: token, nil)
    }

    private func takeBack(_ row: StoredRow?, for token: KeptToken) {
        // Also where nothing could be read: whoever waits asks again, and would be sent to the same store for ever.
        token.mayBeStored = false
        guard let held = token.machine.heldGrant else {
            if let row { _ = restoreAccess(row) }
            return
        }
        // Another token may have been granted while the lookup was on its way.
        guard held.generation == token.storedGeneration, token.landing == nil, token.line == nil else { return }
        guard let row, let stored = AccessRow(encoded: row.value) else {
            token.storedGeneration = 0
            apply(token.machine.lost(at: now), to: token)
            return
        }
        token.line = (held.generation, stored.line)
    }

    private func endRecall(of token: KeptToken, _ fault: Fault?) {
        guard let recall = token.recall else { return }
        token.recall = nil
        recall.alarm?.close()
        for work in recall.waiting { work(fault) }
    }

    /// The row of what is served is on disk: the bytes in the hot cache are enough.
    func lighten(_ token: KeptToken) {
        guard token.storedGeneration != 0, token.line?.generation == token.storedGeneration,
            cache.generation(in: token.slot) == token.storedGeneration
        else { return }
        token.line = nil
    }

    /// Rows of identities that are not configured any more, or keep nothing on disk now, go. Each has to be opened to tell, so it is done only
    /// when the identities are others than the last time.
    /// - Parameter rows: what was read at opening.
    func dropForeignRows(after rows: [StoredRow]) {
        guard let store else { return }
        let keeping = identities.filter(\.policy.isShared).map(\.digest)
        let owners = keeping.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 }
        guard rows.first(where: { $0.kind == RowKind.owners })?.value != owners else { return }
        let owning = Set(keeping)
        let job = StoreJob.retain(kind: RowKind.access) { row in
            (try? KeyCodec.accessKey(row.key)).map { owning.contains($0.digest) } ?? false
        }
        store.start(job) { outcome in
            guard case .success = outcome else { return }
            store.put(StoredRow(kind: RowKind.owners, key: [], value: owners, expiresWall: nil)) { _ in }
        }
    }

    /// Before anybody asks: the tokens of the keys that are known, in one go.
    package func recallKnown() {
        guard let store else { return }
        let asked = tokens.all.filter { $0.mayBeStored && $0.identity.policy.access.persist }.inOrder
        let keys = asked.map { KeyCodec.encode($0.key) }
        let found = store.fetch(kind: RowKind.access, keys: keys, within: 5000)
        for (token, key) in zip(asked, keys) {
            // A row that did not come in time is looked up when it is missed.
            guard let answer = found[key] else { continue }
            token.mayBeStored = false
            if let row = answer, restoreAccess(row) { health.restoredTokens += 1 }
        }
    }
}
