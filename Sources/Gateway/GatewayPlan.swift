internal import HTTP1
internal import Telemetry

/// A configuration as the loops need it: compiled once, immutable, shared.
final class GatewayPlan: Sendable {
    let edition: Edition
    let routes: [RoutePlan]
    let listeners: [ListenerPlan]
    let upstreams: [UpstreamPlan]
    let limits: DataLimits
    /// Our name in `Via` and `Proxy-Status`.
    let pseudonym: String
    let accessPolicy: AccessPolicy
    /// Numbers of the log's names.
    let faultNames: [Fault.Kind: UInt16]
    let metrics: MetricPlan

    init(
        edition: Edition, routes: [RoutePlan], listeners: [ListenerPlan], upstreams: [UpstreamPlan], limits: DataLimits,
        pseudonym: String, accessPolicy: AccessPolicy, faultNames: [Fault.Kind: UInt16], metrics: MetricPlan
    ) {
        self.edition = edition
        self.routes = routes
        self.listeners = listeners
        self.upstreams = upstreams
        self.limits = limits
        self.pseudonym = pseudonym
        self.accessPolicy = accessPolicy
        self.faultNames = faultNames
        self.metrics = metrics
    }
}

extension GatewayPlan {
    /// How long a table by upstream number has to be.
    var upstreamRoom: Int { (upstreams.map(\.index).max() ?? -1) + 1 }
}

/// What every loop takes up at a reload. Indexed by loop where it is a list.
struct NextPlan: Sendable {
    let plan: GatewayPlan
    let metrics: [LoopMetrics]
    /// Empty where access records were never and are not asked for.
    let access: [AccessRing]
    let census: AddressCensus?
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
