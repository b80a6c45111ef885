internal import Reactor

/// The work of a connection in one turn of its loop, and the work that it leaves to the next.
extension CallerConnection {
    /// Moves whatever can move, both ways.
    func pump() {
        // Put off to the end of a turn in which the exchange ended.
        guard hasExchange else { return }
        pump(with: exchange.upstream)
    }

    /// - Parameter upstream: the exchange's. Handed down from here and not read again at each step, which would count it each time; what
    ///   may take another one's place reads it anew.
    func pump(with upstream: UpstreamConnection?) {
        guard exchange.request.tokenForm == nil else { return readTokenForm() }
        if stage == .exchanging, exchange.machine.phase == .idle, exchange.request.gathered != nil {
            return gatherBody()
        }
        if stage == .exchanging { pumpRequestBody(to: upstream) }
        // Bound to a name, it would be counted.
        if stage == .exchanging, upstream != nil { perform(pumpAnswer(of: upstream!), on: upstream) }
        if stage == .tunnel { pumpTunnel() }
    }

    /// Pieces that one body moves in one turn: with a fast pair at its ends it could otherwise go on for as long as it lasts, and starve
    /// the loop's others.
    static let rounds = 64

    /// Goes on when the others have had their turn; epoll does not tell again of what is left unread.
    func pumpLater() {
        guard !pumpsLater else { return }
        pumpsLater = true
        loop.callAtEndOfTurn(self)
    }
}
