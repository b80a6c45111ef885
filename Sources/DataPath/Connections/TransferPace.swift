/// Judges whether the bodies of an exchange move fast enough. Pure: the clock and what each side did so far are parameters.
///
/// A limit on silence alone lets a peer hold a connection, its buffers and an upstream's connection for ever with one byte a minute. So
/// once a window, which is at least as long as the silence that is allowed, somebody who was being waited for has to have moved the
/// least number of bytes. Whoever paused for most of it and then went on at an ordinary speed passes.
struct TransferPace {
    /// The state of one side of an exchange.
    struct Side {
        /// Bytes that came from it.
        var received: UInt64 = 0
        /// Bytes that it took of what was sent to it.
        var taken: UInt64 = 0
        /// Bytes that wait for it.
        var waiting = 0
    }

    /// Whom an exchange may be waiting for.
    struct Expected: OptionSet {
        let rawValue: UInt8
        /// The rest of the request's body.
        static let requestBody = Expected(rawValue: 1)
        /// The rest of an answer whose length was announced. One of unknown length may be a stream of events, as slow as they are.
        static let answerBody = Expected(rawValue: 2)
    }

    enum Slow: Equatable { case callerSends, callerReads, upstreamSends, upstreamReads }

    /// Nanoseconds; zero: no window is open.
    private(set) var startedAt: UInt64 = 0
    private var caller = Side()
    private var upstream = Side()

    var isOpen: Bool { startedAt != 0 }

    mutating func open(at now: UInt64, caller: Side, upstream: Side) {
        startedAt = max(now, 1)
        self.caller = caller
        self.upstream = upstream
    }

    /// Who moved less than `rate` bytes a second since the window was opened; nil: nobody who was waited for all the time.
    func slow(at now: UInt64, rate: Int, caller: Side, upstream: Side, expecting: Expected) -> Slow? {
        // The rate is the operator's, and the window may have been open for days.
        let (product, overflow) = UInt64(rate).multipliedReportingOverflow(by: (now - startedAt) / 1_000_000)
        let least = overflow ? .max : product / 1000
        guard least > 0 else { return nil }
        // First those who do not read: nobody can send past them.
        if isStuck(self.caller, caller, least) { return .callerReads }
        if isStuck(self.upstream, upstream, least) { return .upstreamReads }
        if expecting.contains(.requestBody), !isWaited(self.upstream, upstream),
            caller.received &- self.caller.received < least
        {
            return .callerSends
        }
        if expecting.contains(.answerBody), !isWaited(self.caller, caller),
            upstream.received &- self.upstream.received < least
        {
            return .upstreamSends
        }
        return nil
    }

    /// Whether a side for which bytes waited took some since the window was opened.
    func wasRead(caller: Side, upstream: Side) -> Bool {
        isWaited(self.caller, caller) && caller.taken != self.caller.taken
            || isWaited(self.upstream, upstream) && upstream.taken != self.upstream.taken
    }

    /// Bytes leave in order: who has not taken as many as waited at the start had some waiting all along.
    private func isStuck(_ before: Side, _ now: Side, _ least: UInt64) -> Bool {
        let taken = now.taken &- before.taken
        return taken < UInt64(before.waiting) && taken < least
    }

    private func isWaited(_ before: Side, _ now: Side) -> Bool { before.waiting > 0 || now.waiting > 0 }
}
