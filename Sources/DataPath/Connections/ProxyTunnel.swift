internal import HTTP1

/// The way through an HTTP proxy to a server with TLS: CONNECT and its answer (RFC 9110 section 9.3.6). A pure machine: bytes in, a
/// verdict out.
struct ProxyTunnel: ~Copyable {
    private var head = ResponseHead(maxFields: 64)
    private var interim = 0
    private var rest = BodyReader.none
    private var passed = 0
    private let limits = HeadLimits(headSize: Self.longestHead, fields: 64)
    /// A tunnel was asked for, so that behind a success the server speaks.
    let connects: Bool

    /// Bytes of the proxy's answer.
    static let longestHead = 8 * 1024
    private static let mostInterim = 8
    /// Bytes of a refusal's body that are passed over, so that the connection can carry an answer.
    static let longestRest = 64 * 1024

    enum Verdict: Equatable {
        case needsMore
        /// An interim answer of this length is to be skipped.
        case skip(Int)
        /// Behind the head the server speaks; these bytes belong to the proxy.
        case open(Int)
        /// The head has this length; a body may follow.
        case refused(status: Int, length: Int)
        case broken
    }

    init(connects: Bool = true) { self.connects = connects }

    /// Asks the proxy for a challenge, where requests themselves are its to read. A proxy that challenges answers it itself; squid refuses
    /// `OPTIONS` with `Max-Forwards: 0`, which is meant for that, before it looks at a credential.
    /// - Parameter credential: a field line with its CRLF.
    static func question(authority: String, credential: [UInt8]) -> [UInt8] {
        Array("HEAD http://\(authority)/ HTTP/1.1\r\nHost: \(authority)\r\n".utf8) + credential + [13, 10]
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
            case 200..<300 where connects:
                // A server with TLS waits for us to speak first: bytes behind the head would be the proxy's own invention.
                return bytes.count == length ? .open(length) : .broken
            default: return .refused(status: head.status, length: length)
            }
        } catch { return .broken }
    }

    // MARK: - Fields of the answer, and what follows a refusal

    /// - Parameter bytes: with which `judge` came to its last verdict.
    func values(of name: String, in bytes: UnsafeRawBufferPointer) -> [[UInt8]] { head.values(of: name, in: bytes) }

    /// Begins to pass over the body of a refusal.
    /// - Returns: false where the connection is good for no other request behind it.
    mutating func beginRest() -> Bool {
        let framing = head.framing(forMethodHEAD: !connects, connect: false)
        guard head.keepAlive, framing != .untilClose else { return false }
        rest = BodyReader(framing)
        return true
    }

    /// - Parameter bytes: of the body, as received.
    /// - Returns: how many of them have been passed over, and whether the body has ended; nil where it cannot, or is longer than it may be.
    mutating func passOver(_ bytes: UnsafeRawBufferPointer) -> (length: Int, isOver: Bool)? {
        var length = 0
        while !rest.isComplete, length < bytes.count {
            guard let step = try? rest.next(UnsafeRawBufferPointer(rebasing: bytes[length...])) else { return nil }
            guard step.consumed > 0 else { break }
            length += step.consumed
        }
        passed += length
        return passed <= Self.longestRest ? (length, rest.isComplete) : nil
    }
}
