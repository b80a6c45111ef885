internal import Handshakes
internal import Reactor

/// Calls to one issuer: so many at once as `network.connections` allows, the others in the order in which they came.
///
/// They wait no longer than any caller of theirs does (`acquire_timeout`), so there are no more of them than tokens.
struct IssuerQueue {
    /// Calls that are allowed different numbers do not wait for each other: behind one that may be the fourth, a sixtieth would
    /// wait in vain.
    struct Key: Hashable {
        let issuer: IssuerKey
        /// Calls at once.
        let limit: Int
    }

    /// Calls that have a place.
    var taken = 0
    var waiting: [Waiting] = []

    /// Touched on the keeper's loop only.
    final class Waiting: @unchecked Sendable {
        let alarm: Alarm
        private var continuation: CheckedContinuation<Bool, Never>?

        init(_ alarm: Alarm, _ continuation: CheckedContinuation<Bool, Never>) {
            self.alarm = alarm
            self.continuation = continuation
        }

        func end(hasPlace: Bool) {
            continuation.take()?.resume(returning: hasPlace)
        }
    }
}

extension Keeper {
    /// Waits for a place among the calls to an issuer.
    /// - Throws: where none has become free in time.
    func enter(_ key: IssuerQueue.Key, _ network: IssuerNetwork) async throws(IssuerFault) {
        guard issuerQueues[key, default: IssuerQueue()].taken >= key.limit else {
            issuerQueues[key, default: IssuerQueue()].taken += 1
            return
        }
        let hasPlace = await withCheckedContinuation { continuation in
            let waiting = IssuerQueue.Waiting(Alarm(loop: loop), continuation)
            // The alarm belongs to the one who waits, and must not hold it.
            waiting.alarm.action = { [unowned self, weak waiting] in
                self.assumeIsolated { keeper in
                    guard let waiting else { return }
                    keeper.issuerQueues[key]?.waiting.removeAll { $0 === waiting }
                    waiting.alarm.close()
                    waiting.end(hasPlace: false)
                }
            }
            waiting.alarm.set(at: now + network.patience)
            issuerQueues[key]?.waiting.append(waiting)
        }
        guard hasPlace else { throw IssuerFault(.overloaded, provablyUnsent: true) }
    }

    /// Gives the place to who has waited longest.
    func leave(_ key: IssuerQueue.Key) {
        issuerQueues[key]?.taken -= 1
        while let queue = issuerQueues[key], let next = queue.waiting.first, queue.taken < key.limit {
            issuerQueues[key]?.waiting.removeFirst()
            issuerQueues[key]?.taken += 1
            next.alarm.close()
            next.end(hasPlace: true)
        }
        if issuerQueues[key]?.taken == 0, issuerQueues[key]?.waiting.isEmpty == true { issuerQueues[key] = nil }
    }
}
