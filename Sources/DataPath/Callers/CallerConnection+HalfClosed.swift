internal import Reactor

/// Callers that close their side and still wait for an answer, and callers that have gone: by the caller's FIN the two cannot be told apart.
/// For a while the request goes on; then whoever sent it counts as gone, and the upstream is let go.
///
/// Once the answer's head has been sent, the kernel tells us of a caller that is gone when it gets more.
extension CallerConnection {
    /// Nanoseconds between two looks at a body on its way.
    private static let leastPause: UInt64 = 100_000_000

    /// The caller has closed its side while its request waits for an answer.
    func noteHalfClosed() {
        // An exchange that leaves HTTP ends by its own rules, and a caller that leaves a stream of HTTP/2 resets it.
        guard stream == nil, !exchange.answer.hasBegun, !exchange.request.opensTunnel,
            exchange.halfClosed.goneAt == nil,
            let route = exchange.route
        else { return }
        let goneAt = loop.now + route.halfClosedTimeout
        exchange.halfClosed.goneAt = goneAt
        watchHalfClosed(until: goneAt)
    }

    private func watchHalfClosed(until time: UInt64) {
        // A connection has one such timer, however many requests stand behind one another; it is not the one of `expect`, since the
        // request goes on by its own deadlines.
        guard !watchesHalfClosed else { return }
        watchesHalfClosed = loop.arm(self, at: time, kind: Channel.secondTimer) != nil
    }

    func judgeHalfClosed() {
        watchesHalfClosed = false
        guard stage == .exchanging, let goneAt = exchange.halfClosed.goneAt, !exchange.answer.hasBegun else { return }
        guard loop.now >= goneAt else { return watchHalfClosed(until: goneAt) }
        // Its last octets may still be on their way through us; whoever stalls there has a deadline of its own. However short the time of the
        // route, the timer must not fire in every turn meanwhile.
        let time = exchange.route?.halfClosedTimeout ?? 0
        if isSending || exchange.halfClosed.wasSending {
            // The caller has its whole time from the moment when the last octet of its body has left.
            exchange.halfClosed.wasSending = isSending
            let next = loop.now + (exchange.halfClosed.wasSending ? max(time, Self.leastPause) : time)
            exchange.halfClosed.goneAt = next
            return watchHalfClosed(until: next)
        }
        close()
    }

    /// The request has not left us whole: what the kernel holds for the upstream it delivers after a close, but not what waits here.
    private var isSending: Bool {
        exchange.machine.phase == .asking && !exchange.request.isComplete || exchange.upstream?.hasPending == true
    }
}
