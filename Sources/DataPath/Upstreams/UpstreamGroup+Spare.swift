/// Closed connections that were streams of a shared connection, and serve as streams again.
extension UpstreamGroup {
    /// The most spare connections: 50 KiB of them.
    static let spareLimit = 128

    func makeConnection(for user: any UpstreamUser) -> UpstreamConnection {
        guard !spare.isEmpty else { return UpstreamConnection(group: self, user: user) }
        // Asked where it stands: taken out first, it would be counted.
        let isFree = isKnownUniquelyReferenced(&spare[spare.count - 1])
        let connection = spare.removeLast()
        // A connection that somebody still holds is left to its holder.
        guard isFree, connection.holdsNothing else { return UpstreamConnection(group: self, user: user) }
        connection.renew(for: user)
        return connection
    }

    /// A stream of a shared connection has ended.
    func keep(_ connection: UpstreamConnection) {
        guard !pool.shared.isEmpty, spare.count < Self.spareLimit else { return }
        spare.append(connection)
    }
}
