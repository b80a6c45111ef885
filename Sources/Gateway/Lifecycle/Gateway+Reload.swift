internal import Audit
public import Configuration
public import DataPath
internal import Glibc
internal import HotCache
internal import Keeping
internal import Reactor
internal import Synchronization
internal import Telemetry

/// The configuration that runs, and what a reload has to know of it.
struct Running: Sendable {
    var plan: GatewayPlan
    /// With the catalogs of what it has read.
    var identityCompiler: IdentityCompiler
    var editions: LivingEditions
    var nextRoute: Int
    var census: AddressCensus?
    /// The edition of the plan that was last given to every loop; a loop that was too busy may not have taken it up yet.
    var edition = 1
    /// Why the last reload changed nothing; nil when it did.
    var refusal: String?
    /// Keys whose new value counts from the next start on.
    var needsRestart: [String] = []
    /// Reloads that took effect, and that did not.
    var reloads = 0
    var refusals = 0
}

/// A reload: build beside, validate, swap, retire (docs/design/data-path.md#law-7). Whatever fails, fails before the swap, and nothing has
/// changed.
extension Gateway {
    /// The outcome of a reload.
    public struct Reload: Sendable {
        /// Keys whose new value counts from the next start on: memory and threads are laid out by them.
        public var needsRestart: [String]
        /// 1 at start, one more with every reload.
        public var edition: Int
    }

    /// Makes `configuration` the running one. On a thread that is no loop; one at a time. Blocks for as long as compiling takes.
    /// - Throws: why nothing changed.
    public func reload(_ configuration: Configuration) throws(GatewayFault) -> Reload {
        guard isServing || isLingering else { throw GatewayFault("not serving yet") }
        guard let holdings = keeperLoop.ask({ [keeper] in keeper.assumeIsolated { $0.holdings() } }) else {
            throw GatewayFault("the keeper does not answer")
        }
        let taken = TakenSlots()
        let next: CompiledConfiguration
        let opened: [ListeningSocket]
        do throws(GatewayFault) {
            next = try compile(configuration, holdings, taken)
            opened = try openSockets(of: next.plan)
        } catch {
            let slots = taken.all
            _ = keeperLoop.ask { [keeper] in keeper.assumeIsolated { $0.keepAsIs(giving: slots) } }
            throw error
        }
        return try swap(next, configuration, opened)
    }

    /// A configuration that could not even be read or checked.
    public func refuseReload(_ reason: String) {
        running.withLock { running in
            running.refusal = reason
            running.refusals += 1
        }
        audit?.note(.reload, [AuditField(.result, .word("refused"))])
    }

    // MARK: - Building beside

    private func compile(
        _ configuration: Configuration, _ holdings: KeeperHoldings, _ taken: TakenSlots
    ) throws(GatewayFault) -> CompiledConfiguration {
        let (plan, editions, nextRoute, earlier) = running.withLock {
            ($0.plan, $0.editions, $0.nextRoute, $0.identityCompiler)
        }
        let predecessor = Predecessor(
            edition: plan.edition.number, limits: plan.limits, listeners: plan.listeners, upstreams: plan.upstreams,
            choices: plan.routes.compactMap(\.choice), upstreamNumbers: editions.upstreamNumbers, nextRoute: nextRoute,
            routes: holdings.routes,
            slot: { [keeper, keeperLoop, cache] key in
                if let slot = holdings.slots[key] { return slot }
                // The cache has one writer.
                let slot = keeperLoop.ask { keeper.assumeIsolated { _ in cache.allocateSlot() } }
                if let slot = slot ?? nil { taken.add(slot) }
                return slot ?? nil
            })
        return try CompiledConfiguration(
            configuration, environment: environment, persists: store != nil, cache: cache, loops: loops.count,
            routeNames: log.routes, faultNames: log.faults, identityNames: log.identities, usePlaces: audit?.places,
            platform: platform,
            earlier: earlier,
            predecessor: predecessor, placeholders: placeholders)
    }

    /// Opens what is new. Addresses that stay keep their sockets, and with them whoever waits to be accepted.
    private func openSockets(of plan: GatewayPlan) throws(GatewayFault) -> [ListeningSocket] {
        let kept = Set(self.plan.listeners.map(\.address))
        return try Self.openSockets(of: plan, except: kept, loops: loops.count, inherited: inherited)
    }

    /// All of them or none.
    static func openSockets(
        of plan: GatewayPlan, except kept: Set<SocketAddress> = [], loops: Int, inherited: InheritedSockets
    ) throws(GatewayFault) -> [ListeningSocket] {
        var opened: [ListeningSocket] = []
        for listener in plan.listeners where !kept.contains(listener.address) {
            do throws(ListenFault) {
                opened.append(
                    try ListeningSocket.open(listener, loops: loops, inherited: inherited.take(listener.address)))
            } catch {
                for socket in opened { for descriptor in socket.descriptors.joined() { Glibc.close(descriptor) } }
                throw GatewayFault(error)
            }
        }
        return opened
    }

    // MARK: - Swapping

    private func swap(
        _ next: CompiledConfiguration, _ configuration: Configuration, _ opened: [ListeningSocket]
    ) throws(GatewayFault) -> Reload {
        let folders = configuration.secretFolders(environment: environment)
        let census = census(for: next.plan.limits)
        let traces = next.spans == nil ? [] : spans.rings(loops.count)
        // The change takes one turn of the keeper's loop, which also answers admin requests: they see the old plan or the new one,
        // never half of each.
        let metrics = keeperLoop.ask(milliseconds: 60_000) { [self] in
            keeper.assumeIsolated { $0.take(next.change) }
            watchSecrets(folders)
            watchKeys(of: next.identityCompiler)
            watchCertificates(of: next.plan.listeners)
            let metrics = next.plan.edition.count(next.plan.metrics, on: self.metrics, loops: loops.count)
            running.withLock { running in
                running.plan = next.plan
                running.editions.add(next.plan.edition)
                running.nextRoute = next.compiler.numbers.next
                running.identityCompiler = next.identityCompiler
            }
            return metrics
        }
        // The keeper may still make the change later, so nothing that it would then use is taken back.
        guard let metrics else { throw GatewayFault("the keeper does not answer") }
        let taken = NextPlan(plan: next.plan, metrics: metrics, traces: traces, census: census)
        // The keeper first: it knows the routes of both editions, the loops ask for those of theirs.
        for (index, loop) in loops.enumerated() {
            let sockets = Dictionary(
                uniqueKeysWithValues: opened.map {
                    ($0.plan.address, (descriptors: $0.descriptors[index], isShared: $0.isShared))
                })
            // A loop that is too busy now still has the letter.
            if loop.value.loop.ask({ loop.value.take(taken, sockets: sockets) }) == nil {
                events.error("a loop is late with the reload", [LogField("loop", .count(Int64(index)))])
            }
        }
        watchHealth(of: next.plan)
        exportSpans(to: next.spans)
        tellOfSecrets(of: configuration)
        for socket in opened { events.info("listening", [LogField("address", .name(socket.plan.text))]) }
        let edition = UInt64(clamping: next.plan.edition.number)
        audit?.note(.reload, [AuditField(.result, .word("done")), AuditField(.edition, .count(edition))])
        return running.withLock { running in
            running.census = census
            running.edition = next.plan.edition.number
            running.refusal = nil
            running.reloads += 1
            running.needsRestart = configuration.keysNeedingRestart(against: startedWith)
            return Reload(needsRestart: running.needsRestart, edition: next.plan.edition.number)
        }
    }

    private func census(for limits: DataLimits) -> AddressCensus? {
        let census = running.withLock { $0.census }
        guard let census else { return limits.perAddress.map { AddressCensus(limit: $0) } }
        census.limit = limits.perAddress ?? .max
        return census
    }
}

/// Slots that a compilation took and that go back when it comes to nothing.
private final class TakenSlots: Sendable {
    private let slots = Mutex<[Slot]>([])
    func add(_ slot: Slot) { slots.withLock { $0.append(slot) } }
    var all: [Slot] { slots.withLock { $0 } }
}

extension Configuration {
    /// Keys of `self` that differ from those that the process started with and cannot change while it runs.
    func keysNeedingRestart(against started: Configuration) -> [String] {
        var keys: [String] = []
        func compare<Value: Equatable>(_ key: String, _ path: KeyPath<Configuration, Value>) {
            if self[keyPath: path] != started[keyPath: path] { keys.append(key) }
        }
        compare("threads", \.threads)
        compare("limits.connections", \.limits.connections)
        compare("limits.header_size", \.limits.headerSize)
        compare("limits.headers", \.limits.headers)
        compare("limits.target_size", \.limits.targetSize)
        compare("limits.replay_memory", \.limits.replayMemory)
        compare("limits.hot_cache", \.limits.hotCache)
        compare("store", \.store)
        compare("admin.listen", \.admin.listen)
        compare("admin.probes", \.admin.probes)
        compare("admin.metrics", \.admin.metrics)
        compare("admin.socket", \.admin.socket)
        compare("admin.hosts", \.admin.hosts)
        compare("log.format", \.log.format)
        compare("audit", \.audit)
        compare("tracing.service", \.tracing?.service)
        compare("sandbox", \.sandbox)
        return keys
    }
}
