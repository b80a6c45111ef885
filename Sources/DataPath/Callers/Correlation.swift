internal import HTTP1
internal import Octets

/// The identifiers by which others find a request again. None is made before somebody asks for it, so that a request which nobody records
/// and whose route passes nothing on costs no number.
struct Correlation {
    /// Where the caller's request id stands in the head; empty: it sent none that is taken.
    var ownID = ByteRange.empty
    /// Where the caller's `traceparent` stands in the head, unread; empty: it sent none, or more than one.
    var ownTrace = ByteRange.empty
    /// The id that was made in place of the caller's; both are zero before somebody has asked.
    var madeHigh: UInt64 = 0
    var madeLow: UInt64 = 0
    var trace = RequestTrace()

    /// Octets of a request id that was made: 128 random bits in hexadecimal digits.
    static let madeLength = 32
    /// Octets of the longest request id that is taken from a caller.
    static let longestID = 64
    /// Octets of `tracestate` that are passed on; the recommendation asks for 512 (W3C Trace Context, section 3.3.1.5).
    static let longestTraceState = 2048

    /// Whether a caller's request id is taken: 1 to 64 of the octets `[A-Za-z0-9._-]`. Such a text can be written into a head, a log line
    /// and a JSON text as it is.
    static func isRequestID(_ text: UnsafeRawBufferPointer) -> Bool {
        (1...longestID).contains(text.count) && text.allSatisfy(\.isHostNameCharacter)
    }
}

/// The trace that a request belongs to (W3C Trace Context), and the request's place in it.
struct RequestTrace {
    /// The trace id; both halves are zero before it is known.
    var high: UInt64 = 0
    var low: UInt64 = 0
    /// The caller's span; zero where the trace begins here.
    var parent: UInt64 = 0
    /// The request's own span; zero before there is one. The spans of what is sent for it have the numbers behind it.
    var span: UInt64 = 0
    /// Times that the request was sent to the upstream.
    var sends: UInt64 = 0
    var isSampled = false

    var isKnown: Bool { high | low != 0 }

    /// The span of the request's last way to the upstream.
    var lastSend: UInt64 { max(span &+ sends, 1) }
}
