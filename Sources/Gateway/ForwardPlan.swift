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
    /// - Parameter translators: prefixes of this network's own behind which IPv4 stands (RFC 6052), beside the well-known ones.
    func isOpenDestination(_ own: LocalAddresses, translators: [AddressRange] = []) -> Bool {
        guard family != .unix, !isLocal(in: own), !isLinkLocal, !isCloudMetadata, !isUnspecified, !isMulticast else {
            return false
        }
        let ip = ipBytes
        // This network (RFC 1122 section 3.2.1.3): Linux takes some of it for this machine.
        guard ip.count == 16 else { return ip.first != 0 }
        if let inside = ip.embedded(translators) {
            return SocketAddress(host: inside, port: 1)?.isOpenDestination(own) == true
        }
        // For local use alone (RFC 8215): where IPv4 stands in it nobody else can know.
        return !ip.starts(with: [0, 0x64, 0xff, 0x9b, 0, 1])
    }
}

extension [UInt8] {
    /// The IPv4 address to which a translator or a tunnel takes this IPv6 address: of NAT64 (RFC 6052), 6to4 (RFC 3056), or in the compatible
    /// form (RFC 4291 section 2.5.5.1).
    fileprivate func embedded(_ translators: [AddressRange]) -> String? {
        for range in translators where range.holds(self) {
            var place = range.prefixLength / 8
            var octets: [String] = []
            while octets.count < 4, place < count {
                // Bits 64 to 71 are none of the address (RFC 6052 section 2.2).
                if place != 8 { octets.append("\(self[place])") }
                place += 1
            }
            return octets.joined(separator: ".")
        }
        let wellKnown: [UInt8] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
        if starts(with: wellKnown) || prefix(12).allSatisfy({ $0 == 0 }) {
            return self[12...].map { "\($0)" }.joined(separator: ".")
        }
        if starts(with: [0x20, 0x02]) { return self[2..<6].map { "\($0)" }.joined(separator: ".") }
        return nil
    }
}
