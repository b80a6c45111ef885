internal import Glibc
internal import Octets

/// The name a server is asked for and verified against: a DNS name, or an IP address, which is never sent as SNI (RFC 6066
/// section 3) and is compared with the certificate's addresses, not its names.
struct ServerName: Sendable, Hashable {
    /// Lower case, without brackets, zone or trailing dot.
    let text: String
    /// 4 or 16 bytes in network order; empty for a DNS name.
    let address: [UInt8]

    /// The longest DNS name (RFC 1035 section 2.3.4), in text form.
    static let maximumLength = 253

    init(_ given: String) throws(TLSFault) {
        var bytes = Array(given.utf8)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        // A zone says which link, not which host: no certificate carries it.
        if bytes.contains(UInt8(ascii: ":")), let zone = bytes.firstIndex(of: UInt8(ascii: "%")) {
            bytes.removeSubrange(zone...)
        }
        if let address = Self.address(of: bytes) {
            self.text = String(decoding: bytes, as: UTF8.self).lowercased()
            self.address = address
            return
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        let allowed = bytes.allSatisfy(\.isHostNameCharacter)
        // A leading dot would make OpenSSL accept any name below the domain.
        guard !bytes.isEmpty, bytes.count <= Self.maximumLength, bytes.first != UInt8(ascii: "."), allowed else {
            throw TLSFault(.configuration, "server name is no host name and no IP address")
        }
        self.text = String(decoding: bytes, as: UTF8.self).lowercased()
        self.address = []
    }

    // MARK: -

    private static func address(of bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count <= 45, !bytes.contains(0) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var address = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &address) == 1 { return address }
        }
        return nil
    }
}
