/// The framing field written into a head.
public enum OutgoingFraming: Sendable, Equatable {
    /// No framing field at all.
    case none
    /// `Content-Length`.
    case length(UInt64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// No framing field; the end of the connection ends the body. Responses only, and they say `Connection: close`.
    case untilClose
}

// MARK: -

extension OutgoingFraming {
    func write<Sink: HeadSink & ~Copyable>(into sink: inout Sink) {
        switch self {
        case .none, .untilClose:
            break
        case .length(let length):
            sink.begin("Content-Length: ", .contentLength)
            sink.output.append(decimal: length)
            sink.end()
        case .chunked:
            if Sink.hasConnectionFields { sink.output.append("Transfer-Encoding: chunked\r\n") }
        }
    }
}
