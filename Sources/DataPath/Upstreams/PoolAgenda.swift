/// An action that a pool wants done.
enum PoolAction<Member: PoolMember, Shared: SharedConnection> {
    /// Connect to the first of these addresses that takes it. They may be none.
    case dial(Member, [UpstreamAddress])
    /// The request goes out on this shared connection.
    case share(Shared, Member)
    /// The request goes out on the socket of the first, which is over.
    case handOver(Member, to: Member)
    case refuse(Member, PoolRefusal)
    case close(Member)
    /// No more requests; the shared connection ends with those that it carries.
    case retire(Shared)
    /// The same, and its server seems to have stopped reading.
    case doubt(Shared)
}

/// The actions that a pool has still to tell its interpreter.
struct PoolAgenda<Member: PoolMember, Shared: SharedConnection> {
    /// Idle connections that are to be closed.
    private var ending: [Member] = []
    private var retiring: [(connection: Shared, isStalled: Bool)] = []
    // The numbers of connections in each line that are to be looked at anew, from the first on. Who joins the line meanwhile is not among them.
    var undecided = 0
    var offersAwaited = 0
    var unresolved = 0
    // At the end of the turn, since whoever asked is in the middle of something: members that are admitted or refused, and whether those
    // that wait for a socket may go on.
    private var late: [Member] = []
    private(set) var servesLater = false
    /// The end of their turn has come for these, the last one first.
    private var turning: [Member] = []
    var serves = false

    /// There is something new, now or at the end of the turn.
    var isDue = false
    /// Everything that is left waits for the end of the turn.
    var waitsForEndOfTurn: Bool { !late.isEmpty || servesLater }

    mutating func end(_ member: Member) {
        ending.append(member)
        isDue = true
    }

    mutating func retire(_ connection: Shared, isStalled: Bool = false) {
        connection.isLeaving = true
        retiring.append((connection, isStalled))
        isDue = true
    }

    mutating func putOff(_ member: Member) {
        late.append(member)
        isDue = true
    }

    mutating func serveLater() {
        servesLater = true
        isDue = true
    }

    mutating func decide(_ count: Int) {
        undecided = count
        if count > 0 { isDue = true }
    }

    mutating func judgeOffers(_ count: Int) {
        offersAwaited = count
        if count > 0 { isDue = true }
    }

    mutating func goOnResolved(_ count: Int) {
        unresolved = count
        if count > 0 { isDue = true }
    }

    mutating func turnEnds() {
        late.reverse()
        // Exchanged, so that neither array gives its memory up.
        if turning.isEmpty { swap(&turning, &late) } else { turning.insert(contentsOf: late, at: 0) }
        late.removeAll(keepingCapacity: true)
        serves = serves || servesLater
        servesLater = false
        isDue = true
    }

    mutating func nextEnding() -> Member? { ending.popLast() }

    mutating func nextRetiring() -> PoolAction<Member, Shared>? {
        retiring.popLast().map { $0.isStalled ? .doubt($0.connection) : .retire($0.connection) }
    }

    mutating func nextTurning() -> Member? { turning.popLast() }
}
