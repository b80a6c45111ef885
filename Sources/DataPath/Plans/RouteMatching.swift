package import HTTP1

/// Which part of a route's `match` a request does not meet.
package enum RouteMismatch: Sendable, Equatable {
    case host, port, path, method
    /// The index of the header.
    case header(Int)
}

extension RouteMatch {
    /// Nil where the request is the route's. The data path and `explain` both ask here, so that they cannot disagree. Allocates nothing.
    /// - Parameters:
    ///   - bytes: what `head` was parsed from.
    ///   - port: of the server that a proxy's caller names; nil where callers name us.
    @inline(__always)
    package func mismatch(_ head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer, port: UInt16? = nil)
        -> RouteMismatch?
    {
        mismatch(head, in: bytes, port: port, path: bytes[head.path])
    }

    /// - Parameter target: what stands for the path of `head`.
    func mismatch(
        _ head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer, port: UInt16?,
        path target: UnsafeRawBufferPointer
    ) -> RouteMismatch? {
        guard names(hostName(of: head, in: bytes), host) else { return .host }
        if let port, !ports.contains(port) { return .port }
        switch path {
        case .any: break
        case .exact(let path): guard pathMatches(target.octets, exact: path.span) else { return .path }
        case .prefix(let path): guard pathMatches(target.octets, prefix: path.span) else { return .path }
        }
        if !methods.isEmpty {
            let method = bytes[head.method]
            guard methods.contains(where: { equals(method, $0) }) else { return .method }
        }
        for index in headers.indices {
            guard Self.hasField(headers[index].name, value: headers[index].value, head, bytes) else {
                return .header(index)
            }
        }
        return nil
    }

    private static func hasField(
        _ name: [UInt8], value: [UInt8], _ head: borrowing RequestHead, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        for index in 0..<head.fieldCount {
            let field = head[index]
            if equalsIgnoringCase(bytes[field.name], name), equals(bytes[field.value], value) { return true }
        }
        return false
    }
}

/// The host that was asked for, without its port: the target's authority in absolute form, the Host field otherwise. An IPv6 address
/// without its brackets, as it stands in patterns; it is compared as text, so that only the usual form is found (RFC 5952).
///
/// The port does not count: a caller names the one that it connects to, which is the gateway's or a forwarder's before it, and `match.host` takes
/// none.
func hostName(of head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard let range = head.authority ?? head.host else { return .init(start: nil, count: 0) }
    let authority = bytes[range]
    if authority.first == UInt8(ascii: "["), let bracket = authority.firstIndex(of: UInt8(ascii: "]")) {
        let address = UnsafeRawBufferPointer(rebasing: authority[1..<bracket])
        // Brackets around anything else are part of it, and make it nobody's name.
        if address.contains(UInt8(ascii: ":")) { return address }
        return UnsafeRawBufferPointer(rebasing: authority[..<(bracket + 1)])
    }
    guard let colon = authority.lastIndex(of: UInt8(ascii: ":")) else { return authority }
    return UnsafeRawBufferPointer(rebasing: authority[..<colon])
}
