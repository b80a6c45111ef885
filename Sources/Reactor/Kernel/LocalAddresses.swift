internal import CLinux
internal import Glibc

/// The addresses of this network namespace at one moment. Interfaces come and go: whoever keeps a snapshot takes a new one now
/// and then.
public struct LocalAddresses: Sendable {
    private let known: Set<[UInt8]>

    /// For tests and for callers with a list of their own. Ports do not count.
    public init(_ addresses: [SocketAddress]) {
        known = Set(addresses.map(\.ipBytes).filter { !$0.isEmpty })
    }

    /// Asks the kernel; empty when it does not answer, which makes nothing local but loopback.
    public static func snapshot() -> LocalAddresses {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return LocalAddresses([]) }
        defer { freeifaddrs(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next, addresses.count < 65_536 {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr else { continue }
            let length: Int
            switch Int32(address.pointee.sa_family) {
            case AF_INET: length = MemoryLayout<sockaddr_in>.size
            case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
            default: continue
            }
            if let found = SocketAddress(copying: address, length: socklen_t(length)) { addresses.append(found) }
        }
        return LocalAddresses(addresses)
    }

    /// False for unix sockets.
    public func contains(_ address: SocketAddress) -> Bool {
        let ip = address.ipBytes
        return !ip.isEmpty && known.contains(ip)
    }
}
