/// The connections of one kind that a loop serves. Who comes and goes pays a few instructions: a dictionary would hash twice for each.
struct Roster<Member: Channel> {
    /// In no order: the last one takes the place of one that leaves.
    private(set) var members: [Member] = []

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty }

    /// - Precondition: `member` is in no roster.
    mutating func add(_ member: Member) {
        precondition(member.rosterIndex < 0, "a connection stands in one roster")
        member.rosterIndex = Int32(members.count)
        members.append(member)
    }

    /// - Returns: false when it was not here. Streams of HTTP/2 connections never are.
    mutating func remove(_ member: Member) -> Bool {
        let index = Int(member.rosterIndex)
        guard index >= 0 else { return false }
        let last = members.removeLast()
        if last !== member {
            members[index] = last
            last.rosterIndex = Int32(index)
        }
        member.rosterIndex = -1
        return true
    }
}
