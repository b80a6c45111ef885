package import DataPath
internal import Handshakes
package import Reactor
package import TLS

/// How calls to an identity's issuer are made.
package struct IssuerNetwork: Sendable {
    var trust: TrustAnchors?
    var minimumVersion: TLSVersion
    var legacyTLS: Bool
    package var clientKeys: ClientKeys?
    var proxy: ProxyPlan?
    var serverName: String?
    /// Nanoseconds for one call, connect included.
    var timeout: UInt64
    /// Calls to the issuer at the same time.
    var connections: Int
    /// Nanoseconds that one more waits for its turn.
    var patience: UInt64
    /// Addresses to use instead of resolving, by host.
    var resolve: [String: [SocketAddress]]
    /// Where to connect whatever the host, as a route's `to.addresses` says.
    var pinned: [UpstreamEndpoint] = []

    package init(
        trust: TrustAnchors? = nil, minimumVersion: TLSVersion, legacyTLS: Bool, clientKeys: ClientKeys? = nil,
        proxy: ProxyPlan? = nil, serverName: String? = nil, timeout: UInt64, connections: Int, patience: UInt64,
        resolve: [String: [SocketAddress]], pinned: [UpstreamEndpoint] = []
    ) {
        self.trust = trust
        self.minimumVersion = minimumVersion
        self.legacyTLS = legacyTLS
        self.clientKeys = clientKeys
        self.proxy = proxy
        self.serverName = serverName
        self.timeout = timeout
        self.connections = connections
        self.patience = patience
        self.resolve = resolve
        self.pinned = pinned
    }

    /// The way to an upstream as its route reaches it, within the bounds of these calls.
    func leading(to upstream: UpstreamPlan) -> IssuerNetwork {
        IssuerNetwork(
            trust: upstream.trust, minimumVersion: upstream.minimumVersion, legacyTLS: upstream.legacyTLS,
            clientKeys: upstream.clientKeys, proxy: upstream.proxy, serverName: upstream.serverName, timeout: timeout,
            connections: connections, patience: patience, resolve: [:], pinned: upstream.endpoints)
    }

    /// The way to an issuer.
    func plan(to url: IssuerURL, _ key: IssuerKey) -> UpstreamPlan {
        UpstreamPlan(
            index: -1, origin: url.origin, host: url.host, port: UInt16(clamping: url.port), usesTLS: url.isTLS,
            serverName: serverName ?? url.host, proxy: proxy, endpoints: key.endpoints(of: url, self), trust: trust,
            minimumVersion: minimumVersion, legacyTLS: legacyTLS, clientKeys: clientKeys,
            connectTimeout: min(timeout, 5_000_000_000), idleTimeout: 30_000_000_000)
    }
}
