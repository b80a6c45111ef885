internal import Synchronization
internal import TokenStore

/// The deletions of one purge or logout: who answers for it waits for all of it.
///
/// Each change reports here by itself. A later change that succeeds says nothing of these: on a full disk one that writes nothing succeeds.
final class Erasure: Sendable {
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
