/// How the body of a response is delimited, and the framing field that is written into a head for it.
public enum BodyFraming: Sendable, Equatable {
    /// No body. No framing field at all.
    case none
    /// `Content-Length`.
    case length(UInt64)
    /// `Transfer-Encoding: chunked`.
    case chunked
    /// No framing field; the end of the connection ends the body. Responses only, and when written they say `Connection: close`.
    case untilClose
}

// MARK: -

extension BodyFraming {
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
