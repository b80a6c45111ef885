internal import Reactor

/// A CIDR range of callers.
package struct AddressRange: Sendable {
    /// Network order; 4 or 16 bytes.
    let network: [UInt8]
    /// Leading bits that must be equal.
    let prefixLength: Int

    package init(network: [UInt8], prefixLength: Int) {
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
