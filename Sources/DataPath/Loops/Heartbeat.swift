package import Reactor
internal import Synchronization

/// Asks loops whether they still come round, without waiting for one.
package final class Heartbeat: Sendable {
    /// Answers that are still to come; the first round has nothing to wait for.
    private let silent = Atomic<Int>(0)

    package init() {}

    /// - Returns: whether all have answered the last time.
    package func beat(of loops: [Loop]) -> Bool {
        guard silent.load(ordering: .acquiring) == 0 else { return false }
        silent.store(loops.count, ordering: .relaxed)
        for loop in loops {
            // A full mailbox says nothing of the loop yet; if it hangs, the next round finds out.
            if !loop.post({ [self] in answer() }) { answer() }
        }
        return true
    }

    private func answer() { silent.subtract(1, ordering: .acquiringAndReleasing) }
}
