internal import DataPath

/// Orders of the keeper for the data loops, gathered over one turn of its own loop: each data loop gets them in one letter, so that its
/// mailbox cannot fill with orders.
struct Outbox {
    /// By the index of the loop, in the order in which they were given.
    private var orders: [[KeeperOrder]]
    /// Orders wait, and whoever gave the first of them was told so.
    private var isDue = false

    /// Orders for one loop that do not wait for the end of the turn: a full mailbox takes long to read, and whoever was answered first
    /// must not wait until its last letter is read.
    static let most = 64

    init(loops: Int) { orders = Array(repeating: [], count: loops) }

    var loops: Int { orders.count }

    /// When the letters are to be taken.
    enum Delivery { case now, atEndOfTurn }

    /// An order for a loop that is not there is dropped: a keeper without data loops has nobody to tell.
    /// - Returns: nil where what was said before holds.
    mutating func add(_ order: KeeperOrder, for loop: Int) -> Delivery? {
        guard loop < orders.count else { return nil }
        orders[loop].append(order)
        if orders[loop].count == Self.most { return .now }
        defer { isDue = true }
        return isDue ? nil : .atEndOfTurn
    }

    /// All that waits.
    mutating func takeLetters() -> [Letter] {
        orders.indices.compactMap { loop in
            guard !orders[loop].isEmpty else { return nil }
            defer { orders[loop] = [] }
            return Letter(loop: loop, orders: orders[loop])
        }
    }

    /// The letters were taken at the end of the turn: the next order begins another one.
    mutating func turnEnded() { isDue = false }

    /// The loop's mailbox was full. What the letter holds stays ahead of what is ordered later.
    mutating func putBack(_ letter: Letter) { orders[letter.loop].insert(contentsOf: letter.orders, at: 0) }

    struct Letter: Sendable {
        let loop: Int
        let orders: [KeeperOrder]
    }
}
