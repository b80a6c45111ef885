package import Configuration
package import DataPath
internal import Fleet
package import Reactor
internal import TLS

/// The way to the server of `store.shared`, over the connections that issuers are called on: the same names, addresses, TLS and bounds.
/// Touched on the keeper's loop only.
package final class FleetConnection: FleetLink, UpstreamUser, @unchecked Sendable {
    var report: (FleetLinkEvent) -> Void = { _ in }

    private let plan: UpstreamPlan
    private let trust: TrustAnchors?
    private let readPassword: (@Sendable () throws -> [UInt8])?
    private let loop: Loop
    private let buffers = LoopBuffers(blocks: 8, largeLimit: 1 << 20, scratchSize: 64 << 10)
    private let resolver: any NameResolver
    private let blocking: any BlockingWork
    private lazy var alarm = makeAlarm()
    private var wakesAt: UInt64?
    /// The number of the latest `prepare`; what an earlier one brings counts no more.
    private var preparation: UInt64 = 0
    private var group: UpstreamGroup?
    private var connection: UpstreamConnection?
    /// Octets that the connection was not given yet.
    private var output: [UInt8] = []
    private var isLosing = false

    /// Octets that are handed to the connection at once, and blocks that are read before others have their turn.
    private static let piece = 64 << 10
    private static let mostBlocks = 16

    /// - Parameters:
    ///   - trust: the authorities of TLS; nil: clear text.
    ///   - readPassword: may block; nil: there is none.
    package init(
        to address: SharedStore.Address, trust: TrustAnchors?, readPassword: (@Sendable () throws -> [UInt8])?,
        loop: Loop,
        resolver: any NameResolver, blocking: any BlockingWork
    ) throws(GatewayFault) {
        let (name, host, port, endpoints): (String, String, UInt16, [UpstreamEndpoint])
        switch address {
        case .server(let origin): (name, host, port, endpoints) = ("\(origin)", origin.host, origin.port, [])
        case .unix(let path):
            guard let address = SocketAddress(unixPath: path) else {
                throw GatewayFault("store.shared: \(path): too long for a socket")
            }
            (name, host, port, endpoints) = ("unix:\(path)", "localhost", 0, [.address(address)])
        }
        plan = UpstreamPlan(
            index: -1, origin: name, host: host, port: port, usesTLS: trust != nil, protocols: .other,
            serverName: host, endpoints: endpoints, trust: trust, minimumVersion: .v1_2, legacyTLS: false,
            clientKeys: nil, connectTimeout: RedisTier.connectTime, idleTimeout: 30_000_000_000)
        self.trust = trust
        self.readPassword = readPassword
        self.loop = loop
        self.resolver = resolver
        self.blocking = blocking
    }

    // MARK: - What its user asks for

    var now: UInt64 { loop.kernel.now() }

    func prepare() {
        preparation += 1
        guard trust != nil || readPassword != nil else { return report(.prepared(password: nil)) }
        let (number, trust, readPassword) = (preparation, self.trust, self.readPassword)
        let isTaken = blocking.run { [loop] in
            // For each connection anew, because authorities and password may have been renewed.
            _ = trust?.reload()
            let event: FleetLinkEvent
            do { event = .prepared(password: try readPassword?()) } catch {
                event = .lost(SharedFault(.unavailable, "the password cannot be read: \(error)"))
            }
            _ = loop.post { [self] in
                if number == preparation { report(event) }
            }
        }
        if !isTaken { report(.lost(SharedFault(.unavailable, "too much blocking work waits"))) }
    }

    func connect() {
        // A group of its own each time: nothing of a failed attempt decides over the next.
        let group = UpstreamGroup(plan: plan, loop: loop, buffers: buffers, resolver: resolver) { _ in }
        self.group = group
        let connection = group.take(for: self, fresh: true, once: true)
        // A socket that is not there refuses at once, and that was told.
        if self.group === group { self.connection = connection }
    }

    func send(_ bytes: [UInt8]) {
        guard connection != nil else { return }
        output += bytes
        pushOutput()
    }

    func close() {
        preparation += 1
        drop()
    }

    func wake(at time: UInt64?) {
        guard time != wakesAt else { return }
        wakesAt = time
        if let time { alarm.set(at: time) } else { alarm.clear() }
    }

    private func makeAlarm() -> Alarm {
        let alarm = Alarm(loop: loop)
        alarm.action = { [unowned self] in
            wakesAt = nil
            report(.woken)
        }
        return alarm
    }

    // MARK: - The connection's events

    package func upstreamConnected(_ connection: UpstreamConnection) {
        report(.connected)
        if self.connection === connection, connection.canRead { upstreamReady(connection) }
    }

    package func upstreamReady(_ connection: UpstreamConnection) {
        guard self.connection === connection else { return }
        pushOutput()
        for _ in 0..<Self.mostBlocks {
            guard self.connection === connection else { return }
            switch connection.fill() {
            case .bytes:
                let bytes = Array(connection.input)
                connection.wipeInput()
                connection.start = 0
                connection.end = 0
                report(.received(bytes))
            case .notNow: return connection.releaseEmptyBlock()
            case .ended, .truncated: return lose("the server closed the connection")
            case .noBuffer: return lose("no memory for what the server says")
            case .failed, .blockFull: return lose("the connection to the server is broken")
            }
        }
        loop.putOffToEndOfTurn { [weak self] in self?.upstreamReady(connection) }
    }

    package func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {
        guard group === connection.group else { return }
        self.connection = nil
        let reason =
            switch fault.kind {
            case .upstreamUnresolvable: "\(plan.host): the name has no address now"
            case .upstreamRefused: "\(plan.origin): no connection, nothing listens there"
            case .upstreamConnectTimeout: "\(plan.origin): no connection in \(plan.connectTimeout / 1_000_000) ms"
            case .upstreamTLS: "TLS: \(group?.outage.tlsFailure ?? "handshake failed")"
            default: "the server closed the connection"
            }
        drop()
        report(.lost(SharedFault(.unavailable, reason)))
    }

    /// Its user has deadlines of its own.
    package func upstreamTimedOut(_ connection: UpstreamConnection) {}

    private func pushOutput() {
        guard let connection, connection.state == .busy else { return }
        var sent = 0
        while sent < output.count, !connection.hasPending {
            let piece = output[sent..<min(sent + Self.piece, output.count)]
            guard piece.withUnsafeBytes({ connection.send($0) }) else { return loseSoon() }
            sent += piece.count
        }
        output.removeFirst(sent)
    }

    /// Not at once: its user is in the middle of something.
    private func loseSoon() {
        guard !isLosing, let connection else { return }
        isLosing = true
        loop.putOffToEndOfTurn { [weak self] in
            guard let self, self.connection === connection else { return }
            lose("the server closed the connection")
        }
    }

    private func lose(_ reason: String) {
        drop()
        report(.lost(SharedFault(.unavailable, reason)))
    }

    private func drop() {
        if let connection {
            self.connection = nil
            connection.user = nil
            connection.close()
        }
        group?.retire()
        group = nil
        output = []
        isLosing = false
    }
}
