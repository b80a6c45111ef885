internal import HTTP2
internal import Telemetry

// A fault in the middle of an answer as a caller of HTTP/2 sees it, who gets a reset in place of an answer, and as it is recorded.

extension Fault {
    /// Chosen by what a gRPC caller makes of it (gRPC over HTTP2, "Errors"): INTERNAL, unless we gave up for want of room
    /// (RESOURCE_EXHAUSTED) or because of the caller itself (CANCELLED). Never REFUSED_STREAM, which would say that nothing was processed.
    var resetCode: HTTP2ErrorCode {
        switch (kind, side) {
        case (.outOfMemory, _), (.bigBody, _): .enhanceYourCalm
        case (_, .caller): .cancel
        default: .internalError
        }
    }

    var logSide: LogSide {
        switch side {
        case .caller: .caller
        case .upstream: .upstream
        case .issuer, .gateway: .gateway
        }
    }
}

extension HTTP2ErrorCode {
    /// An upstream's reset as its caller may see it.
    /// - Returns: nil for those that must not pass: no error, with which a part of an answer could be taken for the whole, a wish for
    ///   HTTP/1.1, which is about our own connection, and what no RFC knows.
    init?(passing code: UInt32) {
        self.init(rawValue: code)
        guard rawValue > Self.none.rawValue, rawValue <= Self.inadequateSecurity.rawValue else { return nil }
    }
}
