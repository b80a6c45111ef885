internal import Reactor
internal import TLS
internal import Telemetry

/// Where callers come in: from `accept`, through an arrival where the listener needs one, to the protocol that serves them.
extension DataLoop {
    /// Connections that begin their handshake in one turn of the loop. One takes a millisecond with RSA; requests must not wait for many.
    static let handshakesPerTurn = 4
    /// Connections that may be on their way to a protocol, a loop. Past it the oldest gives way: it has had the most time, and whoever
    /// means it only needs milliseconds.
    static let arrivalLimit = 1024

    func admit(_ descriptor: Int32, from address: SocketAddress?, listener: ListenerPlan) {
        var peer = CallerPeer(isLocal: listener.isUnix)
        if !listener.isUnix {
            peer.address = address
            peer.isLocal = address?.isLocal(in: local) ?? false
        }
        if let proxy = listener.proxyProtocol {
            // Served without a header, they could pass for whom they like as soon as somebody forgets that `from` is not `callers`.
            guard let address, proxy.from.contains(where: { $0.contains(address) }) else {
                metrics.glitch(.proxyHeader)
                return loop.kernel.close(descriptor)
            }
        }
        if let quota = listener.quota {
            guard quota.take() else { return turnAway(descriptor, listener: listener) }
            peer.quota = quota
        }
        // Behind a proxy all connections have its address; they are counted when it is known for whom they are.
        let isCounted = listener.proxyProtocol != nil || count(&peer)
        guard isCounted, connections < limits.connections else {
            uncount(peer)
            return turnAway(descriptor, listener: listener)
        }
        if listener.isUnix { peer.user = loop.kernel.peerUser(descriptor) }
        if listener.needsArrival {
            let arrival = Arrival(data: self, listener: listener, peer: peer)
            guard enter(arrival, descriptor) else { return uncount(arrival.peer) }
            addArrival(arrival)
            arrival.begin()
        } else {
            let caller = CallerConnection(data: self, listener: listener, peer: peer)
            guard enter(caller, descriptor) else { return uncount(caller.peer) }
            addCaller(caller)
            caller.begin()
        }
    }

    private func enter(_ channel: Channel, _ descriptor: Int32) -> Bool {
        guard loop.watch(channel, descriptor: descriptor, output: false) else {
            loop.kernel.close(descriptor)
            return false
        }
        metrics.callerOpened()
        return true
    }

    private func turnAway(_ descriptor: Int32, listener: ListenerPlan) {
        metrics.glitch(.connectionLimit)
        if listener.tls == nil {
            let message = Fault(.tooManyConnections, retryAfter: 1)
                .message(pseudonym: pseudonym, route: nil, headOnly: false, close: true)
            // The message gets one attempt: a caller over the limit gets no buffer of ours.
            _ = message.withUnsafeBytes { loop.kernel.write(descriptor, $0) }
            metrics.answered(.tooManyConnections)
        }
        loop.kernel.close(descriptor)
    }

    /// Callers in any state.
    var connections: Int { callers.count + arrivals.count + http2Callers.count }

    // MARK: - The hand-over

    /// The one place that decides which object serves a connection. Takes the arrival's socket, TLS state and unread bytes; the arrival is
    /// over when this returns.
    func serve(_ arrival: Arrival, by version: ApplicationProtocol) {
        _ = arrivals.remove(arrival)
        switch version {
        case .http2:
            beginHTTP2(from: arrival, listener: arrival.listener, peer: arrival.peer)
        case .http1:
            let caller = CallerConnection(data: self, listener: arrival.listener, peer: arrival.peer)
            arrival.handOver(to: caller)
            addCaller(caller)
            caller.begin()
            // Bytes that the arrival has read already cause no further edge.
            caller.continueIfReading()
        }
    }

    /// A connection in clear text began with HTTP/2's preface (RFC 9113 section 3.3).
    func becomeHTTP2(_ caller: CallerConnection) {
        beginHTTP2(from: caller, listener: caller.listener, peer: caller.peer)
    }

    /// A CONNECT was answered for a host that is intercepted: its connection arrives once more.
    func intercept(_ caller: CallerConnection, destination: Destination, route: RoutePlan) {
        let arrival = Arrival(data: self, listener: caller.listener, peer: caller.peer)
        caller.handOver(to: arrival)
        addArrival(arrival)
        arrival.begin(intercepting: destination, for: route)
    }

    /// A redirected connection that is none of ours goes on to where it was going.
    func tunnel(_ arrival: Arrival, to destination: Destination) {
        _ = arrivals.remove(arrival)
        let caller = CallerConnection(data: self, listener: arrival.listener, peer: arrival.peer)
        arrival.handOver(to: caller)
        addCaller(caller)
        caller.begin(tunnelTo: destination)
    }

    /// The first route that stands for this host at this port.
    func route(for destination: Destination, of listener: ListenerPlan) -> RoutePlan? {
        let bytes = Array(destination.host.utf8)
        return bytes.withUnsafeBytes { name in
            listener.routes.first { names(name, $0.matches.host) && $0.matches.ports.contains(destination.port) }
        }
    }

    private func beginHTTP2(from stage: Channel, listener: ListenerPlan, peer: CallerPeer) {
        guard let connection = CallerHTTP2Connection(data: self, listener: listener, peer: peer) else {
            metrics.callerClosed()
            uncount(peer)
            return stage.tearDown()
        }
        stage.handOver(to: connection)
        addHTTP2Caller(connection)
        connection.begin()
    }

    // MARK: - Arrivals

    func arrivalClosed(_ arrival: Arrival) {
        guard arrivals.remove(arrival) else { return }
        metrics.callerClosed()
        uncount(arrival.peer)
        finishDrain()
    }

    private func addArrival(_ arrival: Arrival) {
        if arrivals.count >= Self.arrivalLimit { dropOldestArrival() }
        arrivals.add(arrival)
    }

    private func dropOldestArrival() {
        metrics.glitch(.arrivalLimit)
        arrivals.members.min { $0.startedAt < $1.startedAt }?.close()
    }

    /// Takes its turn at the end of this turn of the loop, or of a later one.
    func queueHandshake(_ arrival: Arrival) {
        handshakes.append(arrival)
        if handshakes.count == 1 { loop.putOffToEndOfTurn { [unowned self] in beginHandshakes() } }
    }

    private func beginHandshakes() {
        // Arrivals that have gone meanwhile take no turn and are not kept: a flood of hellos that are taken back would grow the queue.
        handshakes.removeAll { !$0.awaitsTurn }
        let count = min(handshakes.count, Self.handshakesPerTurn)
        let batch = handshakes.prefix(count)
        for arrival in batch { arrival.beginHandshake() }
        handshakes.removeFirst(count)
        // Put off while the turn ends, it comes in the next one: between the two, others are served.
        if !handshakes.isEmpty { loop.putOffToEndOfTurn { [unowned self] in beginHandshakes() } }
    }

    // MARK: - Census

    /// Counts the connection under its caller's address.
    /// - Returns: false when that address has as many as it may.
    func count(_ peer: inout CallerPeer) -> Bool {
        guard let census, let address = peer.address else { return true }
        guard census.enter(address) else { return false }
        peer.isCounted = true
        return true
    }

    func uncount(_ peer: CallerPeer) {
        if peer.isCounted, let address = peer.address { census?.leave(address) }
        peer.quota?.give()
    }
}
