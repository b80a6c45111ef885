/// The connections of one kind that a loop serves. Who comes and goes pays a few instructions: a dictionary would hash twice for each.
struct Roster<Member: Channel> {
    /// In no order: the last one takes the place of one that leaves.
    private(set) var members: [Member] = []

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty }

    /// - Precondition: `member` is in no roster.
    mutating func add(_ member: Member) {
        precondition(member.rosterPlace < 0, "a connection stands in one roster")
        member.rosterPlace = Int32(members.count)
        members.append(member)
    }

    /// - Returns: false when it was not here. Streams of HTTP/2 connections never are.
    mutating func remove(_ member: Member) -> Bool {
        let place = Int(member.rosterPlace)
        guard place >= 0 else { return false }
        let last = members.removeLast()
        if last !== member {
            members[place] = last
            last.rosterPlace = Int32(place)
        }
        member.rosterPlace = -1
        return true
    }
}
