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
    private var slots: [Slot: [SpanLink]] = [:]
    private var tickets: [Ticket: SpanLink] = [:]

    /// Places at which requests wait whose spans are known.
    static let most = 1024

    init(_ processor: SpanProcessor, random: any RandomSource) {
        self.processor = processor
        self.random = random
    }

    // MARK: - Who waits

    func note(_ wait: TracedWait) {
        switch wait.place {
        case .slot(let slot):
            guard slots.count < Self.most || slots[slot] != nil else { return }
            // Each loop tells of so many.
            guard slots[slot, default: []].count < Self.most else { return }
            slots[slot, default: []].append(wait.span)
        case .ticket(let ticket):
            guard tickets.count < Self.most else { return }
            tickets[ticket] = wait.span
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
        let waiting = slots[token.slot, default: []] + token.tickets.compactMap { tickets[$0] }
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
