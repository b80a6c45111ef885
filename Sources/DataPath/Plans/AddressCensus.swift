internal import Reactor
internal import Synchronization
internal import Telemetry

/// Counts callers by address over all loops, for `limits.connections_per_address`. A lock, taken when a connection comes and goes and
/// only where the limit is set; never while a request is served.
package final class AddressCensus: Sendable {
    private let bound: Atomic<Int>
    private let counts = Mutex<[Key: Int]>([:])

    /// An IP address in 16 bytes, however it is written: of IPv4, the one mapped into IPv6.
    private struct Key: Hashable {
        let high: UInt64
        let low: UInt64

        init(_ address: SocketAddress) {
            let written = address.logAddress
            high = written.high
            low = written.family == .ipv4 ? written.low | 0xffff << 32 : written.low
        }
    }

    package init(limit: Int) { bound = Atomic(limit) }

    /// Connections of one address. A lower one lets those that are there stay.
    package var limit: Int {
        get { bound.load(ordering: .relaxed) }
        set { bound.store(newValue, ordering: .relaxed) }
    }

    /// - Returns: false when the address has as many connections as it may.
    func enter(_ address: SocketAddress) -> Bool {
        let key = Key(address)
        return counts.withLock { counts in
            guard counts[key, default: 0] < limit else { return false }
            counts[key, default: 0] += 1
            return true
        }
    }

    func leave(_ address: SocketAddress) {
        let key = Key(address)
        counts.withLock { counts in
            guard let count = counts[key] else { return }
            counts[key] = count > 1 ? count - 1 : nil
        }
    }
}
