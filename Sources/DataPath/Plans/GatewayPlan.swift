package import HTTP1
internal import Reactor
package import Telemetry

/// A configuration as the loops need it: compiled once, immutable, shared.
package final class GatewayPlan: Sendable {
    package let edition: Edition
    package let routes: [RoutePlan]
    package let listeners: [ListenerPlan]
    package let upstreams: [UpstreamPlan]
    package let limits: DataLimits
    /// `nat64`.
    let translators: [AddressRange]
    /// Our name in `Via` and `Proxy-Status`.
    package let pseudonym: String
    package let accessPolicy: AccessPolicy
    /// Numbers of the log's names.
    package let faultNames: [Fault.Kind: UInt16]
    package let metrics: MetricPlan
    private let upstreamPositions: [ObjectIdentifier: Int]
    private let listenersByAddress: [SocketAddress: ListenerPlan]

    package init(
        edition: Edition, routes: [RoutePlan], listeners: [ListenerPlan], upstreams: [UpstreamPlan], limits: DataLimits,
        translators: [AddressRange],
        pseudonym: String, accessPolicy: AccessPolicy, faultNames: [Fault.Kind: UInt16], metrics: MetricPlan
    ) {
        self.edition = edition
        self.routes = routes
        self.listeners = listeners
        self.upstreams = upstreams
        self.limits = limits
        self.translators = translators
        self.pseudonym = pseudonym
        self.accessPolicy = accessPolicy
        self.faultNames = faultNames
        self.metrics = metrics
        upstreamPositions = Dictionary(
            upstreams.enumerated().map { (ObjectIdentifier($1), $0) }
        ) { first, _ in first }
        listenersByAddress = Dictionary(listeners.map { ($0.address, $0) }) { first, _ in first }
    }
}

extension GatewayPlan {
    /// Where an upstream stands in the list; nil when it is another plan's.
    func position(of upstream: UpstreamPlan) -> Int? { upstreamPositions[ObjectIdentifier(upstream)] }

    /// The listener at the address of another plan's listener, if connections of that one may go on there.
    func listener(succeeding earlier: ListenerPlan) -> ListenerPlan? {
        guard let listener = listenersByAddress[earlier.address], listener.continues(earlier) else { return nil }
        return listener
    }

    /// How long a table by upstream number has to be.
    var upstreamRoom: Int { (upstreams.map(\.index).max() ?? -1) + 1 }
}

/// The parts of a new configuration that every loop takes up at a reload. The lists are indexed by loop.
package struct NextPlan: Sendable {
    let plan: GatewayPlan
    let metrics: [LoopMetrics]
    /// Empty where spans are not exported.
    let traces: [TraceRing]
    let census: AddressCensus?

    package init(plan: GatewayPlan, metrics: [LoopMetrics], traces: [TraceRing] = [], census: AddressCensus?) {
        self.plan = plan
        self.metrics = metrics
        self.traces = traces
        self.census = census
    }
}

/// Bounds of one loop.
package struct DataLimits: Sendable {
    package var connections: Int
    package var headerSize: Int
    package var heads: HeadLimits
    /// Bytes of a request body.
    var bodySize: UInt64
    /// Nanoseconds from the first byte of a request's head to its last one.
    package var headTimeout: UInt64
    /// Bytes a second that whoever is waited for moves at least; zero: any byte will do.
    package var leastRate: Int
    /// Requests that may wait for a token.
    var waiters: Int
    /// Bytes of blocks beyond the ordinary size: bodies kept for a replay, big heads, output that a slow peer leaves behind.
    package var largeBytes: Int
    /// Connections of one caller address, over all loops; nil: as many as there may be.
    package var perAddress: Int?

    package init(
        connections: Int, headerSize: Int, heads: HeadLimits, bodySize: UInt64, headTimeout: UInt64, leastRate: Int,
        waiters: Int, largeBytes: Int, perAddress: Int? = nil
    ) {
        self.connections = connections
        self.headerSize = headerSize
        self.heads = heads
        self.bodySize = bodySize
        self.headTimeout = headTimeout
        self.leastRate = leastRate
        self.waiters = waiters
        self.largeBytes = largeBytes
        self.perAddress = perAddress
    }
}
