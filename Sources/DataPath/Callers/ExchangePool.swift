/// The exchanges of one loop that no connection needs at the moment, the one that was given last first.
///
/// An exchange is lent, not owned: the pool outlives its loop's connections, and each gives back what it has when it ends.
final class ExchangePool {
    /// Ready for any request; the others behind it, each by `next`.
    private var first: UnsafeMutablePointer<CallerExchange>?
    private let limit: Int
    private(set) var waitingCount = 0
    private(set) var lent = 0

    /// - Parameter limit: exchanges that wait at most; 4096 take some three megabytes. Whoever has more callers that ask at the same
    ///   moment has sixteen times as much in blocks.
    init(limit: Int = 4096) { self.limit = limit }

    deinit {
        while let exchange = first {
            first = exchange.pointee.next
            exchange.deinitialize(count: 1).deallocate()
        }
    }

    /// Lends without a limit of its own: the callers that ask are bounded where they are let in.
    func take() -> UnsafeMutablePointer<CallerExchange> {
        lent += 1
        if let exchange = first {
            first = exchange.pointee.next
            exchange.pointee.next = nil
            exchange.pointee.isReset = false
            waitingCount -= 1
            return exchange
        }
        let exchange = UnsafeMutablePointer<CallerExchange>.allocate(capacity: 1)
        exchange.initialize(to: CallerExchange())
        return exchange
    }

    /// Whatever its connection left in it goes: nothing of a request may come to another caller.
    /// - Parameter isReset: there is nothing, by the word of who has just made it ready.
    func give(_ exchange: UnsafeMutablePointer<CallerExchange>, isReset: Bool = false) {
        lent -= 1
        guard waitingCount < limit else { return exchange.deinitialize(count: 1).deallocate() }
        if !isReset { exchange.pointee.reset() }
        exchange.pointee.next = first
        first = exchange
        waitingCount += 1
    }
}
