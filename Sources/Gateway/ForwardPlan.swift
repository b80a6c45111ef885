internal import Numbers
internal import Reactor

/// What a listener is to those who connect to it.
struct ForwardPlan: Sendable {
    var mode = Mode.gateway
    /// What no route takes goes where the caller wanted it to go, without a credential; otherwise it is refused.
    var tunnelsUnmatched = false
    /// Hosts whose TLS we end ourselves, so that their requests can carry a credential.
    var interception: InterceptionPlan?

    enum Mode: Sendable {
        /// Callers name us: their requests are for whatever the route says.
        case gateway
        /// Callers know that we are a proxy: absolute-form and CONNECT (RFC 9110 section 7.3.2).
        case forward
        /// Callers do not know that we are there: the kernel redirects their connections.
        case transparent
    }
}

/// Where a request goes that no route takes: to the place that the caller named, as it named it.
///
/// Whoever may use the proxy could otherwise reach, with the proxy's rights, what listens beside it: its own loopback, its
/// neighbours on the link, and the addresses at which clouds hand out machine credentials.
struct Destination: Hashable, Sendable {
    let host: String
    let port: UInt16

    /// - Parameter authority: `host:port`; an IPv6 address in brackets.
    /// - Returns: nil when it is none, or its port is 0.
    init?(authority: some Sequence<UInt8>, defaultPort: UInt16?) {
        let text = String(decoding: Array(authority), as: UTF8.self)
        var host = Substring(text)
        var port = defaultPort
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if rest.hasPrefix(":") {
                port = ReceivedNumber(rest.dropFirst())?.within(0...UInt16.max)
            } else if !rest.isEmpty {
                return nil
            }
            guard SocketAddress(host: String(host), port: 1)?.family == .ipv6 else { return nil }
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            port = ReceivedNumber(text[text.index(after: colon)...])?.within(0...UInt16.max)
        }
        guard let port, port != 0, !host.isEmpty, host.utf8.count <= 253, !host.contains(":") || text.hasPrefix("["),
            host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "@") })
        else { return nil }
        self.host = host.lowercased()
        self.port = port
    }

    init(_ address: SocketAddress) {
        host = address.host
        port = address.port ?? 0
    }
}

extension SocketAddress {
    /// May be reached for a caller that merely named it.
    func isOpenDestination(_ own: LocalAddresses) -> Bool {
        family != .unix && !isLocal(in: own) && !isLinkLocal && !isCloudMetadata && !isUnspecified && !isMulticast
    }
}
