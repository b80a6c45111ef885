internal import Reactor

/// When a connection has an exchange, and when not.
extension CallerConnection {
    var hasExchange: Bool { lent != nil }

    /// An idle connection has none. To use it then is a mistake of ours that must end the process before it is somebody else's memory.
    var exchange: CallerExchange {
        // By address: what is not copied would otherwise be moved to where it is read, all of it.
        @inline(__always) unsafeAddress {
            guard let lent else { preconditionFailure("an idle connection has no exchange") }
            return UnsafePointer(lent)
        }
        @inline(__always) unsafeMutableAddress {
            guard let lent else { preconditionFailure("an idle connection has no exchange") }
            return lent
        }
    }

    /// The first bytes of a request are there, or it cannot be read.
    func borrowExchange() {
        guard lent == nil else { return }
        lent = data.exchanges.take()
        exchange.record.bytesInBefore = bytesIn &- UInt64(end - start)
        exchange.record.bytesOutBefore = bytesOut
    }

    /// The next request is not here yet, or in part: what it needs is.
    func resetExchange() {
        exchange.reset()
        exchange.record.bytesInBefore = bytesIn
        exchange.record.bytesOutBefore = bytesOut
        exchange.isReset = true
    }

    /// Waits for no token and is nobody's scout any more.
    func leaveDesk() {
        guard hasExchange,
            exchange.token.waitsFor != nil || exchange.token.ticket != 0 || exchange.token.scoutTicket != 0
        else { return }
        data.desk.leave(self)
    }

    /// Nothing is to be read: the connection is idle.
    func returnExchange() {
        guard let lent else { return }
        self.lent = nil
        // Most often it was made ready by the last request's end, and no octet has come since.
        data.exchanges.give(lent, isReset: lent.pointee.isReset)
    }
}
