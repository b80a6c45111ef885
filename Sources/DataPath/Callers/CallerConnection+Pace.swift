internal import HTTP1
internal import HTTP2
internal import Reactor

/// Waiting for bodies: for the next byte, and for enough of them.
extension CallerConnection {
    /// The shortest window. In a shorter one a few bytes that come late would look like a drip.
    static let leastWindow: UInt64 = 10_000_000_000

    /// Something moved, or is to move next.
    func expectProgress() {
        // An answer that is held for a look at its body has one deadline, whatever else moves.
        guard let idleTimeout = exchange.route?.idleTimeout, exchange.answer.look == nil else { return }
        if !exchange.pace.isOpen { openPace() }
        exchange.idleUntil = loop.now + idleTimeout
        expect(by: min(exchange.idleUntil, windowEnd(idleTimeout)), kind: Deadline.stall)
    }

    private var windowEnd: UInt64 { windowEnd(exchange.route?.idleTimeout ?? 0) }

    private func windowEnd(_ idleTimeout: UInt64) -> UInt64 {
        exchange.pace.startedAt + max(idleTimeout, Self.leastWindow)
    }

    /// The request has been sent: the answer's head comes next, unless it has come.
    func expectAnswer() {
        if exchange.answer.hasBegun { return expectProgress() }
        guard exchange.answer.look == nil else { return }
        expect(by: loop.now + (exchange.route?.answerTimeout ?? 0), kind: Deadline.answer)
    }

    /// A window is over, or nothing was received for the route's idle timeout.
    func stalled() {
        let caller = side
        let upstream = exchange.upstream?.side ?? .init()
        let isOver = loop.now >= windowEnd
        if isOver, let slow = slow(caller, upstream) {
            data.noteGlitch(.slowTransfer)
            switch slow {
            case .callerSends: return fail(Fault(.slowBody))
            case .callerReads: return close()
            case .upstreamReads, .upstreamSends: return fail(Fault(.upstreamTimeout))
            }
        }
        // Who takes what waits for it is not silent, though nothing can be received meanwhile.
        if exchange.pace.wasRead(caller: caller, upstream: upstream) {
            exchange.idleUntil = loop.now + (exchange.route?.idleTimeout ?? 0)
        } else if loop.now >= exchange.idleUntil {
            return idled()
        }
        if isOver { openPace() }
        expect(by: min(exchange.idleUntil, windowEnd), kind: Deadline.stall)
    }

    private func slow(_ caller: TransferPace.Side, _ upstream: TransferPace.Side) -> TransferPace.Slow? {
        exchange.pace.slow(
            at: loop.now, rate: data.limits.leastRate, caller: caller, upstream: upstream, expecting: expected)
    }

    /// Whoever stalls: the caller that does not send its body, or does not read, or the upstream that does neither.
    private func idled() {
        if !exchange.request.isComplete, !exchange.answer.hasBegun, exchange.upstream?.hasPending != true {
            answer(Fault(.slowBody))
        } else {
            fail(Fault(.upstreamTimeout))
        }
    }

    private func openPace() {
        exchange.pace.open(at: loop.now, caller: side, upstream: exchange.upstream?.side ?? .init())
    }

    private var expected: TransferPace.Expected {
        var expected: TransferPace.Expected = []
        // Once the answer has begun both may be speaking with each other. A stream of HTTP/2 that announces no length may be such a
        // conversation too, and waits for events.
        if !exchange.request.isComplete, !exchange.answer.hasBegun,
            stream == nil || exchange.request.framing != .chunked
        {
            expected.insert(.requestBody)
        }
        if exchange.answer.hasBegun, case .length(_) = exchange.answer.headFraming { expected.insert(.answerBody) }
        return expected
    }

    // MARK: - The rest of an answer

    func expectFlush() {
        isFlushing = true
        leftToFlush = pendingCount
        expect(by: loop.now + DataLoop.flushTimeout, kind: Deadline.close)
    }

    /// Whether enough of what waits was taken since the last look; then there is another one.
    func readsOn() -> Bool {
        let left = pendingCount
        let least = max(1, data.limits.leastRate * Int(DataLoop.flushTimeout / 1_000_000_000))
        guard leftToFlush - left >= least else { return false }
        expectFlush()
        return true
    }
}

extension Channel {
    /// The bytes that have come from this peer so far, that it has taken, and that wait for it.
    fileprivate var side: TransferPace.Side {
        let waiting = pendingCount
        return TransferPace.Side(received: bytesIn, taken: bytesOut &- UInt64(waiting), waiting: waiting)
    }
}
