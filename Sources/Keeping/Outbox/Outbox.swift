internal import DataPath

/// Orders of the keeper for the data loops, gathered over one turn of its own loop: each data loop gets them in one letter, so that its
/// mailbox cannot fill with orders.
struct Outbox {
    /// By the index of the loop, in the order in which they were given.
    private var orders: [[KeeperOrder]]
    /// Orders wait, and whoever gave the first of them was told so.
    private var isDue = false

    /// Orders that wait, for whichever loop.
    private(set) var count = 0

    init(loops: Int) { orders = Array(repeating: [], count: loops) }

    var loops: Int { orders.count }

    /// An order for a loop that is not there is dropped: a keeper without data loops has nobody to tell.
    /// - Returns: whether the letters are to be taken at the end of this turn; false where that is known already.
    mutating func add(_ order: KeeperOrder, for loop: Int) -> Bool {
        guard loop < orders.count else { return false }
        orders[loop].append(order)
        count += 1
        defer { isDue = true }
        return !isDue
    }

    /// All that waits.
    mutating func takeLetters() -> [Letter] {
        count = 0
        return orders.indices.compactMap { loop in
            guard !orders[loop].isEmpty else { return nil }
            defer { orders[loop] = [] }
            return Letter(loop: loop, orders: orders[loop])
        }
    }

    /// The letters were taken at the end of the turn: the next order begins another one.
    mutating func turnEnded() { isDue = false }

    /// The loop's mailbox was full. What the letter holds stays ahead of what is ordered later.
    mutating func putBack(_ letter: Letter) {
        orders[letter.loop].insert(contentsOf: letter.orders, at: 0)
        count += letter.orders.count
    }

    struct Letter: Sendable {
        let loop: Int
        let orders: [KeeperOrder]
    }
}
