/// A span, as a tracing system is told of it. Fixed size and trivially copyable, as an access record is: a loop fills it in place in a ring.
///
/// What may be told stands here and nowhere else: there is no place for a query, a header, a path, a subject or an issuer's words, so that
/// no mistake can bring one out.
public struct SpanRecord: Sendable {
    /// The trace id, in two halves.
    public var traceHigh: UInt64 = 0
    /// See `traceHigh`.
    public var traceLow: UInt64 = 0
    /// The span's own id; not zero.
    public var span: UInt64 = 0
    /// The id of the span that it is a part of; zero where the trace begins with it.
    public var parent: UInt64 = 0
    /// What took the time.
    public var work = SpanWork.request
    /// Nanoseconds of the wall clock since 1970.
    public var start: UInt64 = 0
    /// See `start`; not before it.
    public var end: UInt64 = 0
    /// The method of the request.
    public var method = SpanMethod.none
    /// Index in the `NameTable` of routes; 0 for none.
    public var route: UInt16 = 0
    /// Index in the `NameTable` of identities; 0 for none.
    public var identity: UInt16 = 0
    /// Index in the `NameTable` of fault kinds; 0 for none.
    public var fault: UInt16 = 0
    /// The status of the answer; 0 where there was none.
    public var status: UInt16 = 0
    /// The trace is recorded here. A failed request is told of all the same.
    public var isSampled = true
    /// It did not bring what it was for. Of a request: the gateway could not answer as the upstream would have, or the answer says so (5xx).
    public var isFailed = false
    /// Spans that one span points at.
    public static let mostLinks = 8
    private(set) var links = InlineArray<8, SpanLink>(repeating: SpanLink(traceHigh: 0, traceLow: 0, span: 0))
    private(set) var linkCount = 0
    /// Links for which there was no room.
    private(set) var linksLeftOut: UInt32 = 0

    /// A span of nothing yet.
    public init() {}

    /// A part of it, without the links.
    /// - Parameter number: among its parts, from 1.
    public func part(_ work: SpanWork, number: UInt64) -> SpanRecord {
        var part = SpanRecord()
        (part.traceHigh, part.traceLow) = (traceHigh, traceLow)
        (part.span, part.parent) = (max(span &+ number, 1), span)
        part.work = work
        (part.route, part.identity) = (route, identity)
        part.isSampled = isSampled
        return part
    }

    /// A grant points at the requests that waited for it: at the first eight, and says how many more there were.
    public mutating func link(to link: SpanLink) {
        guard linkCount < links.count else {
            linksLeftOut &+= 1
            return
        }
        links[linkCount] = link
        linkCount &+= 1
    }
}

/// A span that another one points at.
public struct SpanLink: Sendable {
    /// The trace id, in two halves.
    public let traceHigh: UInt64
    /// See `traceHigh`.
    public let traceLow: UInt64
    /// The id of the span.
    public let span: UInt64

    /// Memberwise.
    public init(traceHigh: UInt64, traceLow: UInt64, span: UInt64) {
        self.traceHigh = traceHigh
        self.traceLow = traceLow
        self.span = span
    }
}

/// What a span measures.
public enum SpanWork: UInt8, Sendable, CaseIterable {
    /// A caller's request, from its first byte to the answer's last.
    case request
    /// The request waits for a token.
    case tokenWait
    /// A token is obtained.
    case grant
    /// One call to the issuer.
    case grantStep
    /// The request is with the upstream: from its way out to the answer's last byte.
    case upstream
    /// The same a second time, with another credential.
    case replay
}

/// Methods that are named. Another one is a text of a caller's choice and is called `_OTHER`, as OpenTelemetry's conventions for HTTP have it.
public enum SpanMethod: UInt8, Sendable, CaseIterable {
    case none, connect, delete, get, head, options, patch, post, put, trace, other

    /// The method as it is written in a request.
    public init(_ method: UnsafeRawBufferPointer) {
        let likely: SpanMethod =
            switch (method.count, method.first) {
            case (3, UInt8(ascii: "G")): .get
            case (3, UInt8(ascii: "P")): .put
            case (4, UInt8(ascii: "H")): .head
            case (4, UInt8(ascii: "P")): .post
            case (5, UInt8(ascii: "P")): .patch
            case (5, UInt8(ascii: "T")): .trace
            case (6, UInt8(ascii: "D")): .delete
            case (7, UInt8(ascii: "C")): .connect
            case (7, UInt8(ascii: "O")): .options
            default: .other
            }
        self = likely.word.withUTF8Buffer { $0.elementsEqual(method) } ? likely : .other
    }

    var word: StaticString {
        switch self {
        case .none: ""
        case .connect: "CONNECT"
        case .delete: "DELETE"
        case .get: "GET"
        case .head: "HEAD"
        case .options: "OPTIONS"
        case .patch: "PATCH"
        case .post: "POST"
        case .put: "PUT"
        case .trace: "TRACE"
        case .other: "_OTHER"
        }
    }
}
