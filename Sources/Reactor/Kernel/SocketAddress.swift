public import CLinux
internal import Glibc
internal import Numbers
public import Telemetry

/// An IPv4, IPv6 or unix address, as the kernel takes it.
///
/// Made from literals only; names are the `Resolver`'s. Two addresses are equal when the kernel would see the same one.
/// An IP address takes 32 bytes and no memory elsewhere: every connection holds one.
public struct SocketAddress: Sendable {
    private var form: Form

    private enum Form: Sendable {
        /// A `sockaddr_in`, with zeros behind it, or a `sockaddr_in6`: its family tells.
        case ip(sockaddr_in6)
        /// The bytes of a `sockaddr_un`, as many as the kernel counts.
        case unix([UInt8])
    }

    /// The longest path of a unix socket, bytes (unix(7): 108 with the terminating NUL).
    static let longestUnixPath = 107

    /// The address families of the gateway's sockets.
    public enum Family: Sendable, Hashable { case ipv4, ipv6, unix }

    // MARK: - Making

    /// - Parameters:
    ///   - literal: `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]` or, with a zone, `fe80::1%eth0`.
    ///   - port: host byte order.
    /// - Returns: nil for anything else, names included.
    public init?(host literal: String, port: UInt16) {
        guard literal.utf8.count <= 64, !literal.utf8.contains(0) else { return nil }
        var v4 = sockaddr_in()
        if inet_pton(AF_INET, literal, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            self.init(v4)
            return
        }
        var text = literal[...]
        if text.hasPrefix("[") {
            guard text.hasSuffix("]") else { return nil }
            text = text.dropFirst().dropLast()
        }
        var v6 = sockaddr_in6()
        if let percent = text.firstIndex(of: "%") {
            let zone = text[text.index(after: percent)...]
            guard !zone.isEmpty else { return nil }
            v6.sin6_scope_id = ReceivedNumber(zone)?.within(0...UInt32.max) ?? if_nametoindex(String(zone))
            guard v6.sin6_scope_id != 0 else { return nil }
            text = text[..<percent]
        }
        guard inet_pton(AF_INET6, String(text), &v6.sin6_addr) == 1 else { return nil }
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port.bigEndian
        self.init(form: .ip(v6))
    }

    /// - Returns: nil when the path is empty, longer than 107 bytes or holds a NUL.
    public init?(unixPath path: String) {
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.longestUnixPath, !bytes.contains(0) else { return nil }
        // Only as long as the path: the kernel would take what follows the NUL for part of no name, but equality should not.
        self.init(form: .unix(Self.familyBytes(AF_UNIX) + bytes + [0]))
    }

    /// - Parameter text: `host:port` with a literal host, `[v6]:port`, or `unix:/path`.
    public init?(parsing text: String) {
        if text.hasPrefix("unix:") {
            self.init(unixPath: String(text.dropFirst(5)))
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let host = text[..<colon]
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.count <= 5, let port = ReceivedNumber(digits)?.within(0...UInt16.max),
            // Without brackets nobody can tell a port from the last group.
            !host.contains(":") || host.hasPrefix("[")
        else { return nil }
        self.init(host: String(host), port: port)
    }

    /// The address that `accept`, `getsockname` or `getaddrinfo` gave.
    /// - Returns: nil for another family or a length that is too short for it.
    public init?(storage: sockaddr_storage, length: socklen_t) {
        let made = withUnsafeBytes(of: storage) { SocketAddress(bytes: $0.prefix(Int(length))) }
        guard let made else { return nil }
        self = made
    }

    init?(copying pointer: UnsafePointer<sockaddr>?, length: socklen_t) {
        guard let pointer, length <= MemoryLayout<sockaddr_storage>.size else { return nil }
        self.init(bytes: UnsafeRawBufferPointer(start: pointer, count: Int(length))[...])
    }

    private init?(bytes: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        guard bytes.count >= Self.unixPathOffset else { return nil }
        switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET:
            guard bytes.count >= MemoryLayout<sockaddr_in>.size else { return nil }
            self.init(bytes.loadUnaligned(as: sockaddr_in.self))
        case AF_INET6:
            guard bytes.count >= MemoryLayout<sockaddr_in6>.size else { return nil }
            self.init(form: .ip(bytes.loadUnaligned(as: sockaddr_in6.self)))
        case AF_UNIX:
            guard bytes.count <= MemoryLayout<sockaddr_un>.size else { return nil }
            self.init(form: .unix(Array(bytes)))
        default: return nil
        }
    }

    private init(form: Form) { self.form = form }

    private init(_ v4: sockaddr_in) {
        var address = sockaddr_in6()
        withUnsafeMutableBytes(of: &address) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
        self.init(form: .ip(address))
    }

    private static var unixPathOffset: Int { MemoryLayout<sa_family_t>.size }

    private static func familyBytes(_ family: Int32) -> [UInt8] {
        withUnsafeBytes(of: sa_family_t(family)) { Array($0) }
    }

    // MARK: - Reading

    /// A mapped IPv4 address counts as IPv6.
    public var family: Family {
        switch form {
        case .ip(let address): Int32(address.sin6_family) == AF_INET ? .ipv4 : .ipv6
        case .unix: .unix
        }
    }

    /// Host byte order; nil for unix addresses. Setting it there changes nothing.
    public var port: UInt16? {
        get { family == .unix ? nil : bytes { UInt16($0[2]) << 8 | UInt16($0[3]) } }
        set {
            guard let newValue, case .ip(var address) = form else { return }
            // Both structures have it at the same offset.
            address.sin6_port = newValue.bigEndian
            form = .ip(address)
        }
    }

    /// The path of a unix address; nil for others and for sockets without a name. An abstract name begins with `@`.
    public var unixPath: String? {
        guard case .unix(let all) = form, all.count > Self.unixPathOffset else { return nil }
        let path = all[Self.unixPathOffset...]
        if path.first == 0 { return path.count == 1 ? nil : "@" + String(decoding: path.dropFirst(), as: UTF8.self) }
        return String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// For the kernel's calls.
    public func withStorage<Result>(_ body: (UnsafePointer<sockaddr_storage>, socklen_t) -> Result) -> Result {
        var storage = sockaddr_storage()
        let length = bytes { all in
            withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: all) }
            return socklen_t(all.count)
        }
        return withUnsafePointer(to: storage) { body($0, length) }
    }

    private func bytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch form {
        case .ip(let address):
            let isIPv4 = Int32(address.sin6_family) == AF_INET
            let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            return withUnsafeBytes(of: address) { body(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
        case .unix(let all): return all.withUnsafeBytes(body)
        }
    }

    /// The 4 or 16 bytes of an IP address, network order; an IPv4 address mapped into IPv6 gives its 4. Empty for unix.
    public var ipBytes: [UInt8] {
        switch family {
        case .unix: return []
        case .ipv4: return bytes { Array($0[4..<8]) }
        case .ipv6:
            let all = bytes { Array($0[8..<24]) }
            let isMapped = all[..<10].allSatisfy { $0 == 0 } && all[10] == 0xff && all[11] == 0xff
            return isMapped ? Array(all[12...]) : all
        }
    }

    // MARK: - Kinds

    // All of these look through IPv4-mapped IPv6 addresses: a listener for both families sees IPv4 callers as those, and a rule
    // must not depend on how somebody came.

    /// 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        // Asked of every connection: without an array.
        let address = logAddress
        return switch address.family {
        case .ipv4: address.low >> 24 == 127
        case .ipv6: address.high == 0 && address.low == 1
        case .unix, .none: false
        }
    }

    /// 0.0.0.0 or `::`: every address, for a listener.
    public var isUnspecified: Bool { !ipBytes.isEmpty && ipBytes.allSatisfy { $0 == 0 } }

    /// 169.254.0.0/16 or fe80::/10.
    public var isLinkLocal: Bool {
        let ip = ipBytes
        return ip.count == 4 ? ip[0] == 169 && ip[1] == 254 : ip.count == 16 && ip[0] == 0xfe && ip[1] & 0xc0 == 0x80
    }

    /// 224.0.0.0/4, the broadcast address, or ff00::/8.
    public var isMulticast: Bool {
        let ip = ipBytes
        return ip.count == 4 ? ip[0] >= 224 : ip.count == 16 && ip[0] == 0xff
    }

    /// Addresses at which clouds give out machine credentials; those that are not link-local.
    public var isCloudMetadata: Bool {
        let ip = ipBytes
        return ip == [169, 254, 169, 254] || ip == [100, 100, 100, 200] || ip == [168, 63, 129, 16]
            || ip == [192, 0, 0, 192] || ip == [0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x54]
            // A cloud has several services in this block.
            || ip.count == 16 && ip.starts(with: [0xfd, 0x00, 0x0e, 0xc2])
    }

    /// Loopback, a unix socket, or an address of this network namespace.
    public func isLocal(in addresses: LocalAddresses) -> Bool {
        family == .unix || isLoopback || addresses.contains(self)
    }

    // MARK: - Writing

    /// The address alone: no port, no brackets; a link-local one with its zone.
    public var host: String {
        if family == .unix { return unixPath ?? "" }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard let start = text.baseAddress else { return "" }
            let family = family == .ipv4 ? AF_INET : AF_INET6
            let written = bytes { all in
                inet_ntop(family, all.baseAddress.map { $0 + (family == AF_INET ? 4 : 8) }, start, 64) != nil
            }
            guard written else { return "" }
            let zone = family == AF_INET6 ? bytes { $0.loadUnaligned(fromByteOffset: 24, as: UInt32.self) } : 0
            return zone == 0 ? String(cString: start) : "\(String(cString: start))%\(zone)"
        }
    }

    /// For access records. Read in place: this stands on the data path.
    public var logAddress: LogAddress {
        guard case .ip(let address) = form else { return LogAddress(family: .unix, low: 0, port: 0) }
        // Both structures have it at the same offset.
        let port = UInt16(bigEndian: address.sin6_port)
        return withUnsafeBytes(of: address) { all in
            func word<Word: FixedWidthInteger>(_ offset: Int, _: Word.Type) -> UInt64 {
                UInt64(Word(bigEndian: all.loadUnaligned(fromByteOffset: offset, as: Word.self)))
            }
            guard Int32(address.sin6_family) != AF_INET else {
                return LogAddress(family: .ipv4, low: word(4, UInt32.self), port: port)
            }
            let isMapped = word(8, UInt64.self) == 0 && word(16, UInt32.self) == 0xffff
            if isMapped { return LogAddress(family: .ipv4, low: word(20, UInt32.self), port: port) }
            return LogAddress(family: .ipv6, high: word(8, UInt64.self), low: word(16, UInt64.self), port: port)
        }
    }
}

extension SocketAddress: Hashable, CustomStringConvertible {
    /// Equal as the kernel sees them: byte by byte.
    public static func == (left: SocketAddress, right: SocketAddress) -> Bool {
        left.bytes { first in right.bytes { first.elementsEqual($0) } }
    }

    /// Over the bytes that `==` compares.
    public func hash(into hasher: inout Hasher) { bytes { hasher.combine(bytes: $0) } }

    /// `192.0.2.1:80`, `[2001:db8::1]:80`, `unix:/path`.
    public var description: String {
        switch family {
        case .ipv4: "\(host):\(port ?? 0)"
        case .ipv6: "[\(host)]:\(port ?? 0)"
        case .unix: "unix:\(host)"
        }
    }
}
