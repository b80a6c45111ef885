internal import TokenStore

/// A store that cannot commit is degraded, and rows that it did not take are put again with a growing pause (docs/design/tokens.md#rule-4).
/// A disk that has room again does not say so, and there may be no grant for hours that would find out.
extension Keeper {
    /// Commits that are put again at once: fewer than the store's queue takes.
    private static let mostCommits = 2048

    func watchStore() {
        guard health.alarm == nil, store != nil else { return }
        health.beginPause()
        set(&health.alarm, at: now + health.pause) { $0.lookAtStore() }
    }

    private func lookAtStore() {
        guard health.isDegraded else {
            health.alarm.take()?.close()
            return
        }
        health.lengthenPause()
        health.alarm?.set(at: now + health.pause)
        if health.isRead { tryStore() } else { readLate() }
    }

    /// A disk that did not answer at the start is read before anything is written: our key of the marks must not take the place of the one that
    /// stands there.
    private func readLate() {
        store?.fetch(kind: RowKind.markKey, key: []) { result in
            self.post { keeper in
                switch result {
                case .success:
                    keeper.takeUpLate()
                    keeper.tryStore()
                case .failure(let fault) where fault.kind == .notOwner: keeper.isNotOwner("\(fault)")
                case .failure: break
                }
            }
        }
    }

    /// The key of the marks is always there to be put: its success says that there is room.
    private func tryStore() {
        putAgain()
        keep([.put(attempts.keyRow)])
    }

    /// Repeats the changes that the disk did not make, piece by piece: a disk that has room for some of them takes those.
    package func putAgain() {
        guard let store else { return }
        erase(store.standing)
        for changes in store.untakenCommits.prefix(Self.mostCommits) { keep(changes) }
    }

    /// At the end, when nothing else is put any more: any thread.
    package nonisolated func putLast() {
        guard let store else { return }
        for changes in ([store.standing] + store.untakenCommits).prefix(Self.mostCommits) where !changes.isEmpty {
            store.commit(changes) { _ in }
        }
    }
}
