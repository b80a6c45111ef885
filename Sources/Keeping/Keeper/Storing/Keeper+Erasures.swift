internal import TokenStore
internal import Tokens

/// Rows go, and the purge or logout that ordered it hears when they are gone.
extension Keeper {
    /// Deletions that are ordered from here on count together, and with them those that were ordered before and are not done.
    func beginErasures() {
        erasures.begin()
        if let store { erase(store.standing) }
    }

    /// Calls back on the keeper's loop when what was ordered since `beginErasures` would survive a power failure, or with the reason why it
    /// would not.
    package func whenErased(_ done: @escaping @Sendable (_ reason: String?) -> Void) {
        let mine = erasures.end()
        guard store != nil else { return done(nil) }
        start { _ in
            let fault = await mine.outcome()
            done(fault.map { "\($0)" })
        }
    }

    func erase(kind: UInt8, key: [UInt8]) { erase([.delete(kind: kind, key: key)]) }

    func erase(_ deletions: [StoreChange]) {
        guard let store else { return }
        let erasure = erasures.current
        for first in stride(from: 0, to: deletions.count, by: Erasures.atOnce) {
            let piece = Array(deletions[first..<min(first + Erasures.atOnce, deletions.count)])
            erasure.began()
            store.commit(piece) { result in
                erasure.ended(result)
                guard case .failure = result else { return }
                // They are ordered again when something can be stored again. A lost letter leaves that to the next purge.
                self.post { $0.note(result) }
            }
        }
    }

    /// Access rows that memory does not know of, as those of users who have not been here since the start.
    func eraseAccess(where isMeant: @escaping @Sendable (AccessKey) -> Bool) {
        guard let store, erasures.add(isMeant) else { return }
        start { keeper in
            while let job = keeper.erasures.first {
                let outcome: Result<StoreReport, StoreFault> = await withCheckedContinuation { continuation in
                    store.start(job) { continuation.resume(returning: $0) }
                }
                // The store does a job that is none of these: it looks for rows of identities that are gone, or an operator has it looked
                // through.
                if case .failure(let fault) = outcome, fault.kind == .busy {
                    await keeper.pause(Erasures.patience)
                    continue
                }
                keeper.erasures.removeFirst().ended(outcome.map { _ in () })
            }
        }
    }
}
