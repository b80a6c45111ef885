package import Reactor
package import TLS

/// An upstream or issuer as configured: immutable and shared by all loops.
package final class UpstreamPlan: Sendable {
    package let index: Int
    /// `scheme://host:port`, the host binding of tokens.
    package let origin: String
    package let host: String
    let port: UInt16
    package let usesTLS: Bool
    let protocols: Protocols
    /// Name for SNI and the certificate check.
    package let serverName: String
    /// The proxy on the way to the upstream; its address is then where to connect.
    package let proxy: ProxyPlan?
    /// Where to connect; never empty.
    package let endpoints: [UpstreamEndpoint]
    /// A caller chose it: addresses that are not open to everybody are left out.
    package let isOpenOnly: Bool
    /// Nil where TLS is not spoken.
    package let trust: TrustAnchors?
    package let minimumVersion: TLSVersion
    package let legacyTLS: Bool
    /// The certificates that we show a server that asks for one.
    package let clientKeys: ClientKeys?
    /// The credential authenticates connections (RFC 4559 §6), which therefore carry requests of this one identity only, over HTTP/1.1; nil: they
    /// carry anybody's.
    package let boundTo: ConnectionEpoch?
    /// Nanoseconds. The first bounds everything from the name's resolution to the end of the TLS handshake.
    package let connectTimeout: UInt64
    let idleTimeout: UInt64
    /// For connections without a request.
    let keepTimeout: UInt64
    /// How long after its last answer a kept connection takes a request that cannot be sent again: its server may be about to close it.
    let reuseTimeout: UInt64
    /// Active checks of its addresses; nil: none.
    let health: HealthPlan?
    /// Connections that one loop may have, idle ones too, and requests that may wait there for one.
    let connectionLimit: Int
    let waiterLimit: Int
    package let trouble = UpstreamTrouble()
    /// Answers that one connection carries before it is replaced: it bounds what a leak in a peer can grow to.
    let requestsPerConnection = 100_000
    let idleConnections = 256
    /// Where nothing else is configured.
    static let reuseTimeout: UInt64 = 1_000_000_000

    /// Connections are made with secrets or trust that may change under them (`UpstreamTLS.edition`).
    let hasEditions: Bool

    /// The endpoints that are names.
    var names: [Int] { endpoints.indices.filter { if case .name = endpoints[$0] { true } else { false } } }

    /// Requests are the proxy's to read: without TLS there is no tunnel through it.
    var isReadByProxy: Bool { proxy != nil && !usesTLS }

    /// Such a proxy asks for answers to its challenges, and refuses requests for that.
    var mayBeChallengedByProxy: Bool {
        isReadByProxy && (proxy?.credential?.digest != nil || proxy?.credential?.handshake != nil)
    }

    /// The host with its port, as CONNECT names it.
    var authority: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    package enum Protocols: Sendable {
        case http1
        /// Without TLS by prior knowledge (RFC 9113 §3.3), otherwise nothing else is offered.
        case http2
        /// The protocol that ALPN chooses; HTTP/1.1 without TLS.
        case either
        /// Not HTTP: nothing is offered.
        case other
    }

    /// - Parameters:
    ///   - endpoints: empty: the origin's own host and port.
    ///   - keepTimeout: nil: as `idleTimeout`.
    ///   - address: the only one to connect to, whatever else is said.
    package init(
        index: Int, origin: String, host: String, port: UInt16, usesTLS: Bool, protocols: Protocols = .http1,
        isOpenOnly: Bool = false, serverName: String, proxy: ProxyPlan? = nil,
        endpoints: [UpstreamEndpoint],
        trust: TrustAnchors?, minimumVersion: TLSVersion, legacyTLS: Bool,
        clientKeys: ClientKeys?, boundTo: ConnectionEpoch? = nil, connectTimeout: UInt64, idleTimeout: UInt64,
        keepTimeout: UInt64? = nil,
        reuseTimeout: UInt64 = UpstreamPlan.reuseTimeout, health: HealthPlan? = nil,
        connectionLimit: Int = .max, waiterLimit: Int = 0, at address: SocketAddress? = nil
    ) {
        self.index = index
        self.origin = origin
        self.host = host
        self.port = port
        self.usesTLS = usesTLS
        self.isOpenOnly = isOpenOnly
        // Through a proxy a server without TLS is a request's target, and the proxy speaks HTTP/1.1.
        self.protocols = proxy != nil && !usesTLS || boundTo != nil ? .http1 : protocols
        self.boundTo = boundTo
        self.serverName = serverName
        self.proxy = proxy
        hasEditions = usesTLS || proxy?.credential?.handshake != nil
        if let address {
            self.endpoints = [.address(address)]
        } else if let proxy {
            self.endpoints = [proxy.endpoint]
        } else {
            self.endpoints = endpoints.isEmpty ? [UpstreamEndpoint(host: host, port: port)] : endpoints
        }
        self.trust = trust
        self.minimumVersion = minimumVersion
        self.legacyTLS = legacyTLS
        self.clientKeys = clientKeys
        self.connectTimeout = connectTimeout
        self.idleTimeout = idleTimeout
        self.keepTimeout = keepTimeout ?? idleTimeout
        self.reuseTimeout = reuseTimeout
        self.health = health
        self.connectionLimit = connectionLimit
        self.waiterLimit = waiterLimit
    }

    /// The same upstream with one address, for its checks.
    func checking(_ address: SocketAddress, within timeout: UInt64) -> UpstreamPlan {
        UpstreamPlan(
            index: -1, origin: origin, host: host, port: port, usesTLS: usesTLS, protocols: protocols,
            serverName: serverName, proxy: proxy, endpoints: endpoints, trust: trust,
            minimumVersion: minimumVersion, legacyTLS: legacyTLS, clientKeys: clientKeys,
            connectTimeout: min(connectTimeout, timeout), idleTimeout: idleTimeout, at: address)
    }
}

/// An address to connect to, as the configuration names it.
package enum UpstreamEndpoint: Hashable, Sendable {
    case address(SocketAddress)
    /// Resolved again and again, for as long as it is used.
    case name(host: String, port: UInt16)

    package init(host: String, port: UInt16) {
        self = SocketAddress(host: host, port: port).map { .address($0) } ?? .name(host: host, port: port)
    }
}

/// Everything that decides where a connection to an upstream goes and whom it trusts: where that is equal, a connection made for one plan may
/// serve the other.
package struct UpstreamReach: Hashable {
    private let origin: String
    private let proxy: ObjectIdentifier?
    private let protocols: UpstreamPlan.Protocols
    private let serverName: String
    private let endpoints: [UpstreamEndpoint]
    private let trust: ObjectIdentifier?
    private let minimumVersion: TLSVersion
    private let legacyTLS: Bool
    private let clientKeys: ObjectIdentifier?
    private let boundTo: ObjectIdentifier?
    private let connectTimeout: UInt64
    private let idleTimeout: UInt64
    private let keepTimeout: UInt64
    private let reuseTimeout: UInt64
    private let health: HealthPlan?
    private let connectionLimit: Int
    private let waiterLimit: Int

    /// Valid as long as the plan lives: its proxy and keys are told by where they are.
    package init(of plan: UpstreamPlan) {
        origin = plan.origin
        proxy = plan.proxy.map { ObjectIdentifier($0) }
        protocols = plan.protocols
        serverName = plan.serverName
        endpoints = plan.endpoints
        trust = plan.trust.map { ObjectIdentifier($0) }
        minimumVersion = plan.minimumVersion
        legacyTLS = plan.legacyTLS
        clientKeys = plan.clientKeys.map { ObjectIdentifier($0) }
        boundTo = plan.boundTo.map { ObjectIdentifier($0) }
        connectTimeout = plan.connectTimeout
        idleTimeout = plan.idleTimeout
        keepTimeout = plan.keepTimeout
        reuseTimeout = plan.reuseTimeout
        health = plan.health
        connectionLimit = plan.connectionLimit
        waiterLimit = plan.waiterLimit
    }
}
