internal import HTTP1
internal import Reactor
internal import Telemetry

/// A configuration as the loops need it: compiled once, immutable, shared.
final class GatewayPlan: Sendable {
    let edition: Edition
    let routes: [RoutePlan]
    let listeners: [ListenerPlan]
    let upstreams: [UpstreamPlan]
    let limits: DataLimits
    /// `nat64`.
    let translators: [AddressRange]
    /// Our name in `Via` and `Proxy-Status`.
    let pseudonym: String
    let accessPolicy: AccessPolicy
    /// Numbers of the log's names.
    let faultNames: [Fault.Kind: UInt16]
    let metrics: MetricPlan
    private let upstreamPositions: [ObjectIdentifier: Int]
    private let listenersByAddress: [SocketAddress: ListenerPlan]

    init(
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

    /// What stands where a listener of another plan stood, if its connections may go on there.
    func listener(succeeding earlier: ListenerPlan) -> ListenerPlan? {
        guard let listener = listenersByAddress[earlier.address], listener.continues(earlier) else { return nil }
        return listener
    }

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
