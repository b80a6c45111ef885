/// The first bytes of a caller that speaks HTTP/2 (RFC 9113 section 3.4); no request of HTTP/1.1 begins so.
enum HTTP2Preface {
    static let bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    enum Match { case none, partly, whole }

    static func match(_ input: UnsafeRawBufferPointer) -> Match {
        let count = min(input.count, bytes.count)
        guard input.prefix(count).elementsEqual(bytes.prefix(count)) else { return .none }
        return count == bytes.count ? .whole : .partly
    }
}
