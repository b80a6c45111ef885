internal import Reactor
internal import Synchronization

/// Counts callers by address over all loops, for `limits.connections_per_address`. A lock, taken when a connection comes and goes and
/// only where the limit is set; never while a request is served.
final class AddressCensus: Sendable {
    private let bound: Atomic<Int>
    private let counts = Mutex<[[UInt8]: Int]>([:])

    init(limit: Int) { bound = Atomic(limit) }

    /// Connections of one address. A lower one lets those that are there stay.
    var limit: Int {
        get { bound.load(ordering: .relaxed) }
        set { bound.store(newValue, ordering: .relaxed) }
    }

    /// - Returns: false when the address has as many connections as it may.
    func enter(_ address: SocketAddress) -> Bool {
        counts.withLock { counts in
            let key = address.ipBytes
            guard counts[key, default: 0] < limit else { return false }
            counts[key, default: 0] += 1
            return true
        }
    }

    func leave(_ address: SocketAddress) {
        counts.withLock { counts in
            let key = address.ipBytes
            guard let count = counts[key] else { return }
            counts[key] = count > 1 ? count - 1 : nil
        }
    }
}
