internal import Reactor

/// The events of its upstream's connection that an exchange hears of.
extension CallerConnection: UpstreamUser {
    func upstreamConnected(_ connection: UpstreamConnection) {
        guard hasExchange, connection === exchange.upstream else { return }
        exchange.record.upstreamAddress = connection.address?.logAddress
        perform(exchange.machine.on(.connected), on: connection)
        continueIfReading()
    }

    func upstreamReady(_ connection: UpstreamConnection) {
        guard hasExchange, connection === exchange.upstream else { return }
        pump(with: connection)
        continueIfReading()
    }

    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {
        guard hasExchange, connection === exchange.upstream else { return }
        if let tried = connection.refusedBy ?? connection.address { exchange.record.upstreamAddress = tried.logAddress }
        exchange.upstream = nil
        exchange.answer.look = nil
        if exchange.answer.hasBegun { return cut(fault) }
        rewindBody()
        if connection.isPooled, exchange.nonces?.own != nil, let origin = exchange.route?.upstream.origin {
            data.nonces.noteSilentEnd(at: origin)
        }
        // Once an interim answer has been passed on, the request was seen, and its caller knows. A wrong password must not be tried twice.
        let seen = exchange.answer.interims > 0 || mayHaveBeenTried ? Fault(fault.kind, retry: .never) : fault
        exchange.nonces?.lost()
        // The credential that was asked for is another connection's business.
        if exchange.machine.credential == .awaitsConnection { data.desk.leave(self) }
        exchange.lostAt = connection.address
        let elsewhere = connection.group.hasAnother(than: connection.address)
        perform(exchange.machine.on(.lost(seen, pooled: connection.isPooled, elsewhere: elsewhere)))
        continueIfReading()
    }

    func upstreamTimedOut(_ connection: UpstreamConnection) {}

    /// After an event from elsewhere finished the exchange, the next request may already be in the block.
    func continueIfReading() {
        if stage == .reading { readRequests() }
    }
}
