internal import HTTP1

/// The way through an HTTP proxy to a server with TLS: CONNECT and its answer (RFC 9110 section 9.3.6). A pure machine: bytes in, a
/// verdict out.
struct ProxyTunnel: ~Copyable {
    private var head = ResponseHead(maxFields: 64)
    private var interim = 0
    private let limits = HeadLimits(headSize: Self.longestHead, fields: 64)

    /// Bytes of the proxy's answer.
    static let longestHead = 8 * 1024
    private static let mostInterim = 8

    enum Verdict: Equatable {
        case needsMore
        /// An interim answer of this length is to be skipped.
        case skip(Int)
        /// Behind the head the server speaks; these bytes belong to the proxy.
        case open(Int)
        case refused(status: Int)
        case broken
    }

    /// - Parameter credential: a field line with its CRLF, or nothing.
    static func request(authority: String, credential: [UInt8]) -> [UInt8] {
        Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n".utf8) + credential + [13, 10]
    }

    /// - Parameter bytes: all that the proxy has said and that was not skipped.
    mutating func judge(_ bytes: Span<UInt8>) -> Verdict {
        do throws(HeadFault) {
            head.reset()
            guard let length = try head.parse(bytes, limits: limits) else {
                return bytes.count < Self.longestHead ? .needsMore : .broken
            }
            switch head.status {
            case 100..<200:
                interim += 1
                return interim <= Self.mostInterim && head.status != 101 ? .skip(length) : .broken
            case 200..<300:
                // A server with TLS waits for us to speak first: bytes behind the head would be the proxy's own invention.
                return bytes.count == length ? .open(length) : .broken
            default: return .refused(status: head.status)
            }
        } catch { return .broken }
    }
}

/// A box for the machine: a class cannot hold what is noncopyable and optional.
final class ProxyTunnelBox {
    var machine = ProxyTunnel()
}
