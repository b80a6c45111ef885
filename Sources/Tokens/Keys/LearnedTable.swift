public import HotCache

/// The key of what a route has learned of its upstream: the directory of the path (up to its last `/`) and the method.
public struct LearnedEntry: Hashable, Sendable {
    /// The path up to its last slash, the slash included.
    let directory: ByteString
    /// The request method as received (RFC 9110 §9.1).
    let method: ByteString

    /// - Parameter path: as received, without the query.
    public init(path: some Collection<UInt8>, method: some Collection<UInt8>) {
        let bytes = Array(path)
        directory = ByteString(bytes[..<(bytes.lastIndex(of: 0x2F).map { $0 + 1 } ?? 0)])
        self.method = ByteString(method)
    }
}

/// The first challenge binds the route to its realm, whose token is sent on every path at the first try; a challenge of another
/// realm, or an answer without one, adds an entry. The longest prefix wins (docs/design/challenges.md#learned-table).
///
/// The keeper's half; the loops read `LearnedSnapshot`s of it.
public struct LearnedTable: Equatable, Sendable {
    /// The most entries of a table.
    public static let entryLimit = 256
    /// The most named realms of a table.
    static let realmLimit = 16
    /// Realms that cannot be told apart are one, beside the limit: what an upstream makes up must not push out the others.
    static let unnamed: Realm = ""
    /// The limit of URLs in rows of before, when URLs had no table of their own; `forgetRealms` drops them.
    private static let urlLimit = 250
    /// A longer directory or method is not learned.
    static let lengthLimit = 4096

    /// The credential that a path of an entry needs.
    public enum Target: Equatable, Sendable {
        /// Index in `realms`.
        case realm(Int)
        /// No credential.
        case open
    }

    /// The paths that a token is good for.
    public enum Binding: Equatable, Sendable {
        /// Every path of its realm: the first realm is the whole route's, the longest prefix wins.
        case realm
        /// A single URL (`token_scope: url`): tokens are found elsewhere, and an entry is a whole path that needs none.
        case url
    }

    /// The outcome of a lesson.
    public enum Lesson: Equatable, Sendable {
        /// The table differs: publish and store it.
        case learned
        case unchanged
        /// No room for one more entry: served as the route's other paths are.
        case entriesFull
        /// The table holds no further realm: another one has to give way first.
        case realmsFull
    }

    /// The first is the bound one.
    public private(set) var realms: [Realm] = []
    /// The targets by entry; the longest directory that begins a path counts for the path.
    private(set) var entries: [LearnedEntry: Target] = [:]
    /// Fixed for the life of the table.
    let binding: Binding

    /// A table that has learned nothing.
    public init(binding: Binding = .realm) { self.binding = binding }

    /// The realm that paths without an entry need; nil before the first challenge.
    public var boundRealm: Realm? { realms.first }

    // MARK: - Learning

    /// A challenge of `realm` came on this path.
    public mutating func learnChallenge(of realm: Realm, at entry: LearnedEntry) -> Lesson {
        guard let index = realms.firstIndex(of: realm) else {
            let beside = realm == Self.unnamed || realms.contains(Self.unnamed) ? 1 : 0
            guard realms.count < Self.realmLimit + beside else { return .realmsFull }
            guard realms.isEmpty || hasRoom(for: entry) else { return .entriesFull }
            realms.append(realm)
            set(entry, .realm(realms.count - 1))
            return .learned
        }
        guard target(of: entry) != .realm(index) else { return .unchanged }
        guard index == 0 || hasRoom(for: entry) else { return .entriesFull }
        return set(entry, .realm(index)) ? .learned : .entriesFull
    }

    /// An answer without a credential was no challenge.
    public mutating func learnOpen(at entry: LearnedEntry) -> Lesson {
        guard target(of: entry) != .open else { return .unchanged }
        guard hasRoom(for: entry) else { return .entriesFull }
        entries[entry] = .open
        return .learned
    }

    // MARK: - Forgetting

    /// Nothing leads to the realm any more; its paths are as if nobody had met a challenge there.
    /// - Precondition: `index` is one of `realms`.
    public mutating func forgetRealm(at index: Int) -> Realm {
        let realm = realms.remove(at: index)
        entries = entries.compactMapValues { target in
            guard case .realm(let other) = target, other >= index else { return target }
            return other == index ? nil : .realm(other - 1)
        }
        return realm
    }

    /// Forgets all paths but those that need no credential.
    public mutating func forgetRealms() {
        realms = []
        entries = entries.filter { $0.value == .open }
    }

    /// The path needs a credential after all.
    /// - Returns: whether it counted as one that needs none.
    public mutating func forgetOpen(_ entry: LearnedEntry) -> Bool {
        guard entries[entry] == .open else { return false }
        entries[entry] = nil
        return true
    }

    /// Forgets one path, an open one where there is any.
    /// - Parameter number: picks it.
    /// - Returns: false when there is none.
    public mutating func forgetEntry(at number: Int) -> Bool {
        let open = entries.filter { $0.value == .open }
        let chosen = open.isEmpty ? entries : open
        guard !chosen.isEmpty else { return false }
        entries[chosen[chosen.index(chosen.startIndex, offsetBy: number % chosen.count)].key] = nil
        return true
    }

    /// Whether it is of a size that is learned at all.
    public func canHold(_ entry: LearnedEntry) -> Bool {
        max(entry.directory.count, entry.method.count) <= Self.lengthLimit
    }

    /// The target of the longest prefix; nil while nothing is known.
    public func target(of entry: LearnedEntry) -> Target? {
        if binding == .url { return entries[entry] }
        var best: (length: Int, target: Target)?
        for (known, target) in entries where known.method == entry.method {
            let length = known.directory.count
            guard length >= best?.length ?? 0, entry.directory.bytes.starts(with: known.directory.bytes) else {
                continue
            }
            best = (length, target)
        }
        return best?.target ?? (realms.isEmpty ? nil : .realm(0))
    }

    private func hasRoom(for entry: LearnedEntry) -> Bool {
        guard canHold(entry) else { return false }
        return entries[entry] != nil || entries.count < Self.entryLimit
    }

    /// An entry that says what the route says anyway is not kept, unless a shorter one says otherwise.
    @discardableResult
    private mutating func set(_ entry: LearnedEntry, _ target: Target) -> Bool {
        entries[entry] = nil
        if self.target(of: entry) == target { return true }
        guard hasRoom(for: entry) else { return false }
        entries[entry] = target
        return true
    }

    // MARK: - Out and in

    /// For the loops.
    /// - Parameter slot: the hot-cache slot of the key that a realm stands for on this route.
    public func snapshot(seed: UInt64, slot: (Realm) -> Slot) -> LearnedSnapshot {
        LearnedSnapshot(slots: realms.map(slot), entries: entries, binding: binding, seed: seed)
    }

    static let version: UInt8 = 1
    static let layer: UInt8 = 4

    /// For the store; equal tables are equal bytes.
    public func encode() -> [UInt8] {
        var writer = ByteWriter(Self.version, Self.layer)
        writer.put(UInt32(realms.count))
        for realm in realms { writer.put(realm.name.bytes) }
        writer.put(UInt32(entries.count))
        let sorted = entries.sorted { ($0.key.directory, $0.key.method) < ($1.key.directory, $1.key.method) }
        for (entry, target) in sorted {
            writer.put(entry.directory.bytes)
            writer.put(entry.method.bytes)
            writer.put(Self.code(target))
        }
        return writer.bytes
    }

    /// Reads what `encoded` wrote.
    /// - Throws: `KeyCodec.Fault` for anything else.
    public init(decoding bytes: [UInt8], binding: Binding = .realm) throws(KeyCodec.Fault) {
        self.binding = binding
        var reader = try ByteReader(bytes, Self.version, Self.layer)
        let realmCount = try reader.number()
        guard realmCount <= UInt32(binding == .url ? Self.urlLimit : Self.realmLimit) + 1 else { throw .tooLong }
        for _ in 0..<realmCount {
            let realm = Realm(ByteString(try reader.member()))
            guard !realms.contains(realm) else { throw .notCanonical }
            realms.append(realm)
        }
        let entryCount = try reader.number()
        guard entryCount <= UInt32(Self.entryLimit) else { throw .tooLong }
        for _ in 0..<entryCount {
            let directory = try reader.member()
            let method = try reader.member()
            let code = try reader.number()
            guard max(directory.count, method.count) <= Self.lengthLimit else { throw .tooLong }
            let entry = LearnedEntry(path: directory, method: method)
            guard entry.directory.bytes == directory, code <= realmCount, entries[entry] == nil else {
                throw .notCanonical
            }
            entries[entry] = code == 0 ? .open : .realm(Int(code) - 1)
        }
        try reader.end()
    }

    private static func code(_ target: Target) -> UInt32 {
        switch target {
        case .open: 0
        case .realm(let index): UInt32(index) + 1
        }
    }
}
