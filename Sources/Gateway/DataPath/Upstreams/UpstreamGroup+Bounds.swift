internal import Reactor

/// How many connections a loop has to an upstream at most (`limits` of a route), and who waits for one. Without a limit nobody waits.
extension UpstreamGroup {
    var isFull: Bool { sockets >= plan.connectionLimit }

    /// Makes room for one more connection, or lets it wait, or refuses it.
    /// - Returns: whether it may be made now.
    func admit(_ connection: UpstreamConnection) -> Bool {
        // An idle one leads elsewhere, or its use was refused: this one is wanted now. Between two messages of a handshake a connection is closed
        // only for one who cannot wait.
        if isFull {
            if idle.isEmpty { closeIdlestOwned(sparing: waiting.count < plan.waiterLimit) } else { discard(idle[0]) }
        }
        guard isFull else {
            connection.holdsSocket = true
            sockets += 1
            return true
        }
        if waiting.count < plan.waiterLimit {
            waiting.append(connection)
        } else {
            // Put off: the user holds the connection before it hears of it.
            loop.putOffToEndOfTurn { connection.lose(UpstreamGroup.busy) }
        }
        return false
    }

    static var busy: Fault { Fault(.upstreamBusy, retry: .unsent, retryAfter: 1) }

    /// A socket is no longer this connection's: it is closed, or a session of many.
    func releaseSocket(of connection: UpstreamConnection, closed: Bool) {
        guard connection.holdsSocket else { return }
        connection.holdsSocket = false
        if closed { socketClosed() }
    }

    func socketClosed() {
        sockets -= 1
        serveWaitingSoon()
    }

    func stopWaiting(_ connection: UpstreamConnection) { waiting.remove(connection) }

    /// Something became free. Put off: whoever gave it is in the middle of its own exchange.
    func serveWaitingSoon() {
        guard !waiting.isEmpty else { return }
        loop.putOffToEndOfTurn { [self] in serveWaiting() }
    }

    /// First come, first served.
    private func serveWaiting() {
        defer { recount() }
        while let first = waiting.first {
            if let session = sharedSession(for: first) {
                stopWaiting(first)
                take(session, for: first)
            } else if !first.insistsOnNew, let free = idle.last, free.isFresh(forRequestOnce: first.insistsOnRecent) {
                stopWaiting(first)
                handOver(free, to: first)
            } else if !isFull || !idle.isEmpty || owned.idlest(sparing: true) != nil {
                stopWaiting(first)
                start(first)
            } else {
                return
            }
        }
    }
}
