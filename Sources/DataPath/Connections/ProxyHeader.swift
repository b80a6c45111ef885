internal import CLinux
internal import Glibc
internal import Numbers
internal import Reactor

/// The header by which a proxy tells for whom it connects (HAProxy's proxy-protocol.txt, versions 1 and 2). Bytes of the network until
/// the listener's `proxy_protocol.from` has vouched for who sent them.
struct ProxyHeader: Equatable {
    let origin: Origin
    /// Bytes that the header takes.
    let length: Int

    enum Origin: Equatable {
        /// The proxy speaks for a caller at this address.
        case caller(SocketAddress)
        /// For a caller whose address it does not know, or whose kind of address means nothing here.
        case unknown
        /// The proxy speaks for itself: a check of health.
        case proxy
    }

    enum Reading: Equatable {
        case incomplete
        case complete(ProxyHeader)
        case refused
    }

    /// Version 1: `PROXY TCP6`, two addresses, two ports.
    static let longestLine = 107
    /// Version 2 allows 64 KiB of vendors' fields; proxies send a few hundred bytes, and a caller may wait for no more than this.
    static let longestBinary = 4096

    private static let lineStart = Array("PROXY ".utf8)
    private static let signature: [UInt8] = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]

    /// - Parameter versions: that are accepted, of 1 and 2.
    static func read(_ bytes: Span<UInt8>, versions: Set<Int>) -> Reading {
        guard !bytes.isEmpty else { return .incomplete }
        let first = bytes[0]
        if first == lineStart[0] { return versions.contains(1) ? readLine(bytes) : .refused }
        if first == signature[0] { return versions.contains(2) ? readBinary(bytes) : .refused }
        return .refused
    }

    /// Whether nothing that has come so far differs from what has to stand first.
    private static func mayBegin(_ bytes: Span<UInt8>, with start: [UInt8]) -> Bool {
        (0..<min(bytes.count, start.count)).allSatisfy { bytes[$0] == start[$0] }
    }

    // MARK: - Version 1

    private static func readLine(_ bytes: Span<UInt8>) -> Reading {
        guard mayBegin(bytes, with: lineStart) else { return .refused }
        guard let end = (0..<min(bytes.count, longestLine)).first(where: { bytes[$0] == 10 }) else {
            return bytes.count >= longestLine ? .refused : .incomplete
        }
        guard end > 0, bytes[end - 1] == 13 else { return .refused }
        let line = (lineStart.count..<max(lineStart.count, end - 1)).map { bytes[$0] }
        let text = String(decoding: line, as: UTF8.self)
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        // The rest of the line behind UNKNOWN must be ignored.
        if words.first == "UNKNOWN" { return .complete(ProxyHeader(origin: .unknown, length: end + 1)) }
        guard words.count == 5, let family = words.first, family == "TCP4" || family == "TCP6",
            let source = address(words[1], port: words[3]), let destination = address(words[2], port: words[4]),
            source.family == (family == "TCP4" ? .ipv4 : .ipv6), destination.family == source.family
        else { return .refused }
        return .complete(ProxyHeader(origin: .caller(source), length: end + 1))
    }

    private static func address(_ text: Substring, port digits: Substring) -> SocketAddress? {
        guard (1...5).contains(digits.utf8.count), let port = ReceivedNumber(digits)?.within(0...UInt16.max),
            !text.contains("["), !text.contains("%")
        else { return nil }
        return SocketAddress(host: String(text), port: port)
    }

    // MARK: - Version 2

    private static func readBinary(_ bytes: Span<UInt8>) -> Reading {
        guard mayBegin(bytes, with: signature) else { return .refused }
        guard bytes.count >= 16 else { return .incomplete }
        guard bytes[12] >> 4 == 2 else { return .refused }
        let length = 16 + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard length <= longestBinary else { return .refused }
        guard bytes.count >= length else { return .incomplete }
        let body = bytes.extracting(16..<length)
        switch bytes[12] & 0x0f {
        case 0: return .complete(ProxyHeader(origin: .proxy, length: length))
        case 1: break
        default: return .refused
        }
        switch bytes[13] {
        case 0x11, 0x12:
            guard body.count >= 12 else { return .refused }
            return caller(AF_INET, body.extracting(0..<4), port: body.extracting(8..<10), length)
        case 0x21, 0x22:
            guard body.count >= 36 else { return .refused }
            return caller(AF_INET6, body.extracting(0..<16), port: body.extracting(32..<34), length)
        case 0x00, 0x31, 0x32: return .complete(ProxyHeader(origin: .unknown, length: length))
        default: return .refused
        }
    }

    private static func caller(
        _ family: Int32, _ address: Span<UInt8>, port: Span<UInt8>, _ length: Int
    ) -> Reading {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(family)
        withUnsafeMutableBytes(of: &storage) { target in
            for index in port.indices { target[2 + index] = port[index] }
            let start = family == AF_INET ? 4 : 8
            for index in address.indices { target[start + index] = address[index] }
        }
        guard let source = SocketAddress(storage: storage, length: socklen_t(MemoryLayout<sockaddr_storage>.size))
        else {
            return .refused
        }
        return .complete(ProxyHeader(origin: .caller(source), length: length))
    }
}
