internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// What the keeper has that the next configuration may go on with.
struct KeeperHoldings: @unchecked Sendable {
    var routes: [KeptRoute]
    var slots: [AccessKey: Slot]
}

/// The next configuration as the keeper takes it up: compiled beside it, with the numbers and slots of its predecessor.
struct KeeperChange: @unchecked Sendable {
    var identities: [KeptIdentity]
    var routes: [KeptRoute]
    var keys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)]
    var subjects: SubjectBook.Limits
}

/// What no configuration names any more, kept for the exchanges that began when one did.
struct Retiring {
    var tokens: [AccessKey: KeptToken] = [:]
    var routes: [Int: KeptRoute] = [:]
    var identities: [KeptIdentity] = []
    var alarm: Alarm?
    /// A plan is being compiled that may name it again.
    var isHeld = false

    /// Nanoseconds: more than any exchange waits for a token or a connection, so that none asks for one that is gone.
    static let patience: UInt64 = 90_000_000_000
}

/// A reload, as the keeper lives through it: identities and tokens that are the same go on as the same objects, with the same slots.
extension Keeper {
    /// Nothing that is told here is dropped until `take` or `keepAsIs`.
    func holdings() -> KeeperHoldings {
        retiring.isHeld = true
        return KeeperHoldings(
            routes: routes + retiring.routes.values.sorted { $0.number < $1.number },
            slots: tokens.mapValues(\.slot))
    }

    /// The reload failed: slots that were taken for it are free again.
    func keepAsIs(giving slots: [Slot]) {
        for slot in slots { cache.releaseSlot(slot) }
        retiring.isHeld = false
    }

    func take(_ next: KeeperChange) {
        retiring.isHeld = false
        subjects.limits = next.subjects
        newRealms.limits = next.subjects
        let arrived = takeIdentities(next)
        let routes = takeRoutes(next, arrived)
        var fresh: [KeptToken] = []
        for seed in next.keys where tokens[seed.key] == nil {
            guard let identity = arrived[ObjectIdentifier(seed.identity)] else { continue }
            fresh.append(adopt(key: seed.key, slot: seed.slot, identity: identity, wanted: seed.wanted))
        }
        retireTokens(keeping: Set(next.keys.map(\.key)))
        warmUp(fresh, routes)
        // Values may have changed with the places that they are read from, and a reload is how an operator says: look again.
        secretsMayHaveChanged()
        watchLogins()
    }

    // MARK: - Identities

    /// - Returns: what each of the compiled ones became: itself, or the one that was there.
    private func takeIdentities(_ next: KeeperChange) -> [ObjectIdentifier: KeptIdentity] {
        let before = identities + retiring.identities
        // Those that nobody has taken yet, in their order: few are the same but for their names.
        var left = Dictionary(grouping: before, by: \.digest)
        let wereRetiring = Set(retiring.identities.map { ObjectIdentifier($0) })
        var arrived: [ObjectIdentifier: KeptIdentity] = [:]
        var returned: [KeptIdentity] = []
        var changed: Set<ObjectIdentifier> = []
        var staying: Set<ObjectIdentifier> = []
        identities = next.identities.map { compiled in
            let alike = left[compiled.digest] ?? []
            // Two may be equal but for their names: then the name decides.
            let position =
                alike.firstIndex { $0.isSame(as: compiled) && $0.plan.name == compiled.plan.name }
                ?? alike.firstIndex { $0.isSame(as: compiled) }
            guard let position else {
                arrived[ObjectIdentifier(compiled)] = compiled
                return compiled
            }
            let same = alike[position]
            left[compiled.digest]?.remove(at: position)
            staying.insert(ObjectIdentifier(same))
            arrived[ObjectIdentifier(compiled)] = same
            if same.policy.differs(from: compiled.policy) { changed.insert(ObjectIdentifier(same)) }
            same.take(compiled)
            if same.policy.forgetsWhenReplaced, wereRetiring.contains(ObjectIdentifier(same)) { returned.append(same) }
            return same
        }
        retiring.identities = before.filter { !staying.contains(ObjectIdentifier($0)) }
        let gone = Set(retiring.identities.map { ObjectIdentifier($0) }).subtracting(wereRetiring)
        for token in tokens.values {
            let identity = ObjectIdentifier(token.identity)
            if changed.contains(identity) {
                apply(token.machine.settingsChanged(to: token.identity.policy.access, at: now), to: token)
            }
            // Tokens of an identity that is gone leave the store at once (docs/design/tokens.md#rule-8). In memory they serve the exchanges
            // that began with them.
            if gone.contains(identity) { deleteRow(of: token) }
        }
        matchLanes()
        sweepMemory()
        for identity in returned { raiseEpoch(of: identity, cause: .purge) }
        return arrived
    }

    /// Also one that no configuration names any more: an outcome of its last flight may be on its way.
    func identity(of digest: IdentityDigest) -> KeptIdentity? {
        identitiesByDigest[digest] ?? retiring.identities.first { $0.digest == digest }
    }

    // MARK: - Routes

    /// - Returns: those that are new.
    private func takeRoutes(_ next: KeeperChange, _ arrived: [ObjectIdentifier: KeptIdentity]) -> [KeptRoute] {
        let before = routes
        var fresh: [KeptRoute] = []
        routes = next.routes.map { compiled in
            let identity = compiled.identity.flatMap { arrived[ObjectIdentifier($0)] }
            if let same = routesByNumber[compiled.number] {
                same.take(compiled, identity: identity)
                retiring.routes[same.number] = nil
                return same
            }
            compiled.take(compiled, identity: identity)
            routesByNumber[compiled.number] = compiled
            fresh.append(compiled)
            return compiled
        }
        let numbers = Set(routes.map(\.number))
        for gone in before where !numbers.contains(gone.number) { retiring.routes[gone.number] = gone }
        inheritTables(fresh, from: before)
        return fresh
    }

    /// What a route has learned is also another one's, of another name or place in the file, that leads to the same.
    private struct Lesson: Hashable {
        let pathPrefix: String
        let key: [UInt8]
    }

    private func lesson(of route: KeptRoute) -> Lesson? {
        guard let identity = route.identity, route.published != nil else { return nil }
        return Lesson(pathPrefix: route.pathPrefix, key: tableKey(of: route, identity))
    }

    private func inheritTables(_ fresh: [KeptRoute], from before: [KeptRoute]) {
        guard fresh.contains(where: { $0.published != nil }) else { return }
        let sources = Dictionary(before.compactMap { route in lesson(of: route).map { ($0, route) } }) { first, _ in
            first
        }
        for route in fresh {
            guard let source = lesson(of: route).flatMap({ sources[$0] }) else { continue }
            route.table = source.table
            publishTable(of: route)
        }
    }

    // MARK: - Tokens

    /// Sets aside what no route leads to any more; takes back what one leads to again.
    private func retireTokens(keeping fixed: Set<AccessKey>) {
        var named = fixed
        for route in routes where route.published != nil {
            for realm in route.table.realms { if let key = route.key(of: realm) { named.insert(key) } }
        }
        for (key, token) in tokens {
            var configured = key
            // One configured key stands for those of all its subjects.
            configured.subject = nil
            let isNamed = named.contains(configured)
            token.isRetired = !isNamed
            retiring.tokens[key] = isNamed ? nil : token
        }
        guard !retiring.tokens.isEmpty || !retiring.routes.isEmpty || !retiring.identities.isEmpty else { return }
        dropRetired(after: Retiring.patience)
    }

    /// One alarm for all: a later reload puts it off, which costs a little memory and no exchange.
    private func dropRetired(after patience: UInt64) {
        set(&retiring.alarm, at: now + patience) { keeper in
            if keeper.retiring.isHeld { return keeper.dropRetired(after: 1_000_000_000) }
            keeper.dropRetired()
        }
    }

    private func dropRetired() {
        for token in retiring.tokens.values {
            releasePostponed(of: token)
            apply(token.machine.retired(at: now), to: token)
            token.alarm.take()?.close()
            removeKey(of: token)
            tokens[token.key] = nil
            shared[token.key] = nil
            tokensBySlot[token.slot] = nil
            cache.releaseSlot(token.slot)
        }
        for (number, route) in retiring.routes {
            routesByNumber[number] = nil
            route.alarm.take()?.close()
        }
        leaveLanes(Set(retiring.identities.map(\.digest)).filter { !isConfigured($0) })
        retiring.tokens = [:]
        retiring.routes = [:]
        retiring.identities = []
    }
}

extension IssuerNetwork {
    fileprivate func isSame(as other: IssuerNetwork) -> Bool {
        timeout == other.timeout && IssuerKey(origin: "", network: self) == IssuerKey(origin: "", network: other)
    }
}

extension IdentityPolicy {
    /// Whether an operator who changed it expects another try. Where secrets are read from is left out: their values tell.
    func differs(from other: IdentityPolicy) -> Bool {
        access != other.access || lifetime != other.lifetime || attempts != other.attempts
            || !network.isSame(as: other.network)
            || startup != other.startup
    }
}
