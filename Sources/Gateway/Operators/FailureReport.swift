internal import DataPath
public import Telemetry

/// The failed requests that the gateway remembers, for operators.
public struct FailureReport: Sendable {
    /// Nanoseconds of the wall clock since 1970, since when failures are remembered: the start of the process.
    public var since: UInt64
    /// Nanoseconds of the wall clock since 1970.
    public var now: UInt64
    /// The route that failed last comes first.
    public var routes: [RouteFailures]
    /// The identity that a route of the configuration of now has, by the route's name.
    public var identities: [String: String]
    /// Names of the routes of the configuration of now, in its order.
    public var names: [String]

    /// Memberwise.
    public init(
        since: UInt64, now: UInt64, routes: [RouteFailures], identities: [String: String], names: [String]
    ) {
        self.since = since
        self.now = now
        self.routes = routes
        self.identities = identities
        self.names = names
    }
}

extension Gateway {
    /// The failed requests that are remembered.
    public var failures: FailureReport {
        let routes = plan.routes
        return FailureReport(
            since: log.remembersSince, now: UInt64(max(wallMilliseconds, 0)) * 1_000_000,
            routes: log.rememberedFailures,
            identities: Dictionary(
                routes.compactMap { route in route.identity.map { (route.name, $0.name) } },
                uniquingKeysWith: { first, _ in first }), names: routes.map(\.name))
    }
}
