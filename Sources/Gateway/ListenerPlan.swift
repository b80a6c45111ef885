internal import Reactor

/// A listener as the data path needs it.
final class ListenerPlan: Sendable {
    let index: Int
    let address: SocketAddress
    let text: String
    let isUnix: Bool
    /// A loopback TCP address: a browser on this machine can reach it, so Host and Origin are checked.
    let isLoopback: Bool
    let routes: [RoutePlan]
    /// Nil in clear text.
    let tls: ListenerTLS?
    let proxyProtocol: ProxyProtocolPlan?
    /// Whose `Forwarded` and `X-Forwarded-*` are believed, by `CallerPeer.address`; empty: nobody's.
    let forwardedFrom: [AddressRange]
    /// Nil: as many as the loops may hold.
    let places: ListenerPlaces?
    /// At least one.
    let protocols: [ApplicationProtocol]
    let forward: ForwardPlan

    init(
        index: Int, address: SocketAddress, text: String, isUnix: Bool, isLoopback: Bool, routes: [RoutePlan],
        tls: ListenerTLS? = nil, proxyProtocol: ProxyProtocolPlan? = nil, forwardedFrom: [AddressRange] = [],
        connections: Int? = nil,
        protocols: [ApplicationProtocol] = [.http1], forward: ForwardPlan = ForwardPlan()
    ) {
        self.index = index
        self.address = address
        self.text = text
        self.isUnix = isUnix
        self.isLoopback = isLoopback
        self.routes = routes
        self.tls = tls
        self.proxyProtocol = proxyProtocol
        self.forwardedFrom = forwardedFrom
        places = connections.map { ListenerPlaces($0) }
        self.protocols = protocols
        self.forward = forward
        needsArrival = tls != nil || proxyProtocol != nil || protocols == [.http2] || forward.mode == .transparent
    }

    /// Something stands before the first request: a header or a handshake. Which protocol a caller speaks in clear text is seen by its
    /// first line, where HTTP/1.1 is served too.
    let needsArrival: Bool

    func speaks(_ version: ApplicationProtocol) -> Bool { protocols.contains(version) }
}

/// PROXY headers: required from these, and nobody else may connect.
struct ProxyProtocolPlan: Sendable {
    let versions: Set<Int>
    let from: [AddressRange]
}
