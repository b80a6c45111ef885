internal import DataPath
internal import Handshakes
internal import HotCache
internal import Telemetry
internal import Tokens
internal import World

/// The spans of grants that traced requests wait for. A grant is a part of the first one's trace, and its span points at all that waited.
///
/// Bounded: where too many wait, some are not pointed at.
/// Touched on the keeper's loop only.
final class GrantTraces: @unchecked Sendable {
    private let processor: SpanProcessor
    private let random: any RandomSource
    private var slots: [Slot: [Waiter]] = [:]
    private var tickets: [Ticket: Waiter] = [:]

    /// Places at which requests wait whose spans are known.
    static let most = 1024
    /// Requests at one of them.
    static let mostTogether = 64

    private struct Waiter {
        let span: SpanLink
        /// When it was told of, nanoseconds since the machine's start.
        let at: UInt64
    }

    init(_ processor: SpanProcessor, random: any RandomSource) {
        self.processor = processor
        self.random = random
    }

    // MARK: - Who waits

    func note(_ wait: TracedWait, at now: UInt64) {
        let waiter = Waiter(span: wait.span, at: now)
        // A word that crosses the answer to it stays behind. When there is no room for others, links are missing once, and not for good.
        switch wait.place {
        case .slot(let slot):
            if slots.count >= Self.most, slots[slot] == nil { slots.removeAll() }
            guard slots[slot, default: []].count < Self.mostTogether else { return }
            slots[slot, default: []].append(waiter)
        case .ticket(let ticket):
            if tickets.count >= Self.most { tickets.removeAll() }
            tickets[ticket] = waiter
        }
    }

    /// Its requests have their answer.
    func forget(_ slot: Slot) { slots[slot] = nil }
    func forget(_ ticket: Ticket) { tickets[ticket] = nil }

    // MARK: - Grants

    /// Tells of a grant that is over, before those who wait for it are answered.
    /// - Parameters:
    ///   - failure: nil: it brought a token.
    ///   - began: nanoseconds since the machine's start, as `now` is.
    func tell(
        of token: KeptToken, trail: IssuerTrail, failure: Handshakes.GrantFailure?, since began: UInt64,
        until now: UInt64
    ) {
        // No request waits longer than that, and a second for the word of it.
        let longest = token.identity.plan.acquireTimeout &+ 1_000_000_000
        let waiting = (slots[token.slot, default: []] + token.tickets.compactMap { tickets[$0] })
            .filter { now &- min($0.at, now) <= longest }.map(\.span)
        guard let first = waiting.first else { return }
        var grant = SpanRecord()
        (grant.traceHigh, grant.traceLow, grant.parent) = (first.traceHigh, first.traceLow, first.span)
        grant.span = max(random.number(), 1)
        grant.work = .grant
        (grant.start, grant.end) = (began, now)
        grant.identity = processor.number(ofIdentity: token.identity.plan.name)
        if let failure {
            grant.isFailed = true
            grant.fault = processor.number(ofFault: failure.word.rawValue)
        }
        for link in waiting { grant.link(to: link) }
        processor.tell(grant)
        for (number, call) in trail.calls.enumerated() {
            var step = grant.part(.grantStep, number: UInt64(number) &+ 1)
            (step.start, step.end) = (call.start, call.end)
            step.method = call.method
            step.status = call.status
            step.isFailed = call.isFailed
            processor.tell(step)
        }
    }
}
