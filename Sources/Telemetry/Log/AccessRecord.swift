internal import Glibc

/// An exchange, as the access log tells it. Fixed size and trivially copyable: a loop fills it in place in its ring.
///
/// There is no place in it for a header, a query or a token.
public struct AccessRecord: RingRecord {
    /// Nanoseconds of the wall clock since 1970, at the end of the exchange.
    public var time: UInt64 = 0
    /// Index in the `NameTable` of routes.
    public var route: UInt16 = 0
    /// The final status; 0 when the caller left before there was one.
    public var status: UInt16 = 0
    /// The answer ended in its middle, after `bytesOut` bytes of it, and whose doing that was.
    public var incomplete = LogSide.none
    /// Bytes of the request as received, and of the response as sent, heads included.
    public var bytesIn: UInt64 = 0
    /// Bytes of the response as sent to the caller, head included.
    public var bytesOut: UInt64 = 0
    /// The peer of the caller's connection, or whom a PROXY header names.
    public var caller = LogAddress()
    /// The address of the upstream that answered, or was tried last; none where no connection was tried.
    public var upstream = LogAddress()
    /// The protocol of the caller's connection.
    public var callerProtocol = LogProtocol.none
    /// The protocol of the upstream's connection.
    public var upstreamProtocol = LogProtocol.none
    /// Nanoseconds. Zero where the step did not take place.
    public var tokenWait: UInt64 = 0
    /// Nanoseconds from the token to the sending of the request.
    public var connect: UInt64 = 0
    /// Nanoseconds from the sending of the request to the first byte of the upstream's answer.
    public var firstByte: UInt64 = 0
    /// Nanoseconds of the whole exchange.
    public var total: UInt64 = 0
    /// How the token was come by.
    public var cache = CacheState.none
    /// The request was sent a second time, with another credential.
    public var replayed = false
    /// Index in the `NameTable` of fault kinds; 0 for none.
    public var fault: UInt16 = 0
    /// Index in the `NameTable` of identities; 0 for none.
    public var identity: UInt16 = 0
    /// The first eight bytes of the trace id; zero for none.
    private(set) var traceHigh: UInt64 = 0
    /// The last eight bytes of the trace id.
    private(set) var traceLow: UInt64 = 0

    /// The record becomes a line of the log; else it only tells that a request failed.
    var isLine = true
    private(set) var requestIDLength: UInt8 = 0
    private(set) var methodLength: UInt8 = 0
    private(set) var pathLength: UInt8 = 0
    private(set) var pathWasCut = false
    private(set) var requestIDBytes = InlineArray<64, UInt8>(repeating: 0)
    private(set) var methodBytes = InlineArray<16, UInt8>(repeating: 0)
    private(set) var pathBytes = InlineArray<200, UInt8>(repeating: 0)

    /// Where the token came from.
    public enum CacheState: UInt8, Sendable, CaseIterable {
        case none, hit, wait, store, grant

        /// Its one name: in the access log, in `/status` and as the metric's label.
        public var word: StaticString {
            switch self {
            case .none: "none"
            case .hit: "hit"
            case .wait: "wait"
            case .store: "store"
            case .grant: "grant"
            }
        }
    }

    /// Bytes of the longest request id.
    static let requestIDCapacity = 64
    /// Bytes of the longest method that is kept whole.
    static let methodCapacity = 16
    /// Bytes of the longest path that is kept whole.
    static let pathCapacity = 200

    // MARK: - Filling

    /// Makes it a new exchange's. The octets of the last one's method, path and id stay, behind lengths of none: they are written over, and
    /// clearing them would be most of what a record costs its loop.
    mutating func clear() {
        time = 0
        route = 0
        status = 0
        incomplete = .none
        bytesIn = 0
        bytesOut = 0
        caller = LogAddress()
        upstream = LogAddress()
        callerProtocol = .none
        upstreamProtocol = .none
        tokenWait = 0
        connect = 0
        firstByte = 0
        total = 0
        cache = .none
        replayed = false
        fault = 0
        identity = 0
        requestIDLength = 0
        traceHigh = 0
        traceLow = 0
        methodLength = 0
        pathLength = 0
        pathWasCut = false
    }

    /// Keeps at most 64 bytes, the longest id that is taken from a caller.
    public mutating func setRequestID(_ bytes: UnsafeRawBufferPointer) {
        let kept = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.requestIDCapacity))
        withUnsafeMutableBytes(of: &requestIDBytes) { $0.copyMemory(from: kept) }
        requestIDLength = UInt8(kept.count)
    }

    /// Keeps at most 16 bytes.
    public mutating func setMethod(_ bytes: UnsafeRawBufferPointer) {
        let kept = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.methodCapacity))
        withUnsafeMutableBytes(of: &methodBytes) { $0.copyMemory(from: kept) }
        methodLength = UInt8(kept.count)
    }

    /// Keeps the path of a request target, at most 200 bytes of it, without query and fragment: both may hold secrets.
    public mutating func setPath(_ bytes: UnsafeRawBufferPointer) {
        // The search goes one octet further than is kept, to see whether the path was cut.
        var count = min(bytes.count, Self.pathCapacity + 1)
        if let start = bytes.baseAddress {
            // The library's search takes 32 octets a step; a loop here was a quarter of what the record costs.
            if let query = memchr(start, 0x3f, count) { count = UnsafeRawPointer(query) - start }
            if let fragment = memchr(start, 0x23, count) { count = UnsafeRawPointer(fragment) - start }
        }
        pathWasCut = count > Self.pathCapacity
        let kept = UnsafeRawBufferPointer(rebasing: bytes[..<min(count, Self.pathCapacity)])
        withUnsafeMutableBytes(of: &pathBytes) { $0.copyMemory(from: kept) }
        pathLength = UInt8(kept.count)
    }

    /// The 16 bytes of a W3C trace id, in network order; all zero means none.
    public mutating func setTrace(high: UInt64, low: UInt64) {
        traceHigh = high
        traceLow = low
    }

    // MARK: - Reading

    var requestID: [UInt8] { (0..<Int(requestIDLength)).map { requestIDBytes[$0] } }
    var method: [UInt8] { (0..<Int(methodLength)).map { methodBytes[$0] } }
    var path: [UInt8] { (0..<Int(pathLength)).map { pathBytes[$0] } }
}

/// Protocol versions of one side of an exchange.
public enum LogProtocol: String, Sendable {
    case none
    case http10 = "HTTP/1.0"
    case http11 = "HTTP/1.1"
    case http2 = "HTTP/2"
    case tunnel
}

/// The side that caused something.
public enum LogSide: UInt8, Sendable, CaseIterable {
    case none, caller, upstream, gateway

    /// The word in the log.
    public var word: StaticString {
        switch self {
        case .none: "none"
        case .caller: "caller"
        case .upstream: "upstream"
        case .gateway: "gateway"
        }
    }
}

/// Which exchanges get a line in the access log (`log.access`).
public enum AccessPolicy: UInt8, Sendable {
    case off, errors, all

    /// Records become lines.
    public var writes: Bool { self != .off }

    /// Whether an exchange's record goes to the log thread. Records of failed exchanges always do, since that thread remembers them.
    /// - Parameters:
    ///   - status: of the final answer; 0 for none.
    ///   - faulted: whether the exchange ended in a fault of any side, in the middle of its answer too.
    @inlinable
    public func takes(status: Int, faulted: Bool) -> Bool { faulted || status >= 400 || status == 0 || self == .all }
}
