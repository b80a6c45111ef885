internal import DataPath
internal import HotCache
internal import Telemetry
internal import Tokens
internal import World

/// Realms and paths that routes have learned of their upstreams, a bounded number of each. Where there is no more room, the realm that
/// was used least or a random path gives way, as fast as new end users come at most (`limits.new_subjects_per_second`).
extension Keeper {
    /// A challenge of a realm came on a path.
    /// - Returns: why it cannot be learned now.
    func learn(_ realm: Realm, at entry: LearnedEntry, on route: KeptRoute) -> Fault? {
        if !route.table.realms.contains(realm) { noteUses(on: route) }
        var lesson = route.table.learnChallenge(of: realm, at: entry)
        if lesson == .realmsFull {
            if let wait = users.realms.admitNew(at: now) {
                noteRealmsRefused(on: route)
                return Fault(.tooManySubjects, retryAfter: Int(clamping: wait / 1_000_000_000 + 1))
            }
            guard forgetRealm(on: route) else { return Fault(.tooManySubjects, retryAfter: 1) }
            lesson = route.table.learnChallenge(of: realm, at: entry)
        }
        // Without an entry the token serves this request all the same.
        if lesson == .entriesFull, makeRoom(for: entry, on: route) {
            lesson = route.table.learnChallenge(of: realm, at: entry)
        }
        if lesson == .learned { publishTable(of: route) }
        return nil
    }

    /// An answer without a credential was no challenge.
    func learnOpen(at entry: LearnedEntry, on route: KeptRoute) {
        var lesson = route.table.learnOpen(at: entry)
        if lesson == .entriesFull, makeRoom(for: entry, on: route) { lesson = route.table.learnOpen(at: entry) }
        if lesson == .learned { publishTable(of: route) }
    }

    /// Which of the paths are used is not told: a request on one that was forgotten teaches it again.
    private func makeRoom(for entry: LearnedEntry, on route: KeptRoute) -> Bool {
        guard route.table.canHold(entry), users.realms.admitNew(at: now) == nil else { return false }
        return route.table.forgetEntry(at: Int(random.number(below: UInt64(LearnedTable.entryLimit))))
    }

    // MARK: - Who gives way

    /// A hit is not told to the keeper; which slots were hit since the look before, their stamps say.
    private func noteUses(on route: KeptRoute) {
        for realm in route.table.realms {
            guard let token = route.key(of: realm).flatMap({ tokens[$0] }) else { continue }
            let stamps = cache.stamps(of: token.slot)
            if stamps != token.stamps { token.usedAt = now }
            token.stamps = stamps
        }
        cache.beginEra()
    }

    private func forgetRealm(on route: KeptRoute) -> Bool {
        guard let least = tokens.leastUsedRealm(of: route) else { return false }
        let realm = route.table.forgetRealm(at: least)
        users.realms.noteEviction()
        guard let key = route.key(of: realm), let token = tokens[key] else { return true }
        // Routes that lead to one upstream may share it.
        let isNamed = routes.contains { other in
            other.key(of: realm) == key && (other.realm == realm || other.table.realms.contains(realm))
        }
        // The token's row in the store comes back with the realm's next challenge.
        if !isNamed { forget(token) }
        return true
    }

    private func noteRealmsRefused(on route: KeptRoute) {
        guard users.realms.mayTell(at: now) else { return }
        events.warn(
            "too many new realms on a route",
            [
                LogField("route", .name(route.name)),
                LogField("refused", .count(Int64(clamping: users.realms.refused))),
                LogField("limit", .name("limits.new_subjects_per_second")),
            ])
    }
}
