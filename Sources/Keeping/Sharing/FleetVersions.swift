internal import Fleet
internal import Numbers
internal import Tokens

/// How far this gateway knows the fleet to have come with each session, and how far what it has itself has come.
///
/// The shared server may lose a session, or be made to give an older one. What was seen once counts, not what stands there now: a refresh
/// token of a version before the newest one may be spent. The knowledge outlives the session, so that nothing older comes back after its
/// end; of sessions of which nothing is held here `mostOver` are remembered, and those that ended the longest ago give way.
struct FleetVersions {
    struct Known: Equatable {
        /// The newest that is known to have been.
        var newest = SessionVersion.none
        /// The version of what this gateway has; nil: it has nothing that the fleet has counted.
        var held: SessionVersion?
        /// The newest is over.
        var isEnded = false
        /// When that became known, in milliseconds since 1970; counts where nothing is held. 0: nobody has said so, and others may have it.
        var moment: Int64 = 0
        /// The others are to know it too.
        var isTold: Bool { isEnded && moment > 0 }
    }

    /// Logouts and purges of people come and go for years.
    static let mostOver = 4096

    /// Sessions of which this gateway has a version.
    private var held: [SessionKey: Known] = [:]
    private var over: [SessionKey: Known] = [:]
    /// Keys that gave way, whose rows are to go.
    private var dropped: [SessionKey] = []

    subscript(key: SessionKey) -> Known? { held[key] ?? over[key] }
    func newest(of key: SessionKey) -> SessionVersion { self[key]?.newest ?? .none }
    /// Nil where nothing is held that the fleet has counted.
    func held(of key: SessionKey) -> SessionVersion? { held[key]?.held }
    /// Whether nothing newer is known than what this gateway has.
    func holdsNewest(of key: SessionKey) -> Bool { held[key].map { $0.held == $0.newest } ?? false }
    /// The version as which the session here may be offered to the fleet. Nil: it is older than the newest that is known, or has ended
    /// but for the rest of its life, so it is of no use to others.
    func offered(_ key: SessionKey) -> SessionVersion? {
        guard let known = self[key] else { return SessionVersion.none }
        return known.held == known.newest ? known.held : nil
    }
    /// Sessions that are known to be over.
    var ended: [(key: SessionKey, version: SessionVersion)] {
        over.compactMap { $0.value.isTold ? ($0.key, $0.value.newest) : nil }
    }
    var count: Int { held.count + over.count }

    /// Whether what the server gives is to take the place of what is held. Of one version the one that has ended counts.
    /// - Parameter isHere: the keeper has a session. A store that keeps one of an identity that is not configured holds it as well.
    func takes(_ version: SessionVersion, of key: SessionKey, isHere: Bool) -> Bool {
        guard let known = self[key] else { return true }
        if version > known.newest { return true }
        return version == known.newest && !known.isTold && !(isHere && known.held == version)
    }

    // MARK: - Changes

    /// This gateway has that version now.
    mutating func holds(_ version: SessionVersion, of key: SessionKey) {
        var known = self[key] ?? Known()
        known.held = version
        known.newest = max(known.newest, version)
        known.isEnded = false
        put(known, key)
    }

    /// Another gateway has made that version.
    /// - Returns: false where something as new is known.
    mutating func saw(_ version: SessionVersion, of key: SessionKey, at wall: Int64) -> Bool {
        var known = self[key] ?? Known()
        guard version > known.newest else { return false }
        known.newest = version
        known.isEnded = false
        known.moment = wall
        put(known, key)
        return true
    }

    /// That version is over. What is held goes with it.
    mutating func ended(_ version: SessionVersion, of key: SessionKey, at wall: Int64) {
        guard version > .none else {
            // A session that the fleet never counted is not looked for either.
            if self[key]?.newest == SessionVersion.none { forget(key) }
            return
        }
        var known = self[key] ?? Known()
        known.held = nil
        known.isEnded = version >= known.newest
        known.newest = max(known.newest, version)
        known.moment = wall
        put(known, key)
    }

    /// An operator decides that what is here is to do.
    /// - Returns: whether anything newer was known.
    mutating func settleFor(held key: SessionKey) -> Bool {
        guard var known = self[key], !holdsNewest(of: key) else { return false }
        guard let version = known.held else {
            let wasMissed = !known.isEnded
            known.isEnded = true
            put(known, key)
            return wasMissed
        }
        known.newest = version
        put(known, key)
        return true
    }

    /// Takes up the row of a store. Knowledge that is here already is younger, unless the store was another process's meanwhile.
    mutating func restore(_ octets: [UInt8], of key: SessionKey, replacing: Bool) {
        guard let stored = Known(octets: octets) else { return }
        guard let known = self[key], !replacing else { return put(stored, key) }
        var merged = known
        merged.isEnded = known.isEnded || stored.isEnded && stored.newest >= known.newest
        merged.newest = max(known.newest, stored.newest)
        put(merged, key)
    }

    /// Keys whose rows are to go.
    mutating func takeDropped() -> [SessionKey] {
        defer { dropped = [] }
        return dropped
    }

    private mutating func forget(_ key: SessionKey) {
        held[key] = nil
        over[key] = nil
    }

    private mutating func put(_ known: Known, _ key: SessionKey) {
        forget(key)
        guard known.held == nil else {
            held[key] = known
            return
        }
        over[key] = known
        guard over.count > Self.mostOver + Self.mostOver / 8 else { return }
        let oldest = over.sorted { $0.value.moment < $1.value.moment }.prefix(over.count - Self.mostOver)
        for (key, _) in oldest {
            over[key] = nil
            dropped.append(key)
        }
    }
}

// MARK: - In rows

extension FleetVersions.Known {
    /// Eight octets of the version, where what is held is the newest: as releases before this one have it. Otherwise a mark, the newest,
    /// and what is held or the moment.
    var octets: [UInt8] {
        guard let held else { return [isEnded ? 2 : 3] + newest.octets + Self.octets(moment) }
        return held == newest ? held.octets : [1] + newest.octets + held.octets
    }

    /// Nil for what no gateway writes. A version that no gateway counts to came from a server that others could write to.
    init?(octets: [UInt8]) {
        if octets.count == 8, let version = SessionVersion(octets: octets) {
            self.init(newest: version, held: version)
            return
        }
        guard octets.count == 17, let newest = SessionVersion(octets: octets[1..<9]) else { return nil }
        self.init(newest: newest)
        switch octets[0] {
        case 1:
            guard let held = SessionVersion(octets: octets[9...]) else { return nil }
            self.held = held
        case 2, 3:
            isEnded = octets[0] == 2
            moment = ReceivedNumber(octets[9...].reduce(Int64(0)) { $0 << 8 | Int64($1) }).clamped(to: 0...Int64.max)
        default: return nil
        }
    }

    private static func octets(_ number: Int64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * Int64($0))) }
    }
}
