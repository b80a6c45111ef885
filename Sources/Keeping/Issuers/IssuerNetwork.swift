package import DataPath
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
}
