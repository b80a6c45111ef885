internal import DataPath
internal import Reactor

/// Brings the keeper's orders to the data loops at the end of each turn in which there are any.
/// Touched on the keeper's loop only.
final class Postman: Watched {
    private var outbox = Outbox(loops: 0)
    private var loops: [LoopBound<DataLoop>] = []
    private var retry: TimerID?

    /// Nanoseconds after which a loop whose mailbox was full is tried again.
    private static let pause: UInt64 = 10_000_000

    override init(loop: Loop) {
        super.init(loop: loop)
        loop.adopt(self)
    }

    func connect(_ loops: [LoopBound<DataLoop>]) {
        self.loops = loops
        outbox = Outbox(loops: loops.count)
    }

    var loopCount: Int { outbox.loops }

    func order(_ order: KeeperOrder, to index: Int) {
        switch outbox.add(order, for: index) {
        case .now?: deliver()
        case .atEndOfTurn?: loop.callAtEndOfTurn(self)
        case nil: break
        }
    }

    override func turnEnds() {
        outbox.turnEnded()
        deliver()
    }

    override func timerFired(_ kind: UInt8) {
        retry = nil
        deliver()
    }

    /// Before the turn ends only for what the loops must have ahead of another thread's letters.
    func deliver() {
        for letter in outbox.takeLetters() {
            let loop = loops[letter.loop]
            let isPosted = loop.value.loop.post { for order in letter.orders { loop.value.desk.open(order) } }
            guard !isPosted else { continue }
            outbox.putBack(letter)
            retry = retry ?? self.loop.arm(self, at: self.loop.kernel.now() + Self.pause, kind: 0)
        }
    }
}
