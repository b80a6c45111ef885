internal import Configuration
internal import DataPath
internal import Fleet
internal import HotCache
internal import Keeping
internal import Reactor
internal import Telemetry

/// A keeper without listeners, on a loop that nobody runs yet: for commands that speak with issuers as the gateway would.
///
/// The keeper opens the store as the gateway would, so what it does counts there; beside a running gateway it has no store and may do
/// little.
struct DetachedKeeper {
    let loop: Loop
    let keeper: Keeper
    let opened: Gateway.OpenedStore
    let plan: GatewayPlan
    /// The fleet that has the same sessions, refresh tokens and attempts; nil without `store.shared`. Its tier is not started.
    let shared: (fleet: KeptFleet, tier: RedisTier)?

    /// - Parameters:
    ///   - name: of the loop.
    ///   - persists: whether identities may keep what they get.
    init(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, name: String,
        persists: Bool, platform: Platform = .machine
    ) throws(GatewayFault) {
        let resolver: any NameResolver
        let blocking: any BlockingWork
        let programs: any BlockingWork
        let events: EventLog
        do {
            loop = try Loop(name: name, kernel: platform.kernel())
            resolver = try platform.names()
            blocking = try platform.blocking()
            programs = try platform.programs()
            events = try EventLog(level: .error, time: platform.time)
        } catch { throw GatewayFault("\(error)") }
        let cache = HotCache(readers: 1, slots: 4096, byteLimit: 1 << 20)
        let compiled = try CompiledConfiguration(
            configuration, environment: environment, persists: persists, cache: cache, loops: 1, platform: platform)
        plan = compiled.plan
        opened = Gateway.openStore(configuration, environment: environment, events: events, platform: platform)
        keeper = Keeper(
            KeeperParts(
                executor: LoopExecutor(loop: loop), cache: cache, events: events, resolver: resolver,
                blocking: blocking, identities: compiled.identities, routes: compiled.compiler.keptRoutes,
                store: opened.store,
                storeState: opened.state, markKey: try MarkKey(in: opened.rows, random: platform.random),
                random: platform.random,
                subjects: SubjectBook.Limits(configuration), programs: programs))
        shared = try Gateway.openFleet(
            configuration, environment: environment, keeper: keeper, platform: platform)
    }
}
