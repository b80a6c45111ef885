internal import Reactor

/// Gives a loop's memory back when a burst is over: looked at once a second for as long as there is more than is likely to be used, and not
/// with each connection that ends, since the next one would fetch from the kernel what this one gave to it.
final class MemoryTrim: Watched {
    private unowned let data: DataLoop
    private var timer: TimerID?

    /// Nanoseconds between two looks.
    static let period: UInt64 = 1_000_000_000

    init(of data: DataLoop) {
        self.data = data
        super.init(loop: data.loop)
    }

    /// A connection has ended.
    func look() {
        guard timer == nil, data.canTrim else { return }
        // Only while it is needed: the loop would hold this object, and this object holds the loop.
        loop.adopt(self)
        timer = loop.arm(self, at: loop.now + Self.period, kind: 0)
        if timer == nil { loop.close(self) }
    }

    /// The data loop goes, with its memory.
    func end() {
        guard let timer else { return }
        loop.disarm(timer)
        self.timer = nil
        loop.close(self)
    }

    override func timerFired(_ kind: UInt8) {
        timer = nil
        loop.close(self)
        data.trim()
        // Memory that was used in this second may be of no use in the next.
        look()
    }
}
