internal import Audit
public import Configuration
public import DataPath
internal import Glibc
public import Keeping
internal import Reactor
internal import Synchronization
internal import TLS
internal import Telemetry

/// The questions that the admin module asks of a running gateway, and the addresses that it answers on.
extension Gateway {
    /// Whether traffic should come, and what is missing if not.
    public struct Readiness: Sendable {
        /// All of it that has to be is up.
        public var isReady: Bool
        /// A sentence for each thing that is missing.
        public var reasons: [String]
        /// Waiting mends nothing: somebody has to change what is configured, or the file of the store.
        public var needsOperator = false
    }

    /// Must be called on the keeper's loop, where admin requests are answered.
    public func status() -> GatewayStatus {
        var status = keeper.assumeIsolated { $0.status() }
        status.shared = keeper.assumeIsolated { SharedStatus($0.fleet, at: $0.now) }
        status.audit = audit.map { audit in
            let head = audit.head
            return AuditStatus(
                records: head.count, hash: head.hash, dropped: audit.dropped, writing: !audit.isFailing)
        }
        status.configuration = running.withLock { running in
            ConfigurationStatus(
                edition: running.edition, reloads: running.reloads, refusals: running.refusals,
                refusal: running.refusal, needsRestart: running.needsRestart)
        }
        let counts = metrics.snapshot()
        for (index, cell) in plan.metrics.waiters.enumerated() where index < status.identities.count {
            status.identities[index].waiting = max(0, Int(Int64(bitPattern: counts.value(cell))))
        }
        status.upstreams = healthWatch.value.status
        let now = keeperLoop.kernel.now()
        // Where a caller chooses to go is its own matter.
        for upstream in plan.upstreams where !upstream.isOpenOnly {
            guard let trouble = upstream.trouble.current else { continue }
            let outage = UpstreamHealthStatus.Outage(
                reason: trouble.reason, ago: now - min(now, trouble.since))
            if let index = status.upstreams.firstIndex(where: { $0.upstream == upstream.origin }) {
                status.upstreams[index].outage = outage
            } else {
                status.upstreams.append(
                    UpstreamHealthStatus(upstream: upstream.origin, path: nil, addresses: [], outage: outage))
            }
        }
        status.certificates = plan.listeners.flatMap { listener in
            guard let tls = listener.tls else { return [CertificateStatus]() }
            return zip(tls.sources, tls.identities).map { source, identity in
                CertificateStatus(listener: listener.text, file: source.certificate, notAfter: identity.notAfter)
            }
        }
        status.certificateValidities = certificateValidities
        return status
    }

    /// Each use, file and subject once: listeners and upstreams share files.
    private var certificateValidities: [CertificateValidityStatus] {
        var all = keyWatch.withLock { $0.validities }
        for listener in plan.listeners {
            if let tls = listener.tls {
                for (source, identity) in zip(tls.sources, tls.identities) {
                    all += identity.validities.map {
                        CertificateValidityStatus(.listener, file: source.certificate, $0)
                    }
                    all += identity.callerAuthorityValidities.map {
                        CertificateValidityStatus(.callers, file: source.callerAuthorities ?? "", $0)
                    }
                }
            }
            if let interception = listener.forward.interception {
                all.append(
                    CertificateValidityStatus(
                        .interception, file: interception.file, interception.authorityValidity))
            }
        }
        if let trust = keeper.assumeIsolated({ $0.fleet.trust }) { all += CertificateValidityStatus.all(of: trust) }
        var seen: Set<[String]> = []
        return all.filter { seen.insert([$0.use.rawValue, $0.file, $0.subject]).inserted }
    }

    /// Must be called on the keeper's loop. Lifts the identity's quarantine; false if there is no such identity.
    public func reset(identity: String) -> Bool { keeper.assumeIsolated { $0.reset(identity: identity) } }

    /// Must be called on the keeper's loop. Forgets tokens, so that they are had anew; nil if there is no such identity or route.
    public func purge(_ scope: PurgeScope) -> PurgeReport? { keeper.assumeIsolated { $0.purge(scope) } }

    /// Must be called on the keeper's loop. Once ready, it stays so until the gateway drains: an issuer's outage or a quarantine is no reason
    /// to take the traffic away that valid tokens still serve.
    public func readiness() -> Readiness {
        if isLingering { return Readiness(isReady: false, reasons: ["draining"]) }
        guard isServing else { return Readiness(isReady: false, reasons: ["starting"]) }
        // Nothing that an issuer does: whoever put this configuration here has to look.
        let blind = keeper.assumeIsolated { keeper in keeper.identities.filter(keeper.lacksStore).map(\.plan.name) }
        guard blind.isEmpty else {
            return Readiness(
                isReady: false, reasons: blind.map { "identity \($0): the store cannot be read" }, needsOperator: true)
        }
        if readied.load(ordering: .relaxed) { return Readiness(isReady: true, reasons: []) }
        let awaited = keeper.assumeIsolated { keeper in keeper.awaited(strictly: keeper.now > self.waitUntil) }
        guard awaited.isEmpty else {
            return Readiness(isReady: false, reasons: awaited.map { "identity \($0) has no token yet" })
        }
        readied.store(true, ordering: .relaxed)
        return Readiness(isReady: true, reasons: [])
    }

    /// The answer of `readiness`, for threads that are no loop; nil when the keeper does not come round.
    public func askedReadiness() -> Readiness? { keeperLoop.ask(milliseconds: 2000) { self.readiness() } }

    /// Whether every loop has come round since the last call; asks them anew. For a watchdog: a loop that hangs stays silent.
    public func pulse() -> Bool { heartbeat.beat(of: [keeperLoop] + loops.map(\.value.loop)) }

    /// Nanoseconds since the gateway was made.
    public var age: UInt64 { keeperLoop.kernel.now() - startedAt }

    /// Milliseconds since 1970.
    public var wallMilliseconds: Int64 { keeperLoop.kernel.wallMilliseconds() }

    /// Removes the socket that a killed process left at `path`. A socket that answers stays, and so does a file that is no socket.
    public static func removeStaleSocket(_ path: String) {
        if let address = SocketAddress(parsing: "unix:\(path)") { ListeningSocket.removeStaleSocket(address) }
    }

    /// Binds the admin addresses. Before `start`.
    public func openAdmin(_ admin: Admin, responder: any AdminResponder) throws(GatewayFault) {
        let server = AdminServer(loop: keeperLoop, responder: responder, hosts: admin.hosts, whenStored: whenStored)
        adminServers.withLock { $0.append(server) }
        if let listen = admin.listen { try open(server, text: "\(listen)", entrance: .listen) }
        if let probes = admin.probes { try open(server, text: "\(probes)", entrance: .probes) }
        if let metrics = admin.metrics { try open(server, text: "\(metrics)", entrance: .metrics) }
    }

    /// Binds the command line's socket, mode 0600. Before `start`.
    public func openAdminSocket(_ path: String, responder: any AdminResponder) throws(GatewayFault) {
        let server = AdminServer(loop: keeperLoop, responder: responder, hosts: [], whenStored: whenStored)
        adminServers.withLock { $0.append(server) }
        try open(server, text: "unix:\(path)", entrance: .socket)
    }

    private var whenStored: AdminServer.Barrier {
        { [keeper] done in keeper.assumeIsolated { $0.whenErased(done) } }
    }

    private func open(_ server: AdminServer, text: String, entrance: AdminRequest.Entrance) throws(GatewayFault) {
        guard let address = SocketAddress(parsing: text) else { throw GatewayFault("admin: cannot listen on \(text)") }
        let plan = ListenerPlan(
            index: 0, address: address, text: text, isUnix: address.family == .unix, isLoopback: false, routes: [])
        let before = umask(0o177)
        defer { umask(before) }
        do throws(ListenFault) {
            let socket = try ListeningSocket.open(plan, loops: 1, inherited: inherited.take(address))
            for descriptor in socket.descriptors[0] { server.hold(descriptor, of: address, entrance: entrance) }
        } catch { throw GatewayFault("admin: \(error)", isPassing: GatewayFault(error).isPassing) }
        events.info("admin listening", [LogField("address", .name(text))])
    }
}
