/// Keeps calls away from an issuer that fails whatever it is asked. Each token's own backoff bounds what one key costs; this bounds
/// what all keys of one issuer cost together.
public struct Breaker: Sendable {
    /// Failures in a row, over all keys, that are not yet an outage.
    static let tolerated = 5
    /// The longest time without a try, unless the issuer asks for more.
    static let longest: Nanoseconds = .seconds(30)

    /// Whether a call may go to the issuer.
    public enum Verdict: Equatable, Sendable {
        case pass
        /// Nothing is sent; the span is what is left.
        case refuse(Nanoseconds)
    }

    /// The states in which circuit breakers are commonly described.
    public enum State: String, CaseIterable, Sendable {
        case closed, open
        /// The pause is over: one call finds out.
        case halfOpen = "half_open"
    }

    /// Pauses that were begun.
    public private(set) var pauses: UInt64 = 0
    private var failures = 0
    private var openUntil: Instant?
    /// A call is under way that finds out whether the issuer is back.
    private var isTrying = false
    private var backoff: Backoff

    /// - Parameter seed: of the jitter.
    public init(seed: UInt64) { backoff = Backoff(seed: seed) }

    /// Calls were cut off, and no success has come since; a trial may be due.
    var isOpen: Bool { openUntil != nil }

    /// - Parameter now: of `CLOCK_BOOTTIME`.
    public func state(at now: Instant) -> State {
        guard let openUntil else { return .closed }
        return now < openUntil ? .open : .halfOpen
    }

    /// Before a call. Every `pass` is followed by `answered`, `failed` or `notSent`.
    public mutating func ask(at now: Instant) -> Verdict {
        guard let openUntil else { return .pass }
        if now < openUntil { return .refuse(openUntil - now) }
        guard !isTrying else { return .refuse(.seconds(1)) }
        isTrying = true
        return .pass
    }

    /// The issuer answered, be it with a refusal.
    public mutating func answered() {
        failures = 0
        openUntil = nil
        isTrying = false
        backoff.succeeded()
    }

    /// The call that was let pass did not leave, for a reason of ours.
    public mutating func notSent() { isTrying = false }

    /// The issuer did not answer, or said that it cannot (429, 5xx).
    /// - Returns: how long nothing is sent, if this failure began a pause.
    public mutating func failed(retryAfter: Nanoseconds?, at now: Instant) -> Nanoseconds? {
        failures += 1
        // Late failures of calls that were under way when it opened say nothing new.
        guard isTrying || openUntil == nil && failures >= Self.tolerated else { return nil }
        isTrying = false
        pauses += 1
        let wait = backoff.failed(retryAfter: retryAfter, limit: Self.longest)
        openUntil = now.saturatingAdd(wait)
        return wait
    }
}
