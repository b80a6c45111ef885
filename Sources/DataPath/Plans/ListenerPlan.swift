package import Reactor

/// A listener as the data path needs it.
package final class ListenerPlan: Sendable {
    let index: Int
    package let address: SocketAddress
    package let text: String
    package let isUnix: Bool
    let hostCheck: HostCheck
    /// Names by which requests may call us on every route, where the Host is checked.
    let hosts: HostRule
    package let table: RouteTable
    /// Rights of a unix socket's file; nil: as its maker's umask leaves them.
    let file: SocketRights?
    /// Nil in clear text.
    package let tls: ListenerTLS?
    let proxyProtocol: ProxyProtocolPlan?
    /// Callers whose `Forwarded` and `X-Forwarded-*` are believed, by `CallerPeer.address`; empty: none.
    let forwardedFrom: [AddressRange]
    /// Nil: as many as the loops may hold.
    package let quota: ConnectionQuota?
    /// At least one.
    package let protocols: [ApplicationProtocol]
    package let forward: ForwardPlan
    /// Nil for listeners that no configuration's routes stand behind.
    let edition: Edition?

    package init(
        index: Int, address: SocketAddress, text: String, isUnix: Bool, isLoopback: Bool, routes: [RoutePlan],
        file: SocketRights? = nil, tls: ListenerTLS? = nil, proxyProtocol: ProxyProtocolPlan? = nil,
        forwardedFrom: [AddressRange] = [],
        quota: ConnectionQuota? = nil, hosts: HostRule = HostRule(), protocols: [ApplicationProtocol] = [.http1],
        forward: ForwardPlan = ForwardPlan(), edition: Edition? = nil
    ) {
        self.index = index
        self.address = address
        self.text = text
        self.isUnix = isUnix
        hostCheck = isUnix || forward.mode != .gateway ? .never : isLoopback ? .always : .byAddress
        self.hosts = hosts
        table = RouteTable(routes)
        self.file = file
        self.tls = tls
        self.proxyProtocol = proxyProtocol
        self.forwardedFrom = forwardedFrom
        self.quota = quota
        self.protocols = protocols
        self.forward = forward
        needsArrival = tls != nil || proxyProtocol != nil || protocols == [.http2] || forward.mode == .transparent
        self.edition = edition
    }

    /// In the order of the file.
    package var routes: [RoutePlan] { table.routes }

    /// Something stands before the first request: a header or a handshake. Which protocol a caller speaks in clear text is seen by its
    /// first line, where HTTP/1.1 is served too.
    let needsArrival: Bool

    /// Whether a connection that came to one may go on with the routes of the other: what was asked of it at its beginning is the same.
    func continues(_ earlier: ListenerPlan) -> Bool {
        address == earlier.address && (tls == nil) == (earlier.tls == nil)
            && (proxyProtocol == nil) == (earlier.proxyProtocol == nil)
    }

    func speaks(_ version: ApplicationProtocol) -> Bool { protocols.contains(version) }
}

/// Who may connect to a unix socket.
package struct SocketRights: Sendable {
    let mode: UInt32
    /// nil: the process's.
    let group: UInt32?

    package init(mode: UInt32, group: UInt32?) {
        self.mode = mode
        self.group = group
    }
}

/// PROXY headers: required from these, and nobody else may connect.
package struct ProxyProtocolPlan: Sendable {
    let versions: Set<Int>
    let from: [AddressRange]

    package init(versions: Set<Int>, from: [AddressRange]) {
        self.versions = versions
        self.from = from
    }
}

/// The protocol that a connection speaks.
package enum ApplicationProtocol: Sendable { case http1, http2 }
