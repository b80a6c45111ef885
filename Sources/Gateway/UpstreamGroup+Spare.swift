/// Closed connections that were streams of a session, and serve as streams again.
extension UpstreamGroup {
    /// Of those, at most: 50 KiB.
    static let spareLimit = 128

    func makeConnection(for user: any UpstreamUser) -> UpstreamConnection {
        // One that somebody still holds is left to him.
        if var connection = spare.popLast(), isKnownUniquelyReferenced(&connection), connection.holdsNothing {
            connection.renew(for: user)
            return connection
        }
        return UpstreamConnection(group: self, user: user)
    }

    /// A stream of a session has ended.
    func keep(_ connection: UpstreamConnection) {
        guard !sessions.isEmpty, spare.count < Self.spareLimit else { return }
        spare.append(connection)
    }
}
