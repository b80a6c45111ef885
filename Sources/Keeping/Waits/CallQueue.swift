/// Bounds the calls that are made at the same time. Further ones wait, and are made in the order of coming.
struct CallQueue {
    /// Calls that are under way.
    private(set) var running = 0
    private(set) var waiting: [Wait<Bool>] = []

    /// No call is under way, and none waits.
    var isEmpty: Bool { running == 0 && waiting.isEmpty }

    /// - Returns: false where `limit` calls are under way, and `wait` is told when its own may begin.
    mutating func enter(_ wait: Wait<Bool>, limit: Int) -> Bool {
        guard running < limit else {
            waiting.append(wait)
            return false
        }
        running += 1
        return true
    }

    /// - Returns: whose call may be made now.
    mutating func leave() -> Wait<Bool>? {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        running -= 1
        return nil
    }

    /// `wait` waits no more.
    mutating func giveUp(_ wait: Wait<Bool>) { waiting.removeAll { $0 === wait } }
}
