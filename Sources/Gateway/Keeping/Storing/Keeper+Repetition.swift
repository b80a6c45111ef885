internal import Reactor
internal import TokenStore
internal import Tokens

/// When a degraded store is looked at next.
struct StoreWatch {
    var alarm: Alarm?
    /// Until the next look, in nanoseconds.
    var pause = Self.least

    /// Commits that are put again at once: fewer than the store's queue takes.
    static let mostCommits = 2048

    static let least: UInt64 = 1_000_000_000
    static let most: UInt64 = 60_000_000_000
}

/// A store that cannot commit is degraded, and rows that it did not take are put again with a growing pause (docs/design/tokens.md#rule-4).
/// A disk that has room again does not say so, and there may be no grant for hours that would find out.
extension Keeper {
    func watchStore() {
        guard storeWatch.alarm == nil, store != nil else { return }
        storeWatch.pause = StoreWatch.least
        set(&storeWatch.alarm, at: now + storeWatch.pause) { $0.lookAtStore() }
    }

    private func lookAtStore() {
        guard case .degraded = storeState else {
            storeWatch.alarm.take()?.close()
            return
        }
        storeWatch.pause = min(2 * storeWatch.pause, StoreWatch.most)
        storeWatch.alarm?.set(at: now + storeWatch.pause)
        if storeIsRead { tryStore() } else { readLate() }
    }

    /// A disk that did not answer at the start is read before anything is written: our key of the marks must not take the place of the one that
    /// stands there.
    private func readLate() {
        store?.fetch(kind: RowKind.markKey, key: []) { result in
            guard case .success = result else { return }
            self.post { keeper in
                keeper.takeUpLate()
                keeper.tryStore()
            }
        }
    }

    /// The key of the marks is always there to be put: its success says that there is room.
    private func tryStore() {
        putAgain()
        keep([.put(Self.markKeyRow(markKeyBytes))])
    }

    /// What the disk did not do, piece by piece: a disk that has room for some of it takes that.
    func putAgain() {
        guard let store else { return }
        erase(store.standing)
        for changes in store.untakenCommits.prefix(StoreWatch.mostCommits) { keep(changes) }
    }

    /// At the end, when nothing else is put any more: any thread.
    nonisolated func putLast() {
        guard let store else { return }
        for changes in ([store.standing] + store.untakenCommits).prefix(StoreWatch.mostCommits) where !changes.isEmpty {
            store.commit(changes) { _ in }
        }
    }
}
