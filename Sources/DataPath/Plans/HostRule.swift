package import HTTP1

/// Names by which requests may call us.
///
/// A web page can have its own name lead to our address (DNS rebinding); for its browser we are then the page's own server. What gives it away
/// is the name in `Host`, which no script can change.
package struct HostRule: Sendable {
    /// Nothing is checked.
    package var isAny = false
    /// Lower case, without a port; an IPv6 address without brackets.
    package var exact: [[UInt8]] = []
    /// Begin with a dot; exactly one label stands before.
    package var suffixes: [[UInt8]] = []

    package init() {}

    func takes(_ host: UnsafeRawBufferPointer) -> Bool {
        if isAny { return true }
        for index in exact.indices where equalsIgnoringCase(host, exact[index]) { return true }
        for index in suffixes.indices where names(host, .oneLabel(suffix: suffixes[index])) { return true }
        return false
    }
}

/// When a listener looks at the name in `Host`.
enum HostCheck: Sendable {
    /// Callers that take us for a proxy, or do not know of us, name others; a page cannot reach a unix socket.
    case never
    /// Loopback: on every route, by the names of the route and the listener alone.
    case always
    /// Elsewhere: on routes that admit callers by their address alone.
    case byAddress
}

/// A name that no page of somebody else's can have: an address, or one without a dot, which no public zone has.
func isNobodysName(_ host: UnsafeRawBufferPointer) -> Bool {
    var hasDot = false
    var hasColon = false
    var isHexadecimal = true
    for octet in host {
        switch octet {
        case 0x2e: hasDot = true
        case 0x3a: hasColon = true
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: break
        default: isHexadecimal = false
        }
    }
    // Without its brackets, which are taken off an address alone; a port has been taken off too.
    if hasColon { return isHexadecimal }
    return !hasDot || isIPv4Address(host)
}

/// Four decimal numbers up to 255 (RFC 3986 section 3.2.2).
private func isIPv4Address(_ host: UnsafeRawBufferPointer) -> Bool {
    var parts = 1
    var digits = 0
    var number = 0
    for octet in host {
        if octet == 0x2e {
            guard digits > 0, parts < 4 else { return false }
            parts &+= 1
            digits = 0
            number = 0
        } else {
            guard octet &- 0x30 < 10, digits < 3 else { return false }
            digits &+= 1
            number = number &* 10 &+ Int(octet &- 0x30)
            guard number <= 255 else { return false }
        }
    }
    return parts == 4 && digits > 0
}

extension ListenerPlan {
    /// Whether the Host of a request that came here, and is for this route, is compared with ours.
    package func checksHost(on route: RoutePlan) -> Bool {
        switch hostCheck {
        case .never: false
        case .always: true
        case .byAddress: route.admission.restsOnAddress
        }
    }

    /// Whether a Host that `serves` takes is one of ours, and not any.
    func knowsItsHosts(on route: RoutePlan) -> Bool {
        hostCheck != .never && !hosts.isAny && !route.admission.hosts.isAny
    }

    /// - Parameters:
    ///   - head: without a host it passes: no browser leaves it out.
    ///   - bytes: what `head` was parsed from.
    ///   - tls: what the connection's handshake found.
    package func serves(
        _ head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer, on route: RoutePlan, tls: CallerTLS?
    ) -> Bool {
        guard head.host != nil || head.authority != nil else { return true }
        let host = hostName(of: head, in: bytes)
        if hostCheck == .byAddress, isNobodysName(host) { return true }
        if route.admission.hosts.takes(host) || hosts.takes(host) { return true }
        // Somebody whom its authority believes says that this name is ours.
        return hostCheck == .byAddress && tls?.isShown(for: host) == true
    }
}
