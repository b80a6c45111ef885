internal import Configuration
internal import Reactor

/// A CIDR range of callers.
struct AddressRange: Sendable {
    /// Network order; 4 or 16 bytes.
    let network: [UInt8]
    /// Leading bits that must be equal.
    let prefixLength: Int

    /// Nil for what is no IP address.
    init?(_ network: Callers.Network) {
        guard let address = SocketAddress(host: "\(network.address)", port: 0) else { return nil }
        self.init(network: address.ipBytes, prefixLength: network.prefixLength)
    }

    init(network: [UInt8], prefixLength: Int) {
        self.network = network
        self.prefixLength = prefixLength
    }

    func contains(_ address: SocketAddress) -> Bool { holds(address.ipBytes) }

    /// - Parameter bytes: network order.
    func holds(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == network.count else { return false }
        var left = prefixLength
        for index in 0..<bytes.count {
            if left <= 0 { return true }
            let mask: UInt8 = left >= 8 ? 0xff : ~(0xff >> UInt8(left))
            if bytes[index] & mask != network[index] & mask { return false }
            left -= 8
        }
        return true
    }
}
