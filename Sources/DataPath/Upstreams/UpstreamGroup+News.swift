internal import Reactor
internal import Telemetry

/// News of a group about its upstream: changes, not each request that meets them.
package enum UpstreamNews: Sendable, Equatable {
    case tlsFailed(reason: String)
    /// No new connection can be made.
    case unreachable(reason: String)
    case reached
}

/// The trouble with an upstream as it was last reported.
package struct UpstreamOutage {
    package var tlsFailure: String?
    /// Why no connection could be made; nil since one was, or where it was not said.
    var reason: String?
    var saidAt: UInt64?

    /// Between two outages that are said, in nanoseconds: one that comes and goes must not fill the log.
    static let pause: UInt64 = 10_000_000_000
}

extension UpstreamGroup {
    /// Once per reason: a misconfigured route would otherwise say it with every request.
    func noteTLSFailure(_ text: String) {
        plan.trouble.note("TLS failed: \(text)", at: loop.now)
        guard text != outage.tlsFailure else { return }
        outage.tlsFailure = text
        report(.tlsFailed(reason: text))
    }

    func noteUnreachable(_ fault: Fault) {
        let reason: String
        switch fault.kind {
        case .upstreamRefused: reason = "no address of it takes a connection"
        case .upstreamConnectTimeout: reason = "no address of it answered in time"
        case .upstreamUnresolvable: reason = "its name leads to no address"
        // Our own shortage, or what is said elsewhere.
        default: return
        }
        plan.trouble.note(reason, at: loop.now)
        guard reason != outage.reason else { return }
        if let last = outage.saidAt, loop.now < last &+ UpstreamOutage.pause { return }
        outage.reason = reason
        outage.saidAt = loop.now
        report(.unreachable(reason: reason))
    }

    func noteReached() {
        plan.trouble.isOver()
        if outage.tlsFailure != nil { outage.tlsFailure = nil }
        guard outage.reason != nil else { return }
        outage.reason = nil
        report(.reached)
    }
}

extension EventLog {
    func note(_ news: UpstreamNews, of origin: String) {
        let upstream = LogField("upstream", .name(origin))
        switch news {
        case .tlsFailed(let reason): warn("upstream TLS failed", [upstream, LogField("reason", .name(reason))])
        case .unreachable(let reason):
            warn("upstream cannot be reached", [upstream, LogField("reason", .name(reason))])
        case .reached: info("upstream is reached again", [upstream])
        }
    }
}
