package import Reactor
package import Telemetry
package import World

/// Checks the addresses of all upstreams that ask for it, once for the whole process, on the keeper's loop: the interpreter of
/// `HealthRecord`. Data loops get the finished set of those that are not fit (`AddressBook.noteUnhealthy`), which never takes the last one out.
package final class HealthWatch: Watched {
    private var upstreams: [CheckedUpstream] = []
    private let buffers = LoopBuffers(blocks: 64, largeLimit: 1 << 20, scratchSize: 64 * 1024)
    private let resolver: any NameResolver
    private let random: any RandomSource
    private let events: EventLog
    /// Tells every loop; false when one of them had no room for it.
    private let publish: (UpstreamPlan, Set<SocketAddress>) -> Bool
    private var timer: TimerID?
    private var running = 0
    /// Groups of addresses that are no longer checked, until their last connection is closed.
    private var departing: [UpstreamGroup] = []
    private var isAdopted = false

    /// Checks at a time over all upstreams: those that are due beyond it wait.
    static let mostRunning = 32
    /// Nanoseconds after which news that a loop had no room for is told again.
    private static let repetition: UInt64 = 100_000_000

    package init(
        loop: Loop, resolver: any NameResolver, random: any RandomSource, events: EventLog,
        publish: @escaping (UpstreamPlan, Set<SocketAddress>) -> Bool
    ) {
        self.resolver = resolver
        self.random = random
        self.events = events
        self.publish = publish
        super.init(loop: loop)
    }

    /// The upstreams of now. Checks of those that stay go on, the others end. On the loop.
    package func take(_ plans: [UpstreamPlan]) {
        if !isAdopted { loop.adopt(self) }
        isAdopted = true
        let before = upstreams
        var earlier = Dictionary(before.map { (ObjectIdentifier($0.plan), $0) }) { first, _ in first }
        upstreams = plans.compactMap { plan in
            guard let health = plan.health else { return nil }
            return earlier.removeValue(forKey: ObjectIdentifier(plan))
                ?? CheckedUpstream(plan, health, random: random, at: loop.now)
        }
        for upstream in before where earlier[ObjectIdentifier(upstream.plan)] != nil {
            upstream.isOver = true
            for address in upstream.addresses { end(address) }
        }
        tick()
    }

    package override func timerFired(_ kind: UInt8) {
        timer = nil
        tick()
    }

    package var status: [UpstreamHealthStatus] { upstreams.map { $0.status(at: loop.now) } }

    // MARK: - Checking

    /// Its group stays until the last of its connections is closed: they hold it unsafely.
    private func end(_ address: CheckedAddress) {
        if let probe = address.probe {
            probe.cancel()
            address.probe = nil
            running -= 1
        }
        guard let group = address.group else { return }
        group.retire()
        departing.append(group)
    }

    private func tick() {
        departing.removeAll(where: \.isUnused)
        for upstream in upstreams {
            ask(upstream)
            for address in upstream.addresses where running < Self.mostRunning && address.record.isDue(at: loop.now) {
                check(address, of: upstream)
            }
            if upstream.isUntold { tell(upstream) }
        }
        schedule()
    }

    private func schedule() {
        if let timer { loop.disarm(timer) }
        timer = nil
        var next = UInt64.max
        for upstream in upstreams {
            next = min(next, upstream.schedule.nextDue)
            if upstream.isUntold { next = min(next, loop.now + Self.repetition) }
            // At the bound the end of a check comes back here.
            for address in upstream.addresses where !address.record.isRunning && running < Self.mostRunning {
                next = min(next, address.record.nextDue)
            }
        }
        if next != .max { timer = loop.arm(self, at: max(next, loop.now + 1_000_000), kind: 0) }
    }

    private func check(_ address: CheckedAddress, of upstream: CheckedUpstream) {
        let health = upstream.health
        address.record.began(health, at: loop.now, chance: random.fraction())
        running += 1
        let group =
            address.group
            ?? UpstreamGroup(
                plan: upstream.plan.checking(address.address, within: health.timeout), loop: loop, buffers: buffers,
                resolver: resolver, report: { _ in })
        address.group = group
        let probe = HealthProbe(health, group: group) { [unowned self, unowned upstream, unowned address] outcome in
            address.probe = nil
            running -= 1
            if address.record.ended(health, outcome, at: loop.now) { turned(address, of: upstream) }
            // Put off: an attempt that fails at once would otherwise come back here from within.
            loop.putOffToEndOfTurn { [weak self] in self?.tick() }
        }
        address.probe = probe
        probe.start()
    }

    private func turned(_ address: CheckedAddress, of upstream: CheckedUpstream) {
        var fields = [
            LogField("upstream", .name(upstream.plan.origin)), LogField("address", .name("\(address.address)")),
        ]
        if let reason = address.record.lastFailure {
            fields.append(LogField("reason", .name(reason)))
            events.warn("address is unhealthy", fields)
        } else {
            events.info("address is healthy again", fields)
        }
        tell(upstream)
    }

    private func tell(_ upstream: CheckedUpstream) {
        let unhealthy = upstream.addresses.filter { !$0.record.isHealthy }.map(\.address)
        upstream.isUntold = !publish(upstream.plan, Set(unhealthy))
    }

    // MARK: - Names

    private func ask(_ upstream: CheckedUpstream) {
        for endpoint in upstream.schedule.due(at: loop.now) {
            guard case .name(let host, let port) = upstream.plan.endpoints[endpoint] else { continue }
            let bound = LoopBound((watch: self, upstream: upstream))
            let loop = self.loop
            resolver.resolve(host: host, port: port) { outcome in
                let addresses = (try? outcome.get()) ?? []
                // A full mailbox loses this answer; the schedule asks again.
                _ = loop.post { bound.value.watch.answered(bound.value.upstream, endpoint, addresses) }
            }
        }
    }

    private func answered(_ upstream: CheckedUpstream, _ endpoint: Int, _ found: [SocketAddress]) {
        guard !upstream.isOver else { return }
        for gone in upstream.answered(endpoint, found, at: loop.now) { end(gone) }
        tick()
    }
}

/// An address of an upstream, and the connections that check it.
private final class CheckedAddress {
    let address: SocketAddress
    let endpoint: Int
    var record: HealthRecord
    /// With the TLS configuration, which is made once.
    var group: UpstreamGroup?
    var probe: HealthProbe?

    init(_ address: SocketAddress, endpoint: Int, record: HealthRecord) {
        self.address = address
        self.endpoint = endpoint
        self.record = record
    }
}

private final class CheckedUpstream {
    let plan: UpstreamPlan
    let health: HealthPlan
    private(set) var addresses: [CheckedAddress] = []
    var schedule: NameSchedule
    /// Some loop has not heard the last news.
    var isUntold = false
    /// No configuration has it any more.
    var isOver = false
    private let random: any RandomSource

    init(_ plan: UpstreamPlan, _ health: HealthPlan, random: any RandomSource, at now: UInt64) {
        self.plan = plan
        self.random = random
        self.health = health
        schedule = NameSchedule(endpoints: plan.names)
        for (index, endpoint) in plan.endpoints.enumerated() {
            if case .address(let address) = endpoint { add([address], index, at: now) }
        }
    }

    /// - Returns: those that the name no longer has.
    func answered(_ endpoint: Int, _ found: [SocketAddress], at now: UInt64) -> [CheckedAddress] {
        let isKnown = addresses.contains { $0.endpoint == endpoint }
        schedule.answered(endpoint: endpoint, found: !found.isEmpty, isKnown: isKnown, at: now)
        guard !found.isEmpty else { return [] }
        let gone = addresses.filter { $0.endpoint == endpoint && !found.contains($0.address) }
        addresses.removeAll { old in gone.contains { $0 === old } }
        add(found, endpoint, at: now)
        if gone.contains(where: { !$0.record.isHealthy }) { isUntold = true }
        return gone
    }

    private func add(_ found: [SocketAddress], _ endpoint: Int, at now: UInt64) {
        for address in found where addresses.count < AddressBook.mostAddresses {
            guard !addresses.contains(where: { $0.address == address }) else { continue }
            let record = HealthRecord(health, at: now, chance: random.fraction())
            addresses.append(CheckedAddress(address, endpoint: endpoint, record: record))
        }
    }

    func status(at now: UInt64) -> UpstreamHealthStatus {
        UpstreamHealthStatus(
            upstream: plan.origin, path: health.path,
            addresses: addresses.map {
                .init(
                    address: "\($0.address)", isHealthy: $0.record.isHealthy, checks: $0.record.checks,
                    failures: $0.record.failures, lastFailure: $0.record.lastFailure,
                    lastFailureAgo: now - min(now, $0.record.lastFailureAt))
            })
    }
}
