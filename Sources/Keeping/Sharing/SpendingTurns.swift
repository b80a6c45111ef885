internal import Fleet

/// Turns in which a refresh token may be spent, as their gateways have told under seal: whoever writes to the shared server can take a lease
/// and the mark beside it away, and another gateway would send the same refresh token at once.
struct SpendingTurns {
    /// By lock: who, and from when on he is taken for dead. Nanoseconds of the loop's clock.
    private var turns: [SharedName: [String: UInt64]] = [:]
    /// The most locks with turns. Old news can be told again by whoever can publish: what is told first counts.
    private static let most = 4096
    /// The most turns of one lock: more than one means that the server has lost a lease.
    private static let mostOfOne = 16
    private static let silence = UInt64(SharedLease.silence) * 1_000_000

    mutating func began(_ lock: SharedName, _ owner: String, at now: UInt64) {
        if turns.count >= Self.most {
            turns = turns.compactMapValues { owners in
                let left = owners.filter { now < $0.value }
                return left.isEmpty ? nil : left
            }
        }
        var owners = (turns[lock] ?? [:]).filter { now < $0.value }
        guard owners[owner] != nil || owners.count < Self.mostOfOne, turns[lock] != nil || turns.count < Self.most
        else {
            return
        }
        owners[owner] = now + Self.silence
        turns[lock] = owners
    }

    mutating func ended(_ lock: SharedName, _ owner: String) {
        turns[lock]?[owner] = nil
        if turns[lock]?.isEmpty == true { turns[lock] = nil }
    }

    mutating func ended(_ lease: SharedLease) {
        for owner in turns[lease.name]?.keys.filter({ lease.isOwned(by: $0) }) ?? [] { ended(lease.name, owner) }
    }

    /// Whether somebody else than the holder of the lease is at it.
    func isTaken(beside lease: SharedLease, at now: UInt64) -> Bool {
        turns[lease.name]?.contains { now < $0.value && !lease.isOwned(by: $0.key) } ?? false
    }
}
