internal import Numbers
internal import Reactor

/// The part that a listener plays for those who connect to it.
package struct ForwardPlan: Sendable {
    package var mode = Mode.gateway
    /// Requests and connections that no route takes go where the caller wanted to go, without a credential; otherwise they are refused.
    package var tunnelsUnmatched = false
    /// Hosts whose TLS we end ourselves, so that their requests can carry a credential.
    package var interception: InterceptionPlan?

    package init() {}

    package enum Mode: Sendable {
        /// Callers name us: their requests are for whatever the route says.
        case gateway
        /// Callers know that we are a proxy: absolute-form and CONNECT (RFC 9110 section 7.3.2).
        case forward
        /// Callers do not know that we are there: the kernel redirects their connections.
        case transparent
    }
}

/// The way of a request that no route takes: to the destination that the caller named, as it named it.
///
/// Whoever may use the proxy could otherwise reach, with the proxy's rights, what listens beside it: its own loopback, its
/// neighbours on the link, and the addresses at which clouds hand out machine credentials.
struct Destination: Hashable, Comparable, Sendable {
    let host: String
    let port: UInt16

    static func < (one: Destination, other: Destination) -> Bool { (one.host, one.port) < (other.host, other.port) }

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
    /// - Parameter translators: prefixes of this network's own behind which IPv4 stands (RFC 6052), beside the well-known ones.
    func isOpenDestination(_ own: LocalAddresses, translators: [AddressRange] = []) -> Bool {
        guard family != .unix, !isLocal(in: own), !isLinkLocal, !isCloudMetadata, !isUnspecified, !isMulticast else {
            return false
        }
        let ip = ipBytes
        // This network (RFC 1122 section 3.2.1.3): Linux takes some of it for this machine.
        guard ip.count == 16 else { return ip.first != 0 }
        guard ip.embedded(translators).allSatisfy({ SocketAddress(host: $0, port: 1)?.isOpenDestination(own) == true })
        else {
            return false
        }
        // For local use alone (RFC 8215): where IPv4 stands in it nobody else can know.
        return !ip.starts(with: [0, 0x64, 0xff, 0x9b, 0, 1]) || translators.contains { $0.holds(ip) }
    }
}

extension [UInt8] {
    /// The IPv4 addresses to which translators and tunnels may take this IPv6 address. An address may be of two forms at once, and who
    /// decides which one counts stands further on.
    fileprivate func embedded(_ translators: [AddressRange]) -> [String] {
        var found: [[UInt8]] = []
        for range in translators where range.holds(self) {
            // Bits 64 to 71 are none of the address (RFC 6052 section 2.2).
            found.append(Array((range.prefixLength / 8..<count).filter { $0 != 8 }.prefix(4).map { self[$0] }))
        }
        let last = Array(self[12...])
        // NAT64 (RFC 6052), the compatible form (RFC 4291 section 2.5.5.1) and the translated one (RFC 2765 section 2.1).
        let forms: [[UInt8]] = [
            [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], [UInt8](repeating: 0, count: 12),
            [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0],
        ]
        if forms.contains(where: { starts(with: $0) }) { found.append(last) }
        // 6to4 (RFC 3056).
        if starts(with: [0x20, 0x02]) { found.append(Array(self[2..<6])) }
        // Teredo (RFC 4380 section 4): the server, and the client, each bit of it turned.
        if starts(with: [0x20, 0x01, 0, 0]) { found += [Array(self[4..<8]), last.map { ~$0 }] }
        // ISATAP (RFC 5214 section 6.1), behind any prefix; the bits u and g may be set.
        if self[8] & 0xfc == 0, self[9...11].elementsEqual([0, 0x5e, 0xfe]) { found.append(last) }
        return found.map { $0.map { "\($0)" }.joined(separator: ".") }
    }
}
