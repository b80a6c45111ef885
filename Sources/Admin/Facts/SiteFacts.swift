internal import Gateway
internal import Keeping
internal import Telemetry

/// Everything that the page, the metrics and the status tell, gathered at one moment. What is rendered is a function of this.
struct SiteFacts: Sendable {
    var version: String
    var configurationPath: String
    /// Addresses that callers connect to.
    var listening: [String]
    /// Nanoseconds since the gateway was made.
    var age: UInt64
    /// Seconds since 1970.
    var wallTime: Double
    var isReady: Bool
    /// Why it is not.
    var reasons: [String]
    var status: GatewayStatus
    var snapshot: MetricSnapshot
    var traffic: GatewayTraffic
    /// By route, in the order of `traffic`.
    var trends: [RouteTrend]
    var logDropped: UInt64
    /// Nil where spans were never exported.
    var spans: [SpanCounts.Outcome: UInt64]?
}

/// Where the site's facts come from: a gateway, or a test's values. All of it is called on the keeper's loop.
struct FactSource: Sendable {
    var readiness: @Sendable () -> Gateway.Readiness
    var status: @Sendable () -> GatewayStatus
    var facts: @Sendable () -> SiteFacts
    var process: @Sendable () -> ProcessFacts
    /// False if there is no such identity.
    var reset: @Sendable (String) -> Bool
    /// Nil if there is no such identity or route.
    var purge: @Sendable (PurgeScope) -> PurgeReport?
    /// Asks for a reload; what came of it stands in the configuration's status.
    var reload: @Sendable () -> Void
    var place: @Sendable () -> PlaceDocument
    var startTask: @Sendable (StoreTask) -> Gateway.StoreStart
    /// The task on the store that runs, or the last one.
    var storeWork: @Sendable () -> StoreWork?
    /// The report on the last run of an identity's recipe.
    var run: @Sendable (String) -> RunReport?
    var failures: @Sendable () -> FailureReport
    var logins: LoginSource
}

/// The keeper's logins, for the command line.
struct LoginSource: Sendable {
    var login: @Sendable (_ identity: String, _ redirectPort: UInt16?) -> LoginStart
    var logout: @Sendable (_ identity: String) -> LoginStart
    var report: @Sendable (_ flow: String) -> LoginReport?
    var redirected: @Sendable (_ flow: String, _ query: String) -> RedirectReply?
    var cancel: @Sendable (_ flow: String) -> LoginReport?
}

extension FactSource {
    init(
        gateway: Gateway, version: String, place: ServedPlace, reload: @escaping @Sendable () -> Void,
        logDropped: @escaping @Sendable () -> UInt64
    ) {
        let history = TrafficHistory()
        let reader = ProcessReader()
        readiness = { gateway.readiness() }
        status = { gateway.status() }
        facts = {
            let readiness = gateway.readiness()
            let snapshot = gateway.metrics.snapshot()
            let traffic = gateway.traffic(in: snapshot)
            let age = gateway.age
            history.note(traffic, at: age)
            return SiteFacts(
                version: version, configurationPath: place.document.shown, listening: gateway.addresses, age: age,
                wallTime: Double(gateway.wallMilliseconds) / 1000, isReady: readiness.isReady,
                reasons: readiness.reasons, status: gateway.status(), snapshot: snapshot,
                traffic: traffic, trends: traffic.routes.map { history.trend(of: $0.name) }, logDropped: logDropped(),
                spans: gateway.spanCounts)
        }
        process = { reader.read() }
        reset = { gateway.reset(identity: $0) }
        purge = { gateway.purge($0) }
        self.reload = reload
        self.place = { place.document }
        startTask = { gateway.start($0) }
        storeWork = { gateway.storeWork }
        run = { gateway.lastRun(identity: $0) }
        failures = { gateway.failures }
        logins = LoginSource(
            login: { gateway.login(identity: $0, redirectPort: $1) }, logout: { gateway.logout(identity: $0) },
            report: { gateway.loginReport($0) }, redirected: { gateway.loginRedirected($0, query: $1) },
            cancel: { gateway.cancelLogin($0) })
    }
}
