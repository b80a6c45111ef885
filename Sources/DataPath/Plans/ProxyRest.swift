internal import Synchronization

/// The rest of a password that a proxy has refused: whoever counts refusals locks an account after a handful, and health checks alone would get there
/// in a minute. It grows with each refusal, and ends with another password, a reload, or a long time without one.
final class ProxyRest: Sendable {
    private struct State {
        var refusals = 0
        var last: UInt64 = 0
    }

    private let state = Mutex(State())
    /// Nanoseconds of the loops' clock. Relaxed: a loop that sees it late makes one more attempt, as those do that have begun.
    private let until = Atomic<UInt64>(0)

    /// Nanoseconds of the first rest, and of the longest.
    static let first: UInt64 = 120_000_000_000
    static let longest: UInt64 = 3_600_000_000_000

    /// Nanoseconds that are left; nil: it may be tried.
    func left(at now: UInt64) -> UInt64? {
        let until = until.load(ordering: .relaxed)
        return until > now ? until - now : nil
    }

    func noteRefusal(at now: UInt64) {
        state.withLock { state in
            // Several attempts at once count as one: the rest began with the first.
            guard left(at: now) == nil else { return }
            if now - min(state.last, now) > 2 * Self.longest { state.refusals = 0 }
            let rest = min(Self.first << UInt64(min(state.refusals, 16)), Self.longest)
            state.refusals += 1
            state.last = now
            until.store(now.addingReportingOverflow(rest).partialValue, ordering: .relaxed)
        }
    }

    func end() {
        state.withLock { state in
            state = State()
            until.store(0, ordering: .relaxed)
        }
    }
}
