/// RFC 9113 §7.
public struct HTTP2ErrorCode: RawRepresentable, Equatable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    public static let none = HTTP2ErrorCode(rawValue: 0x0)
    public static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    public static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    /// Nothing of the request was processed: it may be sent again (RFC 9113 §8.7).
    public static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    public static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xc)
    public static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    /// The connection behind a CONNECT was lost (RFC 9113 §8.5).
    public static let connectError = HTTP2ErrorCode(rawValue: 0xa)
    public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xb)
    public static let http11Required = HTTP2ErrorCode(rawValue: 0xd)
}

/// Bounds of a session.
public struct HTTP2Limits: Sendable {
    /// Streams that a peer may have open.
    public var streams = 128
    /// Bytes that wait for a reader, by stream and in all: what windows may grow to.
    public var streamWindow = 256 * 1024
    public var connectionWindow = 1 << 20
    /// What they begin with.
    public var firstStreamWindow = 64 * 1024
    public var firstConnectionWindow = 256 * 1024
    /// Bytes of a head.
    public var headerSize = 64 * 1024

    public init() {}
}
