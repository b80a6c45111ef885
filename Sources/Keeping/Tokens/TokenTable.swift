internal import HotCache
internal import Tokens

/// The tokens in memory, by key and by slot, and those that no configured route leads to any more.
struct TokenTable {
    private var byKey: [AccessKey: KeptToken] = [:]
    /// The tokens that are everybody's: few, where users may be a great many.
    private(set) var shared: [AccessKey: KeptToken] = [:]
    private var bySlot: [Slot: KeptToken] = [:]
    private var retired: [AccessKey: KeptToken] = [:]
    private var generations = GenerationCounter()
    /// A jump of the wall clock makes every token due.
    var clock = WallClockWatch()
    /// Jitter of the machines and hashes of the learned tables begin with it.
    let seed: UInt64

    init(seed: UInt64) { self.seed = seed }

    func seed(of slot: Slot) -> UInt64 { seed ^ UInt64(slot.index) &* 0x9E37_79B9_7F4A_7C15 }

    var count: Int { byKey.count }
    /// In no order that tells anything; `all.inOrder` has one.
    var all: Dictionary<AccessKey, KeptToken>.Values { byKey.values }
    var slots: [AccessKey: Slot] { byKey.mapValues(\.slot) }
    var hasRetired: Bool { !retired.isEmpty }

    subscript(key: AccessKey) -> KeptToken? { byKey[key] }
    subscript(slot: Slot) -> KeptToken? { bySlot[slot] }
    func holds(_ token: KeptToken) -> Bool { byKey[token.key] === token }
    func of(_ identity: KeptIdentity) -> [KeptToken] { byKey.values.filter { $0.identity === identity }.inOrder }

    /// A token that was granted more scopes and may serve a key that wants fewer: among the scopes that routes ask for, since there are no
    /// others in memory. The one that lasts longest.
    func lender(for token: KeptToken, on routes: [KeptRoute], at now: UInt64) -> (KeptToken, Grant)? {
        var best: (KeptToken, Grant)?
        var key = token.key
        for route in routes where route.scopes != token.key.scopes && route.origin == token.key.origin {
            key.scopes = route.scopes
            guard let lender = self[key], let held = lender.machine.heldGrant,
                lender.machine.servedGeneration(at: now) == held.generation, now < held.lifetime.refreshAt,
                lender.key.serves(token.key, granted: held.granted),
                held.lifetime.expiresAt > best?.1.lifetime.expiresAt ?? 0
            else { continue }
            best = (lender, held)
        }
        return best
    }

    /// The realm of a route that gives way to a new one; nil where all are at work. The first realm is the whole route's: every path without
    /// an entry would go with it.
    func leastUsedRealm(of route: KeptRoute) -> Int? {
        var least: (index: Int, usedAt: UInt64)?
        for (index, realm) in route.table.realms.enumerated().dropFirst() {
            let token = route.key(of: realm).flatMap { self[$0] }
            if token?.isAtWork == true { continue }
            let usedAt = token?.usedAt ?? 0
            if usedAt < least?.usedAt ?? .max { least = (index, usedAt) }
        }
        return least?.index
    }

    mutating func add(_ token: KeptToken) {
        byKey[token.key] = token
        if token.key.subject == nil { shared[token.key] = token }
        bySlot[token.slot] = token
    }

    mutating func remove(_ token: KeptToken) {
        byKey[token.key] = nil
        shared[token.key] = nil
        bySlot[token.slot] = nil
        retired[token.key] = nil
    }

    /// The store may have what memory does not: it works again, or was another process's meanwhile.
    func expectRows() {
        for token in byKey.values where token.identity.policy.access.persist && token.machine.heldGrant == nil {
            token.mayBeStored = true
        }
    }

    /// Sets aside what no route leads to any more; takes back what one leads to again.
    /// - Parameter named: keys without subjects: one stands for those of all its subjects.
    mutating func retire(keeping named: Set<AccessKey>) {
        for (key, token) in byKey {
            var configured = key
            configured.subject = nil
            token.isRetired = !named.contains(configured)
            retired[key] = token.isRetired ? token : nil
        }
    }

    /// - Returns: what was set aside and is still here.
    mutating func takeRetired() -> [KeptToken] {
        defer { retired = [:] }
        return retired.values.inOrder
    }

    /// The generation of a token or session that is new; never given twice.
    mutating func nextGeneration() -> UInt64 { generations.next() }
}
