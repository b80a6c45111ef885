/// What the spans of one exchange are made of, as its loop leaves it: times and numbers. The log thread makes the spans, so that a loop
/// writes one record for all of them and reads no further clock.
///
/// Like `SpanRecord`, it has no place for a query, a header, a path, a subject or an issuer's words.
public struct ExchangeTrace: RingRecord {
    /// The trace id, in two halves.
    public var traceHigh: UInt64 = 0
    /// See `traceHigh`.
    public var traceLow: UInt64 = 0
    /// The id of the request's own span. The times that it was sent have the numbers behind it.
    public var span: UInt64 = 0
    /// The caller's span; zero where the trace begins with this one.
    public var parent: UInt64 = 0
    /// Nanoseconds since the machine's start, as all times here; zero where the step did not take place.
    public var startedAt: UInt64 = 0
    /// See `startedAt`; the end of the exchange.
    public var endedAt: UInt64 = 0
    /// The request's first wait for a token.
    public var wait = TraceStep()
    /// Its last wait, where it waited again.
    public var laterWait = TraceStep()
    /// The first time that it was sent, where it was sent again: until the answer to it, or the loss of the connection.
    public var firstSend = TraceStep()
    /// When it was sent for the last time.
    public var sentAt: UInt64 = 0
    /// Times that it was sent.
    public var sends: UInt64 = 0
    /// The method of the request.
    public var method = SpanMethod.none
    /// Index in the `NameTable` of routes; 0 for none.
    public var route: UInt16 = 0
    /// Index in the `NameTable` of identities; 0 for none.
    public var identity: UInt16 = 0
    /// Index in the `NameTable` of fault kinds; 0 for none.
    public var fault: UInt16 = 0
    /// The status that the caller got; 0 where there was none.
    public var status: UInt16 = 0
    /// It was sent again with another credential.
    public var isReplayed = false
    /// The trace is recorded. Without it, the request alone is told of.
    public var isSampled = false
    /// The answer is a failure (5xx), or was cut short by somebody else than the caller.
    public var isFailed = false

    /// Of nothing yet.
    init() {}

    mutating func clear() { self = ExchangeTrace() }
}

/// A time that something took. Nanoseconds since the machine's start; both are zero where it did not take place.
public struct TraceStep: Sendable {
    /// When it began.
    public var start: UInt64
    /// When it was over.
    public var end: UInt64

    /// Memberwise; nothing that took place.
    public init(start: UInt64 = 0, end: UInt64 = 0) {
        self.start = start
        self.end = end
    }
}

// MARK: - Spans

extension ExchangeTrace {
    /// Hands each span to `body`, the request's first.
    /// - Parameter origin: the machine's start by the wall clock, in nanoseconds since 1970.
    func forEachSpan(since origin: UInt64, _ body: (SpanRecord) -> Void) {
        var request = SpanRecord()
        (request.traceHigh, request.traceLow) = (traceHigh, traceLow)
        (request.span, request.parent) = (span, parent)
        (request.start, request.end) = (origin &+ startedAt, origin &+ endedAt)
        (request.method, request.status, request.fault) = (method, status, fault)
        (request.route, request.identity) = (route, identity)
        (request.isSampled, request.isFailed) = (isSampled, isFailed)
        body(request)
        // Its parts belong to a trace that others record as well, or to none that anybody looks at.
        guard isSampled else { return }
        func part(_ work: SpanWork, _ number: UInt64, _ step: TraceStep) -> SpanRecord {
            var part = request.part(work, number: number)
            (part.start, part.end) = (origin &+ step.start, origin &+ max(step.end, step.start))
            return part
        }
        for (number, step) in [wait, laterWait].enumerated() where step.start != 0 {
            body(part(.tokenWait, Self.firstWait &+ UInt64(number), step))
        }
        if firstSend.start != 0 {
            var send = part(.upstream, 1, firstSend)
            send.method = method
            body(send)
        }
        guard sentAt != 0 else { return }
        var send = part(isReplayed ? .replay : .upstream, sends, TraceStep(start: sentAt, end: endedAt))
        send.method = method
        // A problem of the gateway's own says nothing of what the upstream has answered.
        if fault == 0 { send.status = status }
        send.isFailed = isFailed
        body(send)
    }

    /// Numbers of waits stand apart from those of sends, of which there are few.
    private static let firstWait: UInt64 = 1 << 32
}
