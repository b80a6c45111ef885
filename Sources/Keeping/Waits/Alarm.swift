package import Reactor

/// A timer of the keeper with a closure behind it.
/// Touched on the keeper's loop only.
package final class Alarm: Watched, @unchecked Sendable {
    private var timer: TimerID?
    package var action: () -> Void = {}

    package override init(loop: Loop) {
        super.init(loop: loop)
        loop.adopt(self)
    }

    package func set(at deadline: UInt64) {
        if let timer { loop.disarm(timer) }
        timer = loop.arm(self, at: deadline, kind: 0)
    }

    func clear() {
        if let timer { loop.disarm(timer) }
        timer = nil
    }

    /// The alarm fires no more, and its entry among those whose timers the loop knows is given back.
    func close() {
        clear()
        loop.close(self)
    }

    package override func timerFired(_ kind: UInt8) {
        timer = nil
        action()
    }
}
