internal import Reactor
internal import Synchronization
internal import TokenStore
internal import Tokens

/// What one purge or logout has the store forget: who answers for it waits for all of it.
///
/// Each change reports here by itself. A later change that succeeds says nothing of these: on a full disk one that writes nothing succeeds.
final class Erasures: Sendable {
    private struct State {
        var open = 0
        var fault: StoreFault?
        var waiting: (@Sendable (StoreFault?) -> Void)?
    }
    private let state = Mutex(State())

    func began() { state.withLock { $0.open += 1 } }

    /// On any thread.
    func ended(_ result: Result<Void, StoreFault>) {
        let told = state.withLock { state -> (done: (@Sendable (StoreFault?) -> Void)?, fault: StoreFault?) in
            state.open -= 1
            if case .failure(let fault) = result { state.fault = fault }
            return state.open == 0 ? (state.waiting.take(), state.fault) : (nil, nil)
        }
        told.done?(told.fault)
    }

    /// Calls `done` once, on any thread, when all that began has ended: with the last fault.
    func whenDone(_ done: @escaping @Sendable (StoreFault?) -> Void) {
        let told = state.withLock { state -> (isDone: Bool, fault: StoreFault?) in
            guard state.open > 0 else { return (true, state.fault) }
            state.waiting = done
            return (false, nil)
        }
        if told.isDone { done(told.fault) }
    }

    /// Waits until all that began has ended.
    /// - Returns: the last fault.
    func outcome() async -> StoreFault? {
        await withCheckedContinuation { continuation in
            whenDone { continuation.resume(returning: $0) }
        }
    }
}

/// Rows go, and the purge or logout that ordered it hears when they are gone.
extension Keeper {
    /// What is ordered from here on counts together, and with it what was ordered before and stands still.
    func beginErasures() {
        erasures = Erasures()
        if let store { erase(store.standing) }
    }

    /// - Returns: what was ordered since `beginErasures`; what goes later is none of it.
    func endErasures() -> Erasures {
        defer { erasures = Erasures() }
        return erasures
    }

    /// Calls back on the keeper's loop when what was ordered since `beginErasures` would survive a power failure, or with the reason why it
    /// would not.
    func whenErased(_ done: @escaping @Sendable (_ reason: String?) -> Void) {
        let mine = endErasures()
        guard store != nil else { return done(nil) }
        start { _ in
            let fault = await mine.outcome()
            done(fault.map { "\($0)" })
        }
    }

    func erase(kind: UInt8, key: [UInt8]) { erase([.delete(kind: kind, key: key)]) }

    func erase(_ deletions: [StoreChange]) {
        guard let store else { return }
        let erasures = erasures
        for first in stride(from: 0, to: deletions.count, by: Self.deletionsAtOnce) {
            let piece = Array(deletions[first..<min(first + Self.deletionsAtOnce, deletions.count)])
            erasures.began()
            store.commit(piece) { result in
                erasures.ended(result)
                guard case .failure = result else { return }
                // They are ordered again when something can be stored again. A lost letter leaves that to the next purge.
                self.post { $0.note(result) }
            }
        }
    }

    /// Of one transaction: on a full disk its pages have to fit in what is held back for them.
    private static let deletionsAtOnce = 64

    /// More than there are identities: a disk that hangs must not let repeated purges grow without end.
    private static let mostErasureJobs = 16_384

    /// Access rows that memory does not know of, as those of users who have not been here since the start. The store does one job at a time
    /// and refuses others, so those of a purge of all identities wait for each other here.
    func eraseAccess(where isMeant: @escaping @Sendable (AccessKey) -> Bool) {
        guard let store else { return }
        let job = StoreJob.retain(kind: RowKind.access) { row in
            (try? KeyCodec.accessKey(row.key)).map { !isMeant($0) } ?? true
        }
        erasures.began()
        guard erasureJobs.count < Self.mostErasureJobs else {
            return erasures.ended(.failure(StoreFault(.queueFull, "too many purges wait for the store")))
        }
        erasureJobs.append((job, erasures))
        guard erasureJobs.count == 1 else { return }
        start { keeper in
            while let (job, erasures) = keeper.erasureJobs.first {
                let outcome: Result<StoreReport, StoreFault> = await withCheckedContinuation { continuation in
                    store.start(job) { continuation.resume(returning: $0) }
                }
                keeper.erasureJobs.removeFirst()
                erasures.ended(outcome.map { _ in () })
            }
        }
    }
}
