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
    /// Orders that do not wait for the end of the turn.
    static let many = 64

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
        if outbox.add(order, for: index) { loop.callAtEndOfTurn(self) }
    }

    /// A letter to the keeper was opened to its end. A full mailbox takes long to read: whoever was answered first must not wait until its
    /// last letter is read. A loop that takes nothing is tried again later.
    func letterEnded() {
        if outbox.count >= Self.many, retry == nil { deliver() }
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
