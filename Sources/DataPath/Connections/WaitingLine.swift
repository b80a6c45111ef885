/// Who may stand in a `WaitingLine`, in one at a time.
protocol Waiter: AnyObject {
    /// The index of this one in its line; nil while it does not wait. The line alone writes it.
    var waitingIndex: Int? { get set }
}

/// First come, first served. Whoever is served or leaves does so in a constant number of steps, for they come in bursts: ten thousand waiters
/// that move up for each that goes are fifty million moves.
///
/// An element that was left stays empty until more are empty than taken. How many may wait is its owner's to say.
struct WaitingLine<Member: Waiter> {
    private var members: [Member?] = []
    /// The index of the first member; all elements before it are empty.
    private var head = 0
    private(set) var count = 0
    /// Members that were moved or passed by so far: what a test holds against the number of waiters.
    private(set) var moves = 0

    var isEmpty: Bool { count == 0 }
    /// Who is next.
    var first: Member? { count == 0 ? nil : members[head] }

    mutating func append(_ member: Member) {
        if members.count > 2 * count + 32 { closeUp() }
        member.waitingIndex = members.count
        members.append(member)
        count += 1
    }

    /// Served, or gone. No member: nothing happens.
    mutating func remove(_ member: Member) {
        guard let index = member.waitingIndex else { return }
        member.waitingIndex = nil
        members[index] = nil
        count -= 1
        guard count > 0 else {
            // Keeping room for the next burst; after a large one the memory goes back.
            members.removeAll(keepingCapacity: members.count <= 1024)
            head = 0
            return
        }
        while members[head] == nil {
            head += 1
            moves += 1
        }
    }

    mutating func popFirst() -> Member? {
        guard let first else { return nil }
        remove(first)
        return first
    }

    private mutating func closeUp() {
        var taken = 0
        for index in head..<members.count {
            moves += 1
            guard let member = members[index] else { continue }
            member.waitingIndex = taken
            members[taken] = member
            taken += 1
        }
        members.removeLast(members.count - taken)
        head = 0
    }
}
