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
