internal import Reactor

/// Gives a loop's memory back when a burst is over: looked at once a second for as long as there is more than is likely to be used, and not
/// with each connection that ends, since the next one would fetch from the kernel what this one gave to it.
final class Surplus: Watched {
    private unowned let data: DataLoop
    private var isArmed = false

    /// Nanoseconds between two looks.
    static let period: UInt64 = 1_000_000_000

    init(of data: DataLoop) {
        self.data = data
        super.init(loop: data.loop)
    }

    /// A connection has ended.
    func look() {
        guard !isArmed, data.hasSurplus else { return }
        // Only while it is needed: whom the loop keeps keeps the loop.
        loop.adopt(self)
        isArmed = loop.arm(self, at: loop.now + Self.period, kind: 0) != nil
        if !isArmed { loop.close(self) }
    }

    override func timerFired(_ kind: UInt8) {
        isArmed = false
        loop.close(self)
        data.trim()
        // What was used in this second may be of no use in the next.
        look()
    }
}
