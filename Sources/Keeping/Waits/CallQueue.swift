/// Places among calls that are made at the same time. Who finds none waits, and gets one in the order of coming.
struct Places {
    /// Calls that have a place.
    private(set) var taken = 0
    private(set) var waiting: [Wait<Bool>] = []

    /// No place is taken, and nobody waits for one.
    var isEmpty: Bool { taken == 0 && waiting.isEmpty }

    /// - Returns: false where all `limit` places are taken, and `wait` is told when one is free.
    mutating func enter(_ wait: Wait<Bool>, limit: Int) -> Bool {
        guard taken < limit else {
            waiting.append(wait)
            return false
        }
        taken += 1
        return true
    }

    /// - Returns: who has the place now.
    mutating func leave() -> Wait<Bool>? {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        taken -= 1
        return nil
    }

    /// `wait` waits no more.
    mutating func giveUp(_ wait: Wait<Bool>) { waiting.removeAll { $0 === wait } }
}
