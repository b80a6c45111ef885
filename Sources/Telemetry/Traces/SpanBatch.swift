/// Spans on their way to a tracing system, encoded as they come: the body of one OTLP request (`ExportTraceServiceRequest` of
/// opentelemetry-proto, trace v1).
///
/// Pure: nothing is sent here. Bounded: a batch that is full takes no more until it is finished.
public struct SpanBatch {
    /// Spans in the batch.
    public private(set) var count = 0
    private var spans = ProtobufWriter()
    private let resource: SpanResource
    private let routes: NameTable
    private let identities: NameTable
    private let faults: NameTable

    /// Spans of one request; what most collectors take at once is far more.
    static let mostSpans = 512
    /// Octets of one request, about.
    static let mostOctets = 512 * 1024

    /// - Parameters:
    ///   - resource: whose spans they are.
    ///   - routes: names that spans refer to; the same for `identities` and `faults`.
    public init(resource: SpanResource, routes: NameTable, identities: NameTable, faults: NameTable) {
        self.resource = resource
        self.routes = routes
        self.identities = identities
        self.faults = faults
    }

    /// Whether no further span is taken.
    public var isFull: Bool { count >= Self.mostSpans || spans.bytes.count >= Self.mostOctets }

    /// - Returns: false where the batch is full; the span was not taken.
    public mutating func add(_ span: borrowing SpanRecord) -> Bool {
        guard !isFull else { return false }
        write(span)
        count += 1
        return true
    }

    /// The request's body; the batch is empty then.
    public mutating func finish() -> [UInt8] {
        let spans = self.spans.bytes
        self.spans.clear()
        count = 0
        var request = ProtobufWriter()
        // ExportTraceServiceRequest.resource_spans
        request.write(1) { resourceSpans in
            resourceSpans.write(1) { resource.write(into: &$0) }
            // ResourceSpans.scope_spans
            resourceSpans.write(2) { scopeSpans in
                scopeSpans.write(1) { $0.write(1, text: "cardea") }
                scopeSpans.append(fields: spans)
            }
        }
        return request.bytes
    }
}

/// The program that spans are told of.
public struct SpanResource: Sendable {
    /// `service.name`.
    public var name: String
    /// `service.version`.
    public var version: String
    /// `service.instance.id`; empty: not told.
    public var instance: String

    /// Memberwise.
    public init(name: String, version: String, instance: String = "") {
        self.name = name
        self.version = version
        self.instance = instance
    }

    fileprivate func write(into message: inout ProtobufWriter) {
        message.writeAttribute("service.name", name, field: 1)
        message.writeAttribute("service.version", version, field: 1)
        if !instance.isEmpty { message.writeAttribute("service.instance.id", instance, field: 1) }
    }
}

// MARK: - A span

extension SpanBatch {
    /// `Span`, the fields in the order of their numbers.
    private mutating func write(_ span: borrowing SpanRecord) {
        let span = copy span
        let route = span.route == 0 ? "" : routes.name(of: span.route)
        let identity = span.identity == 0 ? "" : identities.name(of: span.identity)
        let fault = span.fault == 0 ? "" : faults.name(of: span.fault)
        // ScopeSpans.spans
        spans.write(2) { message in
            message.write(1, octetsOf: span.traceHigh, span.traceLow)
            message.write(2, octetsOf: span.span)
            if span.parent != 0 { message.write(4, octetsOf: span.parent) }
            message.write(5, text: span.name(route: route, identity: identity))
            message.write(6, number: span.work.kind)
            message.write(7, fixed: span.start)
            message.write(8, fixed: max(span.end, span.start))
            if span.method != .none { message.writeAttribute("http.request.method", span.method.word, field: 9) }
            if span.status != 0 { message.writeAttribute("http.response.status_code", number: span.status, field: 9) }
            // A failure has a kind: the problem that the caller was told of, or the status.
            if !fault.isEmpty {
                message.writeAttribute("error.type", fault, field: 9)
            } else if span.isFailed, span.status != 0 {
                message.writeAttribute("error.type", "\(span.status)", field: 9)
            }
            if !route.isEmpty { message.writeAttribute("cardea.route", route, field: 9) }
            if !identity.isEmpty { message.writeAttribute("cardea.identity", identity, field: 9) }
            for index in 0..<span.linkCount {
                let link = span.links[index]
                message.write(13) {
                    $0.write(1, octetsOf: link.traceHigh, link.traceLow)
                    $0.write(2, octetsOf: link.span)
                }
            }
            if span.linksLeftOut > 0 { message.write(14, number: UInt64(span.linksLeftOut)) }
            // Status.code: STATUS_CODE_ERROR
            if span.isFailed { message.write(15) { $0.write(3, number: 2) } }
            // The sampled flag (W3C Trace Context, section 3.2.2.5.1). A request that failed is told of without it.
            if span.isSampled { message.write(16, fixed: UInt32(1)) }
        }
    }
}

extension SpanRecord {
    /// Few names, whatever callers send.
    fileprivate func name(route: String, identity: String) -> [UInt8] {
        let word: String
        switch work {
        case .request, .upstream, .replay:
            let method = method == .other ? "HTTP" : "\(method.word)"
            word = [method, work == .replay ? "replay" : "", route].filter { !$0.isEmpty }.joined(separator: " ")
        case .tokenWait: word = "token wait"
        case .grant: word = identity.isEmpty ? "grant" : "grant \(identity)"
        case .grantStep: word = "issuer call"
        }
        return Array(word.utf8)
    }
}

extension SpanWork {
    /// `SpanKind`: 1 internal, 2 server, 3 client.
    fileprivate var kind: UInt64 {
        switch self {
        case .request: 2
        case .tokenWait, .grant: 1
        case .grantStep, .upstream, .replay: 3
        }
    }
}

// MARK: - Attributes

extension ProtobufWriter {
    /// `KeyValue` with a `string_value`.
    fileprivate mutating func writeAttribute(_ key: StaticString, _ value: String, field: UInt64) {
        write(field) { message in
            message.write(1, text: key)
            message.write(2) { $0.write(1, text: Array(value.utf8)) }
        }
    }

    fileprivate mutating func writeAttribute(_ key: StaticString, _ value: StaticString, field: UInt64) {
        write(field) { message in
            message.write(1, text: key)
            message.write(2) { $0.write(1, text: value) }
        }
    }

    /// `KeyValue` with an `int_value`.
    fileprivate mutating func writeAttribute(_ key: StaticString, number: UInt16, field: UInt64) {
        write(field) { message in
            message.write(1, text: key)
            message.write(2) { $0.write(3, number: UInt64(number)) }
        }
    }
}
