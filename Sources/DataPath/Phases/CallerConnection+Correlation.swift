internal import HTTP1
internal import Telemetry

/// The identifiers of a request: its id, and the trace that it belongs to.
extension CallerConnection {
    /// Notes where the caller's own identifiers stand.
    /// - Precondition: `data.requestHead` is this request's.
    // Few callers send any, and the way of the others is not to hold its code.
    @inline(never)
    func noteOwnIdentifiers() {
        if let id = onlyValue(of: .xRequestId), Correlation.isRequestID(input[id]) { exchange.correlation.ownID = id }
        if let trace = onlyValue(of: .traceparent) { exchange.correlation.ownTrace = trace }
    }

    /// The value of a field that the request has once. Of two there is none to be believed.
    private func onlyValue(of known: KnownField) -> ByteRange? {
        var found: ByteRange?
        for index in 0..<data.requestHead.fieldCount where data.requestHead[index].known == known {
            guard found == nil else { return nil }
            found = data.requestHead[index].value
        }
        return found
    }

    // MARK: - The request's id

    /// The caller's own id, or one that is made now and stays the request's.
    func withRequestID<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if let tunnel = exchange.tunnel, !tunnel.requestID.isEmpty { return tunnel.requestID.withUnsafeBytes(body) }
        if !exchange.correlation.ownID.isEmpty, block != nil { return body(input[exchange.correlation.ownID]) }
        if exchange.correlation.madeHigh | exchange.correlation.madeLow == 0 {
            exchange.correlation.madeHigh = data.numbers.next()
            exchange.correlation.madeLow = data.numbers.next()
        }
        return withUnsafeTemporaryAllocation(byteCount: Correlation.madeLength, alignment: 8) { memory in
            var cursor = OutputCursor(memory)
            cursor.append(allHexadecimal: exchange.correlation.madeHigh)
            cursor.append(allHexadecimal: exchange.correlation.madeLow)
            return body(UnsafeRawBufferPointer(memory))
        }
    }

    /// For answers of our own and for the log, neither of which is a cache hit.
    var requestIDText: String { withRequestID { String(decoding: $0, as: UTF8.self) } }

    /// The fields by which a line of the log is found from a request, and a request from the line.
    var correlationFields: [LogField] {
        settleTrace()
        let fields = [LogField("request_id", .name(requestIDText))]
        let trace = exchange.correlation.trace
        return trace.isKnown ? fields + [LogField("trace", .trace(high: trace.high, low: trace.low))] : fields
    }

    // MARK: - The request's trace

    /// Reads the caller's trace, or begins one where the route traces its requests. A second call changes nothing.
    func settleTrace() {
        let traces = exchange.route?.correlation.traces == true
        guard traces ? exchange.correlation.trace.span == 0 : !exchange.correlation.trace.isKnown else { return }
        guard traces else {
            // For the record alone.
            if !exchange.correlation.ownTrace.isEmpty, let own = ownTrace {
                (exchange.correlation.trace.high, exchange.correlation.trace.low) = (own.traceHigh, own.traceLow)
            }
            return
        }
        if let route = exchange.route { beginTrace(on: route) }
    }

    /// Continues the caller's trace, or begins one. A second call changes nothing.
    /// - Parameter route: the exchange's, which traces its requests.
    private func beginTrace(on route: RoutePlan) {
        guard exchange.correlation.trace.span == 0 else { return }
        let own = exchange.correlation.ownTrace.isEmpty ? nil : ownTrace
        // Put together here and stored once: each look into the exchange is a check.
        var trace = exchange.correlation.trace
        if let own {
            (trace.high, trace.low, trace.parent) = (own.traceHigh, own.traceLow, own.span)
            trace.span = max(data.numbers.next(), 1)
        } else {
            trace.high = data.numbers.next()
            trace.low = max(data.numbers.next(), 1)
            // As random as both, and in a trace that begins here no other span has its number.
            trace.span = max(trace.high ^ trace.low, 1)
        }
        if let own, isTrusted {
            trace.isSampled = own.isSampled
        } else {
            // By a number of our own: a caller chooses its trace id, and is not to choose with it what is recorded.
            let sampled = route.correlation.sampled
            trace.isSampled = trace.span &* 0x9E37_79B9_7F4A_7C15 < sampled || sampled == .max
        }
        exchange.correlation.trace = trace
    }

    private var ownTrace: TraceParent? {
        guard exchange.tunnel == nil, block != nil else { return nil }
        return TraceParent(input[exchange.correlation.ownTrace].octets)
    }

    // MARK: - In heads

    /// The lines that the route adds to the request, in `buffers.notes`.
    func correlationLines(of route: RoutePlan) -> UnsafeRawBufferPointer {
        var cursor = OutputCursor(buffers.notes)
        appendCorrelation(of: route, to: &cursor)
        return cursor.written(in: buffers.notes)
    }

    /// The same lines behind what `cursor` has.
    func appendCorrelation(of route: RoutePlan, to cursor: inout OutputCursor) {
        if route.correlation.written.contains(.requestID) { appendRequestID(to: &cursor) }
        if route.correlation.written.contains(.trace) { appendTrace(of: route, to: &cursor) }
    }

    private func appendTrace(of route: RoutePlan, to cursor: inout OutputCursor) {
        beginTrace(on: route)
        TraceParent.writeLine(
            traceHigh: exchange.correlation.trace.high, traceLow: exchange.correlation.trace.low,
            span: exchange.correlation.trace.lastSend, isSampled: exchange.correlation.trace.isSampled, into: &cursor)
        if exchange.correlation.trace.parent != 0, data.requestHead.contains(.tracestate),
            route.correlation.written.contains(.traceState)
        {
            appendTraceState(to: &cursor)
        }
    }

    /// What other tracing systems say of the trace goes on with it, in one field, or not at all (W3C Trace Context, section 3.3.1).
    private func appendTraceState(to cursor: inout OutputCursor) {
        var members = 0
        var octets = 0
        for index in 0..<data.requestHead.fieldCount where data.requestHead[index].known == .tracestate {
            let value = data.requestHead[index].value
            guard let count = traceStateMembers(input[value].octets) else { return }
            members += count
            octets += Int(value.count) + 1
        }
        guard (1...mostTraceStateMembers).contains(members), octets <= Correlation.longestTraceState else { return }
        cursor.append("tracestate: ")
        var isFirst = true
        for index in 0..<data.requestHead.fieldCount where data.requestHead[index].known == .tracestate {
            if !isFirst { cursor.append(",") }
            isFirst = false
            cursor.append(input[data.requestHead[index].value].octets)
        }
        cursor.append("\r\n")
    }

    func appendRequestID(to cursor: inout OutputCursor) {
        cursor.append("X-Request-Id: ")
        withRequestID { cursor.append($0.octets) }
        cursor.append("\r\n")
    }
}
