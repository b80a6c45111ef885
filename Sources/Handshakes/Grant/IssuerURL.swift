internal import Octets

/// The address of an issuer's endpoint: absolute, http or https, without user information or fragment.
public struct IssuerURL: Sendable, Hashable {
    /// `https` or `http`.
    public let scheme: String
    /// Lower case; an IPv6 address without its brackets.
    public let host: String
    /// 1–65535.
    public let port: Int
    /// Starts with `/`; holds the query, if there is one.
    public let path: String
}

// MARK: - Reading

extension IssuerURL {
    /// Reads an absolute URL of at most 4096 bytes (RFC 3986 §3); nil if anything about it is odd.
    public init?(_ text: String) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let lowered = text.prefix(8).lowercased()
        let scheme = lowered.hasPrefix("https://") ? "https" : lowered.hasPrefix("http://") ? "http" : nil
        guard let scheme else { return nil }
        let rest = text.utf8.dropFirst(scheme.utf8.count + 3)
        let cut = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        guard let (host, port) = Self.authority(Array(rest[..<cut])) else { return nil }
        var path = Array(rest[cut...])
        if path.first != UInt8(ascii: "/") { path.insert(UInt8(ascii: "/"), at: 0) }
        guard Self.isTarget(path) else { return nil }
        self.init(
            scheme: scheme, host: host, port: port ?? (scheme == "https" ? 443 : 80),
            path: String(decoding: path, as: UTF8.self))
    }

    private static func authority(_ bytes: [UInt8]) -> (host: String, port: Int?)? {
        var host = bytes[...]
        var port: Int?
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            host = bytes[1..<end]
            guard host.contains(UInt8(ascii: ":")),
                host.allSatisfy({ $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { return nil }
            let tail = bytes[(end + 1)...]
            if !tail.isEmpty {
                guard tail.first == UInt8(ascii: ":"), let number = Self.port(tail.dropFirst()) else { return nil }
                port = number
            }
        } else {
            if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
                guard let number = Self.port(bytes[(colon + 1)...]) else { return nil }
                host = bytes[..<colon]
                port = number
            }
            guard host.allSatisfy({ $0.isLetterOrDigit || "-._".utf8.contains($0) }) else { return nil }
        }
        guard (1...253).contains(host.count) else { return nil }
        return (String(decoding: host, as: UTF8.self).lowercased(), port)
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (1...5).contains(digits.count), digits.allSatisfy(\.isDigit) else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
        return (1...65_535).contains(number) ? number : nil
    }

    // Characters of path and query (RFC 3986 §3.3, §3.4), whole percent escapes, no dot segments.
    private static func isTarget(_ bytes: [UInt8]) -> Bool {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < bytes.count, bytes[index + 1].isHexDigit, bytes[index + 2].isHexDigit else {
                    return false
                }
                index += 3
                continue
            }
            guard byte.isLetterOrDigit || "-._~!$&'()*+,;=:@/?".utf8.contains(byte) else { return false }
            index += 1
        }
        let path = bytes.prefix { $0 != UInt8(ascii: "?") }
        return path.split(separator: UInt8(ascii: "/")).allSatisfy { $0 != [0x2E] && $0 != [0x2E, 0x2E] }
    }
}

// MARK: - Use

extension IssuerURL {
    /// `scheme://host`, with the port unless it is the scheme's own.
    public var origin: String { "\(scheme)://\(authority)" }

    /// The value of `Host`.
    public var authority: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == (scheme == "https" ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// The scheme is `https`.
    public var isTLS: Bool { scheme == "https" }

    /// The URL with further segments behind its path, one `/` between them, its query kept; nil if the result is no URL.
    public func appending(path more: String) -> IssuerURL? {
        let cut = path.utf8.firstIndex(of: UInt8(ascii: "?")) ?? path.endIndex
        var base = String(path[..<cut])
        while base.hasSuffix("/") { base.removeLast() }
        return IssuerURL(origin + base + "/" + more.drop { $0 == "/" } + path[cut...])
    }

    /// - Parameter query: fixed text that needs no encoding.
    func adding(query: String) -> IssuerURL {
        let mark = path.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        return IssuerURL(scheme: scheme, host: host, port: port, path: path + mark + query)
    }
}

extension IssuerURL: CustomStringConvertible {
    /// The whole URL as it is asked for. Its query may hold a secret, so that a log or an error shows `origin`.
    public var description: String { origin + path }
}
