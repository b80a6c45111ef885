/// Who may stand in a `WaitingLine`, in one at a time.
protocol Waiter: AnyObject {
    /// Its place in the line; nil while it does not wait. The line's to write.
    var waitingPlace: Int? { get set }
}

/// First come, first served. Whoever is served or leaves does so in a constant number of steps, for they come in bursts: ten thousand waiters
/// that move up for each that goes are fifty million moves.
///
/// A place that was left stays empty until more places are empty than taken. How many may wait is its owner's to say.
struct WaitingLine<Member: Waiter> {
    private var places: [Member?] = []
    /// The first place that is taken; all before it are empty.
    private var head = 0
    private(set) var count = 0
    /// Members that were moved or passed by so far: what a test holds against the number of waiters.
    private(set) var moves = 0

    var isEmpty: Bool { count == 0 }
    /// Who is next.
    var first: Member? { count == 0 ? nil : places[head] }

    mutating func append(_ member: Member) {
        if places.count > 2 * count + 32 { closeUp() }
        member.waitingPlace = places.count
        places.append(member)
        count += 1
    }

    /// Served, or gone. No member: nothing happens.
    mutating func remove(_ member: Member) {
        guard let place = member.waitingPlace else { return }
        member.waitingPlace = nil
        places[place] = nil
        count -= 1
        guard count > 0 else {
            // Keeping room for the next burst; after a large one the memory goes back.
            places.removeAll(keepingCapacity: places.count <= 1024)
            head = 0
            return
        }
        while places[head] == nil {
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
        for index in head..<places.count {
            moves += 1
            guard let member = places[index] else { continue }
            member.waitingPlace = taken
            places[taken] = member
            taken += 1
        }
        places.removeLast(places.count - taken)
        head = 0
    }
}
