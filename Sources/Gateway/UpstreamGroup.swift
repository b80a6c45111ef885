internal import Glibc
internal import Reactor
internal import TLS

/// What an upstream or issuer is, as configured: immutable and shared by all loops.
final class UpstreamPlan: Sendable {
    let index: Int
    /// `scheme://host:port`, the host binding of tokens.
    let origin: String
    let host: String
    let port: UInt16
    let usesTLS: Bool
    /// Name for SNI and the certificate check.
    let serverName: String
    /// Where to connect instead of resolving `host`.
    let addresses: [SocketAddress]
    let authorities: [CertificateAuthority]
    let minimumVersion: TLSVersion
    let legacyTLS: Bool
    /// Nanoseconds.
    let connectTimeout: UInt64
    let idleTimeout: UInt64
    /// Answers that one connection carries before it is replaced: it bounds what a leak in a peer can grow to.
    let requestsPerConnection = 100_000
    let idleConnections = 256

    init(
        index: Int, origin: String, host: String, port: UInt16, usesTLS: Bool, serverName: String,
        addresses: [SocketAddress],
        authorities: [CertificateAuthority], minimumVersion: TLSVersion, legacyTLS: Bool, connectTimeout: UInt64,
        idleTimeout: UInt64
    ) {
        self.index = index
        self.origin = origin
        self.host = host
        self.port = port
        self.usesTLS = usesTLS
        self.serverName = serverName
        self.addresses = addresses
        self.authorities = authorities
        self.minimumVersion = minimumVersion
        self.legacyTLS = legacyTLS
        self.connectTimeout = connectTimeout
        self.idleTimeout = idleTimeout
    }
}

extension UpstreamPlan {
    /// Whether a connection made for one may serve the other: everything that decides where it goes and whom it trusts is equal.
    func reaches(sameAs other: UpstreamPlan) -> Bool {
        origin == other.origin && serverName == other.serverName && addresses == other.addresses
            && authorities == other.authorities && minimumVersion == other.minimumVersion
            && legacyTLS == other.legacyTLS
            && connectTimeout == other.connectTimeout
    }
}

/// One loop's connections to one upstream: the last one used is the first one taken, so that few stay warm and the rest expire.
final class UpstreamGroup {
    let plan: UpstreamPlan
    let loop: Loop
    let buffers: LoopBuffers
    /// Connections that exist, idle ones too.
    var open = 0
    private(set) var idle: [UpstreamConnection] = []
    private let resolver: Resolver
    private let report: (String) -> Void

    private var tls: TLSClientConfiguration?
    private var resolved: [SocketAddress] = []
    private var resolvedAt: UInt64 = 0
    private var resolving = false
    private var resolvingSince: UInt64 = 0
    private var waiting: [UpstreamConnection] = []
    private var next = 0
    private(set) var lastTLSFailure: String?

    /// How long a resolution is used before it is asked anew, in nanoseconds. A failed one is asked again at the next need.
    static let resolutionLife: UInt64 = 30_000_000_000

    init(plan: UpstreamPlan, loop: Loop, buffers: LoopBuffers, resolver: Resolver, report: @escaping (String) -> Void) {
        self.plan = plan
        self.loop = loop
        self.buffers = buffers
        self.resolver = resolver
        self.report = report
        resolved = plan.addresses
    }

    // MARK: - Taking and giving back

    /// An idle connection, or a new one that calls its user when it is ready or lost.
    func take(for user: any UpstreamUser, fresh: Bool) -> UpstreamConnection {
        if !fresh, let connection = idle.popLast() {
            connection.takeUp(user)
            return connection
        }
        let connection = UpstreamConnection(group: self, user: user)
        open += 1
        start(connection)
        return connection
    }

    func give(_ connection: UpstreamConnection) {
        guard idle.count < plan.idleConnections else { return connection.close() }
        connection.becomeIdle(until: loop.now + plan.idleTimeout)
        idle.append(connection)
    }

    func discard(_ connection: UpstreamConnection) {
        if let position = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: position) }
        connection.close()
    }

    func closeIdle() {
        for connection in idle { connection.close() }
        idle.removeAll()
    }

    // MARK: - Addresses

    private func start(_ connection: UpstreamConnection) {
        if plan.addresses.isEmpty, resolved.isEmpty || loop.now > resolvedAt + Self.resolutionLife { resolve() }
        if resolved.isEmpty {
            waiting.removeAll { $0.state == .closed }
            waiting.append(connection)
        } else {
            begin(connection)
        }
    }

    private func begin(_ connection: UpstreamConnection) {
        // Each connection starts at the next address and falls back to the others.
        next = (next + 1) % resolved.count
        let order = Array(resolved[next...] + resolved[..<next])
        // Put off: the user holds the connection before it hears of it.
        loop.putOffToEndOfTurn { [connection] in
            guard connection.state == .connecting, connection.descriptor < 0 else { return }
            connection.connect(to: order)
        }
    }

    private func resolve() {
        // An answer that was lost on its way is asked for again.
        guard !resolving || loop.now > resolvingSince + 10_000_000_000 else { return }
        resolvingSince = loop.now
        resolving = true
        let group = LoopBound(self)
        let loop = self.loop
        resolver.resolve(host: plan.host, port: plan.port) { outcome in
            let addresses = (try? outcome.get()) ?? []
            // A full mailbox loses this answer; the waiters then meet their connect deadline.
            _ = loop.post { group.value.resolved(addresses) }
        }
    }

    private func resolved(_ addresses: [SocketAddress]) {
        resolving = false
        if !addresses.isEmpty {
            resolved = addresses
            resolvedAt = loop.now
        }
        // A failed re-resolution keeps the old addresses: they worked, and the name server's outage is not the upstream's.
        guard !resolved.isEmpty else { return failWaiting() }
        let ready = waiting
        waiting.removeAll()
        for connection in ready where connection.state == .connecting { begin(connection) }
    }

    private func failWaiting() {
        let failed = waiting
        waiting.removeAll()
        for connection in failed { connection.lose(Fault(.upstreamUnresolvable, retry: .unsent)) }
    }

    // MARK: - TLS

    func makeTLS(descriptor: Int32) throws(TLSFault) -> TLSConnection {
        let configuration: TLSClientConfiguration
        if let tls {
            configuration = tls
        } else {
            configuration = try TLSClientConfiguration(
                authorities: plan.authorities, minimumVersion: plan.minimumVersion, legacy: plan.legacyTLS,
                alpn: ["http/1.1"])
            tls = configuration
        }
        return try TLSConnection(client: configuration, serverName: plan.serverName, descriptor: descriptor)
    }

    /// Reports a failed handshake once per reason: a misconfigured route would otherwise say it with every request.
    func noteTLSFailure(_ fault: TLSFault) {
        let text = "\(fault)"
        guard text != lastTLSFailure else { return }
        lastTLSFailure = text
        report(text)
    }
}

/// A value that belongs to one loop, on its way through a mailbox. Only the letter's opening touches it, and that happens on the loop.
struct LoopBound<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
