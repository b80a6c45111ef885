import Configuration
import HotCache
import ScriptedKernel
import ScriptedWorld
import Telemetry

@testable import DataPath
@testable import Gateway
@testable import Handshakes
@testable import Reactor

/// A configuration that is compiled once, for an upstream of HTTP/1.1 and for one of HTTP/2.
///
/// Below `/fixed/` requests carry a fixed credential, below `/granted/` a token that the issuer's own answer brings, and everywhere else
/// what their caller sent. The route of `/issuer/` is there for its upstream alone, over which the issuer is called.
struct Stage: Sendable {
    let plan: GatewayPlan
    let metrics: LoopMetrics
    let fixed: Slot
    let granted: Slot
    let issuer: UpstreamPlan

    static let upstreamPort: UInt16 = 9000
    static let issuerPort: UInt16 = 9100
    static let slots = 16

    private static let text = """
        name: gate
        identities:
          fixed: { static: { value: env:V } }
          granted: { oauth2: { token_url: "https://i.example.com/t", client_id: c, client_secret: env:V } }
        routes:
          - { listen: "127.0.0.1:8080", match: { path: /fixed/ }, to: "http://127.0.0.1:9000", use: fixed, http: HTTP }
          - { listen: "127.0.0.1:8080", match: { path: /granted/ }, to: "http://127.0.0.1:9000", use: granted, http: HTTP }
          - { listen: "127.0.0.1:8080", match: { path: /issuer/ }, to: "http://127.0.0.1:9100", use: none }
          - { listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: none, http: HTTP }
        limits: { connections: 32, header_size: 8KiB }
        """

    private init?(http: String) {
        let text = Self.text.split(separator: "HTTP", omittingEmptySubsequences: false).joined(separator: http)
        let loaded = Configuration.load(.text(text)) { _ in "secret" }
        guard let configuration = loaded.configuration, let events = Stage.events,
            let cache = Stage.cache(slots: nil)
        else {
            refute("the configuration: \(loaded.errors.map(\.description))")
        }
        let log = LogThread(events: events, format: .text)
        let compiler = IdentityCompiler(
            environment: { _ in "secret" }, secretFiles: configuration.secretFiles, persists: false)
        guard let identities = try? compiler.compile(configuration.identities) else { return nil }
        var gateway = GatewayCompiler(
            configuration: configuration, identities: identities, identityCompiler: compiler, cache: cache, loops: 1,
            routeNames: log.routes, faultNames: log.faults, identityNames: log.identities)
        guard let plan = try? gateway.compile(), let fixed = plan.routes[0].slot, let granted = plan.routes[1].slot
        else {
            return nil
        }
        self.plan = plan
        self.fixed = fixed
        self.granted = granted
        metrics = plan.edition.count(plan.metrics, on: MetricBoard(), loops: 1)[0]
        issuer = plan.routes[2].upstream
    }

    static let overHTTP1 = Stage(http: "1.1")
    static let overHTTP2 = Stage(http: "2")
    static let events = try? EventLog()
    /// Nothing here has a name that would have to be looked up.
    static let resolver = try? Resolver { _, _ in .failure(.notFound) }

    /// The cache of one run, whose slots have the numbers that the plan knows.
    static func cache(slots: [Slot]?) -> HotCache? {
        let cache = HotCache(readers: 1, slots: Self.slots, byteLimit: 1 << 20)
        guard let slots else { return cache }
        var left = Set(slots)
        while !left.isEmpty {
            guard let slot = cache.allocateSlot() else { return nil }
            left.remove(slot)
        }
        return cache
    }
}
