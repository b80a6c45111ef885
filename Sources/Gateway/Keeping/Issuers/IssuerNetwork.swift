internal import Reactor
internal import TLS

/// How calls to an identity's issuer are made.
struct IssuerNetwork: Sendable {
    var trust: TrustAnchors?
    var minimumVersion: TLSVersion
    var legacyTLS: Bool
    var clientKeys: ClientKeys?
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
}
