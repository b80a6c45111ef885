/// A while in which a challenge is not answered with another grant. It begins at a second and doubles, up to a limit, as long as what each
/// new grant brought is refused again; after as long as the limit without that, the next one is a first one.
struct GrowingWindow: Equatable, Sendable {
    private(set) var until: Instant
    private var span: Nanoseconds
    /// The token whose refusal began it.
    private(set) var generation: UInt64
    /// Challenges that ask for more are no refusals and pass, but not for ever: three in the first window of a series, one in each later one.
    var stepUpsLeft: Int

    static let first: Nanoseconds = .seconds(1)

    /// - Parameters:
    ///   - last: the window before. One that is open is kept as it is, and so is one of the same generation: requests that carried the same
    ///     token are one refusal, however late the last of them is told.
    ///   - limit: the longest one.
    init(after last: GrowingWindow?, _ generation: UInt64, limit: Nanoseconds, now: Instant) {
        guard let last, !last.isForgotten(at: now, limit: limit) else {
            span = min(Self.first, limit)
            until = now.saturatingAdd(span)
            self.generation = generation
            stepUpsLeft = 3
            return
        }
        guard last.until <= now, last.generation != generation else {
            self = last
            return
        }
        span = min(last.span.saturatingAdd(last.span), limit)
        until = now.saturatingAdd(span)
        self.generation = generation
        stepUpsLeft = 1
    }

    func isOpen(at now: Instant) -> Bool { now < until }

    func isForgotten(at now: Instant, limit: Nanoseconds) -> Bool { until.saturatingAdd(limit) <= now }
}
