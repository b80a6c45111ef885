internal import Synchronization

/// The number of connections that one listener may hold, over all loops (`listeners.NAME.connections`). Touched when a connection comes
/// and goes, never while a request is served.
package final class ConnectionQuota: Sendable {
    package let count: Int
    private let left: Atomic<Int>

    package init(_ count: Int) {
        self.count = count
        left = Atomic(count)
    }

    /// - Returns: false when all are taken.
    func take() -> Bool {
        // Relaxed: the count guards nothing but itself.
        if left.subtract(1, ordering: .relaxed).newValue >= 0 { return true }
        give()
        return false
    }

    func give() { left.add(1, ordering: .relaxed) }
}
