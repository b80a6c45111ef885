internal import Synchronization

/// Whether connections to an upstream can be made, as the loop that tried last has found: for operators, who ask one question of all
/// loops together. Written where a connection fails or comes about, never by a request on a connection that is there.
package final class UpstreamTrouble: Sendable {
    private let stands = Atomic<Bool>(false)
    private let state = Mutex<(reason: String, since: UInt64)?>(nil)

    /// - Parameter now: of a loop's clock.
    func note(_ reason: String, at now: UInt64) {
        state.withLock { state in state = (reason, state?.since ?? now) }
        stands.store(true, ordering: .releasing)
    }

    func isOver() {
        guard stands.load(ordering: .acquiring) else { return }
        state.withLock { $0 = nil }
        stands.store(false, ordering: .releasing)
    }

    /// nil: the last connection came about, or none was tried.
    package var current: (reason: String, since: UInt64)? {
        stands.load(ordering: .acquiring) ? state.withLock { $0 } : nil
    }
}
