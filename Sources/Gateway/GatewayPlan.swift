internal import HTTP1
internal import Telemetry

/// A configuration as the loops need it: compiled once, immutable, shared.
final class GatewayPlan: Sendable {
    let routes: [RoutePlan]
    let listeners: [ListenerPlan]
    let upstreams: [UpstreamPlan]
    let limits: DataLimits
    /// Our name in `Via` and `Proxy-Status`.
    let pseudonym: String
    let accessPolicy: AccessPolicy
    /// Indices of the log's names: by route, and by kind of fault.
    let routeNames: [UInt16]
    let faultNames: [Fault.Kind: UInt16]
    let metrics: MetricPlan

    init(
        routes: [RoutePlan], listeners: [ListenerPlan], upstreams: [UpstreamPlan], limits: DataLimits,
        pseudonym: String,
        accessPolicy: AccessPolicy, routeNames: [UInt16], faultNames: [Fault.Kind: UInt16], metrics: MetricPlan
    ) {
        self.routes = routes
        self.listeners = listeners
        self.upstreams = upstreams
        self.limits = limits
        self.pseudonym = pseudonym
        self.accessPolicy = accessPolicy
        self.routeNames = routeNames
        self.faultNames = faultNames
        self.metrics = metrics
    }
}

/// Bounds of one loop.
struct DataLimits: Sendable {
    var connections: Int
    var headerSize: Int
    var heads: HeadLimits
    /// Bytes of a request body.
    var bodySize: UInt64
    /// Nanoseconds from the first byte of a request's head to its last one.
    var headTimeout: UInt64
    /// Bytes a second that whoever is waited for moves at least; zero: any byte will do.
    var leastRate: Int
    /// Requests that may wait for a token.
    var waiters: Int
    /// Bytes of blocks beyond the ordinary size: bodies kept for a replay, big heads, output that a slow peer leaves behind.
    var largeBytes: Int
    /// Connections of one caller address, over all loops; nil: as many as there may be.
    var perAddress: Int?
}
