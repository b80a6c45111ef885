internal import HTTP1
internal import Telemetry

/// What an exchange leaves for its spans.
extension DataLoop {
    /// Leaves a record of an exchange whose trace is sampled, and of one that failed. The log thread makes spans of it.
    // Not inlined: the way of a gateway that exports nothing is not to hold its code.
    @inline(never)
    func noteTrace(of caller: CallerConnection, endedAt now: UInt64) {
        let status = caller.exchange.answer.status
        let cut = caller.exchange.record.incomplete
        let isFailed = status >= 500 || cut == .upstream || cut == .gateway
        // Most are neither, and cost no more than this. An exchange that never came to its upstream has begun no trace yet.
        let isOver = caller.exchange.correlation.trace.span != 0 && !caller.exchange.correlation.trace.isSampled
        guard isFailed || !isOver, let traces, let route = caller.exchange.route, route.correlation.traces else {
            return
        }
        caller.settleTrace()
        guard isFailed || caller.exchange.correlation.trace.isSampled else { return }
        traces.append { trace in
            (trace.traceHigh, trace.traceLow) = (
                caller.exchange.correlation.trace.high, caller.exchange.correlation.trace.low
            )
            trace.span = caller.exchange.correlation.trace.span
            trace.parent = caller.exchange.correlation.trace.parent
            trace.startedAt = caller.exchange.record.startedAt
            trace.endedAt = now
            trace.wait = caller.exchange.record.wait
            trace.laterWait = caller.exchange.record.laterWait
            trace.firstSend = caller.exchange.record.firstSend
            trace.sentAt = caller.exchange.record.sentAt
            trace.sends = caller.exchange.correlation.trace.sends
            trace.method =
                caller.exchange.tunnel.map { $0.method.withUnsafeBytes { SpanMethod($0) } }
                ?? SpanMethod(caller.heldMethod)
            trace.route = route.logName
            trace.identity = route.identityLogName
            if let fault = caller.exchange.record.fault { trace.fault = plan.faultNames[fault] ?? 0 }
            trace.status = UInt16(clamping: status)
            trace.isReplayed = caller.exchange.record.replayed
            trace.isSampled = caller.exchange.correlation.trace.isSampled
            trace.isFailed = isFailed
        }
    }
}
