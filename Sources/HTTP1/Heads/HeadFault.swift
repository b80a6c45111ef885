/// Why a head was refused.
///
/// No case carries received bytes, so every one of them can be shown and logged. After a fault the connection
/// closes: where the next message would start is not known.
public enum HeadFault: String, Error, Sendable, CaseIterable {
    // Lines (RFC 9112 §2.2, §5)
    case emptyLineBeforeHead = "empty line before the head"
    case bareCarriageReturn = "carriage return without line feed"
    case bareLineFeed = "line feed without carriage return"
    case nul = "NUL in the head"
    case blankBeforeFirstField = "blank before the first field"
    case foldedLine = "folded field line"
    case foldedFramingField = "folded line in a framing field"
    case blankBeforeColon = "blank between field name and colon"
    case colonMissing = "field line without a colon"
    case nameInvalid = "invalid field name"

    // Start line (RFC 9112 §3, §4)
    case requestLineMalformed = "malformed request line"
    case methodInvalid = "invalid method"
    case methodTooLong = "method too long"
    case targetInvalid = "invalid request target"
    case targetFormMismatch = "the method does not take this form of target"
    case targetTooLong = "request target too long"
    case statusLineMalformed = "malformed status line"
    case versionMalformed = "malformed HTTP version"
    case versionUnsupported = "unsupported HTTP version"

    // Sizes (RFC 6585 §5)
    case headTooLarge = "head too large"
    case tooManyFields = "too many fields"
    case tooManyConnectionOptions = "too many connection options"

    // Host (RFC 9112 §3.2)
    case hostMissing = "Host is missing"
    case hostRepeated = "more than one Host"
    case hostInvalid = "invalid Host"

    // Framing (RFC 9112 §6)
    case contentLengthInvalid = "invalid Content-Length"
    case contentLengthRepeated = "more than one Content-Length"
    case contentLengthConflict = "Content-Length fields differ"
    case contentLengthWithTransferEncoding = "Content-Length with Transfer-Encoding"
    case transferEncodingInOldVersion = "Transfer-Encoding in an HTTP/1.0 message"
    case transferCodingMalformed = "Transfer-Encoding does not end in one chunked"
    case transferCodingUnknown = "unknown transfer coding"
}

// MARK: -

extension HeadFault {
    /// The status that answers a *request* with this fault. Any fault of a *response* is 502 for the caller.
    public var status: Int {
        switch self {
        case .targetTooLong: 414
        case .headTooLarge, .tooManyFields: 431
        case .methodTooLong, .transferCodingUnknown: 501
        case .versionUnsupported: 505
        default: 400
        }
    }

    /// The head may be a good one, and is longer than what is read of one.
    public var isOfSize: Bool { self == .headTooLarge || self == .tooManyFields }

    /// A line for the caller and the log.
    public var reason: String { rawValue }
}
