internal import Handshakes
internal import Reactor

/// Calls to one issuer: so many at once as `network.connections` allows, the others in the order in which they came.
///
/// They wait no longer than any caller of theirs does (`acquire_timeout`), so there are no more of them than tokens.
struct IssuerQueue {
    /// Calls that have a place.
    var taken = 0
    var waiting: [Waiting] = []

    /// Touched on the keeper's loop only.
    final class Waiting: @unchecked Sendable {
        let alarm: Alarm
        /// Places that its own configuration allows.
        let limit: Int
        private var continuation: CheckedContinuation<Bool, Never>?

        init(_ alarm: Alarm, limit: Int, _ continuation: CheckedContinuation<Bool, Never>) {
            self.alarm = alarm
            self.limit = limit
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
    func enter(_ key: IssuerKey, _ network: IssuerNetwork) async throws(IssuerFault) {
        guard issuerQueues[key, default: IssuerQueue()].taken >= network.connections else {
            issuerQueues[key, default: IssuerQueue()].taken += 1
            return
        }
        let hasPlace = await withCheckedContinuation { continuation in
            let alarm = Alarm(loop: loop)
            let waiting = IssuerQueue.Waiting(alarm, limit: network.connections, continuation)
            alarm.action = { [unowned self] in
                self.assumeIsolated { keeper in
                    keeper.issuerQueues[key]?.waiting.removeAll { $0 === waiting }
                    keeper.loop.close(alarm)
                    waiting.end(hasPlace: false)
                }
            }
            alarm.set(at: now + network.patience)
            issuerQueues[key]?.waiting.append(waiting)
        }
        guard hasPlace else { throw IssuerFault(.overloaded, provablyUnsent: true) }
    }

    /// Gives the place to who has waited longest, and no place where all of them are to have fewer by now.
    func leave(_ key: IssuerKey) {
        issuerQueues[key]?.taken -= 1
        while let queue = issuerQueues[key], let next = queue.waiting.first, queue.taken < next.limit {
            issuerQueues[key]?.waiting.removeFirst()
            issuerQueues[key]?.taken += 1
            loop.close(next.alarm)
            next.end(hasPlace: true)
        }
        if issuerQueues[key]?.taken == 0, issuerQueues[key]?.waiting.isEmpty == true { issuerQueues[key] = nil }
    }
}
