internal import DataPath
internal import Handshakes

/// The keeper's memory of credentials that are good once: who waits, and how fast their issuers may be asked.
struct KeptOneTime {
    var tickets = OneTimeTickets()
    /// Readings of secrets, of whatever kind of credential.
    var readings = SecretTurns()
    /// No more wait than there are tickets.
    var calls = CallQueue()
    /// By origin.
    var paces: [String: CallPace] = [:]
}

/// Requests that wait for a credential of their own. An identity has a share of them, so that one whose issuer is silent leaves room for the
/// others.
struct OneTimeTickets {
    static let most = 4096
    static let mostOfIdentity = 1024

    private var owners: [Ticket: ObjectIdentifier] = [:]
    private var counts: [ObjectIdentifier: Int] = [:]

    /// - Returns: false where there is no room.
    mutating func enter(_ ticket: Ticket, of identity: KeptIdentity) -> Bool {
        let owner = ObjectIdentifier(identity)
        guard owners.count < Self.most, counts[owner, default: 0] < Self.mostOfIdentity else { return false }
        owners[ticket] = owner
        counts[owner, default: 0] += 1
        return true
    }

    func contains(_ ticket: Ticket) -> Bool { owners[ticket] != nil }

    /// - Returns: whether it still waited.
    mutating func remove(_ ticket: Ticket) -> Bool {
        guard let owner = owners.removeValue(forKey: ticket) else { return false }
        let left = counts[owner, default: 1] - 1
        counts[owner] = left > 0 ? left : nil
        return true
    }
}
