/// RFC 9113 §7.
public struct HTTP2ErrorCode: RawRepresentable, Equatable, Sendable {
    /// The code on the wire; codes that RFC 9113 does not know are kept.
    public let rawValue: UInt32

    /// Any code is allowed.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// NO_ERROR: a graceful end.
    public static let none = HTTP2ErrorCode(rawValue: 0x0)
    /// PROTOCOL_ERROR.
    public static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    /// INTERNAL_ERROR: the fault is this side's.
    public static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    /// Nothing of the request was processed: it may be sent again (RFC 9113 §8.7).
    public static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    /// INADEQUATE_SECURITY: TLS below what RFC 9113 §9.2 demands.
    public static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xc)
    /// CANCEL: the stream is no longer wanted.
    public static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    /// The connection behind a CONNECT was lost (RFC 9113 §8.5).
    public static let connectError = HTTP2ErrorCode(rawValue: 0xa)
    /// ENHANCE_YOUR_CALM: the peer makes work without end.
    public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xb)
    /// HTTP_1_1_REQUIRED: the request has to come again over HTTP/1.1.
    public static let http11Required = HTTP2ErrorCode(rawValue: 0xd)
}

/// Bounds of a connection.
public struct HTTP2Limits: Sendable {
    /// Streams that a peer may have open.
    public var streams = 128
    /// Bytes that wait for a reader, by stream and in all: what windows may grow to.
    public var streamWindow = 256 * 1024
    /// Bytes that wait for readers of all streams together: what the connection's window may grow to.
    public var connectionWindow = 1 << 20
    /// The first size of a stream's window, in bytes.
    public var firstStreamWindow = 64 * 1024
    /// The first size of the connection's window, in bytes.
    public var firstConnectionWindow = 256 * 1024
    /// Bytes of a head.
    public var headerSize = 64 * 1024

    /// The bounds of a connection between a caller and the gateway.
    public init() {}
}
